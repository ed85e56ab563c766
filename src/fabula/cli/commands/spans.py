"""`fabula spans`: borrowed spans to label, and the accuracy of the rule and of models."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Group, settings_options
from fabula.cli.inputs import reading
from fabula.cli.options import check_outputs, json_option, texts_argument, yes_option
from fabula.cli.printing import print_done, print_result
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles
from fabula.jobs.spans import SpanSampleSettings, SpanScoreSettings

__all__ = ["spans"]


@click.group(cls=Group, short_help="Label borrowed spans: quotation, idiom or chance.")
def spans() -> None:
    """Find out which borrowed spans are quotations, which are idioms, and who can tell.

    Draw a sample, label it, and see how often the rule of `fabula originality` and the model of
    its --exclude-model are right.
    """


@spans.command(cls=Command, short_help="Draw borrowed spans for people to label.")
@texts_argument("texts")
@settings_options(SpanSampleSettings)
@json_option
@settings_options(Reading, "how_to_read")
def sample(
    texts: tuple[str, ...], settings: SpanSampleSettings, as_json: bool, how_to_read: Reading
) -> None:
    """Draw a sample of the spans that TEXTS share with a reference, for people to label.

    Half of the spans are passages, which the rule considers borrowed, half are commonplaces.
    Label each as quotation, idiom or chance, in the table that --form writes; models label with
    `fabula judge --rubric borrowed`.
    """
    from fabula.jobs.spans import sample_spans

    check_outputs([settings.out, settings.form], [Path(text) for text in texts])
    with reading(texts, "measuring", how_to_read) as (documents, bar):
        drawn = sample_spans(documents, settings, progress=bar)
    print_done(drawn.to_json(), *drawn.lines(), as_json=as_json)


@spans.command(cls=Command, short_help="Score the rule and models against labels.")
@click.argument("sample", type=click.Path(path_type=Path))
@settings_options(SpanScoreSettings)
@settings_options(TableFiles, "files")
@yes_option
@json_option
def score(
    sample: Path, settings: SpanScoreSettings, files: TableFiles, yes: bool, as_json: bool
) -> None:
    """Score how well quotations in SAMPLE are recognised, by people's labels.

    The rule calls passages quotations, and commonplaces not; each --model is asked the question of
    --exclude-model. Shows accuracy, precision and recall with intervals over texts, and lists the
    quotations and idioms with the verdicts of each.
    """
    from fabula.jobs.spans import score_spans
    from fabula.measures.span_sample import read_spans

    check_outputs([settings.details], [sample, settings.labels], files)
    drawn = read_spans(sample)
    with progress_bar("scoring", None) as bar:
        scored = score_spans(drawn, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    print_result(
        scored.tables(), scored.to_json(), files, as_json=as_json, written=[settings.details]
    )
