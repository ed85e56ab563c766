"""`fabula feedback rate` and `label`: models judge feedback, and what it is about."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.commands.judging import print_end
from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option, yes_option
from fabula.cli.printing import print_result
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.feedback_raters import LabelSettings, RateSettings

__all__ = ["label", "rate"]

_feedback_argument = click.argument(
    "files", metavar="FEEDBACK...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.command(cls=Command, short_help="Have a model rate each piece of feedback.")
@_feedback_argument
@settings_options(RateSettings)
@yes_option
@json_option
def rate(files: tuple[Path, ...], settings: RateSettings, yes: bool, as_json: bool) -> None:
    """Have a model answer the seven questions of the human form about each piece of FEEDBACK.

    FEEDBACK is what `feedback elicit` wrote. The last question, whether following it would undo the
    planted change, is asked with the original and the recorded change in view. A model does not
    replace people: if --people has answers too, the model's agreement with them is shown beside its
    means.
    Source: Rashkin et al. 2025, section 6 and appendix D.
    """
    from fabula.jobs.feedback_raters import rate_feedback

    with progress_bar("asking", None) as bar:
        found = rate_feedback(files, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    print_result(found.tables(), found.to_json(), as_json=as_json)
    print_end(found.judged.spent, [settings.out / "measurements.jsonl"], quiet=as_json)


@click.command(cls=Command, short_help="Have a model label what each piece is about.")
@_feedback_argument
@settings_options(LabelSettings)
@yes_option
@json_option
def label(files: tuple[Path, ...], settings: LabelSettings, yes: bool, as_json: bool) -> None:
    """Have a model assign each piece of FEEDBACK to one of nine categories.

    FEEDBACK may be a file from `study export`, of which people's own feedback is used. Other rows
    by people need `id`, `feedback`, and `method`, the corruption of their story; rows without
    `model` count as written by people. How often the model is right is measured on --labels, and
    unknown without them. Source: Rashkin et al. 2025, appendix G, Figures 5 and 6.
    """
    from fabula.jobs.feedback_raters import label_feedback

    out, plot = settings.out / "measurements.jsonl", settings.plot
    check_outputs([plot], files)
    with progress_bar("asking", None) as bar:
        found = label_feedback(files, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    print_result(found.tables(), found.to_json(), as_json=as_json)
    print_end(found.judged.spent, [out, plot], quiet=as_json)
