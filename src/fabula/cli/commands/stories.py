"""`fabula stories`: plots, stories written to them, and texts from a first sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group
from fabula.cli.inputs import read_stories, reading
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_done
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.drawing import DrawSettings, draw_stories
from fabula.jobs.reading import Reading
from fabula.jobs.stories import (
    OpeningSettings,
    PlotSettings,
    StorySettings,
    plot_stories,
    write_openings,
    write_stories,
)

if TYPE_CHECKING:
    from fabula.jobs.writing import Written


@click.group(cls=Group, short_help="Draw the stories of a study, or have models write them.")
def stories() -> None:
    """Draw the stories of a study from many, or have models write them.

    Models write stories with the same plot and length as those of people.
    """


@stories.command(short_help="Draw some texts of many at random.")
@texts_argument("sources")
def draw(
    sources: tuple[str, ...], settings: DrawSettings, as_json: bool, how_to_read: Reading
) -> None:
    """Draw texts of SOURCES at random, the same number of each group.

    For commands that keep all texts in memory, as `diversity` and `report` do, or pay for each, as
    `judge` does: SOURCES may have millions of texts, of which only the drawn ones are kept. With
    the same seed, the same texts are drawn whatever their order.
    """
    check_outputs([settings.out], map(Path, sources))
    with reading(sources, "reading", how_to_read) as (documents, _):
        drawn = draw_stories(documents, settings)
    print_done(drawn.to_json(), *drawn.lines(), as_json=as_json)


@stories.command(short_help="Summarise the plot of each story in a sentence.")
@texts_argument("sources")
def plot(
    sources: tuple[str, ...], settings: PlotSettings, yes: bool, as_json: bool, how_to_read: Reading
) -> None:
    """Summarise the plot of each story of SOURCES in a sentence.

    Read the plots, correct those that are wrong, and set `verified` to true before stories are
    written from them.
    """
    documents = read_stories(sources, how_to_read)
    with progress_bar("plots", None) as bar:
        confirm = confirm_on(bar, yes=yes)
        written = plot_stories(documents, settings, progress=bar, confirm=confirm)
    _report("plots", written, as_json=as_json)
    click.echo("read them, and set `verified` to true for those that are right", err=as_json)


@stories.command(short_help="Write a story of a given length for each plot.")
@click.argument("plots", metavar="PLOTS", type=click.Path(path_type=Path))
@click.option(
    "--human",
    multiple=True,
    metavar="SOURCE",
    help="Add the human story of each plot (same id) to its group.",
)
def write(
    plots: Path,
    settings: StorySettings,
    human: tuple[str, ...],
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Have models write a story for each plot, close to a target length.

    PLOTS is a file from `fabula stories plot`, or any .jsonl with id, plot and n_words. A story is
    rewritten until it is within --within words of its target length, up to --attempts times;
    stories that never come close are reported and left out. All rounds are kept in
    FILE.rounds.jsonl.
    """
    check_outputs([settings.out], map(Path, human))
    stories = read_stories(human, how_to_read) if human else []
    with progress_bar("stories", None) as bar:
        confirm = confirm_on(bar, yes=yes)
        written = write_stories(plots, settings, stories, progress=bar, confirm=confirm)
    _report("stories", written, as_json=as_json)


@stories.command(short_help="Continue a first sentence, a headline or a theorem.")
@texts_argument("beginnings")
def openings(
    beginnings: tuple[str, ...],
    settings: OpeningSettings,
    yes: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Have models continue a first sentence, a headline or a theorem.

    BEGINNINGS are rows of a table, files with one beginning each, or a .txt file with one per line;
    with --sentences they are people's whole texts, which then stand beside the models'.
    The defaults are those of the Creativity Index paper (appendix B.1): top-p 0.9, 288 tokens.
    """
    documents = read_stories(beginnings, how_to_read)
    with progress_bar("texts", None) as bar:
        confirm = confirm_on(bar, yes=yes)
        written = write_openings(documents, settings, progress=bar, confirm=confirm)
    _report("texts", written, as_json=as_json)


def _report(what: str, written: Written, *, as_json: bool) -> None:
    """Print the number of texts, and why others are missing."""
    from fabula.reasons import explain

    n_framed = sum(bool(row.get("frame_removed")) for row in written.rows)
    lines = [f"{written.n:,} of {len(written.rows):,} {what}, written: {written.out}"]
    lines += [f"missing: {n:,} {what}: {explain(why)}" for why, n in written.missing.items()]
    if n_framed:
        lines.append(
            f"removed the text that the model put around {n_framed:,} {what} (frame_removed)"
        )
    lines += [
        f"  {row['id']} by {row['model']}: {row['n_words']:,} words after {row['round']} rounds, "
        f"target {row['target_words']:,}"
        for row in written.rows
        if row["missing_reason"] == "not_converged"
    ]
    print_done(written.to_json() | {"n_framed": n_framed}, *lines, as_json=as_json)
