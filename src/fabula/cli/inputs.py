"""Reading the texts that a command names, while a progress bar follows."""

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

__all__ = ["end_of_command", "read_stories", "reading"]

_LEFT_OUT = f"{__name__}.left_out"
"""In the command's context: how many files were left out."""


@contextmanager
def reading(
    sources: tuple[str, ...], title: str, how: Reading, *, whole: bool = False
) -> Iterator[tuple[Iterator[Document], Bar]]:
    """The documents of the sources, and the bar that advances as they are read.

    Of several files those that cannot be read are left out, which is said, and shows in the exit
    code (`end_of_command`). `whole`: for what is made of all of them or not at all; the first that
    cannot be read is an error.
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
    """End with code 1 where files were left out: for scripts, not all that was named is there."""
    context = click.get_current_context()
    if context.meta.get(_LEFT_OUT):
        context.exit(1)


def read_stories(sources: tuple[str, ...], how: Reading) -> list[Document]:
    """The stories that a command names; the authors' released file is known by its name."""
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
