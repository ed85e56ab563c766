"""Near-verbatim matches as published: Lu et al. 2024, "DJ Search" and appendix A.2, B.3.

An n-gram of the text matches if it occurs verbatim, or if a span of one of the passages most
similar to the text, by BM25, is as similar to it as the threshold: the smaller of the two
directional means of best cosines between their content words (Algorithms 2 to 4). For replicating
that paper, on a corpus on this machine's disk; `measures.near` finds more.

What the paper leaves open is decided as follows:

- Documents are cut into passages of 300 words that share 50, so that the work does not depend on
  how a corpus is divided into documents. All have one length, so BM25 does not correct for length.
- A content word without a vector resembles only itself.
- A match has at most 100 words; no level of the index comes close to that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.kernels.movers import best_passage, search_near, similarities
from fabula.measures.near import Counterpart, SearchForNear
from fabula.models.vectors import WordVectors
from fabula.reference import Reference
from fabula.text.words import StopWords

MAX_WORDS = 100
_K1 = 1.5
_NO_CONTENT = -1


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """The published setting (appendix B.3); others are for tests against a plain search."""

    threshold: float = 0.95
    floor: int = 1
    """Content words that both n-grams must have."""
    n_passages: int = 100
    """Passages that a text is compared with."""
    passage_words: int = 300
    overlap: int = 50
    """Words that consecutive passages share."""
    meaning: ClassVar[float] = 0.0
    """No sentence vectors are compared."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise InputError(
                f"`threshold` {self.threshold:g}: must be a similarity over 0 and at most 1"
            )
        if self.floor < 1 or self.n_passages < 1 or not 0 <= self.overlap < self.passage_words:
            raise InputError("near matches: a number of words or passages is out of its range")

    def signature_parts(self) -> dict[str, str]:
        return {
            "T": repr(self.threshold),
            "floor": str(self.floor),
            "bm25": f"{self.n_passages}of{self.passage_words}-{self.overlap}",
        }

    def cut(self, n_words: int) -> list[tuple[int, int]]:
        """(first word, number of words) of each passage of a document."""
        step = self.passage_words - self.overlap
        begins = [0, *range(step, max(step, n_words - self.overlap), step)]
        return [(begin, min(self.passage_words, n_words - begin)) for begin in begins]


