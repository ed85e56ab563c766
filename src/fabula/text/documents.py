"""Documents as they are given: what may be, whether ids tell them apart, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fabula.errors import InputError
from fabula.types import Document

__all__ = ["check_documents", "check_ids", "in_batches"]

_WANTED = "documents are wanted: a list of Document(id, text), or what read_documents([...]) gives"


def check_documents(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents one after the other. Raises `InputError` where they are anything else.

    That is at once for a string, a path, None, a table, a mapping, or a sequence in which one is
    not a `Document`; in a stream it is when that one is reached.
    """
    given: Any = documents
    # Tables of pandas, Polars and Arrow are told by what they have, none of them is imported.
    is_named = isinstance(given, dict) or hasattr(given, "columns")
    if isinstance(given, str | bytes | Document) or is_named or not hasattr(given, "__iter__"):
        raise InputError(f"{_WANTED}; this is {_named(given)}{_remedy(given)}")
    return iter(list(_checked(given))) if isinstance(given, Sequence) else _checked(given)


def _checked(documents: Iterable[Any]) -> Iterator[Document]:
    for k, document in enumerate(documents, 1):
        if not isinstance(document, Document):
            raise InputError(
                f"{_WANTED}; number {k} of these is {_named(document)}{_remedy(document)}"
            )
        yield document


def _named(value: Any) -> str:
    if isinstance(value, str):
        shown = value if len(value) <= 40 else f"{value[:40]}..."
        return f"the string {shown!r}"
    return "None" if value is None else f"of type {type(value).__name__}"


def _remedy(value: Any) -> str:
    """How the same becomes documents."""
    if isinstance(value, Document):
        return "; put it into a list"
    if hasattr(value, "columns"):
        return "; write Document(row.id, row.text) for each of its rows"
    return ""


def check_ids(documents: Iterable[Document]) -> None:
    """Raise `InputError` where two documents share an id: what is said of them would mix."""
    seen: set[str] = set()
    for document in check_documents(documents):
        if document.id in seen:
            raise InputError(
                f"two texts have the id {document.id!r}; give each its own, or name the field that "
                f"holds it with `id_field`"
            )
        seen.add(document.id)


def in_batches(documents: Iterable[Document], n_chars: int) -> Iterator[list[Document]]:
    """Documents in batches of at least so many characters, which depend on the documents alone."""
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
