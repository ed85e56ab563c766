"""`fabula compare`: groups of texts beside each other, by their scores."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.jobs.comparison import ComparisonSettings
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="Compare groups of texts by originality.")
@click.argument("scores", nargs=-1, required=True, type=click.Path(path_type=Path))
@settings_options(ComparisonSettings)
@settings_options(TableFiles, "files")
@json_option
def compare(
    scores: tuple[Path, ...], settings: ComparisonSettings, files: TableFiles, as_json: bool
) -> None:
    """Compare groups of texts by the SCORES that `fabula originality --out` wrote.

    Shows the mean Creativity Index of each group of --by with a 95 % interval, a test of all groups
    (Kruskal-Wallis), and for each pair the percentage difference (A - B) / B, the Mann-Whitney test
    (whether texts of A tend to score above those of B; not whether means differ), and Holm's
    correction. With --cluster, intervals are over clusters and all tests are permutation tests of
    means: they permute texts within a cluster that the groups share, such as a prompt that all
    wrote to, and whole clusters otherwise.

    Scores that were not measured in the same way are refused.
    """
    from fabula.jobs.comparison import compare_files
    from fabula.presentation.originality_tables import comparison_tables

    check_outputs([settings.plot], scores, files)
    found = compare_files(scores, settings)
    print_result(
        comparison_tables(found), found.to_json(), files, as_json=as_json, written=[settings.plot]
    )
