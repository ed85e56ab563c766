"""Reading a command's input texts, with a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from fabula.cli.progress_bar import Bar, progress_bar
from fabula.jobs import reading
from fabula.jobs.reading import Reading

if TYPE_CHECKING:
    from fabula.types import Document

_LEFT_OUT = f"{__name__}.left_out"
"""Key in the command's context for the number of skipped files, and of all."""


def reading_of(
    sources: tuple[str, ...], how: Reading, bar: Bar, *, whole: bool = False
) -> Iterator[Document]:
    """The documents of the sources, while the bar advances.

    If there are several files, unreadable ones are skipped, with a notice and a different exit code
    (`end_of_command`). `whole`: for results that need every file; the first unreadable one is an
    error.
    """
    from fabula.text import find_files, read_documents

    files = find_files(sources, format_=how.format)
    total = sum(file.size_bytes or 0 for file in files) or None
    left_out: list[Exception] = []
    bar.begin("reading", total)

    def leave_out(error: Exception) -> None:
        left_out.append(error)
        bar.tell(f"left out: {error}")

    yield from read_documents(
        files,
        text_field=how.text_field,
        id_field=how.id_field,
        format_=how.format,
        meter=bar.advance,
        on_unreadable=None if whole else leave_out,
    )
    if left_out:
        click.get_current_context().meta[_LEFT_OUT] = (len(left_out), len(files))


def end_of_command() -> None:
    """Exit with code 1 if files were skipped, so that scripts can detect incomplete input."""
    context = click.get_current_context()
    if left_out := context.meta.get(_LEFT_OUT):
        n, n_files = left_out
        click.echo(f"{n:,} of {n_files:,} files could not be read and were left out", err=True)
        context.exit(1)


def read_stories(sources: tuple[str, ...], how: Reading) -> list[Document]:
    """Read the stories that a command names, with a progress bar."""

    def read(others: tuple[str, ...]) -> Iterator[Document]:
        with progress_bar("reading", None, in_bytes=True) as bar:
            yield from reading_of(others, how, bar)

    return reading.read_stories(sources, read)
