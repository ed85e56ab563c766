"""`fabula replicate`: a paper's tables again, beside the printed numbers."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.options import json_option

__all__ = ["replicate"]


@click.group()
def replicate() -> None:
    """Compute a paper's tables from its released data, beside the printed numbers."""


@replicate.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--judge", "judges", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Answers of a judge, as in llm_judges/.  [default: all of DIR/llm_judges]",
)  # fmt: skip
@click.option(
    "--preferences", type=click.Path(path_type=Path), metavar="FILE",
    help="Measurements of the rubric `preference`, for Figure 4; the release has none.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw Figure 3 here (.svg, .pdf or .png)."
)
@json_option
def ttcw(
    folder: Path,
    judges: tuple[Path, ...],
    preferences: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Tables 5 and 6 and Figures 3 and 4 of "Art or Artifice?" (Chakrabarty et al. 2024).

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval.
    """
    from fabula.replicate.ttcw import replicate_ttcw
    from fabula.replicate.ttcw_tables import replica_tables, save_distribution
    from fabula.store import dump_json

    replica = replicate_ttcw(folder, judges=judges, preferences=preferences)
    if plot is not None:
        save_distribution(replica, plot)
    if as_json:
        click.echo(dump_json(replica.to_json()))
        return
    click.echo(replica_tables(replica), nl=False)
    if plot is not None:
        click.echo(f"written: {plot}")
