"""`fabula plan`: how large a study must be."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command
from fabula.cli.options import check_outputs
from fabula.cli.printing import print_result
from fabula.jobs.plan import PlanSettings
from fabula.jobs.plan import plan as plan_study
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="Plan how large a study must be.")
@click.argument("labels", metavar="LABELS", type=click.Path(path_type=Path))
def plan(labels: Path, settings: PlanSettings, files: TableFiles, as_json: bool) -> None:
    """Resample a pilot to see how narrow intervals get, and how often a difference is found.

    LABELS are people's verdicts on yes-no items or numbers, on at least ten stories: a table with
    document, item, rater and value (.csv, .jsonl, .xlsx, .parquet), and author if two groups of
    stories are compared; what `fabula study export` writes; or the authors' ttcw_annotations.json.
    """
    check_outputs([], [labels], files)
    found = plan_study(labels, settings)
    print_result(found.tables(), found.to_json(), files, as_json=as_json)
