"""How probable a model found each option, at the token where it chose one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fabula.models.base import Choice

__all__ = ["Position", "option_masses"]

Position = tuple[str, Sequence[tuple[str, float]]]
"""A token of the answer, and what could have stood there with its log-probability."""


def option_masses(positions: Iterable[Position], choice: Choice) -> dict[str, float]:
    """The probability mass of each option where the verdict stands; empty where it is not found.

    The verdict is the first token that is an option, or the last one where reasons come first.
    Spellings of an option (`Yes`, ` yes`, `YES.`) add up. The masses do not add up to 1: the rest
    is what the model would rather have said. Options of several words have none: their first token
    may begin another answer.
    """
    if any(" " in option for option in choice.options):
        return {}
    folded = {option.casefold(): option for option in choice.options}
    tokens = list(positions)
    for token, alternatives in tokens if choice.is_first else reversed(tokens):
        if _plain(token) not in folded or not alternatives:
            continue
        masses = dict.fromkeys(choice.options, 0.0)
        for other, logprob in alternatives:
            option = folded.get(_plain(other))
            if option is not None:
                masses[option] += math.exp(logprob)
        return masses
    return {}


def _plain(token: str) -> str:
    return token.strip(" \n\t\u0120\u2581.,:;*\"'").casefold()
