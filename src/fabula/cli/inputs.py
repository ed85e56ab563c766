"""Reading a command's input texts, with a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.progress_bar import Bar, progress_bar
from fabula.jobs.reading import Reading

if TYPE_CHECKING:
    from fabula.types import Document

_LEFT_OUT = f"{__name__}.left_out"
"""Key in the command's context for the number of skipped files."""


@contextmanager
def reading(
    sources: tuple[str, ...], title: str, how: Reading, *, whole: bool = False
) -> Iterator[tuple[Iterator[Document], Bar]]:
    """Yield the documents of the sources, and the bar that advances as they are read.

    If there are several files, unreadable ones are skipped, with a notice and a different exit code
    (`end_of_command`). `whole`: for results that need every file; the first unreadable one is an
    error.
    """
    from fabula.text import find_files, read_documents

    files = find_files(sources, format_=how.format)
    total = sum(file.size_bytes or 0 for file in files) or None
    left_out: list[Exception] = []
    with progress_bar(title, total, in_bytes=True) as bar:

        def leave_out(error: Exception) -> None:
            left_out.append(error)
            bar.tell(f"left out: {error}")

        documents = read_documents(
            files,
            text_field=how.text_field,
            id_field=how.id_field,
            format_=how.format,
            meter=bar.advance,
            on_unreadable=None if whole else leave_out,
        )
        yield documents, bar
    if left_out:
        n = len(left_out)
        click.echo(f"{n:,} of {len(files):,} files could not be read and were left out", err=True)
        click.get_current_context().meta[_LEFT_OUT] = n


def end_of_command() -> None:
    """Exit with code 1 if files were skipped, so that scripts can detect incomplete input."""
    context = click.get_current_context()
    if context.meta.get(_LEFT_OUT):
        context.exit(1)


def read_stories(sources: tuple[str, ...], how: Reading) -> list[Document]:
    """Read the stories that a command names; recognises the authors' released file by name."""
    from fabula.errors import InputError
    from fabula.rubrics.released import STORIES_FILE, read_released_stories
    from fabula.text import check_ids

    stories: list[Document] = []
    others = tuple(source for source in sources if Path(source).name != STORIES_FILE)
    for source in sources:
        if source not in others:
            stories += read_released_stories(Path(source))
    if others:
        with reading(others, "reading", how) as (documents, _):
            stories += documents
    if not stories:
        raise InputError(f"{', '.join(sources)}: contains no stories")
    check_ids(stories)
    return stories
