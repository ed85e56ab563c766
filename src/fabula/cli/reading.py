"""Reading the texts that a command names, while a progress bar follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fabula.cli.progress import Bar, progress_bar

if TYPE_CHECKING:
    from fabula.types import Document

__all__ = ["reading"]


@contextmanager
def reading(
    sources: tuple[str, ...],
    title: str,
    *,
    text_field: str,
    id_field: str,
    format_: str | None,
) -> Iterator[tuple[Iterator[Document], Bar]]:
    """The documents of the sources, and the bar that advances as they are read."""
    from fabula.text import find_files, read_documents

    files = find_files(sources, format_=format_)
    total = sum(file.size_bytes or 0 for file in files) or None
    with progress_bar(title, total, in_bytes=True) as bar:
        documents = read_documents(
            files, text_field=text_field, id_field=id_field, format_=format_, meter=bar.advance
        )
        yield documents, bar
