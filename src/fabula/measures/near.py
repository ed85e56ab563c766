"""Near-verbatim matches: n-grams that stand in the reference in other words.

Lu et al. 2024, section "DJ Search" and appendix A.2: an n-gram of the text matches where it occurs
verbatim, or where a span of one of the passages most similar to the text (by BM25) is as similar to
it as the threshold, by the smaller of the two directional means of best cosines between their
content words.

What the paper leaves open, and how it is here (all of it is in the signature):

- A text of any length is read in windows, each with its own passages: what is borrowed in one place
  is found whatever the rest is about. An n-gram is compared with the passages of the window that it
  starts in.
- Similarity needs content words on both sides, at least `floor` of them: of two it says little.
- A content word without a vector resembles only itself.
- A near match holds at most 100 words; no level of the index is near that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.kernels.movers import (
    best_passage,
    gather_passages,
    list_unseen,
    number_units,
    search_near,
    similarities,
)
from fabula.models.vectors import WordVectors
from fabula.reference import Occurrence
from fabula.reference.passages import PassageIndex
from fabula.text import TextWords

__all__ = ["NEAR_PRESETS", "Counterpart", "NearSearch", "NearSettings"]

MAX_WORDS = 100
_NOT_SEEN, _NO_CONTENT = -1, -2


@dataclass(frozen=True, slots=True)
class NearSettings:
    """When two n-grams are near, and where it is looked for."""

    threshold: float = 0.88
    floor: int = 5
    """Content words that both n-grams must hold."""
    n_passages: int = 100
    """Passages that each window of the text is compared with."""
    window: int = 50
    """Words of a window; half a window more is read with it to find its passages."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise InputError(f"--threshold {self.threshold:g}: give a similarity over 0, at most 1")
        if self.floor < 1 or self.n_passages < 1 or self.window < 1:
            raise InputError("--floor, --passages and --window must be at least 1")

    def signature_parts(self) -> dict[str, str]:
        return {
            "T": repr(self.threshold),
            "floor": str(self.floor),
            "K": f"{self.n_passages}per{self.window}",
        }


NEAR_PRESETS = {"paper": NearSettings(threshold=0.95, floor=1)}


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The span of the reference that an n-gram is most similar to."""

    similarity: float
    """The smaller of the two directional means, in [0, 1]."""
    source: Occurrence
    words: TextWords
    """The words of the source's span, with their places in its document."""
    pairs: tuple[tuple[int, int, float], ...]
    """(word of the text, word of the source, cosine) for each content word of the n-gram with the
    one most like it; words are counted from the first of each n-gram."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The passages of a window as arrays for the kernels."""

    passages: NDArray[np.int64]
    """int64, shape (n_passages, 2): shard, and passage of the shard."""
    sims: NDArray[np.float32]
    content: NDArray[np.int32]
    places: NDArray[np.int32]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int32]

    def one(self, p: int) -> _Window:
        """Passage `p` alone."""
        low, high = int(self.offsets[p]), int(self.offsets[p + 1])
        return _Window(
            self.passages[p : p + 1], self.sims, self.content[low:high], self.places[low:high],
            np.array([0, high - low], np.int64), self.lengths[p : p + 1],
        )  # fmt: skip

    def search(
        self,
        columns: NDArray[np.int32],
        exact: NDArray[np.int32],
        j: int,
        stop: int,
        min_words: int,
        settings: NearSettings,
        found: NDArray[np.int32],
    ) -> int:
        """`search_near` over the starts before `stop`; `j` is where the second pointer stands."""
        return int(
            search_near(
                self.sims, columns, exact, 0, stop, j, self.content, self.places, self.offsets,
                self.lengths, min_words, settings.floor, MAX_WORDS, settings.threshold, found,
            )
        )  # fmt: skip


