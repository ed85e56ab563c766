"""The interface of references to the measures, for corpora on disk and external indexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from fabula.errors import LookupFailed
from fabula.text import TextSettings, TextWords
from fabula.types import Document, Span

if TYPE_CHECKING:
    from fabula.reference.info import Age


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
    """The document's number in the reference."""
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
        """The longest matches of many texts, ignoring documents numbered in `exclude`.

        Raises `LookupFailed` if continuing is pointless.
        """

    def cite(
        self,
        text: LocatedText,
        spans: Sequence[tuple[int, int]],
        n_sources: int,
        *,
        exclude: Iterable[int] = (),
    ) -> list[Attribution]:
        """The sources of n-grams of a text, each given as (first word, number of words)."""
