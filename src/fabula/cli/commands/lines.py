"""`fabula lines`: a draft read line by line."""

from __future__ import annotations

import click

from fabula.cli.derived import Command
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_tables_or_rows
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.lines import LineSettings, read_lines
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles


@click.command(cls=Command, short_help="List places in a draft to look at, line by line.")
@texts_argument("texts")
def lines(
    texts: tuple[str, ...],
    settings: LineSettings,
    files: TableFiles,
    as_json: str | None,
    how_to_read: Reading,
) -> None:
    """List places in drafts that the writer may want to look at, each with the reason.

    Finds sentences that occur twice or begin alike, names in two spellings, errors and dialogue
    tags, without a language model, and says how often such notes are right. A note is not a grade,
    and repetition can be deliberate; the most important notes are shown.
    """
    check_outputs([], [], files)
    documents = read_stories(texts, how_to_read)
    with progress_bar("reading line by line", None) as bar:
        found = read_lines(documents, settings, progress=bar)
    print_tables_or_rows(found.tables(), found.to_json(), files, as_json)
