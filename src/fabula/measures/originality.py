"""How original a text is against a reference: L-uniqueness, Creativity Index, borrowed spans.

Lu et al. 2024, "AI as Humanity's Salieri", section "Creativity Index":

- the *L-uniqueness* of a text is the share of its words that lie in no n-gram, n >= L, that occurs
  in the reference;
- its *Creativity Index* is the sum of its L-uniqueness over a range of L, 5 to 12 in the paper
  (appendix B.3), so 0 to 8.

Both follow from the length of the longest n-gram that starts at each word and occurs in the
reference, since every part of an n-gram that occurs does so too.

What the paper leaves open: a text with fewer than L words has no n-gram to look for, so its
L-uniqueness is missing, and so is its index; a text of which the reference knows no single word is
in another language or spelling than the reference, and its originality is missing, not perfect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from fabula import __version__
from fabula.errors import FabulaError, InputError
from fabula.reference import Attribution, Reference
from fabula.reference.exclude import Copy, CopyRule, find_copies, maximal_spans
from fabula.text import TextWords
from fabula.types import Document, Measurement, Signature, Span

__all__ = [
    "Borrowed",
    "ExcludeIds",
    "Levels",
    "Originality",
    "OriginalityMeasure",
    "dj_search",
    "uniqueness",
]

MissingReason = Literal["no_words", "too_short", "no_known_words"]

_BATCH_WORDS = 100_000


@dataclass(frozen=True, slots=True)
class Levels:
    """The values of L that are summed, ends included."""

    low: int = 5
    high: int = 12

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high:
            raise InputError(
                f"--levels {self.low}-{self.high}: give LOW-HIGH with 1 <= LOW <= HIGH"
            )

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __len__(self) -> int:
        return self.high - self.low + 1

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"

    @classmethod
    def parse(cls, text: str) -> Levels:
        low, dash, high = text.partition("-")
        if not (low.isdecimal() and (high.isdecimal() if dash else True)):
            raise InputError(f"--levels {text}: give a range such as 5-12")
        return cls(int(low), int(high or low))


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
class Borrowed:
    """A stretch of the text that stands in the reference, and that no longer one contains."""

    span: Span
    first_word: int
    n_words: int
    attribution: Attribution


@dataclass(frozen=True, slots=True)
class Originality:
    """What the reference says of one text."""

    document: Document
    n_words: int
    n_known_words: int
    uniqueness: dict[int, float | None]
    """L-uniqueness by L, in [0, 1]."""
    creativity_index: float | None
    borrowed: tuple[Borrowed, ...]
    excluded: tuple[Copy, ...]
    missing_reason: MissingReason | None
    signature: Signature

    def measurements(self) -> list[Measurement]:
        """The index and each L-uniqueness as measurements."""
        evidence = tuple(b.span for b in self.borrowed)
        values: dict[str, float | None] = {"creativity_index": self.creativity_index}
        values |= {f"uniqueness.{level}": value for level, value in self.uniqueness.items()}
        return [
            Measurement(
                document_id=self.document.id,
                rubric="originality",
                item=item,
                rater="fabula",
                value=value,
                missing_reason=None if value is not None else self.missing_reason,
                evidence=evidence,
                rationale=None,
                signature=str(self.signature),
            )
            for item, value in values.items()
        ]


def uniqueness(lengths: NDArray[np.int32], level: int) -> float | None:
    """L-uniqueness at L = `level` from the longest match at each word (int32, shape (n_words,)).

    None where the text has fewer than `level` words.
    """
    n_words = len(lengths)
    if n_words < level:
        return None
    begins = np.flatnonzero(lengths >= level)
    change = np.zeros(n_words + 1, np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, begins + lengths[begins], -1)
    return float(np.count_nonzero(np.cumsum(change)[:-1] == 0)) / n_words


def dj_search(
    n_words: int, min_words: int, occurs: Callable[[int, int], bool]
) -> NDArray[np.int32]:
    """Longest matches by DJ Search, for a reference that only answers yes or no.

    Algorithm 2 of appendix A.1: two pointers, so that `occurs(i, j)`, whether words i to j
    (half-open) occur in the reference, is asked at most 2 * n_words times. It must say yes to every
    part of what it says yes to. What it raises is passed on: no answer is not a No.

    Returns int32, shape (n_words,): lengths of at least `min_words`, otherwise 0.
    """
    lengths = np.zeros(n_words, np.int32)
    i, j = 0, min_words
    while i < n_words:
        if j <= n_words and occurs(i, j):
            j += 1
            continue
        # Words i to j - 1 occur, or are fewer than min_words.
        if j - 1 - i >= min_words:
            lengths[i] = j - 1 - i
        i += 1
        j = max(j, i + min_words)
    return lengths


class OriginalityMeasure:
    """The measure with all its settings, ready for documents.

    `exclude` leaves documents of the reference out: by rule (what copies or quotes the text), or by
    id. `n_sources` is how many sources of each borrowed span are named.
    """

    def __init__(
        self,
        reference: Reference,
        *,
        levels: Levels = Levels(),
        exclude: CopyRule | ExcludeIds | None = None,
        n_sources: int = 3,
        n_threads: int = 1,
    ) -> None:
        self.reference = reference
        self.levels = levels
        self.rule = exclude if isinstance(exclude, CopyRule) else None
        self.left_out = exclude.numbers if isinstance(exclude, ExcludeIds) else frozenset()
        self.n_threads = n_threads
        self.signature = Signature.of(
            "originality",
            match="verbatim",
            L=str(levels),
            **reference.settings.signature_parts(),
            ref=f"{reference.name}@{reference.fingerprint}",
            excl=str(exclude or "none"),
            v=__version__,
        )

        # The same phrases recur from text to text.
        @lru_cache(maxsize=1 << 14)
        def attribute(words: tuple[str, ...], out: frozenset[int]) -> Attribution:
            return reference.attribute(words, n_sources, exclude=out)

        self._attribute = attribute

    def measure(self, documents: Iterable[Document]) -> Iterator[Originality]:
        """Measure documents as they come, in order; a batch of them is searched at a time.

        Raises what the reference raises: a look-up that failed never counts as novel. Where reading
        fails, the documents read before are measured first.
        """
        batch: list[tuple[Document, TextWords]] = []
        n_words = 0
        try:
            for document in documents:
                words = self.reference.locate(document.text)
                batch.append((document, words))
                n_words += len(words.words)
                if n_words >= _BATCH_WORDS:
                    ready, batch, n_words = batch, [], 0
                    yield from self._batch(ready)
        except FabulaError:
            yield from self._batch(batch)
            raise
        yield from self._batch(batch)

    def _batch(self, batch: Sequence[tuple[Document, TextWords]]) -> Iterator[Originality]:
        found = self.reference.longest_matches_many(
            [words.words for _, words in batch], exclude=self.left_out, n_threads=self.n_threads
        )
        for (document, words), lengths in zip(batch, found, strict=True):
            copies: list[Copy] = []
            if self.rule is not None:
                copies = find_copies(self.reference, words.words, self.rule)
            out = frozenset(copy.number for copy in copies) | self.left_out
            if copies:
                lengths = self.reference.longest_matches(words.words, exclude=out)
            yield self._one(document, words, lengths, copies, out)

    def _one(
        self,
        document: Document,
        words: TextWords,
        lengths: NDArray[np.int32],
        copies: list[Copy],
        out: frozenset[int],
    ) -> Originality:
        n_words, n_known = len(lengths), int(np.count_nonzero(lengths))
        missing: MissingReason | None = None
        if n_words == 0:
            missing = "no_words"
        elif n_known == 0:
            missing = "no_known_words"
        elif n_words < self.levels.high:
            missing = "too_short"
        by_level = {level: uniqueness(lengths, level) if n_known else None for level in self.levels}
        values = [value for value in by_level.values() if value is not None]
        borrowed = tuple(
            Borrowed(
                span=Span(document.id, int(words.starts[first]), int(words.ends[first + n - 1])),
                first_word=first,
                n_words=n,
                attribution=self._attribute(tuple(words.words[first : first + n]), out),
            )
            for first, n in maximal_spans(lengths, self.levels.low)
        )
        return Originality(
            document=document,
            n_words=n_words,
            n_known_words=n_known,
            uniqueness=by_level,
            creativity_index=sum(values) if missing is None else None,
            borrowed=borrowed,
            excluded=tuple(copies),
            missing_reason=missing,
            signature=self.signature,
        )
