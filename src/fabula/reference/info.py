"""A description of a reference, local or remote."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.reference.layout import Manifest
from fabula.reference.storage import Home, open_home
from fabula.text import TextSettings
from fabula.types import Document

_YEAR = re.compile(r"[12]\d{3}(?!\d)")


@dataclass(frozen=True, slots=True)
class Age:
    """How old the documents of a reference are, as far as is known."""

    oldest: int | None = None
    """The earliest year stated by a document."""
    youngest: int | None = None
    """The last year in which a document can have been written; None if unknown."""

    @classmethod
    def of(cls, manifest: Manifest) -> Age:
        """From the years that all documents state, or else from their public corpus."""
        years, source = manifest.years, manifest.source
        oldest = None if years is None else years.first
        if years is not None and years.n_dated == sum(shard.n_read for shard in manifest.shards):
            return cls(oldest, years.last)
        # Later additions need not be from that corpus.
        is_sample = source is not None and len(manifest.additions) == 1
        return cls(oldest, source["youngest"] if source is not None and is_sample else None)

    @classmethod
    def joined(cls, ages: Sequence[Age]) -> Age:
        """The age of several references together."""
        oldest = [age.oldest for age in ages if age.oldest is not None]
        youngest = [age.youngest for age in ages if age.youngest is not None]
        is_known = len(youngest) == len(ages)
        return cls(min(oldest, default=None), max(youngest) if is_known and youngest else None)

    def younger(self, documents: Iterable[Document]) -> list[str]:
        """The ids of documents whose year is later than that of any document of the reference."""
        if self.youngest is None:
            return []
        return [one.id for one in documents if (year_of(one) or 0) > self.youngest]

    @property
    def consequence(self) -> str:
        """The consequence for texts, to be shown after the years."""
        if self.youngest is None:
            return ""
        return f"; a text written after {self.youngest} cannot be in it"

    def __str__(self) -> str:
        if self.youngest is None:
            return "unknown" if self.oldest is None else f"from {self.oldest}, to when is unknown"
        if self.oldest is None or self.oldest > self.youngest:
            return f"up to {self.youngest}"
        return f"{self.oldest} to {self.youngest}"


def year_of(document: Document) -> int | None:
    """The year in the document's field `year`, as a number or at the beginning of a date."""
    found = _YEAR.match(str(document.meta.get("year", "")))
    return int(found[0]) if found else None


@dataclass(frozen=True, slots=True)
class About:
    """The corpora of a reference, combined."""

    name: str
    fingerprint: str
    settings: TextSettings
    n_documents: int
    n_words: int
    written_by: tuple[str, ...]
    removed: NDArray[np.bool_]
    """bool (n_numbers,): which numbers belong to removed documents."""
    age: Age = Age()

    @classmethod
    def of(cls, paths: Sequence[str | Path], manifests: Sequence[Manifest]) -> Self:
        """Raises `CorpusError` if the corpora have different settings."""
        abouts = []
        for path, manifest in zip(paths, manifests, strict=True):
            home = open_home(path)
            removed = np.zeros(sum(info.n_documents for info in manifest.shards), np.bool_)
            removed[read_removed(home, manifest)] = True
            abouts.append(
                cls(
                    name=home.path.resolve().name,
                    fingerprint=manifest.fingerprint,
                    settings=manifest.settings,
                    n_documents=manifest.n_documents,
                    n_words=manifest.n_words,
                    written_by=manifest.written_by,
                    removed=removed,
                    age=Age.of(manifest),
                )
            )
        return cls.joined([str(path) for path in paths], abouts)

    @classmethod
    def joined(cls, places: Sequence[str], abouts: Sequence[Self]) -> Self:
        """Several references as one, in this order; `places` are their locations, for display.

        Raises `CorpusError` if they have different settings.
        """
        settings = abouts[0].settings
        for place, about in zip(places, abouts, strict=True):
            if about.settings != settings:
                raise CorpusError(
                    f"{place}: built with {about.settings}, but {places[0]} with {settings}; only "
                    "references with the same settings can be searched together"
                )
        return cls(
            name="+".join(about.name for about in abouts),
            fingerprint="+".join(about.fingerprint for about in abouts),
            settings=settings,
            n_documents=sum(about.n_documents for about in abouts),
            n_words=sum(about.n_words for about in abouts),
            written_by=tuple(dict.fromkeys(name for one in abouts for name in one.written_by)),
            removed=np.concatenate([about.removed for about in abouts]),
            age=Age.joined([about.age for about in abouts]),
        )


def read_removed(home: Home, manifest: Manifest) -> NDArray[np.int64]:
    """The numbers of the removed documents: int64, shape (n_removed,), ascending."""
    if manifest.removed is None:
        return np.empty(0, np.int64)
    data = home.read(manifest.removed)
    if data is None or hashlib.sha256(data).hexdigest() != manifest.removed_sha256:
        raise CorpusError(
            f"{home}/{manifest.removed}: missing or damaged; restore it, or build the corpus again"
        )
    numbers: NDArray[np.int64] = np.frombuffer(data, np.int64)
    return numbers
