"""`fabula report`: every instrument on the same texts, on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.confirming import agree_to_cost
from fabula.cli.derived import Command, settings_options
from fabula.cli.notices import notify
from fabula.cli.options import check_outputs, json_option, texts_argument, yes_option
from fabula.cli.printing import print_json, print_written
from fabula.cli.progress import Bar, progress_bar
from fabula.cli.reading import read_stories
from fabula.jobs.reading import Reading
from fabula.jobs.report import ReportSettings
from fabula.jobs.tables import TableFiles

if TYPE_CHECKING:
    from fabula.api.results import Report
    from fabula.jobs.progress import Confirm
    from fabula.models.cost import Estimate

__all__ = ["report"]


@click.command(cls=Command, short_help="Run every instrument and write one page.")
@texts_argument("texts")
@settings_options(ReportSettings)
@click.option(
    "--by", metavar="FIELD", help="Compare the texts in groups by this field: author, model, ..."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PAGE",
    help="The page.  [default: report.html]",
)
@click.option(
    "--comments",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the findings as comments into a Word document (.docx), which keeps the look of a "
    ".docx draft, or as W3C annotations (.jsonld).",
)
@settings_options(TableFiles, "files")
@yes_option
@json_option
@settings_options(Reading, "how_to_read")
def report(
    texts: tuple[str, ...],
    out: Path | None,
    comments: Path | None,
    files: TableFiles,
    by: str | None,
    settings: ReportSettings,
    how_to_read: Reading,
    yes: bool,
    as_json: bool,
) -> None:
    """Show on one page all that can be said of TEXTS: what is borrowed, how they read, and more.

    Runs every instrument that can run, and says what was left out and how to have it. With --model
    a model judges by the Torrance tests and says what to revise; what it answers is kept beside the
    page, so that an interrupted run does not pay twice. Several texts are set side by side.
    """
    from fabula.api.results import Report
    from fabula.jobs.reviewer import Reviewer, compared
    from fabula.presentation.comments import check_comments_path
    from fabula.review.comparing import group_of

    page = out if out is not None or as_json else Path("report.html")
    keep = _checked_outputs(texts, page, comments, files)
    documents = read_stories(texts, how_to_read)
    if comments is not None:
        check_comments_path(comments, len(documents))
    if by is not None:
        for document in documents:
            group_of(document, by)
    _check_price(settings)
    with (
        progress_bar("measuring", None) as bar,
        Reviewer(replace(settings, keep=keep)) as reviewer,
    ):
        review = reviewer.run(documents, bar, _confirm(bar, yes=yes))
    review, tests = compared(review, by, seed=settings.seed)
    found = Report(review, by, tests, n_marks=settings.marking.n_marks)
    if page is not None:
        found.save_page(page)
    if comments is not None and (n_lost := found.save_comments(comments, Path(texts[0]))):
        notify(f"{n_lost:,} findings have no place in {comments}; the page has them")
    written = [
        path for name in (files.csv, files.latex) if name for path in found.save_tables(name)
    ]
    _print(found, [page, comments, *written], as_json=as_json)
    if any(entry.is_failure for entry in review.left_out):
        # For scripts: something that was asked for is lacking.
        click.get_current_context().exit(1)


def _checked_outputs(
    texts: tuple[str, ...], page: Path | None, comments: Path | None, files: TableFiles
) -> Path | None:
    """The folder where answers are kept, beside the page. Raises before anything is measured."""
    from fabula.presentation.page_file import check_page_path

    check_outputs([page, comments], [Path(text) for text in texts], files)
    if page is None:
        return None
    check_page_path(page)
    keep = page.with_suffix(".answers")
    if keep.is_file():
        raise click.UsageError(
            f"{keep}: answers are kept in a folder of this name; name another --out"
        )
    return keep


def _print(found: Report, written: list[Path | None], *, as_json: bool) -> None:
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(str(found), nl=False)
    print_written(written, as_json=as_json)


def _confirm(bar: Bar, *, yes: bool) -> Confirm:
    from fabula.jobs.reviewer import Declined

    def confirm(model: str, estimate: Estimate) -> None:
        try:
            agree_to_cost(model, estimate, yes=yes, bar=bar)
        except (click.Abort, click.UsageError) as error:
            # What the other instruments found is not lost for it.
            raise Declined(model) from error

    return confirm


def _check_price(settings: ReportSettings) -> None:
    """Raise `InputError` for a limit without a price before anything is measured."""
    from fabula.models.cost import Budget

    if settings.asks("verdicts") or settings.asks("feedback"):
        options = settings.models.options()
        for spec in settings.models.models:
            Budget(options.prices.of(spec), options.shared_budget)
