"""`fabula agreement`: how far judges agree with experts, and experts with each other."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command
from fabula.cli.options import check_outputs
from fabula.cli.printing import print_result
from fabula.jobs.agreement import AgreementSettings, agree_runs
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="Measure how far judges agree with experts.")
@click.argument("runs", nargs=-1, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--experts",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="People's labels: a table of document, item, rater, value, a study's export, or TTCW's.",
)
def agreement(
    runs: tuple[Path, ...],
    experts: Path,
    settings: AgreementSettings,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Measure how far the judges of RUNs agree with experts.

    A RUN is a folder that `fabula judge` wrote. Over several items, kappa has the chance of each
    item. Kappas have 95 % intervals over stories; an undefined coefficient (everybody answered the
    same) is shown as `-`, never as 0. On items that are not yes-no, kappa is weighted (numbers,
    ordered choices) and shown beside that of people on the same documents.
    """
    check_outputs([], [experts], files)
    found = agree_runs(runs, experts, settings)
    print_result(found.tables(), found.content(), files, as_json=as_json)
