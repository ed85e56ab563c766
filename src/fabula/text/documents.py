"""What may be given as documents: a sentence for everything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fabula.errors import InputError
from fabula.types import Document

__all__ = ["check_documents"]

_WANTED = "documents are wanted: a list of Document(id, text), or what read_documents([...]) gives"


def check_documents(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents, each looked at as it is taken.

    Raises `InputError` at once where they are not several of anything (a string, a path, None) or
    are a table or a mapping, whose items would be names of columns or keys; and where one of
    them is not a `Document`, when it is reached.
    """
    given: Any = documents
    # Tables of pandas, Polars and Arrow are told by what they have, none of them is imported.
    is_named = isinstance(given, dict) or hasattr(given, "columns")
    if isinstance(given, str | bytes | Document) or is_named or not hasattr(given, "__iter__"):
        raise InputError(f"{_WANTED}; this is {_named(given)}{_remedy(given)}")
    return _checked(given)


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
