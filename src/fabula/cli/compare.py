"""`fabula compare`: groups of scored texts beside each other."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.jobs.tables import TableFiles

__all__ = ["compare"]


@click.command(cls=Command, short_help="Compare the originality of groups of texts.")
@click.argument("scores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--by",
    required=True,
    metavar="FIELD",
    help="Field of the texts to group by, such as author or model; `file` for the score file.",
)
@click.option(
    "--cluster",
    metavar="FIELD",
    help="Texts that share this field (a prompt, an author) count as one; so do near-duplicates.",
)
@click.option("--baseline", metavar="NAME", help="Compare every group with this one only.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    help="Draw curves and distributions here (.svg, .pdf or .png).",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the bootstrap and the permutations.",
)
@settings_options(TableFiles, "files")
@json_option
def compare(
    scores: tuple[Path, ...],
    by: str,
    cluster: str | None,
    baseline: str | None,
    plot: Path | None,
    seed: int,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Compare the originality of groups of texts, from SCORES that `fabula originality` wrote.

    Shows each group's mean Creativity Index with a 95 % bootstrap interval, a test of all groups
    (Kruskal-Wallis), and for each pair the percentage difference (A - B) / B, the Mann-Whitney
    test, and Holm's correction. With --cluster, intervals resample clusters and all tests permute:
    within a cluster what groups share, as a prompt that all wrote to, and whole clusters otherwise.
    Scores that were not measured in the same way are refused.
    """
    from fabula.measures.comparison import compare_scores
    from fabula.presentation.originality_tables import comparison_tables

    if plot is not None and plot.resolve() in {path.resolve() for path in scores}:
        raise click.UsageError("--plot names a file of scores, which it would replace")
    check_outputs([plot], scores, files)

    comparison = compare_scores(scores, by=by, baseline=baseline, cluster=cluster, seed=seed)
    if plot is not None:
        from fabula.presentation.plots import save_comparison

        save_comparison(comparison, plot)
    tables = comparison_tables(comparison)
    print_result(tables, comparison.to_json(), files, as_json=as_json, written=[plot])
