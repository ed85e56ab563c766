"""`fabula feedback score`: what can be measured of feedback without people."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.feedback_reading import check_overlap, feedback_rows, people_means
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.cli.progress import progress_bar
from fabula.jobs.feedback import ScoreSettings
from fabula.jobs.tables import TableFiles

__all__ = ["score"]


@click.command(cls=Command, short_help="Measure length, repetition and precision of feedback.")
@click.argument("answers", nargs=-1, required=True, type=click.Path(path_type=Path))
@settings_options(ScoreSettings)
@click.option(
    "--people", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="People's answers on the same feedback (measurements, or the released "
    "human_ratings.jsonl): shows whether the measures say what people say.",
)  # fmt: skip
@settings_options(TableFiles, "files")
@json_option
def score(
    answers: tuple[Path, ...],
    settings: ScoreSettings,
    people: tuple[Path, ...],
    files: TableFiles,
    as_json: bool,
) -> None:
    """Measure the feedback of ANSWERS: length, repetition, precision of "perfect as-is".

    By model, prompt, examples and corruption, and every cross of them, with intervals over stories.
    Source: Rashkin et al. 2025, section 5, Tables 1 and 6 to 9, appendix E.
    """
    from fabula.jobs.feedback import score_feedback
    from fabula.rubrics import load_rubric
    from fabula.text.feedback import feedback_id

    check_outputs([settings.out], [*answers, *people], files)
    theirs = people_means(people, load_rubric("feedback"))
    rows = feedback_rows(answers, whole=True)
    for answered in filter(None, theirs.values()):
        check_overlap([feedback_id(row) for row in rows], answered, "--people")
    with progress_bar("measuring", len(rows)) as bar:
        scored = score_feedback(rows, settings, theirs, progress=bar)
    print_result(scored.tables(), scored.to_json(), files, as_json=as_json, written=[settings.out])
