"""`fabula feedback`: stories with known faults, and feedback on them."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.commands.judge import print_end
from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Group, in_options
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_done, print_json, print_result, print_written
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.advice import AdviceSettings, advise
from fabula.jobs.feedback import (
    CorruptSettings,
    ElicitSettings,
    ScoreSettings,
    corrupt_stories,
    elicit_feedback,
    score_feedback,
)
from fabula.jobs.feedback_raters import LabelSettings, RateSettings, label_feedback, rate_feedback
from fabula.jobs.feedback_sample import SampleSettings, sample_feedback
from fabula.jobs.planted_faults import FindSettings, find_faults
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="Measure length, repetition and precision of feedback.")
@click.argument("answers", nargs=-1, required=True, type=click.Path(path_type=Path))
def score(
    answers: tuple[Path, ...], settings: ScoreSettings, files: TableFiles, as_json: bool
) -> None:
    """Measure the feedback of ANSWERS: length, repetition, precision of "perfect as-is".

    By model, prompt, examples and corruption, and every cross of them, with intervals over stories.
    Source: Rashkin et al. 2025, section 5, Tables 1 and 6 to 9, appendix E.
    """
    from fabula.jobs.feedback_reading import feedback_rows

    check_outputs([settings.out], [*answers, *settings.people], files)
    rows = feedback_rows(answers, whole=True)
    with progress_bar("measuring", len(rows)) as bar:
        scored = score_feedback(rows, settings, progress=bar)
    print_result(scored.tables(), scored.to_json(), files, as_json=as_json, written=[settings.out])


@click.command(cls=Command, short_help="Draw an even sample of feedback for people to rate.")
@click.argument(
    "files", metavar="FEEDBACK...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
def sample(files: tuple[Path, ...], settings: SampleSettings, as_json: bool) -> None:
    """Draw pieces of FEEDBACK for people to rate, evenly from cells and stories.

    FEEDBACK is what `feedback elicit` wrote; a cell is a model, a corruption, a prompt and a number
    of examples. Withheld feedback and models' refusals are left out. If a cell has too few pieces,
    all are used, and the other cells supply more. Source: Rashkin et al. 2025, section 6.
    """
    from fabula.jobs.feedback_reading import feedback_rows

    check_outputs([settings.out], files)
    sampled = sample_feedback(feedback_rows(files, whole=True), settings)
    print_done(sampled.to_json(), *sampled.lines(), as_json=as_json)


_feedback_argument = click.argument(
    "files", metavar="FEEDBACK...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.command(cls=Command, short_help="Have a model rate each piece of feedback.")
@_feedback_argument
def rate(files: tuple[Path, ...], settings: RateSettings, yes: bool, as_json: bool) -> None:
    """Have a model answer the seven questions of the human form about each piece of FEEDBACK.

    FEEDBACK is what `feedback elicit` wrote. The last question, whether following it would undo the
    planted change, is asked with the original and the recorded change in view. A model does not
    replace people: if --people has answers too, the model's agreement with them is shown beside its
    means.
    Source: Rashkin et al. 2025, section 6 and appendix D.
    """
    with progress_bar("asking", None) as bar:
        found = rate_feedback(files, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    print_result(found.tables(), found.to_json(), as_json=as_json)
    print_end(found.judged.spent, [settings.out / "measurements.jsonl"], quiet=as_json)


@click.command(cls=Command, short_help="Have a model label what each piece is about.")
@_feedback_argument
def label(files: tuple[Path, ...], settings: LabelSettings, yes: bool, as_json: bool) -> None:
    """Have a model assign each piece of FEEDBACK to one of nine categories.

    FEEDBACK may be a file from `study export`, of which people's own feedback is used. Other rows
    by people need `id`, `feedback`, and `method`, the corruption of their story; rows without
    `model` count as written by people. How often the model is right is measured on --labels, and
    unknown without them. Source: Rashkin et al. 2025, appendix G, Figures 5 and 6.
    """
    out, plot = settings.out / "measurements.jsonl", settings.plot
    check_outputs([plot], files)
    with progress_bar("asking", None) as bar:
        found = label_feedback(files, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    print_result(found.tables(), found.to_json(), as_json=as_json)
    print_end(found.judged.spent, [out, plot], quiet=as_json)


@click.command(cls=Command, short_help="Score which answers find the planted faults.")
@click.argument("answers", nargs=-1, required=True, type=click.Path(path_type=Path))
def find(
    answers: tuple[Path, ...], settings: FindSettings, files: TableFiles, yes: bool, as_json: bool
) -> None:
    """Score which ANSWERS find the faults that `feedback corrupt` planted.

    Shows recall by kind of fault, false alarms on the original stories, precision and F1, with
    intervals over stories, and compares models on the stories that all of them answered. An answer
    finds a fault if it points at the recorded place; with --model a judge reads it too. Refusals
    and unreadable answers are missing, and counted.
    """
    from fabula.jobs.feedback_reading import feedback_rows

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


@click.group(cls=Group, short_help="Corrupt stories, ask for feedback, and measure it.")
def feedback() -> None:
    """Corrupt stories in known ways, ask models for feedback, and measure that feedback.

    \b
    fabula feedback corrupt stories.jsonl --out corrupted.jsonl
    fabula feedback elicit corrupted.jsonl --model openai/gpt-4o --yes --out feedback.jsonl
    fabula feedback find feedback.jsonl
    fabula feedback score feedback.jsonl
    """


@feedback.command(short_help="Corrupt stories in known ways.")
@texts_argument("stories")
def corrupt(
    stories: tuple[str, ...],
    settings: CorruptSettings,
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Corrupt STORIES: swap two sentences, delete one, or translate it and back ten times.

    Each row contains the corrupted text, the original, and exactly what was changed, as character
    positions in both. Stories that cannot be corrupted are left out and reported. Source: Rashkin
    et al. 2025, section 4.

    Beyond the paper, and only if named in --methods: a character's name changes midway (name), or
    the model of --writer adds two sentences that contradict each other (fact), an object that is
    never mentioned again (thread), or a motive and later its opposite (motive).
    """
    check_outputs([settings.out], map(Path, stories))
    documents = read_stories(stories, how_to_read)
    with progress_bar("corrupting", None) as bar:
        confirm = confirm_on(bar, yes=yes, say_free=True)
        corrupted = corrupt_stories(documents, settings, progress=bar, confirm=confirm)
    print_done(corrupted.to_json(), *map(in_options, corrupted.lines()), as_json=as_json)
    if corrupted.unavailable is not None:
        click.get_current_context().exit(1)


