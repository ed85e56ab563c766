"""The probability of each option at the token where a model chose one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fabula.models.base import Choice

Position = tuple[str, Sequence[tuple[str, float]]]
"""A token of the answer, and its alternatives with their log-probabilities."""


def option_masses(positions: Iterable[Position], choice: Choice) -> dict[str, float]:
    """The probability mass of each option at the verdict; empty if the verdict is not found.

    The verdict is the first token that is an option, or the last one if reasons come first.
    Spellings of an option (`Yes`, ` yes`, `YES.`) add up. The masses do not sum to 1: the rest is
    for other tokens. Options of several words have none: their first token may begin another
    answer.
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
                # A log-probability is at most 0, whatever a server says.
                masses[option] += math.exp(min(0.0, logprob)) if not math.isnan(logprob) else 0.0
        return masses
    return {}


def _plain(token: str) -> str:
    return token.strip(" \n\t\u0120\u2581.,:;*\"'").casefold()
