"""`fabula themes`: why stories pass a test, and why they fail it, from the raters' reasons."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, in_options
from fabula.cli.printing import print_rows
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.themes import ThemeSettings, group_reasons


@click.command(cls=Command, short_help="Group raters' reasons into themes.")
@click.argument(
    "sources", nargs=-1, required=True, metavar="RUN|FILE...", type=click.Path(path_type=Path)
)
def themes(
    sources: tuple[Path, ...], settings: ThemeSettings, yes: bool, as_json: str | None
) -> None:
    """Group the reasons that raters gave into themes, separately for passing and failing each test.

    A source is a run of `fabula judge`, or the experts' ttcw_annotations.json. Reasons are grouped
    by the meaning of their sentences; the most typical ones are shown beside each theme.
    """
    with progress_bar("grouping reasons", None) as bar:
        found = group_reasons(sources, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    if as_json:
        print_rows(found.rows(), as_json)
        return
    click.echo(in_options(str(found)), nl=False)
    if settings.out is not None:
        click.echo(f"written: {settings.out}; edit the labels there and run this again to see them")
