"""`fabula reference serve`: a reference for a whole team."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import CorpusType
from fabula.jobs.serving import ServeSettings

if TYPE_CHECKING:
    from fabula.reference import Reference

__all__ = ["serve"]


@click.command(cls=Command, short_help="Serve corpora over HTTP.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=CorpusType())
@settings_options(ServeSettings)
def serve(directories: tuple[str | Path, ...], settings: ServeSettings) -> None:
    """Serve the corpora in DIR... over HTTP, as one reference for a whole team.

    Every command accepts it as `--reference http://HOST:PORT`, and gives the same numbers as the
    corpora on disk. If documents are added to a corpus or removed, the change is served within
    seconds; runs that began before must be started again.
    """
    from fabula.jobs.serving import serve as run

    run(directories, settings, announce=_announce, warn=partial(click.echo, err=True))


def _announce(reference: Reference, url: str, n_tokens: int) -> None:
    click.echo(f"{reference.name}: {reference.size}, fingerprint {reference.fingerprint}")
    if n_tokens:
        click.echo(f"served at {url} to clients with one of {n_tokens:,} tokens")
        click.echo("put your token into FABULA_REFERENCE_TOKEN, and then run:")
    else:
        click.echo(f"served at {url} to this machine only; no token is needed")
    click.echo(f"  fabula originality TEXTS --reference {url}")
