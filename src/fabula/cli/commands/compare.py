"""`fabula compare`: groups of texts beside each other, by their scores."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command
from fabula.cli.options import check_outputs
from fabula.cli.printing import print_result
from fabula.jobs.comparison import ComparisonSettings, compare_files
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="Compare groups of texts in any numbers.")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
def compare(
    results: tuple[Path, ...], settings: ComparisonSettings, files: TableFiles, as_json: bool
) -> None:
    """Compare groups of texts in RESULTS: rows that `originality`, `profile` or `detect score`
    wrote, runs of `judge`, exports of a study, one or several together.

    Shows the mean of each number in each group of --by with a 95 % interval, and for each pair of
    groups the difference, the Mann-Whitney test (whether texts of A tend to be above those of B;
    not whether means differ), and Holm's correction over everything that is shown. With --cluster,
    intervals are over clusters and all tests are permutation tests of means: they permute texts
    within a cluster that the groups share, such as a prompt that all wrote to, and whole clusters
    otherwise. Of scores of originality alone the difference is in per cent, (A - B) / B, and all
    groups are tested too (Kruskal-Wallis).

    Numbers that were not measured in the same way are refused.
    """
    from fabula.presentation.originality_tables import comparison_tables

    check_outputs([settings.plot], results, files)
    found = compare_files(results, settings)
    print_result(
        comparison_tables(found), found.to_json(), files, as_json=as_json, written=[settings.plot]
    )
