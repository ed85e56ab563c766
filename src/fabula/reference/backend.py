"""What every reference is to the measures, whether a corpus on disk or an index elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from fabula.errors import LookupFailed
from fabula.text import TextSettings, TextWords
from fabula.types import Document, Span

if TYPE_CHECKING:
    from fabula.reference.info import Age

__all__ = [
    "Attribution",
    "Backend",
    "LocatedText",
    "Matches",
    "Occurrence",
    "ServerAway",
    "described",
    "or_why_not",
]


class ServerAway(LookupFailed):
    """A server answered nothing for several texts in a row: it makes no sense to go on."""


@dataclass(frozen=True, slots=True)
class LocatedText:
    """A text, and its words as a reference compares them."""

    text: str
    words: TextWords

    def __len__(self) -> int:
        return len(self.words.words)

    def raw(self, first: int, n_words: int) -> str:
        """The n-gram of `n_words` words from word `first` on, as it stands in the text."""
        return self.text[int(self.words.starts[first]) : int(self.words.ends[first + n_words - 1])]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place in the reference where an n-gram stands."""

    number: int
    """The document's number in the reference."""
    document: Document
    span: Span


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where an n-gram comes from, as far as the reference knows."""

    count: int
    n_documents: int
    """Different documents that hold it."""
    is_bounded: bool
    """Whether not all the places of the n-gram were looked at for documents: it is too frequent,
    or the reference only counts."""
    sources: tuple[Occurrence, ...]
    missing_sources: str | None = None
    """Why sources that there are could not be had."""


Matches = NDArray[np.int32] | LookupFailed
"""Length of the longest n-gram that starts at each word and occurs in the reference (int32, shape
(n_words,)); or why that could not be found out, which is never the same as no match."""


def described(backend: Backend) -> str:
    """How large a reference is and how old, for people."""
    age = str(backend.age)
    return f"{backend.size}, years {age}" if age == "unknown" else f"{backend.size}, {age}"


def or_why_not(look_up: Callable[[], NDArray[np.int32]]) -> Matches:
    """What `look_up` finds, or why it failed. Raises `ServerAway`."""
    try:
        return look_up()
    except ServerAway:
        raise
    except LookupFailed as error:
        return error


class Backend(Protocol):
    """A reference that can say how long its longest matches are."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def fingerprint(self) -> str:
        """Stands for the documents and how they became words; it decides what compares."""

    @property
    def settings(self) -> TextSettings: ...

    @property
    def size(self) -> str:
        """How large it is, for people: `716,959 words in 270 documents`."""

    @property
    def age(self) -> Age:
        """How old its documents are, as far as it is known."""

    def locate(self, text: str) -> TextWords:
        """The words of `text` in the reference's normal form, and where they stand."""

    def close(self) -> None:
        """Let go of what it holds open."""

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts; documents numbered in `exclude` do not count.

        Raises `LookupFailed` where it makes no sense to go on.
        """

    def cite(
        self,
        text: LocatedText,
        spans: Sequence[tuple[int, int]],
        n_sources: int,
        *,
        exclude: Iterable[int] = (),
    ) -> list[Attribution]:
        """Where n-grams of a text come from: each its first word, and its number of words."""
