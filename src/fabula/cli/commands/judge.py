"""`fabula judge`: rubrics answered by language models, and how far to trust the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Group
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs
from fabula.cli.printing import print_result, print_tables_or_rows, print_written
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.calibration import CalibrateSettings, calibrate_judges
from fabula.jobs.correction import CorrectSettings, correct_run
from fabula.jobs.judge_comparison import JudgeComparisonSettings, compare_judges
from fabula.jobs.judging import StoriesSettings, judge_stories, rank_judged
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles

if TYPE_CHECKING:
    from fabula.jobs.judging import Judged
    from fabula.presentation.sheet import Block
if TYPE_CHECKING:
    from fabula.judging.session import Spent
    from fabula.types import Measurement


def exit_where_calls_failed(measurements: Sequence[Measurement]) -> None:
    """If calls failed, exit with the code for partial results, and say why."""
    failed = [one for one in measurements if one.missing_reason == "failed"]
    if not failed:
        return
    why = next((str(one.details["note"]) for one in failed if "note" in one.details), "")
    click.echo(
        f"{len(failed):,} of {len(measurements):,} answers are missing, since calls "
        f"failed{f' ({why})' if why else ''}; run the same command again to retry them",
        err=True,
    )
    click.get_current_context().exit(1)


def print_end(spent: list[Spent], written: list[Path | None], *, quiet: bool) -> None:
    from fabula.presentation.judging_tables import spent_lines

    for line in spent_lines(spent):
        click.echo(line, err=quiet)
    print_written(written, as_json=quiet)


@click.command(cls=Command, short_help="Correct a judge with labels from experts.")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
def correct(run: Path, settings: CorrectSettings, files: TableFiles, as_json: bool) -> None:
    """Estimate what experts would have said about all documents of RUN, from labels for some.

    A judge that passes more documents than experts do is just as wrong on documents that nobody
    labelled. Means, rates of items and differences between groups are corrected by
    prediction-powered inference (PPI++), with 95 % intervals that are valid for few labels. The
    labelled documents must be drawn at random; labels for a different kind of document are refused.
    """
    check_outputs([], [settings.labels], files)
    found = correct_run(run, settings)
    print_result(found.tables(), found.content(), files, as_json=as_json)


@click.command(cls=Command, short_help="Compare judges with people and with each other.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--stories",
    multiple=True,
    metavar="STORIES",
    help="The texts that were judged; needed to measure length bias.",
)
def compare(
    runs: tuple[Path, ...],
    settings: JudgeComparisonSettings,
    stories: tuple[str, ...],
    files: TableFiles,
    as_json: str | None,
    how_to_read: Reading,
) -> None:
    """Compare the judges of RUNs with people's verdicts and with each other.

    A RUN is a folder that `fabula judge` wrote. On yes-no items, with three or more judges, the
    majority of the judges is measured too; numbers and choices are compared item by item, with the
    statistic of their scale. Intervals are over documents.
    """
    check_outputs([], [settings.labels], files)
    documents = read_stories(stories, how_to_read) if stories else []
    comparison = compare_judges(runs, settings, documents)
    written = print_tables_or_rows(comparison.tables(), comparison.to_json(), files, as_json)
    print_written(written, as_json=bool(as_json))


class _DefaultGroup(Group):
    """`fabula judge STORIES` runs `stories`; `fabula judge calibrate DIR` its own command."""

    default = "stories"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_DefaultGroup, short_help="Have language models answer a rubric.")
def judge() -> None:
    """Have language models answer a rubric: `fabula judge story.txt --rubric ttcw --model local`.

    `fabula judge STORIES...` is short for `fabula judge stories STORIES...`.
    """


judge.add_command(compare)


@judge.command(short_help="Judge stories with a rubric.")
@click.argument("stories", nargs=-1, required=True, metavar="STORIES...")
def stories(
    stories: tuple[str, ...],
    settings: StoriesSettings,
    how_to_read: Reading,
    files: TableFiles,
    yes: bool,
    as_json: str | None,
) -> None:
    """Have language models answer a rubric, story by story.

    An answer without a verdict (a refusal, a truncated or withheld answer, "yes and no") is
    missing, with its reason, and never counts as No. The judge's measured agreement with experts is
    shown beside each verdict.
    """
    check_outputs([settings.html], [], files)
    documents = read_stories(stories, how_to_read)
    with progress_bar("asking", None) as bar:
        judged = judge_stories(documents, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    tables = _pair_tables(judged, settings) if settings.pairwise else judged.tables()
    rows = chain(judged.rows(), _ranking_rows(judged, settings))
    written = print_tables_or_rows(tables, rows, files, as_json)
    print_end(
        judged.spent, [settings.measurements_path, settings.html, *written], quiet=bool(as_json)
    )
    exit_where_calls_failed(judged.measurements)


@judge.command(short_help="Measure how far a judge agrees with experts.")
@click.argument("stories", nargs=-1, required=True, metavar="DIR|STORIES...")
def calibrate(
    stories: tuple[str, ...],
    settings: CalibrateSettings,
    how_to_read: Reading,
    files: TableFiles,
    yes: bool,
    as_json: str | None,
) -> None:
    """Measure how far a judge agrees with people on stories that people have judged.

    STORIES with --labels, for any rubric; or DIR, the folder Art_or_Artifice of
    github.com/salesforce/creativity_eval, which holds the texts of 36 of the 48 stories of TTCW and
    their experts' verdicts. The judge is compared with people on the same stories. Its agreement is
    saved by model, wording, style and mode, and shown with every later verdict of that judge.
    """
    from fabula.judging.calibrate import released_folder

    check_outputs([settings.html], [], files)
    if settings.labels is None:
        if len(stories) != 1:
            raise click.UsageError(
                "STORIES need --labels; without it, give the one released folder"
            )
        documents, labels = released_folder(Path(stories[0]))
    else:
        documents, labels = read_stories(stories, how_to_read), settings.labels
    with progress_bar("asking", None) as bar:
        found = calibrate_judges(
            documents, labels, settings, progress=bar, confirm=confirm_on(bar, yes=yes)
        )
    written = print_tables_or_rows(found.tables(), found.trusts(), files, as_json)
    print_end(found.judged.spent, [found.book_path, settings.html, *written], quiet=bool(as_json))
    exit_where_calls_failed(found.judged.measurements)


judge.add_command(correct)


def _pair_tables(judged: Judged, settings: StoriesSettings) -> list[Block]:
    from fabula.judging.pairwise import summarise_pairs
    from fabula.presentation.judging_tables import pair_table, ranking_tables

    parts: list[Block] = []
    for rater, rankings in rank_judged(judged, settings).items():
        mine = [one for one in judged.measurements if one.rater == rater]
        parts += pair_table(summarise_pairs(mine), mine[0].signature)
        for ranking in rankings:
            parts += ["", *ranking_tables(ranking, rater, settings.by)]
    return parts


def _ranking_rows(judged: Judged, settings: StoriesSettings) -> Iterator[dict[str, Any]]:
    """The rankings computed from pairs, over all items and by item."""
    from fabula.judging.pairwise import ranking_row

    if settings.pairwise:
        for rater, rankings in rank_judged(judged, settings, by_item=True).items():
            for ranking in rankings:
                yield ranking_row(ranking, rater)