class NearSearch:
    """Near-verbatim search in a reference; its passages must have been built."""

    def __init__(
        self, index: PassageIndex, vectors: WordVectors, settings: NearSettings = NearSettings()
    ) -> None:
        self.index = index
        self.vectors = vectors
        self.settings = settings
        # By shard and word id: the row of its vector, or what it is instead.
        self._units = [
            np.full(shard.shard.info.n_vocabulary + 1, _NOT_SEEN, np.int32)
            for shard in index.shards
        ]
        self._unknown: dict[str, int] = {}
        self._lock = threading.Lock()

    def signature_parts(self) -> dict[str, str]:
        """All that decides a near match besides the reference."""
        cut = self.index.settings
        return {
            **self.settings.signature_parts(),
            "pass": f"{cut.n_words}-{cut.overlap}",
            "stop": self.index.stop_words.name,
            "vec": self.vectors.name,
        }

    def search(
        self,
        words: Sequence[str],
        exact: NDArray[np.int32],
        min_words: int,
        *,
        exclude: Iterable[int] = (),
    ) -> tuple[NDArray[np.int32], dict[int, Counterpart]]:
        """The longest match at each word, verbatim or near, and what the near ones resemble.

        exact: int32 (n_words,), the longest verbatim matches. The lengths, int32 (n_words,), are
        those of `exact` where nothing nearer was found. Counterparts are given by first word, for
        each match that is near and that no longer one contains.
        """
        settings = self.settings
        found = exact.copy()
        counterparts: dict[int, Counterpart] = {}
        j, reach = 0, 0
        units = self._text_units(words)
        exclude = frozenset(exclude)
        for first, stop, tail in self._windows(len(words)):
            window, columns = self._open(
                words[first : stop + settings.window // 2], units[first:tail], exclude
            )
            if window is None:
                continue
            j = first + window.search(
                columns, exact[first:tail], max(0, j - first), stop - first, min_words, settings,
                found[first:tail],
            )  # fmt: skip
            for i in range(first, stop):
                if found[i] >= min_words and i + found[i] > reach:
                    if found[i] > exact[i]:
                        span = columns[i - first : i - first + found[i]]
                        counterparts[i] = self._counterpart(window, span, min_words)
                    reach = i + int(found[i])
        return found, counterparts

    def covered_by(
        self, words: Sequence[str], min_words: int, *, exclude: Iterable[int] = ()
    ) -> dict[int, list[tuple[int, int]]]:
        """The half-open stretches of words that lie in a near match with each document, by number.

        As `search`, with the passages of one document at a time.
        """
        settings = self.settings
        covered: dict[int, list[tuple[int, int]]] = {}
        units = self._text_units(words)
        exclude = frozenset(exclude)
        for first, stop, tail in self._windows(len(words)):
            window, columns = self._open(
                words[first : stop + settings.window // 2], units[first:tail], exclude
            )
            if window is None:
                continue
            none = np.zeros(len(columns), np.int32)
            for p, (shard, number) in enumerate(window.passages):
                found = none.copy()
                window.one(p).search(columns, none, 0, stop - first, min_words, settings, found)
                spans = [(int(first + i), int(first + i + found[i])) for i in np.flatnonzero(found)]
                if spans:
                    passage = self.index.passage(int(shard), int(number))
                    covered.setdefault(passage.number, []).extend(spans)
        return covered

    def _windows(self, n_words: int) -> Iterator[tuple[int, int, int]]:
        """(first word, end of its starts, end of what may be matched) of each window."""
        for first in range(0, n_words, self.settings.window):
            stop = min(n_words, first + self.settings.window)
            yield first, stop, min(n_words, stop + MAX_WORDS)

    def _text_units(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Each word's unit, `_NO_CONTENT` for what is no content word: int32, (n_words,)."""
        distinct = list(dict.fromkeys(words))
        with self._lock:
            units = dict(zip(distinct, self._units_of(distinct), strict=True))
        return np.array([units[word] for word in words], np.int32)

    def _units_of(self, words: Sequence[str]) -> list[int]:
        rows = self.vectors.rows(words)
        return [
            _NO_CONTENT
            if not self.index.stop_words.is_content(word)
            else int(row)
            if row >= 0
            else -3 - self._unknown.setdefault(word, len(self._unknown))
            for word, row in zip(words, rows, strict=True)
        ]

    def _open(
        self, query: Sequence[str], units: NDArray[np.int32], exclude: frozenset[int]
    ) -> tuple[_Window | None, NDArray[np.int32]]:
        """The passages of a window, and the text's words as columns of their similarities."""
        is_content = units != _NO_CONTENT
        columns = np.full(len(units), -1, np.int32)
        passages = self.index.best(query, self.settings.n_passages, exclude=exclude)
        if not len(passages) or np.count_nonzero(is_content) < self.settings.floor:
            return None, columns
        there, places, offsets, lengths = self._gather(passages)
        with self._lock:
            vectors, n_unknown = self.vectors.matrix, len(self._unknown)
        own, columns[is_content] = _number(units[is_content], len(vectors), n_unknown)
        distinct, content = _number(there, len(vectors), n_unknown)
        sims = np.empty((len(distinct), len(own)), np.float32)
        similarities(vectors, distinct, own, sims)
        return _Window(passages, sims, content, places, offsets, lengths), columns

    def _gather(
        self, passages: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        """Units and places of the passages' content words; where each passage's begin; lengths."""
        columns = []
        for k in np.unique(passages[:, 0]):
            shard, of = self.index.shards[k], passages[passages[:, 0] == k, 1]
            begins, lengths = shard.begins[of], shard.lengths[of]
            self._see(int(k), begins, lengths)
            units, places = np.empty((2, int(lengths.sum())), np.int32)
            offsets = np.zeros(len(of) + 1, np.int64)
            codes, rare_before, rare_ids = shard.shard.tokens
            n = gather_passages(
                codes, rare_before, rare_ids, begins, lengths, self._units[k], units, places,
                offsets,
            )  # fmt: skip
            columns.append((units[:n], places[:n], np.diff(offsets), lengths))
        units, places, counts, lengths = map(np.concatenate, zip(*columns, strict=True))
        return units, places, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), lengths

    def _see(self, k: int, begins: NDArray[np.int64], lengths: NDArray[np.int32]) -> None:
        """Look up the words of passages that were not seen before."""
        shard, table = self.index.shards[k].shard, self._units[k]
        new = list_unseen(*shard.tokens, begins, lengths, table, _NOT_SEEN)
        if len(new):
            new = np.unique(new)
            words = [shard.vocabulary[int(i) - 1] for i in new]
            with self._lock:
                table[new] = self._units_of(words)

    def _counterpart(
        self, window: _Window, columns: NDArray[np.int32], min_words: int
    ) -> Counterpart:
        where = np.flatnonzero(columns >= 0)
        own = columns[where]
        similarity, p, a, b = best_passage(
            window.sims, own, window.content, window.places, window.offsets, window.lengths,
            min_words, self.settings.floor,
        )  # fmt: skip
        passage, low = self.index.passage(*map(int, window.passages[p])), int(window.offsets[p])
        places = window.places[low + a : low + b]
        first, last = int(places[0]), int(places[-1])
        sims = window.sims[window.content[low + a : low + b]][:, own]
        nearest = sims.argmax(axis=0)
        reference = self.index.reference
        place, n_words = passage.first_word + first, last - first + 1
        return Counterpart(
            similarity=float(min(similarity, 1.0)),
            source=reference.occurrence(passage.number, place, n_words),
            words=reference.located_document(passage.number)[1].part(place, n_words),
            pairs=tuple(
                (int(i), int(places[j]) - first, float(sims[j, c]))
                for c, (i, j) in enumerate(zip(where, nearest, strict=True))
            ),
        )


def _number(
    units: NDArray[np.int32], n_rows: int, n_unknown: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct units, and each one's place among them."""
    distinct, numbers = np.empty((2, len(units)), np.int32)
    n = number_units(np.ascontiguousarray(units), n_rows, n_unknown, distinct, numbers)
    return distinct[:n].copy(), numbers
