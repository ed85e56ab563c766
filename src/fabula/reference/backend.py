"""What measures ask of a reference, wherever it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import LookupFailed
from fabula.core.types import Document, Span
from fabula.text import TextSettings, TextWords

_YEAR = re.compile(r"[12]\d{3}(?!\d)")
Spans = Sequence[tuple[int, int]]
"""N-grams of a text, each as (first word, number of words)."""
Occurs = Callable[[int, int], bool]


class ServerAway(LookupFailed):
    """A server failed to answer for several texts in a row, so the run stops."""


@dataclass(frozen=True, slots=True)
class LocatedText:
    """A text, and its words as a reference compares them."""

    text: str
    words: TextWords

    def __len__(self) -> int:
        return len(self.words.words)

    def raw(self, first: int, n_words: int) -> str:
        """The n-gram of `n_words` words from word `first`, as written in the text."""
        return self.text[int(self.words.starts[first]) : int(self.words.ends[first + n_words - 1])]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place in the reference where an n-gram occurs."""

    number: int
    document: Document
    span: Span


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where an n-gram comes from, as far as the reference knows."""

    count: int
    n_documents: int
    """The number of distinct documents that contain it."""
    is_bounded: bool
    """Whether some places of the n-gram were not searched for documents: it is too frequent, or the
    reference only counts."""
    sources: tuple[Occurrence, ...]
    missing_sources: str | None = None
    """Why existing sources could not be retrieved."""


@dataclass(frozen=True, slots=True)
class Age:
    """How old the documents of a reference are, as far as is known."""

    oldest: int | None = None
    """The earliest year stated by a document."""
    youngest: int | None = None
    """The last year in which a document can have been written; None if unknown."""

    def younger(self, documents: Iterable[Document]) -> list[str]:
        """The ids of documents whose year is later than that of any document of the reference."""
        if self.youngest is None:
            return []
        return [document.id for document in documents if (year_of(document) or 0) > self.youngest]

    def __str__(self) -> str:
        if self.youngest is None:
            return "unknown" if self.oldest is None else f"from {self.oldest}, to when is unknown"
        if self.oldest is None or self.oldest > self.youngest:
            return f"up to {self.youngest}"
        return f"{self.oldest} to {self.youngest}"


def year_of(document: Document) -> int | None:
    """The year in the document's field `year`, as a number or at the beginning of a date."""
    match = _YEAR.match(str(document.meta.get("year", "")))
    return int(match[0]) if match else None


Matches = NDArray[np.int32] | LookupFailed
"""Length of the longest n-gram that starts at each word and occurs in the reference (int32, shape
(n_words,)); or why it could not be determined, which is never the same as no match."""


def described(backend: Backend) -> str:
    """The size and age of a reference, for people."""
    age = str(backend.age)
    return f"{backend.size}, years {age}" if age == "unknown" else f"{backend.size}, {age}"


class Backend(Protocol):
    """A reference that can compute longest matches."""

    @property
    def name(self) -> str:
        """A name for people."""

    @property
    def fingerprint(self) -> str:
        """Identifies the documents and their tokenisation; determines which numbers compare."""

    @property
    def settings(self) -> TextSettings: ...

    @property
    def size(self) -> str:
        """Its size, for people: `716,959 words in 270 documents`."""

    @property
    def age(self) -> Age:
        """How old its documents are, as far as is known."""

    def locate(self, text: str) -> TextWords:
        """The words of `text` in the reference's normal form, with their positions."""

    def close(self) -> None:
        """Release open resources."""

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """Longest matches, ignoring `exclude`. Raises `LookupFailed` if going on is pointless."""

    def cite(
        self, text: LocatedText, spans: Spans, n_sources: int, *, exclude: Iterable[int] = ()
    ) -> list[Attribution]:
        """The sources of n-grams of a text."""


def dj_search(
    n_words: int, min_words: int, occurs: Occurs, *, begin: int = 0, end: int | None = None
) -> NDArray[np.int32]:
    """Longest matches by DJ Search, for a reference that only answers yes or no.

    Algorithm 2 of appendix A.1 (Lu et al. 2024): two pointers over the words from `begin` to `end`
    (half-open; all `n_words` if not given) at which a match may start; it may extend beyond `end`.
    `occurs(i, j)` returns whether words i to j (half-open) occur in the reference. If it is true
    for a run, it must be true for every part of it; so the parts of a text may be searched
    separately. Its exceptions propagate: a failed lookup is not a No.

    It is called at most 2 * (end - begin) times, and once more for each word by which the longest
    match exceeds `min_words`; never more than (end - begin) + (n_words - begin) times.

    Returns int32, shape (end - begin,): lengths of at least `min_words`, otherwise 0.
    """
    end = n_words if end is None else end
    lengths = np.zeros(end - begin, np.int32)
    i, j = begin, begin + min_words
    while i < end:
        if j <= n_words and occurs(i, j):
            j += 1
            continue
        # Words i to j - 1 occur, or are fewer than min_words.
        if j - 1 - i >= min_words:
            lengths[i - begin] = j - 1 - i
        i += 1
        j = max(j, i + min_words)
    return lengths
