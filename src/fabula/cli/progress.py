"""A progress bar on standard error, when somebody is looking."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Bar", "progress_bar"]


@dataclass(frozen=True, slots=True)
class Bar:
    """Where a long job tells how far it is. Does nothing when nobody is looking."""

    progress: Progress | None = None
    task: TaskID | None = None

    def advance(self, n: int) -> None:
        if self.progress is not None and self.task is not None:
            self.progress.advance(self.task, n)

    def say(self, stage: str) -> None:
        if self.progress is not None and self.task is not None:
            self.progress.update(self.task, description=stage)

    def begin(self, stage: str, total: int) -> None:
        """Start anew from nothing, with a known total."""
        if self.progress is not None and self.task is not None:
            self.progress.reset(self.task, description=stage, total=total)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        if self.progress is None:
            yield
            return
        self.progress.stop()
        yield
        self.progress.start()


@contextmanager
def progress_bar(title: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Bar]:
    """Show a bar with an estimate of the time left, unless standard error is no terminal."""
    if not sys.stderr.isatty():
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(title, total=total))
