"""Reading the texts that a command names, while a progress bar follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.cli.progress import Bar, progress_bar

if TYPE_CHECKING:
    from fabula.types import Document

__all__ = ["read_stories", "reading"]


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


def read_stories(sources: tuple[str, ...], options: dict[str, Any]) -> list[Document]:
    """The stories that a command names; the authors' released file is known by its name."""
    from fabula.errors import InputError
    from fabula.rubrics.released import STORIES_FILE, read_released_stories
    from fabula.text import check_ids

    how = {key: options[key] for key in ("text_field", "id_field", "format_")}
    stories: list[Document] = []
    others = tuple(source for source in sources if Path(source).name != STORIES_FILE)
    for source in sources:
        if source not in others:
            stories += read_released_stories(Path(source))
    if others:
        with reading(others, "reading", **how) as (documents, _):
            stories += documents
    if not stories:
        raise InputError(f"{', '.join(sources)}: holds no stories")
    check_ids(stories)
    return stories
