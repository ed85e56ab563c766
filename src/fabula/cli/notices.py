"""What a running command says: notices and progress on standard error, and a log.

Settings that sentences name are shown as options of the command.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.core.errors import InputError, without_controls
from fabula.core.settings import in_names

if TYPE_CHECKING:
    from rich.progress import Progress

_QUIET, VERBOSE, _LOG = (f"{__name__}.{name}" for name in ("quiet", "verbose", "log"))
_logger = logging.getLogger("fabula.cli")
_SECONDS_BETWEEN_LINES = 30.0
_LOGGED = re.compile(rb"\d{4}-\d\d-\d\d |$")
"""How a log begins, or an empty one."""


def common_options() -> list[click.Option]:
    """Return the options for notices and logging that every command has."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[f"{__name__}.{param.name}"] = value

    common: Any = {"expose_value": False, "callback": keep}
    quiet = "Show neither progress nor notices on standard error."
    verbose = "Show each step, and the full traceback of an error."
    log = "Append steps, notices and errors to this file, with the time."
    file: Any = click.Path(path_type=Path, dir_okay=False)
    return [
        click.Option(["-q", "--quiet"], is_flag=True, help=quiet, **common),
        click.Option(["-v", "--verbose"], is_flag=True, help=verbose, **common),
        click.Option(["--log"], type=file, metavar="FILE", help=log, **common),
    ]


def _is(key: str) -> bool:
    """Whether the running command is quiet, or verbose."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))


@contextmanager
def logging_to(ctx: click.Context) -> Iterator[None]:
    """Log to the command's log file while it runs, if it names one."""
    path = ctx.meta.get(_LOG)
    if path is None:
        yield
        return
    try:
        if path.exists():
            with path.open("rb") as file:
                is_log = _LOGGED.match(file.read(20)) is not None
        # Nobody's novel is continued as a log.
        if path.exists() and not is_log:
            raise InputError(f"{path}: exists and is not a log of Fabula; name another `log`")
        handler = logging.FileHandler(path, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot write the log there ({error.strerror})") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _logger.addHandler(handler)
    _logger.setLevel(logging.DEBUG)
    _logger.propagate = False
    try:
        yield
    finally:
        _logger.removeHandler(handler)
        handler.close()


def notify(sentence: str) -> None:
    """Print a permanent notice on standard error, and log it."""
    log_step(sentence, logging.WARNING)
    if not _is(_QUIET):
        print(sentence, file=sys.stderr, flush=True)


def log_step(stage: str, level: int = logging.INFO) -> None:
    """Log a step of the work."""
    if _logger.handlers:
        _logger.log(level, "%s", without_controls(stage))


def in_options(sentence: str) -> str:
    """Replace settings named as `name` in a sentence with options of the running command."""
    context = click.get_current_context(silent=True)
    return sentence if context is None else with_options(sentence, context.command)


def with_options(sentence: str, command: click.Command) -> str:
    options: dict[str, str] = {}
    for param in command.params:
        if isinstance(param, click.Option):
            long = [*param.secondary_opts, param.opts[-1]]
            options |= {option.lstrip("-").replace("-", "_"): option for option in long}
            name = param.opts[-1]
            if getattr(param, "tuned", False):
                name = f"--set {name[2:]}" + ("=true" if param.type is click.BOOL else "")
            options[getattr(param, "setting", param.name)] = name
    return in_names(sentence, options)


def _step(stage: str) -> None:
    """Log a step; print it too if the output is verbose and no bar is drawn."""
    log_step(stage)
    if _is(VERBOSE) and not sys.stderr.isatty():
        print(stage, file=sys.stderr, flush=True)


@dataclass(slots=True)
class Bar:
    """Progress of a long job: a bar on a terminal, else lines at intervals (a log, a pipe)."""

    progress: Progress | None = None
    task: Any = None
    prints: bool = False
    """Whether progress is printed in lines where no bar is drawn."""
    stage: str = ""
    total: int | None = None
    done: int = 0
    last: float = 0.0
    """When a line was printed last."""

    def advance(self, n: int) -> None:
        self.done += n
        if self.progress is not None:
            self.progress.advance(self.task, n)
        elif self.prints and (now := time.monotonic()) - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = now
            share = f"{self.done / self.total:.0%}" if self.total else f"{self.done:,}"
            print(f"{self.stage}: {share}", file=sys.stderr, flush=True)

    def say(self, stage: str) -> None:
        _step(stage)
        self.stage = stage
        if self.progress is not None:
            self.progress.update(self.task, description=stage)

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
        self.stage, self.total, self.done = stage, total, 0
        if self.progress is not None:
            self.progress.reset(self.task, description=stage, total=total or 0)

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
    if _is(_QUIET):
        yield Bar()
        return
    if not sys.stderr.isatty():
        yield Bar(prints=True, stage=title, total=total, last=time.monotonic())
        return
    from rich import progress as bars
    from rich.console import Console

    count = bars.DownloadColumn() if in_bytes else bars.MofNCompleteColumn()
    left = bars.TimeRemainingColumn()
    columns = bars.TextColumn("{task.description}"), bars.BarColumn(), count, left
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(title, total=total))
