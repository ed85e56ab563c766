"""Input documents: checked, with their ids, and grouped into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fabula.errors import InputError
from fabula.types import Document

_WANTED = "expected documents: a list of Document(id, text), or the result of read_documents([...])"


def check_documents(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield the documents. Raises `InputError` if they are anything else.

    It is raised at once for a string, a path, None, a table, a mapping, or a sequence with an
    element that is not a `Document`; in a stream, when that element is reached.
    """
    given: Any = documents
    # Tables of pandas, Polars and Arrow are recognised by their attributes, without an import.
    is_named = isinstance(given, dict) or hasattr(given, "columns")
    if isinstance(given, str | bytes | Document) or is_named or not hasattr(given, "__iter__"):
        raise InputError(f"{_WANTED}; got {_named(given)}{_remedy(given)}")
    return iter(list(_checked(given))) if isinstance(given, Sequence) else _checked(given)


def _checked(documents: Iterable[Any]) -> Iterator[Document]:
    for k, document in enumerate(documents, 1):
        if not isinstance(document, Document):
            raise InputError(f"{_WANTED}; number {k} is {_named(document)}{_remedy(document)}")
        yield document


def _named(value: Any) -> str:
    if isinstance(value, str):
        shown = value if len(value) <= 40 else f"{value[:40]}..."
        return f"the string {shown!r}"
    return "None" if value is None else f"of type {type(value).__name__}"


def _remedy(value: Any) -> str:
    if isinstance(value, Document):
        return "; put it in a list"
    if hasattr(value, "columns"):
        return "; use Document(row.id, row.text) for each of its rows"
    return ""


def check_ids(documents: Iterable[Document]) -> None:
    """Raise `InputError` if two documents share an id: their results would be mixed up."""
    seen: set[str] = set()
    for document in check_documents(documents):
        if document.id in seen:
            raise InputError(
                f"two texts have the id {document.id!r}; give each its own, or set the id field "
                "with `id_field`"
            )
        seen.add(document.id)


def in_batches(documents: Iterable[Document], n_chars: int) -> Iterator[list[Document]]:
    """Batches of at least `n_chars` characters, which depend only on the documents."""
    batch: list[Document] = []
    total = 0
    for document in documents:
        batch.append(document)
        # An empty document counts too, or a million of them would be one batch.
        total += len(document.text) + 1
        if total >= n_chars:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
