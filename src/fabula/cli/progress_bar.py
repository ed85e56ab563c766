"""Progress of long jobs, on standard error."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

from fabula.cli.derived import in_options
from fabula.cli.notices import is_quiet, is_verbose, log_step, notify

_SECONDS_BETWEEN_LINES = 30.0


class _Lines:
    """Progress lines printed at intervals if a bar cannot be drawn (a log, a pipe)."""

    def __init__(self, stage: str, total: int | None) -> None:
        self.begin(stage, total)
        self._last = time.monotonic()

    def begin(self, stage: str, total: int | None) -> None:
        self.stage, self._total, self._done = stage, total, 0

    def advance(self, n: int) -> None:
        self._done += n
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            share = f"{self._done / self._total:.0%}" if self._total else f"{self._done:,}"
            print(f"{self.stage}: {share}", file=sys.stderr, flush=True)


def _step(stage: str) -> None:
    """Log a step; print it too if the output is verbose and no bar is drawn."""
    log_step(stage)
    if is_verbose() and not sys.stderr.isatty():
        print(stage, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Bar:
    """Progress of a long job: a bar on a terminal, otherwise a line at intervals."""

    progress: Progress | None = None
    task: TaskID | None = None
    lines: _Lines | None = None

    def advance(self, n: int) -> None:
        if self.progress is not None and self.task is not None:
            self.progress.advance(self.task, n)
        elif self.lines is not None:
            self.lines.advance(n)

    def say(self, stage: str) -> None:
        _step(stage)
        if self.progress is not None and self.task is not None:
            self.progress.update(self.task, description=stage)
        elif self.lines is not None:
            self.lines.stage = stage

    def tell(self, sentence: str) -> None:
        """Print a permanent message above the bar."""
        sentence = in_options(sentence)
        if self.progress is not None:
            log_step(sentence, logging.WARNING)
            self.progress.console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        else:
            notify(sentence)

    def begin(self, stage: str, total: int | None) -> None:
        """Restart from zero; if the total is unknown, only the stage is shown."""
        _step(stage)
        if self.progress is not None and self.task is not None:
            self.progress.reset(self.task, description=stage, total=total or 0)
        elif self.lines is not None:
            self.lines.begin(stage, total or 0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the bar during a prompt."""
        if self.progress is None:
            yield
            return
        self.progress.stop()
        yield
        self.progress.start()


@contextmanager
def progress_bar(title: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Bar]:
    """Show a bar with the estimated time left; if standard error is not a terminal, lines."""
    _step(title)
    if is_quiet():
        yield Bar()
        return
    if not sys.stderr.isatty():
        yield Bar(lines=_Lines(title, total))
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
