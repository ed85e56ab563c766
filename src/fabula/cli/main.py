"""The `fabula` command: its groups, and how errors reach the user."""

from __future__ import annotations

import errno
import os
import sys

import click

from fabula import __version__
from fabula.cli.commands.agreement import agreement
from fabula.cli.commands.book import book
from fabula.cli.commands.compare import compare
from fabula.cli.commands.continuation import continuation
from fabula.cli.commands.desk import desk
from fabula.cli.commands.detect import detect
from fabula.cli.commands.diversity import diversity
from fabula.cli.commands.feedback import feedback
from fabula.cli.commands.groups import groups
from fabula.cli.commands.judge import judge
from fabula.cli.commands.lines import lines
from fabula.cli.commands.models import models
from fabula.cli.commands.originality import originality
from fabula.cli.commands.plan import plan
from fabula.cli.commands.profile import profile
from fabula.cli.commands.reference import reference
from fabula.cli.commands.replicate import replicate
from fabula.cli.commands.report import report
from fabula.cli.commands.rerun import rerun
from fabula.cli.commands.rubric import rubric
from fabula.cli.commands.setup import setup
from fabula.cli.commands.spans import spans
from fabula.cli.commands.stories import stories
from fabula.cli.commands.study import study
from fabula.cli.commands.themes import themes
from fabula.cli.derived import Group
from fabula.cli.inputs import end_of_command
from fabula.cli.interrupting import interrupted_by_signals
from fabula.control_characters import without_controls
from fabula.errors import BusyError, FabulaError, LookupFailed, ModelError

__all__ = ["cli", "main"]

# 1 means partial success; commands set it themselves.
USAGE, INPUT, BUSY, SERVICE, INTERRUPTED = 2, 3, 4, 5, 130
"""Exit codes. `docs/exit_codes.md` explains them for scripts."""

_CODES = ((BusyError, BUSY), (ModelError, SERVICE), (LookupFailed, SERVICE), (FabulaError, INPUT))


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Group, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="fabula")
def cli() -> None:
    """Measure creative writing, by people and by language models.

    \b
    Build a reference corpus, then see on one page what can be said about a text:
      fabula reference build books/ --out books.ref
      fabula report story.txt --reference books.ref
    """


@cli.result_callback()
def _end(_result: object) -> None:
    end_of_command()


_WHOLE = setup, report, desk, groups, rerun
_ORIGINALITY = reference, originality, spans, compare, detect, diversity
_STORIES = lines, book, stories, profile, continuation, feedback
_RUBRICS = rubric, models, judge, agreement, themes, plan, study, replicate
for command in (*_WHOLE, *_ORIGINALITY, *_RUBRICS, *_STORIES):
    cli.add_command(command)


def main() -> None:
    """Run the command line and exit with a code."""
    with interrupted_by_signals():
        _run()


def _run() -> None:
    try:
        # For a command that ends by `ctx.exit`, click returns the code.
        if code := cli(standalone_mode=False):
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
        _fail(_system_error(error), INPUT)
    except MemoryError:
        _fail(
            "out of memory; close other programs or lower --jobs, and run the same command again: "
            "finished work is kept",
            INPUT,
        )


def _system_error(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOSPC:
        return (
            f"{where}the disk is full; free some space and run the same command again: finished "
            "work is kept"
        )
    return f"{where}{error.strerror or error}"


def _fail(sentence: str, code: int) -> None:
    click.echo(f"error: {without_controls(sentence, keep_lines=True)}", err=True)
    sys.exit(code)
