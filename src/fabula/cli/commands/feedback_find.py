"""`fabula feedback find`: which answers find the planted faults."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.commands.judging import print_end
from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option, yes_option
from fabula.cli.printing import print_result
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.planted_faults import FindSettings
from fabula.jobs.result_files import TableFiles

__all__ = ["find"]


@click.command(cls=Command, short_help="Score which answers find the planted faults.")
@click.argument("answers", nargs=-1, required=True, type=click.Path(path_type=Path))
@settings_options(FindSettings)
@settings_options(TableFiles, "files")
@yes_option
@json_option
def find(
    answers: tuple[Path, ...],
    settings: FindSettings,
    files: TableFiles,
    yes: bool,
    as_json: bool,
) -> None:
    """Score which ANSWERS find the faults that `feedback corrupt` planted.

    Shows recall by kind of fault, false alarms on the original stories, precision and F1, with
    intervals over stories, and compares models on the stories that all of them answered. An answer
    finds a fault if it points at the recorded place; with --model a judge reads it too. Refusals
    and unreadable answers are missing, and counted.
    """
    from fabula.jobs.feedback_reading import feedback_rows
    from fabula.jobs.planted_faults import find_faults

    check_outputs([settings.details], [*answers, settings.labels], files)
    rows = feedback_rows(answers, whole=True)
    with progress_bar("reading answers", len(rows)) as bar:
        found = find_faults(rows, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    print_result(
        found.tables(), found.to_json(), files, as_json=as_json, written=[settings.details]
    )
    if settings.models.models:
        kept = None if settings.out is None else settings.out / "measurements.jsonl"
        print_end(list(found.spent), [kept], quiet=as_json)
