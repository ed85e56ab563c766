"""The `fabula` command: its groups, and how errors and interrupts reach the user.

SIGTERM and SIGHUP end a command as Ctrl-C does: finished work is kept. Python drops an interrupt
that arrives during a callback (of a weak reference, of a garbage collection): it prints the
traceback and carries on; such an interrupt is sent again. Compiled code that an interrupt reaches
may raise `SystemError` because of it, as Numba's does; that is an interrupt too.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from fabula.core import N_UNSEARCHED, __version__
from fabula.core.errors import BusyError, FabulaError, LookupFailed, ModelError, without_controls
from fabula.jobs.registry import DEFAULTS, jobs, sections

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# 1 means partial success; commands set it themselves.
USAGE, INPUT, BUSY, SERVICE, INTERRUPTED = 2, 3, 4, 5, 130
"""Exit codes. `docs/exit_codes.md` explains them for scripts."""
_AGAIN_AFTER_S = 0.01
_RUN_AGAIN = "and run the same command again: finished work is kept"
_CODES = ((BusyError, BUSY), (ModelError, SERVICE), (LookupFailed, SERVICE), (FabulaError, INPUT))
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_GROUPS = {
    "continuation": "Continue stories by a sentence, and measure how.",
    "detect": "Distinguish human from machine text, with error rates.",
    "feedback": "Corrupt stories, ask for feedback, and measure it.",
    "judge": "Have models answer a rubric, and see what it is worth.",
    "reference": "Build, search and serve reference corpora.",
    "replicate": "Recompute a paper's tables from its released data.",
    "rubric": "Show rubrics, check, import and draft them.",
    "stories": "Draw the stories of a study, or have models write them.",
    "study": "Run a blinded study with human participants.",
}
"""What each group of commands is for."""


class _Jobs(click.Group):
    """Commands made from the registry of jobs, each when it is asked for.

    `before` is the group's own words: "" for `fabula`, "judge " for `fabula judge`.
    """

    def __init__(self, *args: Any, before: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.before = before

    def _named(self) -> dict[str, list[tuple[str, str]]]:
        """By section, the commands here with what they are for."""
        by_section: dict[str, list[tuple[str, str]]] = {}
        for section, members in sections().items():
            shown: dict[str, str] = {}
            for job in members:
                if job.name.startswith(self.before):
                    word, _, rest = job.name.removeprefix(self.before).partition(" ")
                    shown[word] = _GROUPS.get(word, f"{word} ...") if rest else job.short
            if shown:
                by_section[section] = list(shown.items())
        return by_section

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [word for rows in self._named().values() for word, _ in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        words = self.before + cmd_name
        by_words = jobs()
        if words in by_words:
            from fabula.cli.derived import command_of

            return command_of(by_words[words])
        if any(name.startswith(f"{words} ") for name in by_words):
            text = short = _GROUPS.get(words, words)
            if usual := DEFAULTS.get(words):
                text += f" `fabula {words} ...` is short for `fabula {words} {usual} ...`."
            return _Jobs(cmd_name, before=f"{words} ", help=text, short_help=short)
        return None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        usual = DEFAULTS.get(self.before.strip())
        names = [*self.list_commands(ctx), *ctx.help_option_names]
        # `--help` alone is of the group; with the name of a set of settings it is of that command.
        is_of_set = len(args) == 2 and args[0] in ctx.help_option_names and args[1] not in names
        if usual and args and (args[0] not in names or is_of_set):
            args = [usual, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, rows in self._named().items():
            with formatter.section("Commands" if self.before else section):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        pairs = [pair for rows in self._named().values() for pair in rows]
        items = [CompletionItem(w, help=text) for w, text in pairs if w.startswith(incomplete)]
        return items + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=_Jobs, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="fabula")
def cli() -> None:
    """Measure creative writing, by people and by language models.

    \b
    Build a reference corpus, then see on one page what can be said about a text:
      fabula reference build books/ --out books.ref
      fabula report story.txt --reference books.ref
    """


def main() -> None:
    """Run the command line and exit with a code."""
    if sys.stdout is None:
        # Started with it closed: what it prints would be lost without a word.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lasts)
        click.echo("standard output is closed, so nothing is printed there", err=True)
    gc.set_threshold(N_UNSEARCHED)
    try:
        with interrupted_by_signals():
            # For a command that ends by `ctx.exit`, click returns the code.
            code = cli(standalone_mode=False)
        if code:
            sys.exit(code)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except FabulaError as error:
        _fail(str(error), next(code for kind, code in _CODES if isinstance(error, kind)))
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; finished work is kept: run the command again to resume", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe; nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(USAGE)
    except OSError as error:
        what = error.strerror or str(error)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            what = "too many files are open; raise the limit (`ulimit -n 4096`), or lower --jobs, "
            what += _RUN_AGAIN
        elif error.errno == errno.ENOSPC:
            what = f"the disk is full; free some space {_RUN_AGAIN}"
        _fail(f"{error.filename}: {what}" if error.filename else what, INPUT)
    except MemoryError:
        _fail(f"out of memory; close other programs or lower --jobs, {_RUN_AGAIN}", INPUT)


def _fail(sentence: str, code: int) -> None:
    click.echo(f"error: {without_controls(sentence, keep_lines=True)}", err=True)
    sys.exit(code)


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Signal handler. Raises `KeyboardInterrupt`."""
    raise KeyboardInterrupt


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Make the signals interrupt the enclosed code, unless already ignored or handled."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    taken = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, interrupt)
    before = sys.unraisablehook

    def send_again(unraisable: UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            before(unraisable)
            return
        # Send it later and from another thread: from here it would be dropped like the first one.
        # Use SIGTERM if this handler has it, since a shell's background job ignores SIGINT.
        number = taken[0] if taken else signal.SIGINT
        main = threading.main_thread().ident
        timer = threading.Timer(_AGAIN_AFTER_S, signal.pthread_kill, [main, number])
        timer.daemon = True
        timer.start()

    sys.unraisablehook = send_again
    try:
        yield
    except SystemError as error:
        if not _is_by_interrupt(error):
            raise
        raise KeyboardInterrupt from error
    finally:
        sys.unraisablehook = before
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _is_by_interrupt(error: BaseException) -> bool:
    cause = error.__cause__
    return cause is not None and (isinstance(cause, KeyboardInterrupt) or _is_by_interrupt(cause))
