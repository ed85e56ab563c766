"""`fabula reference catalogue`: public corpora and indexes by name."""

from __future__ import annotations

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import json_option
from fabula.cli.printing import print_json, print_tables
from fabula.jobs.references import CatalogueSettings

__all__ = ["catalogue"]


@click.command(cls=Command, short_help="List public corpora and web-scale indexes.")
@click.argument("name", required=False)
@settings_options(CatalogueSettings)
@json_option
def catalogue(name: str | None, settings: CatalogueSettings, as_json: bool) -> None:
    """List public corpora that a reference can be built from, and indexes that can be queried.

    With NAME: its source, licence and age, what it costs in time and disk space, and what it can
    and cannot tell. `fabula reference build NAME --sample 100M` builds one; use an index with
    `--reference infinigram:NAME`.
    """
    from fabula.presentation.catalogue_tables import catalogue_rows, catalogue_tables
    from fabula.reference.catalogue import read_catalogue

    known = read_catalogue(settings.catalogue)
    if as_json:
        rows = catalogue_rows(known, name)
        print_json(rows[0] if name else rows)
    else:
        print_tables(catalogue_tables(known, name))
