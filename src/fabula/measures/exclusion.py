"""Documents of a reference that a user excludes: by id, or by what they share with a text."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from fabula.errors import InputError
from fabula.reference import Reference
from fabula.text.sentences import encodable
from fabula.types import Document


@dataclass(frozen=True, slots=True)
class ExcludeIds:
    """Documents that the user excludes: their numbers, and a name for the list."""

    numbers: frozenset[int]
    digest: str

    @classmethod
    def of(cls, reference: Reference, ids: Iterable[str]) -> Self:
        """Look up the ids. Raises `InputError` if one is not in the reference."""
        found = reference.numbers_of(ids)
        digest = hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:8]
        return cls(frozenset(n for numbers in found.values() for n in numbers), digest)

    def __str__(self) -> str:
        return f"list({self.digest})"


@dataclass(frozen=True, slots=True)
class ExcludeSame:
    """Exclude, for each text, the documents that share a field with it: its author, its prompt.

    Values found to belong together (`joined`, mapping a value to its cluster) are excluded
    together. A text that lacks the field is compared with all.
    """

    field: str
    numbers: Mapping[str, frozenset[int]]
    """By cluster, or by value if it has none."""
    joined: Mapping[str, str] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    also: str | None = None
    """A second field, whose documents are in `numbers` too."""

    @classmethod
    def of(
        cls, reference: Reference, field: str, joined: Mapping[str, str] = MappingProxyType({})
    ) -> Self:
        """Read the field of all documents. Raises `InputError` if none has it."""
        found: dict[str, set[int]] = {}
        numbers = reference.numbers()
        for number, document in zip(numbers, reference.documents(numbers), strict=True):
            value = own_field(document, field)
            if value is not None:
                found.setdefault(joined.get(value, value), set()).add(number)
        if not found:
            raise InputError(
                f"cannot exclude by {field!r}: no document of {reference.name} has this field"
            )
        return cls(field, {name: frozenset(of_name) for name, of_name in found.items()}, joined)

    @classmethod
    def of_texts_themselves(
        cls, reference: Reference, documents: Sequence[Document], also: str | None = None
    ) -> Self:
        """For texts that are part of the reference: each excludes itself, by id and words.

        also: a field; documents that share it with a text are excluded too.
        """
        # A text without words cannot be in a reference.
        texts = {one.id: one for one in documents if reference.settings.has_words(one.text)}
        same = None if also is None else cls.of(reference, also)
        found = {}
        for id_, numbers in reference.numbers_of(texts).items():
            words = encodable(texts[id_].text)
            held = zip(numbers, reference.documents(numbers), strict=True)
            own = frozenset(number for number, one in held if one.text == words)
            found[id_] = own | (same.of_text(texts[id_]) if same else frozenset())
        return cls("id", found, also=also)

    def of_text(self, document: Document) -> frozenset[int]:
        value = own_field(document, self.field)
        if value is None:
            return frozenset()
        return self.numbers.get(self.joined.get(value, value), frozenset())

    def __str__(self) -> str:
        # Only what follows the @ matters in a signature.
        name = ",".join(filter(None, (self.field, self.also))).replace("@", "#")
        clusters: dict[str, list[str]] = {}
        for value in sorted(self.joined):
            clusters.setdefault(self.joined[value], []).append(value)
        several = sorted(values for values in clusters.values() if len(values) > 1)
        if not several:
            return f"same({name})"
        digest = hashlib.sha256(json.dumps(several).encode()).hexdigest()[:8]
        return f"same({name},joined:{digest})"


def own_field(document: Document, field: str) -> str | None:
    own = {"id": document.id, **document.fields}
    # An empty cell of a table is not a value.
    return None if own.get(field) in (None, "") else str(own[field])
