"""Windows of a text and their passages, with all words as numbers for the kernels."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.movers import gather_passages, list_unseen, number_units, similarities
from fabula.models.vectors import WordVectors
from fabula.reference.passage_parts import PassageTokens
from fabula.reference.passages import PassageIndex

__all__ = ["Units", "Window", "is_content"]

_NOT_SEEN, _NO_CONTENT = -1, -2


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a text and its passages, as arrays for the kernels."""

    columns: NDArray[np.int32]
    """int32 (n_words,): the text's words as columns of `sims`, -1 for non-content words."""
    sims: NDArray[np.float32]
    """float32 (n_distinct, n_columns): words of the passages by words of the text."""
    content: NDArray[np.int32]
    """int32: the content words of all passages, as rows of `sims`."""
    places: NDArray[np.int32]
    """int32: the position of each in its passage."""
    offsets: NDArray[np.int64]
    """int64 (n_passages + 1,): where those of each passage begin."""
    lengths: NDArray[np.int32]
    """int32 (n_passages,), in words."""
    numbers: NDArray[np.int64]
    """int64 (n_passages,): each one's document."""
    first_words: NDArray[np.int64]
    """int64 (n_passages,): the word of the document where each begins."""

    def one(self, p: int) -> Window:
        """Passage `p` alone."""
        low, high = int(self.offsets[p]), int(self.offsets[p + 1])
        return replace(
            self,
            content=self.content[low:high],
            places=self.places[low:high],
            offsets=np.array([0, high - low], np.int64),
            lengths=self.lengths[p : p + 1],
            numbers=self.numbers[p : p + 1],
            first_words=self.first_words[p : p + 1],
        )


class Units:
    """Maps the words of texts and passages to numbers for the kernels.

    A unit is the row of a word's vector; a content word without one has its own negative number.
    Words of the reference are looked up once, and cached by shard and word id.
    """

    def __init__(self, index: PassageIndex, vectors: WordVectors) -> None:
        self._is_content = index.stop_words.is_content
        self._part = index.part
        self._vectors = vectors
        self._tables = [np.full(n + 1, _NOT_SEEN, np.int32) for n in self._part.n_vocabularies]
        self._unknown: dict[str, int] = {}
        self._lock = threading.Lock()

    def of_text(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Each word's unit, and another number for non-content words: int32, (n_words,)."""
        distinct = list(dict.fromkeys(words))
        with self._lock:
            units = dict(zip(distinct, self._of(distinct), strict=True))
        return np.array([units[word] for word in words], np.int32)

    def see(self, passages: Mapping[int, PassageTokens]) -> None:
        """Look up words of passages that are not cached."""
        new: dict[int, NDArray[np.uint32]] = {}
        for k, here in passages.items():
            found = list_unseen(here.tokens, here.begins, here.lengths, self._tables[k], _NOT_SEEN)
            if len(found):
                new[k] = np.unique(found)
        for k, words in self._part.words(new).items() if new else ():
            with self._lock:
                self._tables[k][new[k]] = self._of(words)

    def window(
        self,
        units: NDArray[np.int32],
        chosen: NDArray[np.int64],
        passages: Mapping[int, PassageTokens],
    ) -> Window:
        """Compare words of a text, given as units, with those of the chosen passages.

        chosen: int64 (n_passages, 2), shard and passage. Words must have been looked up.
        """
        there, places, offsets, of_passages = self._gather(chosen, passages)
        with self._lock:
            vectors, n_unknown = self._vectors.matrix, len(self._unknown)
        columns = np.full(len(units), -1, np.int32)
        is_own = is_content(units)
        own, columns[is_own] = _number(units[is_own], len(vectors), n_unknown)
        distinct, content = _number(there, len(vectors), n_unknown)
        sims = np.empty((len(distinct), len(own)), np.float32)
        similarities(vectors, distinct, own, sims)
        return Window(columns, sims, content, places, offsets, *of_passages)

    def _of(self, words: Sequence[str]) -> list[int]:
        rows = self._vectors.rows(words)
        return [
            _NO_CONTENT
            if not self._is_content(word)
            else int(row)
            if row >= 0
            else -3 - self._unknown.setdefault(word, len(self._unknown))
            for word, row in zip(words, rows, strict=True)
        ]

    def _gather(
        self, chosen: NDArray[np.int64], passages: Mapping[int, PassageTokens]
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int64],
        tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]],
    ]:
        """Units and positions of the passages' content words; where each passage's begin; the
        passages' lengths, documents and first words.
        """
        columns = []
        for k in np.unique(chosen[:, 0]).tolist():
            held = passages[k]
            at = np.searchsorted(held.passages, chosen[chosen[:, 0] == k, 1])
            begins, lengths = held.begins[at], held.lengths[at]
            units, places = np.empty((2, int(lengths.sum())), np.int32)
            offsets = np.zeros(len(at) + 1, np.int64)
            n = gather_passages(
                held.tokens, begins, lengths, self._tables[k], units, places, offsets
            )
            counts = np.diff(offsets)
            columns.append(
                (units[:n], places[:n], counts, lengths, held.numbers[at], held.first_words[at])
            )
        units, places, counts, *of_passages = map(np.concatenate, zip(*columns, strict=True))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        lengths, numbers, first_words = of_passages
        return units, places, offsets, (lengths, numbers, first_words)


def is_content(units: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which units are content words: bool, (n_words,)."""
    held: NDArray[np.bool_] = units != _NO_CONTENT
    return held


def _number(
    units: NDArray[np.int32], n_rows: int, n_unknown: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct units, and each one's index among them."""
    distinct, numbers = np.empty((2, len(units)), np.int32)
    n = number_units(np.ascontiguousarray(units), n_rows, n_unknown, distinct, numbers)
    return distinct[:n].copy(), numbers
