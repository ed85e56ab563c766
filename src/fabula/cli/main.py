"""The `fabula` command: its groups, and how errors reach the user."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import cast

import click
from click.shell_completion import CompletionItem

from fabula import __version__
from fabula.cli.interrupting import interrupted_by_signals
from fabula.control_characters import without_controls
from fabula.errors import BusyError, FabulaError, LookupFailed, ModelError

# 1 means partial success; commands set it themselves.
USAGE, INPUT, BUSY, SERVICE, INTERRUPTED = 2, 3, 4, 5, 130
"""Exit codes. `docs/exit_codes.md` explains them for scripts."""

_CODES = ((BusyError, BUSY), (ModelError, SERVICE), (LookupFailed, SERVICE), (FabulaError, INPUT))


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_COMMANDS = {
    "agreement": "Measure how far judges agree with experts.",
    "book": "Measure a book by chapter: length, pace, people.",
    "compare": "Compare groups of texts in any numbers.",
    "continuation": "Generate and score continuations of stories.",
    "desk": "Open a local page to drop drafts on and read reports.",
    "detect": "Distinguish human from machine text, with known error rates.",
    "diversity": "Measure how alike texts are that should differ.",
    "feedback": "Corrupt stories, ask for feedback, and measure it.",
    "groups": "Measure and show reference groups of texts.",
    "judge": "Have language models answer a rubric.",
    "lines": "List places in a draft to look at, line by line.",
    "models": "List the language models that can judge here.",
    "originality": "Score texts against a reference corpus.",
    "plan": "Plan how large a study must be.",
    "profile": "Measure rhythm, dialogue, word rarity and more.",
    "reference": "Build, search and serve reference corpora.",
    "replicate": "Recompute a paper's tables from its released data.",
    "report": "Run every instrument and write one page.",
    "rerun": "Make a result again, and check that it is the same.",
    "rubric": "Show, check, import and draft rubrics.",
    "setup": "Fetch the model files that instruments need.",
    "stories": "Draw the stories of a study, or have models write them.",
    "study": "Run a blinded study with human participants.",
    "themes": "Group raters' reasons into themes.",
}
"""Short helps. Each command is in the module of its name, which is imported when it runs."""


class _Commands(click.Group):
    """The commands: `commands` has their names only, so that help and completion import none."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(import_module(f"fabula.cli.commands.{cmd_name}"), cmd_name)
        return cast(click.Command, command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=_COMMANDS[name]) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=_Commands,
    commands={name: click.Command(name) for name in _COMMANDS},
    context_settings=_CONTEXT,
)
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
    from fabula.cli.inputs import end_of_command

    end_of_command()


def main() -> None:
    """Run the command line and exit with a code."""
    if sys.stdout is None:
        # Started with it closed: what it prints would be lost without a word.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lasts)
        click.echo("standard output is closed, so nothing is printed there", err=True)
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
        _fail(_system_error(error), INPUT)
    except MemoryError:
        _fail(
            "out of memory; close other programs or lower --jobs, and run the same command again: "
            "finished work is kept",
            INPUT,
        )


def _system_error(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            f"{where}too many files are open; raise the limit (`ulimit -n 4096`), or lower --jobs, "
            f"and run the same command again: finished work is kept"
        )
    if error.errno == errno.ENOSPC:
        return (
            f"{where}the disk is full; free some space and run the same command again: finished "
            "work is kept"
        )
    return f"{where}{error.strerror or error}"


def _fail(sentence: str, code: int) -> None:
    click.echo(f"error: {without_controls(sentence, keep_lines=True)}", err=True)
    sys.exit(code)
