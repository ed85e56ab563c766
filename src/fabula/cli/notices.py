"""Notices of a command: on standard error, and in a log."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from fabula.control_characters import without_controls
from fabula.errors import InputError

_QUIET, _VERBOSE, _LOG = (f"{__name__}.{name}" for name in ("quiet", "verbose", "log"))
_logger = logging.getLogger("fabula.cli")
_LOGGED = re.compile(rb"\d{4}-\d\d-\d\d |$")
"""How a log begins, or an empty one."""


def common_options() -> list[click.Option]:
    """Return the options for notices and logging that every command has."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[f"{__name__}.{param.name}"] = value

    return [
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=keep,
            help="Show neither progress nor notices on standard error.",
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=keep,
            help="Show each step, and the full traceback of an error.",
        ),
        click.Option(
            ["--log"],
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            expose_value=False,
            callback=keep,
            help="Append steps, notices and errors to this file, with the time.",
        ),
    ]


def is_quiet() -> bool:
    """Return whether the running command is quiet."""
    return _meta(_QUIET)


def is_verbose() -> bool:
    """Return whether the running command is verbose."""
    return _meta(_VERBOSE)


def _meta(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))


def _is_log(path: Path) -> bool:
    """Whether a log may be continued there: nobody's novel is."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return bool(_LOGGED.match(file.read(20)))


@contextmanager
def logging_to(ctx: click.Context) -> Iterator[None]:
    """Log to the command's log file while it runs, if it names one."""
    path = ctx.meta.get(_LOG)
    if path is None:
        yield
        return
    try:
        if path.exists() and not _is_log(path):
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
    if not is_quiet():
        print(sentence, file=sys.stderr, flush=True)


def log_step(stage: str, level: int = logging.INFO) -> None:
    """Log a step of the work."""
    if _logger.handlers:
        _logger.log(level, "%s", without_controls(stage))


def log_error(sentence: str) -> None:
    """Log an error."""
    log_step(sentence, logging.ERROR)
