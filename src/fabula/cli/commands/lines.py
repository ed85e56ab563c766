"""`fabula lines`: a draft read line by line."""

from __future__ import annotations

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, rows_option, texts_argument
from fabula.cli.printing import print_tables_or_rows
from fabula.cli.progress import progress_bar
from fabula.cli.reading import read_stories
from fabula.jobs.lines import LineSettings
from fabula.jobs.reading import Reading
from fabula.jobs.tables import TableFiles

__all__ = ["lines"]


@click.command(cls=Command, short_help="Note places in a draft to look at, line by line.")
@texts_argument("texts")
@settings_options(LineSettings)
@settings_options(TableFiles, "files")
@rows_option
@settings_options(Reading, "how_to_read")
def lines(
    texts: tuple[str, ...],
    settings: LineSettings,
    files: TableFiles,
    as_json: str | None,
    how_to_read: Reading,
) -> None:
    """Note places in drafts that their writer may want to look at, each with a sentence why.

    Words that come back within a few lines, sentences that stand there twice or begin alike, names
    in two spellings, errors, stock phrases, dialogue tags: without a language model. No note is a
    grade, and repetition can be meant; those that matter most are shown.
    """
    from fabula.jobs.lines import read_lines

    check_outputs([], [], files)
    documents = read_stories(texts, how_to_read)
    with progress_bar("reading line by line", None) as bar:
        found = read_lines(documents, settings, progress=bar)
    print_tables_or_rows(found.tables(), found.to_json(), files, as_json)
