"""Near matches by walking the index: alignments that are too good for chance.

Every place of the reference where a rare word of the text, or a rare run of its words, occurs is
looked at, and text and reference are aligned from there (`kernels.walk`); so the parts of a
reference, on disk or behind a server, find what one corpus finds. That a walk of the suffix array
may substitute words, and is kept small by what occurs, is the idea of Yoneda et al. 2026,
"SoftMatcha 2" (arXiv 2602.10908); the definition of a match is not theirs:

- A word carries *bits*: minus the logarithm of its share of the reference's words. A content word
  aligned with one that is at least `threshold` similar gains the smaller of the two words' bits, at
  most `_MOST_BITS`, times their cosine; other words gain `_FUNCTION_BITS` if aligned with
  themselves. Each unaligned word has a cost.
- The score of a stretch, minus the logarithm of the reference's words, is its *bits over chance*:
  it must reach `bits` (Karlin and Altschul 1990). So the more informative the aligned words, in
  order, the more words may differ. A repeated word in a stretch is not informative: its gain does
  not count.
- At least `floor` content words are similar, neither side is over `ratio` times as long as the
  other, and the sentence encoder must agree that both mean about the same (`meaning`).
- A stretch ends with the words where its score is highest.

Near-verbatim matches as published: Lu et al. 2024, "DJ Search" and appendix A.2, B.3.

An n-gram of the text matches if it occurs verbatim, or if a span of one of the passages most
similar to the text, by BM25, is as similar to it as the threshold: the smaller of the two
directional means of best cosines between their content words (Algorithms 2 to 4). For replicating
that paper, on a corpus on this machine's disk; the default search finds more.

What the paper leaves open is decided as follows:

- Documents are cut into passages of 300 words that share 50, so that the work does not depend on
  how a corpus is divided into documents. All have one length, so BM25 does not correct for length.
- A content word without a vector resembles only itself.
- A match has at most 100 words; no level of the index comes close to that.
"""

from __future__ import annotations

import math
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabula.core.cached_results import Recent
from fabula.core.errors import InputError
from fabula.kernels.movers import MOST_ALIKE, best_passage, search_near, similarities
from fabula.kernels.walk import PARTS
from fabula.models.vectors import WordVectors
from fabula.reference.backend import Occurrence
from fabula.reference.exclude import maximal_spans
from fabula.reference.parts import ShardWords, Walk, WalkTerms
from fabula.reference.search import Reference
from fabula.text import TextWords
from fabula.text.sentences import language_gate
from fabula.text.words import StopWords

_MOST_BITS, _LEAST_BITS, _COMPANY_BITS = 12.0, 18.0, 8.0
_CONTENT_COST, _FUNCTION_COST, _EXCHANGE_COST, _JOIN_COST = 1.5, 0.25, 2.0, 6.0
_DROP_BITS = 12.0
_WIDTH, _REACH, _GAP = 5, 100, 30
_WINDOW, _OVERLAP = 4096, 512
"""Words of a text that are looked for at a time, and those that two windows share. What lies in
both is found whole; longer matches are found in parts."""
_ANCHOR = 0.6
"""Least cosine of words that may replace the text's in an anchor."""
_BLOCK = 4096
"""Words that are compared at a time."""
_N_TOGETHER = 1024
_N_REMEMBERED = 1 << 15
_SCREEN = np.float32(1e-3)
"""Much larger than the error of a 32-bit product relative to that of the integers."""
_SCALE = np.float32(1.0 / (32767.0 * 32767.0))


@dataclass(frozen=True, slots=True)
class NearSettings:
    """When a stretch of a text is near to one of the reference, and where to search."""

    threshold: float = 0.45
    """Least cosine of two similar words."""
    bits: float = 22.0
    """Minimum bits over chance."""
    meaning: float = 0.5
    """Least cosine of the two sides' sentence vectors; 0 to skip the check."""
    floor: int = 4
    """Content words of the text that must be similar."""
    ratio: float = 2.0
    """Maximum length ratio of the two sides in words; inf for any."""
    n_places: int = 256
    """Maximum expected occurrences of an anchor in the reference, if its words were drawn at
    random."""

    def __post_init__(self) -> None:
        if not (0 < self.threshold <= 1 and 0 <= self.meaning <= 1):
            raise InputError(
                "near matches: the threshold must be over 0 and at most 1, the meaning between 0 "
                "and 1"
            )
        if self.floor < 1 or self.n_places < 1 or not self.ratio >= 1:
            raise InputError("near matches: `floor`, `n_places` and `ratio` must be at least 1")

    def signature_parts(self) -> dict[str, str]:
        return {
            "T": repr(self.threshold),
            "floor": str(self.floor),
            "walk": f"{self.bits:g}bits,{self.n_places}places",
            "ratio": f"{self.ratio:g}",
        }


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The span of the reference that an n-gram is most similar to."""

    similarity: float
    """The smaller of the two directional means, in [0, 1]."""
    source: Occurrence
    words: TextWords = field(compare=False)
    """The words of the source's span, with their places in its document."""
    pairs: tuple[tuple[int, int, float], ...]
    """(word of the text, word of the source, cosine) for each content word of the n-gram with its
    most similar counterpart; words are counted from the first of each n-gram."""


