"""What a long job tells, and asks, whoever started it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fabula.models.cost import Estimate

__all__ = ["SILENT", "Confirm", "Progress", "agreed"]


class Progress(Protocol):
    """How far a job is: a bar, lines of a log, a page, or nothing."""

    def begin(self, stage: str, total: int | None) -> None:
        """A new stage of `total` steps; None where their number is unknown."""

    def advance(self, n: int) -> None:
        """`n` more steps are done."""

    def say(self, stage: str) -> None:
        """Another name for the stage."""

    def tell(self, sentence: str) -> None:
        """A notice that stays to be read."""


class _Silent:
    def begin(self, stage: str, total: int | None) -> None:
        pass

    def advance(self, n: int) -> None:
        pass

    def say(self, stage: str) -> None:
        pass

    def tell(self, sentence: str) -> None:
        pass


SILENT: Progress = _Silent()
"""For a job that nobody watches."""

Confirm = Callable[[str, "Estimate"], None]
"""Told which model will be asked and what it will take before its first call; raises to stop."""


def agreed(model: str, estimate: Estimate) -> None:
    """A `Confirm` that agrees to everything; a limit of cost still holds."""
