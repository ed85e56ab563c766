"""`fabula setup`: the model files that instruments need."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fabula.cli.derived import Command
from fabula.cli.printing import print_done
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.setup import SETS, SetupSettings, run_setup

if TYPE_CHECKING:
    from fabula.jobs.setup import SetUp


@click.command(cls=Command, short_help="Fetch the model files that instruments need.")
@click.argument("sets", nargs=-1, required=True, type=click.Choice([*SETS, "all"]))
@click.option("--yes", is_flag=True, help="Fetch without asking for confirmation.")
def setup(sets: tuple[str, ...], settings: SetupSettings, yes: bool, as_json: bool) -> None:
    """Fetch the model files that instruments need.

    nlp: spaCy's English pipeline and a sentence encoder, for profile, near matches, lines and
    continuations. local: the small language model that comes with Fabula as a demonstration, and
    the encoder. all: everything. Files that are already installed are kept.

    Says what is fetched from where, and asks first. Each file is checked against a SHA-256 in this
    version of Fabula. What is complete is not downloaded again.
    """
    chosen = SETS if "all" in sets else sets
    with progress_bar("looking for models", None, in_bytes=True) as bar:

        def agree(plan: SetUp) -> None:
            with bar.paused():
                _agree(plan, yes=yes)

        done = run_setup(chosen, settings, agree=agree, progress=bar)
    print_done(done.to_json(), *done.lines(), as_json=as_json)


def _agree(plan: SetUp, *, yes: bool) -> None:
    """Say what is to be fetched, and ask. Raises `click.UsageError`, `click.Abort`."""
    for one in plan.missing:
        click.echo(one.line(), err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("cannot ask before fetching: not a terminal (use --yes)")
    click.confirm("Fetch?", abort=True, err=True)