@feedback.command(short_help="Ask models for feedback on corrupted stories.")
@click.argument("corrupted", type=click.Path(path_type=Path))
def elicit(corrupted: Path, settings: ElicitSettings, yes: bool, as_json: bool) -> None:
    """Ask models for feedback on the stories of CORRUPTED, which `feedback corrupt` wrote.

    Asks about every story with every prompt, with and without examples. Shows the number of calls
    and tokens before it starts. Source: Rashkin et al. 2025, section 4.
    """
    from fabula.reasons import explain

    check_outputs([settings.out], [corrupted])
    with progress_bar("feedback", None) as bar:
        confirm = confirm_on(bar, yes=yes, say_free=True)
        written = elicit_feedback(corrupted, settings, progress=bar, confirm=confirm)
    n_cut = sum(bool(row.get("is_cut")) for row in written.rows)
    lines = [f"{written.n:,} of {len(written.rows):,} answers, written: {written.out}"]
    lines += [f"missing: {n:,}, {explain(why)}" for why, n in written.missing.items()]
    if n_cut:
        lines.append(f"cut at {settings.max_tokens} tokens: {n_cut:,}")
    print_done(written.to_json() | {"n_cut": n_cut}, *lines, as_json=as_json)


@feedback.command(name="for", short_help="Ask a model for feedback on your own draft.")
@click.argument("story", metavar="STORY")
def for_draft(
    story: str, settings: AdviceSettings, yes: bool, how_to_read: Reading, as_json: bool
) -> None:
    """Ask a model for feedback on your own draft, STORY: what matters most comes first.

    Every point refers to words in the draft; points that quote words not in the draft are dropped
    and counted, and so is praise. The embedded model is far too small for good advice: name a
    larger one with --model.
    """
    from fabula.errors import InputError
    from fabula.presentation.advice_tables import advice_text

    written = [settings.out, settings.html]
    check_outputs(written, [Path(story), settings.since])
    stories = read_stories((story,), how_to_read)
    if len(stories) > 1:
        raise InputError(f"{story}: contains {len(stories):,} texts; give a single draft")
    with progress_bar("reading the draft", None) as bar:
        advised = advise(stories[0], settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    if as_json:
        print_json(advised.to_json())
    else:
        shown = advice_text(advised.advice, advised.fates, advised.new)
        click.echo(shown.encode(errors="replace").decode(), nl=False)
    print_written(written, as_json=as_json)


feedback.add_command(find)
feedback.add_command(score)
feedback.add_command(sample)
feedback.add_command(rate)
feedback.add_command(label)
