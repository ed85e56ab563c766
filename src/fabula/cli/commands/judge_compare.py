"""`fabula judge compare`: several judges beside each other, and as panels."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, rows_option
from fabula.cli.printing import print_tables_or_rows, print_written
from fabula.jobs.judge_comparison import JudgeComparisonSettings
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles

__all__ = ["compare"]


@click.command(cls=Command, short_help="Compare judges with people and with each other.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@settings_options(JudgeComparisonSettings)
@click.option(
    "--stories",
    multiple=True,
    metavar="STORIES",
    help="The texts that were judged; needed to measure length bias.",
)
@settings_options(TableFiles, "files")
@rows_option
@settings_options(Reading, "how_to_read")
def compare(
    runs: tuple[Path, ...],
    settings: JudgeComparisonSettings,
    stories: tuple[str, ...],
    files: TableFiles,
    as_json: str | None,
    how_to_read: Reading,
) -> None:
    """Compare the judges of RUNs with people's verdicts and with each other.

    A RUN is a folder that `fabula judge` wrote. On yes-no items, with three or more judges, the
    majority of the judges and two weighted panels are measured too; numbers and choices are
    compared item by item, with the statistic of their scale. Intervals are from a bootstrap over
    documents.
    """
    from fabula.jobs.judge_comparison import compare_judges

    check_outputs([], [settings.labels], files)
    documents = read_stories(stories, how_to_read) if stories else []
    comparison = compare_judges(runs, settings, documents)
    written = print_tables_or_rows(comparison.tables(), comparison.to_json(), files, as_json)
    print_written(written, as_json=bool(as_json))
