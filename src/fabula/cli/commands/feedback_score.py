"""`fabula feedback score`: what can be measured about feedback without people."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.feedback import ScoreSettings
from fabula.jobs.result_files import TableFiles

__all__ = ["score"]


@click.command(cls=Command, short_help="Measure length, repetition and precision of feedback.")
@click.argument("answers", nargs=-1, required=True, type=click.Path(path_type=Path))
@settings_options(ScoreSettings)
@settings_options(TableFiles, "files")
@json_option
def score(
    answers: tuple[Path, ...],
    settings: ScoreSettings,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Measure the feedback of ANSWERS: length, repetition, precision of "perfect as-is".

    By model, prompt, examples and corruption, and every cross of them, with intervals over stories.
    Source: Rashkin et al. 2025, section 5, Tables 1 and 6 to 9, appendix E.
    """
    from fabula.jobs.feedback import score_feedback
    from fabula.jobs.feedback_reading import feedback_rows

    check_outputs([settings.out], [*answers, *settings.people], files)
    rows = feedback_rows(answers, whole=True)
    with progress_bar("measuring", len(rows)) as bar:
        scored = score_feedback(rows, settings, progress=bar)
    print_result(scored.tables(), scored.to_json(), files, as_json=as_json, written=[settings.out])
