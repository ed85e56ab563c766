"""`fabula reference catalogue`: public corpora and indexes by name."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command
from fabula.cli.options import json_option
from fabula.cli.printing import print_tables

__all__ = ["catalogue"]


@click.command(cls=Command, short_help="List public corpora and web-scale indexes.")
@click.argument("name", required=False)
@click.option(
    "--catalogue",
    "own",
    type=click.Path(path_type=Path),
    help="Further corpora by name, or other places of known ones (.toml).",
)
@json_option
def catalogue(name: str | None, own: Path | None, as_json: bool) -> None:
    """Say which public corpora a reference can be built of, and which indexes can be asked.

    With NAME: where it is read from, under which licence, how old it is, what it costs in time and
    disk, and what it can and cannot tell. `fabula reference build NAME --sample 100M` builds one;
    an index is named as `--reference infinigram:NAME`.
    """
    from fabula.presentation.catalogue_tables import catalogue_rows, catalogue_tables
    from fabula.reference.catalogue import read_catalogue
    from fabula.store import dump_json

    known = read_catalogue(own)
    if as_json:
        rows = catalogue_rows(known, name)
        click.echo(dump_json(rows[0] if name else rows))
    else:
        print_tables(catalogue_tables(known, name))
