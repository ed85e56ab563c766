"""`fabula book`: a long text chapter by chapter."""

from __future__ import annotations

import click

from fabula.cli.derived import Command
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_tables_or_rows
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.books import BookSettings, measure_books
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="Measure a book by chapter: length, pace, people.")
@texts_argument("texts")
def book(
    texts: tuple[str, ...],
    settings: BookSettings,
    files: TableFiles,
    as_json: str | None,
    how_to_read: Reading,
) -> None:
    """Measure books chapter by chapter: length, sentences, speech, pace, repetition, people.

    Chapters are found by the headings of .docx, .epub, .odt, .rtf and Markdown, the outline of a
    PDF and the folders of a Scrivener project, and in plain text by typographic conventions
    (CHAPTER I, Chapter One, 1.); a text without headings is measured in stretches. English only.
    The page of fabula report shows the same as charts.
    """
    check_outputs([], [], files)
    documents = read_stories(texts, how_to_read)
    with progress_bar("measuring chapters", None) as bar:
        found = measure_books(documents, settings, progress=bar)
    print_tables_or_rows(found.tables(), found.to_json(), files, as_json)
