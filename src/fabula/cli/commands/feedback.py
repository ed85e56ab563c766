"""`fabula feedback`: stories with known faults, and feedback on them."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.commands.feedback_find import find
from fabula.cli.commands.feedback_raters import label, rate
from fabula.cli.commands.feedback_sample import sample
from fabula.cli.commands.feedback_score import score
from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group, in_options, settings_options
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, json_option, texts_argument, yes_option
from fabula.cli.printing import print_done, print_json, print_written
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.advice import AdviceSettings
from fabula.jobs.feedback import CorruptSettings, ElicitSettings
from fabula.jobs.reading import Reading

__all__ = ["feedback"]


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
@settings_options(CorruptSettings)
@yes_option
@json_option
@settings_options(Reading, "how_to_read")
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
    from fabula.jobs.feedback import corrupt_stories

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
@settings_options(ElicitSettings)
@yes_option
@json_option
def elicit(corrupted: Path, settings: ElicitSettings, yes: bool, as_json: bool) -> None:
    """Ask models for feedback on the stories of CORRUPTED, which `feedback corrupt` wrote.

    Asks about every story with every prompt, with and without examples. Shows the number of calls
    and tokens before it starts. Source: Rashkin et al. 2025, section 4.
    """
    from fabula.jobs.feedback import elicit_feedback
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
@settings_options(AdviceSettings)
@yes_option
@settings_options(Reading, "how_to_read")
@json_option
def for_draft(
    story: str, settings: AdviceSettings, yes: bool, how_to_read: Reading, as_json: bool
) -> None:
    """Ask a model for feedback on your own draft, STORY: what matters most comes first.

    Every point refers to words in the draft; points that quote words not in the draft are dropped
    and counted, and so is praise. The embedded model is far too small for good advice: name a
    larger one with --model.
    """
    from fabula.errors import InputError
    from fabula.jobs.advice import advise
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
