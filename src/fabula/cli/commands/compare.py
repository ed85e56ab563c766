"""`fabula compare`: groups of texts beside each other, by their scores or their diversity."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.jobs.comparison import ComparisonSettings
from fabula.jobs.result_files import TableFiles

__all__ = ["compare"]


@click.command(cls=Command, short_help="Compare groups of texts by originality or diversity.")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@settings_options(ComparisonSettings)
@settings_options(TableFiles, "files")
@json_option
def compare(
    results: tuple[Path, ...], settings: ComparisonSettings, files: TableFiles, as_json: bool
) -> None:
    """Compare groups of texts, from RESULTS of `fabula originality` or `fabula diversity`.

    For scores written by `fabula originality --out`, grouped by --by: shows each group's mean
    Creativity Index with a 95 % bootstrap interval, a test of all groups (Kruskal-Wallis), and for
    each pair the percentage difference (A - B) / B, the Mann-Whitney test, and Holm's correction.
    With --cluster, intervals resample clusters and all tests are permutation tests: they permute
    texts within a cluster that the groups share, such as a prompt that all wrote to, and whole
    clusters otherwise.

    For files with the output of `fabula diversity --json`: shows all their groups, and for each
    pair the difference of each measure with its interval, a t-test based on the jackknife errors of
    both groups (pairs from one file keep their own tests), and Holm's correction over the pairs of
    a measure; for three or more groups also Welch's F.

    Results that were not measured in the same way are refused.
    """
    from fabula.jobs.comparison import are_diversity, compare_diversity, compare_files
    from fabula.presentation.diversity_tables import diversity_tables
    from fabula.presentation.originality_tables import comparison_tables

    check_outputs([settings.plot], results, files)
    if are_diversity(results):
        apart = compare_diversity(results, settings)
        print_result(diversity_tables(apart, {}), apart.to_json(), files, as_json=as_json)
        return
    found = compare_files(results, settings)
    print_result(
        comparison_tables(found), found.to_json(), files, as_json=as_json, written=[settings.plot]
    )