@dataclass(frozen=True, slots=True)
class _Passages:
    """Passages and their content words, one after the other, as arrays for the kernels."""

    content: NDArray[np.int32]
    """int32: words, as the numbers of `PaperSearch` or as rows of a matrix of similarities."""
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

    @property
    def arrays(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        """In the order of the kernels' arguments."""
        return self.content, self.places, self.offsets, self.lengths

    def some(self, chosen: NDArray[np.int64]) -> _Passages:
        """The passages with these indices."""
        counts = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        at = np.repeat(self.offsets[chosen] - offsets[:-1], counts) + np.arange(offsets[-1])
        each = self.lengths[chosen], self.numbers[chosen], self.first_words[chosen]
        return _Passages(self.content[at], self.places[at], offsets, *each)


class PaperSearch(SearchForNear):
    """Near-verbatim search in a corpus on this machine's disk, whose passages it keeps in memory.

    Raises `InputError` for a reference that is not on this machine's disk.
    """

    settings: PaperSettings

    def __init__(
        self,
        reference: Reference,
        vectors: WordVectors,
        stop_words: StopWords,
        settings: PaperSettings = PaperSettings(),
        *,
        is_english: bool = True,
    ) -> None:
        super().__init__(reference, vectors, stop_words, settings, None, is_english=is_english)
        self._number: dict[str, int] = {}
        """Content words of the reference, numbered from 0."""
        part, settings = self.reference.local, self.settings
        content, places, n_content, rows = [], [], [], []
        for first, shard in zip(part.first_numbers.tolist(), part.shards, strict=False):
            vocabulary = [shard.vocabulary[k] for k in range(len(shard.vocabulary))]
            of_words = [
                self._number.setdefault(word, len(self._number))
                if stop_words.is_content(word)
                else _NO_CONTENT
                for word in vocabulary
            ]
            numbers = np.array([_NO_CONTENT, *of_words], np.int32)
            ends = np.append(shard.starts[1:], shard.info.n_tokens) - 1
            for k, (start, end) in enumerate(zip(shard.starts, ends, strict=True)):
                units = numbers[shard.read_tokens(int(start), int(end))]
                for begin, n in settings.cut(len(units)):
                    here = np.flatnonzero(units[begin : begin + n] >= 0)
                    content.append(units[begin + here])
                    places.append(here.astype(np.int32))
                    n_content.append(len(here))
                    rows.append((n, first + k, begin))
        lengths, documents, first_words = np.array(rows, np.int64).reshape(-1, 3).T
        self._passages = _Passages(
            np.concatenate([np.empty(0, np.int32), *content]),
            np.concatenate([np.empty(0, np.int32), *places]),
            np.cumsum([0, *n_content]).astype(np.int64),
            lengths.astype(np.int32),
            documents.copy(),
            first_words.copy(),
        )
        words = list(self._number)
        from bm25s import BM25

        texts = np.split(self._passages.content, self._passages.offsets[1:-1])
        with warnings.catch_warnings():
            # If no passage has a content word, there is no mean length, but b = 0 does not need it.
            warnings.filterwarnings("ignore", category=RuntimeWarning)
            scores = BM25(k1=_K1, b=0.0, method="lucene").build_index_from_ids(
                list(range(len(words) + 1)), texts, show_progress=False
            )
        # BM25 weights, the passages they are of, and where those of each word begin.
        self._weights: NDArray[np.float32] = scores["data"]
        self._indices: NDArray[np.int32] = scores["indices"]
        self._indptr: NDArray[np.int64] = scores["indptr"]
        of_vectors = vectors.rows(words) if words else np.empty(0, np.int64)
        # As the kernel has it: the row of a word's vector, or a negative number of its own.
        own = -3 - np.arange(len(words))
        self._units = np.where(of_vectors >= 0, of_vectors, own).astype(np.int32)

    def _nearest(
        self, words: Sequence[str], exact: NDArray[np.int32], min_words: int, exclude: Iterable[int]
    ) -> dict[tuple[int, int], Counterpart]:
        best = self._best(words, exclude)
        lengths, columns, sims, passages = self._compared(words, best, exact, min_words)
        nearest: dict[tuple[int, int], Counterpart] = {}
        reach = 0
        for first, n in enumerate(lengths.tolist()):
            if n >= min_words and first + n > reach:
                reach = first + n
                if n > exact[first]:
                    here = columns[first:reach]
                    nearest[first, reach] = self._counterpart(here, sims, passages, min_words)
        return nearest

    def _covering(
        self, words: Sequence[str], min_words: int, exclude: Iterable[int]
    ) -> Iterator[tuple[int, int, int]]:
        none = np.zeros(len(words), np.int32)
        for p in self._best(words, exclude):
            lengths, _, _, passage = self._compared(words, np.array([p]), none, min_words)
            for first in np.flatnonzero(lengths).tolist():
                yield int(passage.numbers[0]), first, first + int(lengths[first])

    def _best(self, words: Sequence[str], exclude: Iterable[int]) -> NDArray[np.int64]:
        """The passages most similar to these words, ascending; ties go to the first."""
        scores = np.zeros(len(self._passages.lengths), np.float32)
        # In the order of the words, so that sums do not depend on the shards.
        for word in sorted(set(words) & self._number.keys()):
            number = self._number[word]
            here = slice(int(self._indptr[number]), int(self._indptr[number + 1]))
            scores[self._indices[here]] += self._weights[here]
        is_out = self.reference.about.removed.copy()
        is_out[list(exclude)] = True
        scores[is_out[self._passages.numbers]] = 0
        chosen = np.argsort(-scores, kind="stable")[: self.settings.n_passages]
        best: NDArray[np.int64] = np.sort(chosen[scores[chosen] > 0])
        return best

    def _compared(
        self,
        words: Sequence[str],
        chosen: NDArray[np.int64],
        exact: NDArray[np.int32],
        min_words: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], _Passages]:
        """The longest match at each word that two pointers meet, verbatim or in chosen passages.

        Also each word's column (-1 if not a content word), the similarities, float32
        (n_words_there, n_columns), and the passages by their rows.
        """
        own = [w for w in dict.fromkeys(words) if self.stop_words.is_content(w)]
        column = {word: k for k, word in enumerate(own)}
        rows = self.vectors.rows(own) if own else ()
        units = [
            int(row) if row >= 0 else -3 - self._number.get(word, len(self._number) + k)
            for k, (word, row) in enumerate(zip(own, rows, strict=True))
        ]
        passages = self._passages.some(chosen)
        distinct, there = np.unique(passages.content, return_inverse=True)
        passages = replace(passages, content=there.astype(np.int32))
        sims = np.empty((len(distinct), len(own)), np.float32)
        similarities(self.vectors.matrix, self._units[distinct], np.array(units, np.int32), sims)
        columns = np.array([column.get(word, -1) for word in words], np.int32)
        lengths = exact.copy()
        limits = min_words, self.settings.floor, MAX_WORDS, self.settings.threshold
        search_near(sims, columns, exact, *passages.arrays, *limits, lengths)
        return lengths, columns, sims, passages

    def _counterpart(
        self,
        columns: NDArray[np.int32],
        sims: NDArray[np.float32],
        passages: _Passages,
        min_words: int,
    ) -> Counterpart:
        """The best counterpart of the n-gram with these columns."""
        where = np.flatnonzero(columns >= 0)
        own = columns[where]
        _, p, a, b = best_passage(sims, own, *passages.arrays, min_words, self.settings.floor)
        there = slice(int(passages.offsets[p]) + a, int(passages.offsets[p]) + b)
        places, compared = passages.places[there], sims[passages.content[there]][:, own]
        here, back = compared.max(axis=0), compared.max(axis=1)
        number, n = int(passages.numbers[p]), int(places[-1] - places[0]) + 1
        first_word = int(passages.first_words[p]) + int(places[0])
        return Counterpart(
            similarity=min(1.0, float(here.mean(dtype=float)), float(back.mean(dtype=float))),
            source=self.reference.occurrence(number, first_word, n),
            words=self.reference.located_document(number)[1].part(first_word, n),
            pairs=tuple(
                (int(i), int(places[j] - places[0]), float(here[c]))
                for c, (i, j) in enumerate(zip(where, compared.argmax(axis=0), strict=True))
            ),
        )
