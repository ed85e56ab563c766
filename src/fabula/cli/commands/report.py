"""`fabula report`: every instrument on the same texts, on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.confirming import agree_to_cost
from fabula.cli.derived import Command
from fabula.cli.inputs import read_stories
from fabula.cli.notices import notify
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_json, print_written
from fabula.cli.progress_bar import Bar, progress_bar
from fabula.jobs.reading import Reading
from fabula.jobs.report import ReportFiles, ReportSettings

if TYPE_CHECKING:
    from fabula.jobs.progress import Confirm
    from fabula.models.cost import Estimate


@click.command(cls=Command, short_help="Run every instrument and write one page.")
@texts_argument("texts")
def report(
    texts: tuple[str, ...],
    settings: ReportSettings,
    files: ReportFiles,
    how_to_read: Reading,
    yes: bool,
    as_json: bool,
) -> None:
    """Show everything that can be said about TEXTS on one page: borrowing, style, and more.

    Runs every instrument that can run, and says what was left out and how to get it. With --model,
    a model judges by the Torrance tests and says what to revise; its answers are saved beside the
    page, so that you do not pay twice for an interrupted run. Several texts are shown side by side.
    """
    from fabula.jobs.reported import report_texts
    from fabula.presentation.comments import check_comments_path
    from fabula.presentation.sheet import render
    from fabula.provenance import note_output

    if files.out is None and not as_json:
        files = replace(files, out=Path("report.html"))
        note_output("out", Path("report.html"))
    keep = _checked_outputs(texts, files)
    documents = read_stories(texts, how_to_read)
    if files.comments is not None:
        check_comments_path(files.comments, len(documents))
    with progress_bar("measuring", None) as bar:
        found = report_texts(
            documents, replace(settings, keep=keep), progress=bar, confirm=_confirm(bar, yes=yes)
        )
    if files.out is not None:
        found.write_page(files.out)
    if files.comments is not None:
        n_lost = found.write_comments(files.comments, Path(texts[0]))
        if n_lost:
            notify(f"{n_lost:,} findings have no place in {files.comments}; they are on the page")
    written = [files.out, files.comments, *files.write(found.sheets())]
    if as_json:
        print_json(found.to_json())
    else:
        # As they are: what stands there in backticks may be quoted from a text.
        click.echo(render(*found.tables()), nl=False)
    print_written(written, as_json=as_json)
    if any(entry.is_failure for entry in found.review.left_out):
        # For scripts: something that was asked for is lacking.
        click.get_current_context().exit(1)


def _checked_outputs(texts: tuple[str, ...], files: ReportFiles) -> Path | None:
    """The folder where answers are kept, beside the page. Raises before anything is measured."""
    from fabula.presentation.page_file import check_page_path

    check_outputs([files.out, files.comments], [Path(text) for text in texts], files)
    if files.out is None:
        return None
    check_page_path(files.out)
    keep = files.out.with_suffix(".answers")
    if keep.is_file():
        raise click.UsageError(
            f"{keep}: a folder with this name is needed for the answers; choose another --out"
        )
    return keep


def _confirm(bar: Bar, *, yes: bool) -> Confirm:
    from fabula.jobs.reviewer import Declined

    def confirm(model: str, estimate: Estimate) -> None:
        try:
            agree_to_cost(model, estimate, yes=yes, bar=bar)
        except (click.Abort, click.UsageError) as error:
            # What the other instruments found is not lost for it.
            raise Declined(model) from error

    return confirm