class SearchForNear(ABC):
    """Near matches in a reference, by this module's search or the published one.

    `settings.meaning` is the least cosine of the sentence vectors of both sides, 0 for no check.
    `is_english`: the vectors are of English words, so texts in other languages are not searched.
    """

    settings: NearSettings | PaperSettings

    def __init__(
        self,
        reference: Reference,
        vectors: WordVectors,
        stop_words: StopWords,
        settings: NearSettings | PaperSettings,
        *,
        is_english: bool,
    ) -> None:
        from fabula.models.encoder import Encoder

        self.settings = settings
        self.reference = reference
        self.vectors = vectors
        self.stop_words = stop_words
        self.is_english = is_english
        # Single-threaded, so that its sums do not depend on the machine.
        self._encoder = Encoder(n_threads=1) if settings.meaning else None
        self.remarks = (vectors.remark,) if vectors.remark else ()
        """Notices for a reader of the matches."""

    def signature_parts(self) -> dict[str, str]:
        """Everything that determines a near match besides the reference."""
        return {
            **self.settings.signature_parts(),
            "stop": self.stop_words.name,
            "vec": self.vectors.name,
            **({"lang": language_gate()} if self.is_english else {}),
            "sense": f"{self._encoder.name},{self.settings.meaning:g}" if self._encoder else "none",
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
        those of `exact` where no longer near match was found. Counterparts are given by first word,
        for each near match that no longer one contains.
        """
        nearest = self._nearest(words, exact, min_words, exclude)
        if self._encoder is not None and nearest:
            # Those that mean the same as what they resemble, as far as the encoder can tell.
            ours = [" ".join(words[first:end]) for first, end in nearest]
            theirs = [" ".join(counterpart.words.words) for counterpart in nearest.values()]
            vectors = self._encoder.encode([*ours, *theirs])
            cosines = (vectors[: len(ours)] * vectors[len(ours) :]).sum(axis=1).tolist()
            both = zip(nearest.items(), cosines, strict=True)
            nearest = dict(pair for pair, cosine in both if cosine >= self.settings.meaning)
        lengths = exact.copy()
        for first, end in nearest:
            lengths[first] = max(lengths[first], end - first)
        longest = {(first, first + n) for first, n in maximal_spans(lengths, min_words)}
        return lengths, {span[0]: near for span, near in nearest.items() if span in longest}

    def covered_by(
        self,
        words: Sequence[str],
        min_words: int,
        *,
        within: Iterable[tuple[int, int]],
        exclude: Iterable[int] = (),
    ) -> dict[int, list[tuple[int, int]]]:
        """The half-open stretches of words that are near to each document, by number.

        At least `min_words` words of each lie `within` the stretches that were kept.
        """
        stretches = list(within)
        covered: dict[int, set[tuple[int, int]]] = {}
        for number, first, end in self._covering(words, min_words, exclude) if stretches else ():
            both = ((max(first, a), min(end, b)) for a, b in stretches)
            covered.setdefault(number, set()).update((a, b) for a, b in both if b - a >= min_words)
        return {number: sorted(spans) for number, spans in covered.items() if spans}

    @abstractmethod
    def _nearest(
        self, words: Sequence[str], exact: NDArray[np.int32], min_words: int, exclude: Iterable[int]
    ) -> dict[tuple[int, int], Counterpart]:
        """What n-grams resemble, by their half-open bounds in `words`."""

    @abstractmethod
    def _covering(
        self, words: Sequence[str], min_words: int, exclude: Iterable[int]
    ) -> Iterator[tuple[int, int, int]]:
        """(document, first word, end) of every near match, the longest or not."""


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
        self._known: Recent[str, Alike] = Recent(_N_REMEMBERED, lambda *_: 1)
        self._lock = threading.Lock()

    def bits_of(self, word: str) -> float:
        """Like `bits`; words not in the reference count as occurring once."""
        number = self._number.get(word)
        return math.log2(max(1, self.n_words)) if number is None else float(self.bits[number])

    def of(self, words: Sequence[str], is_content: Sequence[bool]) -> list[Alike]:
        """The similar words of each of these distinct words."""
        with self._lock:
            by_word = {word: self._known[word] for word in words if word in self._known}
        pairs = zip(words, is_content, strict=True)
        content = [word for word, held in pairs if held and word not in by_word]
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
                    close = cosines >= self._threshold
                    near[k].append((self._with_vector[begin + places[close]], cosines[close]))
            for (word, _), hits in zip(part, near, strict=True):
                alone = self._alone(word)
                numbers = np.concatenate([np.empty(0, np.int64), *(n for n, _ in hits)])
                cosines = np.concatenate([np.empty(0, np.float32), *(c for _, c in hits)])
                is_other = ~np.isin(numbers, alone.numbers)
                numbers, cosines = numbers[is_other], cosines[is_other]
                order = np.lexsort((numbers, -cosines))
                by_word[word] = Alike(
                    np.concatenate([alone.numbers, numbers[order]]),
                    np.concatenate([alone.cosines, cosines[order]]),
                )
        by_word |= {word: self._alone(word) for word in words if word not in by_word}
        with self._lock:
            for word in words:
                self._known.remember(word, by_word[word])
        return [by_word[word] for word in words]

    def _alone(self, word: str) -> Alike:
        number = self._number.get(word)
        held = [] if number is None else [number]
        return Alike(np.array(held, np.int64), np.ones(len(held), np.float32))


class _Stretch(NamedTuple):
    """A stretch of the text aligned with one of a document, half-open, in words."""

    first: int
    end: int
    number: int
    first_word: int
    end_word: int
    score: int


class NearSearch(SearchForNear):
    """Near-match search in a reference."""

    settings: NearSettings

    def __init__(
        self,
        reference: Reference,
        vectors: WordVectors,
        stop_words: StopWords,
        settings: NearSettings = NearSettings(),
        *,
        is_english: bool = True,
    ) -> None:
        super().__init__(reference, vectors, stop_words, settings, is_english=is_english)
        shards = reference.part.vocabularies()
        self._alike = AlikeWords(shards, vectors, stop_words, settings.threshold)
        self._chance_bits = math.log2(max(1, self._alike.n_words))
        self._functions = [
            ids[~self._alike.is_content & (ids > 0)].astype(np.int64) for ids in self._alike.ids
        ]

    def _nearest(
        self, words: Sequence[str], exact: NDArray[np.int32], min_words: int, exclude: Iterable[int]
    ) -> dict[tuple[int, int], Counterpart]:
        """Of stretches that lie more than half in better ones only the better count."""
        nearest: dict[tuple[int, int], Counterpart] = {}
        for stretch in self._stretches(words, min_words, exclude):
            n = stretch.end - stretch.first
            is_new = n > exact[stretch.first : stretch.end].max(initial=0) and not any(
                2 * (min(stretch.end, end) - max(stretch.first, first)) > min(n, end - first)
                for first, end in nearest
            )
            if is_new and (counterpart := self._counterpart(words, stretch)) is not None:
                nearest[stretch.first, stretch.end] = counterpart
        return nearest

    def _covering(
        self, words: Sequence[str], min_words: int, exclude: Iterable[int]
    ) -> Iterator[tuple[int, int, int]]:
        for stretch in self._stretches(words, min_words, exclude):
            yield stretch.number, stretch.first, stretch.end

    def _stretches(
        self, words: Sequence[str], min_words: int, exclude: Iterable[int]
    ) -> list[_Stretch]:
        """Stretches with enough bits, the best first."""
        out, ratio = sorted(exclude), self.settings.ratio
        stretches: list[_Stretch] = []
        n_begins = max(1, len(words) - _OVERLAP) if words else 0
        for begin in range(0, n_begins, _WINDOW - _OVERLAP):
            walks = self._walks(words[begin : begin + _WINDOW])
            for batch in self.reference.part.walk(walks, exclude=out):
                spans = batch.firsts + begin, batch.ends + begin
                columns = *spans, batch.numbers, batch.first_words, batch.end_words, batch.scores
                stretches += map(_Stretch, *(column.tolist() for column in columns))
        stretches = [
            s
            for s in set(stretches)
            if s.end - s.first >= min_words
            and s.end - s.first <= ratio * (s.end_word - s.first_word)
            and s.end_word - s.first_word <= ratio * (s.end - s.first)
        ]
        return sorted(stretches, key=lambda s: (-s.score, s.number, s.first_word, s.first, s.end))

    def _walks(self, words: Sequence[str]) -> list[Walk]:
        """The text, for each shard."""
        alike, settings = self._alike, self.settings
        number = {word: k for k, word in enumerate(dict.fromkeys(words))}
        distinct = list(number)
        is_content = np.array([self.stop_words.is_content(word) for word in distinct], np.bool_)
        alikes = alike.of(distinct, is_content.tolist())
        own_bits = np.array([alike.bits_of(word) for word in distinct])
        sizes = np.array([len(a.numbers) for a in alikes], np.int64)
        units = np.repeat(np.arange(len(distinct)), sizes)
        numbers = np.concatenate([a.numbers for a in alikes])
        cosines = np.concatenate([a.cosines for a in alikes])
        bits = alike.bits[numbers]
        gains = np.minimum(np.minimum(own_bits[units], bits), _MOST_BITS) * cosines
        gains[~is_content[units]] = 0.0
        is_anchor = cosines >= _ANCHOR
        enough = max(0.0, self._chance_bits - math.log2(settings.n_places))
        terms = WalkTerms(
            content_cost=round(_CONTENT_COST * PARTS),
            function_cost=round(_FUNCTION_COST * PARTS),
            enough=round(enough * PARTS),
            width=_WIDTH,
            drop=round(_DROP_BITS * PARTS),
            exchange=round(_EXCHANGE_COST * PARTS),
            reach=_REACH,
            company=round(_COMPANY_BITS * PARTS),
            least=round(_LEAST_BITS * PARTS),
            gap=_GAP,
            join=round(_JOIN_COST * PARTS),
            need=round((settings.bits + self._chance_bits) * PARTS),
        )
        walks = []
        for ids, functions in zip(alike.ids, self._functions, strict=True):
            held = np.flatnonzero(ids[numbers])
            counts = np.bincount(units[held], minlength=len(distinct))
            anchors = np.bincount(units[held][is_anchor[held]], minlength=len(distinct))
            walks.append(
                Walk(
                    units=np.array([number[word] for word in words], np.int32),
                    is_content=is_content,
                    starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                    n_anchors=anchors,
                    ids=ids[numbers[held]].astype(np.int64),
                    rarities=_in_parts(bits[held]),
                    gains=np.maximum(1, _in_parts(gains[held])),
                    functions=functions,
                    terms=terms,
                )
            )
        return walks

    def _counterpart(self, words: Sequence[str], stretch: _Stretch) -> Counterpart | None:
        """The counterpart of the stretch; None if too little is similar."""
        n = stretch.end_word - stretch.first_word
        located = self.reference.located_document(stretch.number)[1].part(stretch.first_word, n)
        is_content = self.stop_words.is_content
        ours = [k for k in range(stretch.first, stretch.end) if is_content(words[k])]
        theirs = [k for k, word in enumerate(located.words) if is_content(word)]
        if not ours or not theirs:
            return None
        # Cosines of words: float32 (n_theirs, n_ours).
        both = [*(located.words[k] for k in theirs), *(words[k] for k in ours)]
        fallback = {word: -3 - k for k, word in enumerate(dict.fromkeys(both))}
        rows = zip(both, self.vectors.rows(both), strict=True)
        units = np.array([row if row >= 0 else fallback[word] for word, row in rows], np.int32)
        sims = np.empty((len(theirs), len(ours)), np.float32)
        similarities(self.vectors.matrix, units[: len(theirs)], units[len(theirs) :], sims)
        tops = sims.max(axis=0)
        is_alike = tops >= self.settings.threshold
        if np.count_nonzero(is_alike) < self.settings.floor:
            return None
        seen: set[str] = set()
        again = []
        alike = [words[k] for k, held in zip(ours, is_alike, strict=True) if held]
        for word, top in zip(alike, tops[is_alike].tolist(), strict=True):
            if word in seen:
                again.append(min(_MOST_BITS, self._alike.bits_of(word)) * top)
            seen.add(word)
        if stretch.score / PARTS - math.fsum(again) < self.settings.bits + self._chance_bits:
            return None
        means = float(tops.mean(dtype=float)), float(sims.max(axis=1).mean(dtype=float))
        return Counterpart(
            similarity=min(1.0, *means),
            source=self.reference.occurrence(stretch.number, stretch.first_word, n),
            words=located,
            pairs=tuple(
                (k - stretch.first, theirs[j], float(top))
                for k, j, top in zip(ours, sims.argmax(axis=0).tolist(), tops, strict=True)
            ),
        )


def _in_parts(bits: NDArray[Any]) -> NDArray[np.int32]:
    parts: NDArray[np.int32] = np.rint(np.asarray(bits) * PARTS).astype(np.int32)
    return parts


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
        fields = self.lengths[chosen], self.numbers[chosen], self.first_words[chosen]
        return _Passages(self.content[at], self.places[at], offsets, *fields)


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
        super().__init__(reference, vectors, stop_words, settings, is_english=is_english)
        self._number: dict[str, int] = {}
        """Content words of the reference, numbered from 0."""
        part, settings = self.reference.local, self.settings
        content, places, n_content, rows = [], [], [], []
        for first, shard in zip(part.first_numbers.tolist(), part.shards, strict=False):
            of_words = [
                self._number.setdefault(word, len(self._number))
                if stop_words.is_content(word)
                else _NO_CONTENT
                for word in ShardWords.of(shard).words
            ]
            numbers = np.array([_NO_CONTENT, *of_words], np.int32)
            ends = np.append(shard.starts[1:], shard.info.n_tokens) - 1
            for k, (start, end) in enumerate(zip(shard.starts, ends, strict=True)):
                units = numbers[shard.read_tokens(int(start), int(end))]
                for begin, n in settings.cut(len(units)):
                    held = np.flatnonzero(units[begin : begin + n] >= 0)
                    content.append(units[begin + held])
                    places.append(held.astype(np.int32))
                    n_content.append(len(held))
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
        negatives = -3 - np.arange(len(words))
        self._units = np.where(of_vectors >= 0, of_vectors, negatives).astype(np.int32)

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
                    part = columns[first:reach]
                    nearest[first, reach] = self._counterpart(part, sims, passages, min_words)
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
            of_word = slice(int(self._indptr[number]), int(self._indptr[number + 1]))
            scores[self._indices[of_word]] += self._weights[of_word]
        is_out = self.reference.about.removed.copy()
        is_out[list(exclude)] = True
        scores[is_out[self._passages.numbers]] = 0
        chosen = np.argsort(-scores, kind="stable")[: self.settings.n_passages]
        return np.sort(chosen[scores[chosen] > 0])

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
        content = [w for w in dict.fromkeys(words) if self.stop_words.is_content(w)]
        column = {word: k for k, word in enumerate(content)}
        rows = self.vectors.rows(content) if content else ()
        units = [
            int(row) if row >= 0 else -3 - self._number.get(word, len(self._number) + k)
            for k, (word, row) in enumerate(zip(content, rows, strict=True))
        ]
        passages = self._passages.some(chosen)
        distinct, inverse = np.unique(passages.content, return_inverse=True)
        passages = replace(passages, content=inverse.astype(np.int32))
        sims = np.empty((len(distinct), len(content)), np.float32)
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
        content = columns[where]
        _, p, a, b = best_passage(sims, content, *passages.arrays, min_words, self.settings.floor)
        span = slice(int(passages.offsets[p]) + a, int(passages.offsets[p]) + b)
        places, compared = passages.places[span], sims[passages.content[span]][:, content]
        tops, back = compared.max(axis=0), compared.max(axis=1)
        number, n = int(passages.numbers[p]), int(places[-1] - places[0]) + 1
        first_word = int(passages.first_words[p]) + int(places[0])
        return Counterpart(
            similarity=min(1.0, float(tops.mean(dtype=float)), float(back.mean(dtype=float))),
            source=self.reference.occurrence(number, first_word, n),
            words=self.reference.located_document(number)[1].part(first_word, n),
            pairs=tuple(
                (int(i), int(places[j] - places[0]), float(tops[c]))
                for c, (i, j) in enumerate(zip(where, compared.argmax(axis=0), strict=True))
            ),
        )
