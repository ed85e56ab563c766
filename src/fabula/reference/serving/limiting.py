"""What a request may ask for, whatever it is about."""

from __future__ import annotations

from collections.abc import Sequence

from fabula.reference.serving.messages import Limits
from fabula.reference.serving.snapshots import State

__all__ = ["NotHere", "TooLarge", "Unfit", "excluded", "hold"]


class TooLarge(Exception):  # noqa: N818 (a reply, not an error)
    """More is asked for than a limit allows; the text says which."""


class Unfit(Exception):  # noqa: N818 (as above)
    """The parts of a request do not fit each other."""


class NotHere(Exception):  # noqa: N818 (as above)
    """A document, or a kind of passages, that there is none of."""


def excluded(state: State, numbers: Sequence[int], limits: Limits) -> Sequence[int]:
    """Numbers of documents that are left out. Raises `TooLarge`, `Unfit`."""
    hold("documents excluded", len(numbers), limits.max_excluded)
    if max(numbers, default=-1) >= state.n_numbers:
        raise Unfit("exclude: one is beyond the numbers of documents")
    return numbers


def hold(what: str, n: int, most: int) -> None:
    """Raise `TooLarge` where there are more than the limit."""
    if n > most:
        raise TooLarge(f"{n:,} {what}; a request may have {most:,}")
