"""Similar words of a reference, by their vectors, and how rare each is."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.movers import MOST_ALIKE
from fabula.models.vectors import WordVectors
from fabula.reference.parts import ShardWords
from fabula.text.words import StopWords

_BLOCK = 4096
"""Words that are compared at a time."""
_N_TOGETHER = 1024
_N_REMEMBERED = 1 << 15
_SCREEN = np.float32(1e-3)
"""Much larger than the error of a 32-bit product relative to that of the integers."""
_SCALE = np.float32(1.0 / (32767.0 * 32767.0))


@dataclass(frozen=True, slots=True)
class Alike:
    """The similar words of the reference; the word itself is first, if present."""

    numbers: NDArray[np.int64]
    """int64 (n_alike,): words of the reference."""
    cosines: NDArray[np.float32]
    """float32 (n_alike,): descending; 1 for the word itself, and for no other."""


class AlikeWords:
    """The distinct words of all shards, numbered from 0.

    Cosines are those of `kernels.movers.similarities`. A non-content word, or one without a vector,
    is similar only to itself.
    """

    def __init__(
        self,
        shards: Sequence[ShardWords],
        vectors: WordVectors,
        stop_words: StopWords,
        threshold: float,
    ) -> None:
        counts: dict[str, int] = {}
        for shard in shards:
            for word, count in zip(shard.words, shard.counts.tolist(), strict=True):
                counts[word] = counts.get(word, 0) + count
        self._number = {word: k for k, word in enumerate(counts)}
        self._vectors, self._threshold = vectors, threshold
        self.n_words = sum(counts.values())
        self.bits = math.log2(max(1, self.n_words)) - np.log2(np.maximum(1, list(counts.values())))
        """float64 (n_different,): minus the logarithm of each word's share of all."""
        self.is_content = np.array([stop_words.is_content(word) for word in counts], np.bool_)
        self.ids: list[NDArray[np.uint32]] = []
        """By shard, each word's token id, 0 if it is not in the shard: uint32 (n_different,)."""
        for shard in shards:
            ids = np.zeros(len(counts), np.uint32)
            ids[[self._number[word] for word in shard.words]] = np.arange(1, len(shard.words) + 1)
            self.ids.append(ids)
        content = [word for word, held in zip(counts, self.is_content, strict=True) if held]
        rows = vectors.rows(content)
        has_vector = rows >= 0
        self._with_vector = np.flatnonzero(self.is_content)[has_vector]
        self._rows = rows[has_vector]
        self._known: OrderedDict[str, Alike] = OrderedDict()
        self._lock = threading.Lock()

    def bits_of(self, word: str) -> float:
        """Like `bits`; words not in the reference count as occurring once."""
        number = self._number.get(word)
        return math.log2(max(1, self.n_words)) if number is None else float(self.bits[number])

    def of(self, words: Sequence[str], is_content: Sequence[bool]) -> list[Alike]:
        """The similar words of each of these distinct words."""
        with self._lock:
            found = {word: self._known[word] for word in words if word in self._known}
        pairs = zip(words, is_content, strict=True)
        content = [word for word, held in pairs if held and word not in found]
        rows = zip(content, self._vectors.rows(content), strict=True)
        with_row = [(word, int(row)) for word, row in rows if row >= 0]
        matrix = self._vectors.matrix
        for at in range(0, len(with_row), _N_TOGETHER):
            part = with_row[at : at + _N_TOGETHER]
            # A fast floating-point product rules out words that are certainly not similar.
            screen = matrix[[row for _, row in part]].astype(np.float32).T
            least = np.float32(self._threshold) / _SCALE - _SCREEN / _SCALE
            near: list[list[tuple[NDArray[np.int64], NDArray[np.float32]]]] = [[] for _ in part]
            for begin in range(0, len(self._rows), _BLOCK):
                block = self._rows[begin : begin + _BLOCK]
                products = matrix[block].astype(np.float32) @ screen
                for k, (_, row) in enumerate(part):
                    places = np.flatnonzero(products[:, k] >= least)
                    if not len(places):
                        continue
                    exact = matrix[block[places]].astype(np.int64) @ matrix[row].astype(np.int64)
                    cosines = np.minimum(exact.astype(np.float32) * _SCALE, MOST_ALIKE)
                    kept = cosines >= self._threshold
                    near[k].append((self._with_vector[begin + places[kept]], cosines[kept]))
            for (word, _), some in zip(part, near, strict=True):
                alone = self._alone(word)
                numbers = np.concatenate([np.empty(0, np.int64), *(n for n, _ in some)])
                cosines = np.concatenate([np.empty(0, np.float32), *(c for _, c in some)])
                is_other = ~np.isin(numbers, alone.numbers)
                numbers, cosines = numbers[is_other], cosines[is_other]
                order = np.lexsort((numbers, -cosines))
                found[word] = Alike(
                    np.concatenate([alone.numbers, numbers[order]]),
                    np.concatenate([alone.cosines, cosines[order]]),
                )
        found |= {word: self._alone(word) for word in words if word not in found}
        with self._lock:
            for word in words:
                self._known[word] = found[word]
                self._known.move_to_end(word)
            while len(self._known) > _N_REMEMBERED:
                self._known.popitem(last=False)
        return [found[word] for word in words]

    def _alone(self, word: str) -> Alike:
        number = self._number.get(word)
        held = [] if number is None else [number]
        return Alike(np.array(held, np.int64), np.ones(len(held), np.float32))
