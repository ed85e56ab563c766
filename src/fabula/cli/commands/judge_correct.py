"""`fabula judge correct`: estimate what experts would have said, from a judge and some labels."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.jobs.correction import CorrectSettings
from fabula.jobs.result_files import TableFiles

__all__ = ["correct"]


@click.command(cls=Command, short_help="Correct a judge with labels from experts.")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@settings_options(CorrectSettings)
@settings_options(TableFiles, "files")
@json_option
def correct(run: Path, settings: CorrectSettings, files: TableFiles, as_json: bool) -> None:
    """Estimate what experts would have said about all documents of RUN, from labels for some.

    A judge that passes more documents than experts do is just as wrong on documents that nobody
    labelled. Means, rates of items and differences between groups are corrected by
    prediction-powered inference (PPI++), with 95 % intervals that are valid for few labels. The
    labelled documents must be drawn at random; labels for a different kind of document are refused.
    """
    from fabula.jobs.correction import correct_run

    check_outputs([], [settings.labels], files)
    found = correct_run(run, settings)
    print_result(found.tables(), found.content(), files, as_json=as_json)
