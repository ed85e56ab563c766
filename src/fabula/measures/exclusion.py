"""Documents of a reference that a user leaves out: by id, or by what they share with a text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from fabula.errors import InputError
from fabula.reference import Reference
from fabula.types import Document

__all__ = ["ExcludeIds", "ExcludeSame", "own_field"]


@dataclass(frozen=True, slots=True)
class ExcludeIds:
    """Documents that the user leaves out: their numbers, and a name for the list."""

    numbers: frozenset[int]
    digest: str

    @classmethod
    def of(cls, reference: Reference, ids: Iterable[str]) -> Self:
        """Look the ids up. Raises `InputError` where one is not in the reference."""
        found = reference.numbers_of(ids)
        digest = hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:8]
        return cls(frozenset(n for numbers in found.values() for n in numbers), digest)

    def __str__(self) -> str:
        return f"list({self.digest})"


@dataclass(frozen=True, slots=True)
class ExcludeSame:
    """Leaves out, for each text, the documents that share a field with it: its author, its prompt.

    A text that lacks the field is compared with all.
    """

    field: str
    numbers: Mapping[str, frozenset[int]]

    @classmethod
    def of(cls, reference: Reference, field: str) -> Self:
        """Read the field of all documents. Raises `InputError` where none has it."""
        found: dict[str, set[int]] = {}
        numbers = reference.numbers()
        for number, document in zip(numbers, reference.documents(numbers), strict=True):
            value = own_field(document, field)
            if value is not None:
                found.setdefault(value, set()).add(number)
        if not found:
            raise InputError(f"--exclude-same {field}: no document of {reference.name} has it")
        return cls(field, {value: frozenset(numbers) for value, numbers in found.items()})

    def of_text(self, document: Document) -> frozenset[int]:
        value = own_field(document, self.field)
        return frozenset() if value is None else self.numbers.get(value, frozenset())

    def __str__(self) -> str:
        # What follows an @ decides in a signature, and nothing before it.
        return f"same({self.field.replace('@', '#')})"


def own_field(document: Document, field: str) -> str | None:
    own = {"author": document.author, "prompt_id": document.prompt_id, **document.meta}
    # An empty cell of a table is no value.
    return None if own.get(field) in (None, "") else str(own[field])
