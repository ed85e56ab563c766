"""How a long job reports its progress and asks for confirmation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from fabula.core.errors import FabulaError

if TYPE_CHECKING:
    from fabula.models.cost import Estimate


class Progress(Protocol):
    """Receives the progress of a job: a bar, log lines, a page, or nothing."""

    def begin(self, stage: str, total: int | None) -> None:
        """Start a stage of `total` steps; None if their number is unknown."""

    def advance(self, n: int) -> None:
        """Mark `n` more steps as done."""

    def say(self, stage: str) -> None:
        """Rename the current stage."""

    def tell(self, sentence: str) -> None:
        """Show a notice that stays visible."""


class _Silent(Progress):
    """Ignores all progress."""


SILENT: Progress = _Silent()  # type: ignore[abstract]

Confirm = Callable[[str, "Estimate"], None]
"""Called with a model and its estimated cost before its first call; raises to stop."""


def agreed(model: str, estimate: Estimate) -> None:
    """A `Confirm` that accepts everything; cost limits still apply."""


class Declined(FabulaError):  # noqa: N818 (a decision, not a fault)
    """The user does not agree to the cost: raised by a `Confirm`."""


Agree = Callable[..., None]
"""Asks a question, below lines if there are any, before what cannot be undone; raises to stop."""


def agreed_to(question: str, lines: Iterable[str] = (), /) -> None:
    """An `Agree` that asks nobody."""
