"""`fabula feedback sample`: sample the pieces that people rate."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_done
from fabula.jobs.feedback_sample import SampleSettings

__all__ = ["sample"]


@click.command(cls=Command, short_help="Draw an even sample of feedback for people to rate.")
@click.argument(
    "files", metavar="FEEDBACK...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@settings_options(SampleSettings)
@json_option
def sample(files: tuple[Path, ...], settings: SampleSettings, as_json: bool) -> None:
    """Draw pieces of FEEDBACK for people to rate, evenly from cells and stories.

    FEEDBACK is what `feedback elicit` wrote; a cell is a model, a corruption, a prompt and a number
    of examples. Withheld feedback and models' refusals are left out. If a cell has too few pieces,
    all are used, and the other cells supply more. Source: Rashkin et al. 2025, section 6.
    """
    from fabula.jobs.feedback_reading import feedback_rows
    from fabula.jobs.feedback_sample import sample_feedback

    check_outputs([settings.out], files)
    sampled = sample_feedback(feedback_rows(files, whole=True), settings)
    print_done(sampled.to_json(), *sampled.lines(), as_json=as_json)
