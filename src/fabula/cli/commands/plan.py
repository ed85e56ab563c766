"""`fabula plan`: how large a study must be."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Group, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.jobs.rater_plan import RaterPlanSettings
from fabula.jobs.result_files import TableFiles


@click.group(cls=Group, short_help="Plan how large a study must be.")
def plan() -> None:
    """Plan how large a study must be, before you pay for it."""


@plan.command(short_help="Plan the number of stories and raters from a pilot.")
@click.argument("labels", metavar="LABELS", type=click.Path(path_type=Path))
@settings_options(RaterPlanSettings)
@settings_options(TableFiles, "files")
@json_option
def raters(labels: Path, settings: RaterPlanSettings, files: TableFiles, as_json: bool) -> None:
    """Estimate from a pilot how many stories and raters give intervals of a target width.

    LABELS are people's verdicts on yes-no items or numbers, on at least ten stories with at least
    two raters each: a table with document, item, rater and value (.csv, .jsonl, .xlsx, .parquet),
    or the authors' ttcw_annotations.json.
    """
    from fabula.jobs.rater_plan import plan_raters

    check_outputs([], [labels], files)
    found = plan_raters(labels, settings)
    print_result(found.tables(), found.to_json(), files, as_json=as_json)
