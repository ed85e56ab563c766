"""Limits that apply to all requests."""

from __future__ import annotations

from collections.abc import Sequence

from fabula.reference.serving.messages import Limits
from fabula.reference.serving.snapshots import State

__all__ = ["NotHere", "TooLarge", "Unfit", "excluded", "hold"]


class TooLarge(Exception):  # noqa: N818 (a reply, not an error)
    """A request exceeds a limit; the message says which."""


class Unfit(Exception):  # noqa: N818 (as above)
    """The parts of a request are inconsistent."""


class NotHere(Exception):  # noqa: N818 (as above)
    """There is no such document, or there are no such passages."""


def excluded(state: State, numbers: Sequence[int], limits: Limits) -> Sequence[int]:
    """The numbers of excluded documents, checked. Raises `TooLarge`, `Unfit`."""
    hold("documents excluded", len(numbers), limits.max_excluded)
    if max(numbers, default=-1) >= state.n_numbers:
        raise Unfit("exclude: one is beyond the document numbers")
    return numbers


def hold(what: str, n: int, most: int) -> None:
    """Raise `TooLarge` if `n` exceeds the limit."""
    if n > most:
        raise TooLarge(f"{n:,} {what}; the limit per request is {most:,}")
