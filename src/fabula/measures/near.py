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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.kernels.movers import best_passage, search_near
from fabula.measures.near_windows import Units, Window, is_content
from fabula.models.vectors import WordVectors
from fabula.reference import Occurrence
from fabula.reference.passages import PassageIndex
from fabula.reference.search import N_LOCATED
from fabula.text import TextWords
from fabula.text.language import language_gate

__all__ = ["NEAR_PRESETS", "Counterpart", "NearSearch", "NearSettings"]

MAX_WORDS = 100
_N_WINDOWS = 64
"""Windows whose passages are asked for, and held, at a time."""


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
class _Nearest:
    """Where the counterpart of an n-gram stands."""

    similarity: float
    number: int
    """Its document's number."""
    first_word: int
    """Which word of the document it begins with."""
    n_words: int
    pairs: tuple[tuple[int, int, float], ...]


class NearSearch:
    """Near-verbatim search in a reference; its passages must have been built."""

    def __init__(
        self,
        index: PassageIndex,
        vectors: WordVectors,
        settings: NearSettings = NearSettings(),
        *,
        is_english: bool = True,
    ) -> None:
        """`is_english`: the vectors are of English words, so other texts are not searched."""
        self.index = index
        self.is_english = is_english
        self.vectors = vectors
        self.settings = settings
        self._units = Units(index, vectors)

    def signature_parts(self) -> dict[str, str]:
        """All that decides a near match besides the reference."""
        cut = self.index.settings
        return {
            **self.settings.signature_parts(),
            "pass": f"{cut.n_words}-{cut.overlap}",
            "stop": self.index.stop_words.name,
            "vec": self.vectors.name,
            **({"lang": language_gate()} if self.is_english else {}),
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
        found = exact.copy()
        nearest: dict[int, _Nearest] = {}
        j, reach = 0, 0
        for (first, stop, tail), window in self._windows(words, exclude):
            j = first + self._search(
                window, exact[first:tail], stop - first, max(0, j - first), min_words,
                found[first:tail],
            )  # fmt: skip
            for i in range(first, stop):
                if found[i] >= min_words and i + found[i] > reach:
                    if found[i] > exact[i]:
                        span = window.columns[i - first : i - first + found[i]]
                        nearest[i] = self._nearest(window, span, min_words)
                    reach = i + int(found[i])
        return found, self._counterparts(nearest)

    def covered_by(
        self, words: Sequence[str], min_words: int, *, exclude: Iterable[int] = ()
    ) -> dict[int, list[tuple[int, int]]]:
        """The half-open stretches of words that lie in a near match with each document, by number.

        As `search`, with the passages of one document at a time.
        """
        covered: dict[int, list[tuple[int, int]]] = {}
        for (first, stop, _), window in self._windows(words, exclude):
            none = np.zeros(len(window.columns), np.int32)
            for p, number in enumerate(window.numbers.tolist()):
                found = none.copy()
                self._search(window.one(p), none, stop - first, 0, min_words, found)
                spans = [(int(first + i), int(first + i + found[i])) for i in np.flatnonzero(found)]
                if spans:
                    covered.setdefault(number, []).extend(spans)
        return covered

    def _windows(
        self, words: Sequence[str], exclude: Iterable[int]
    ) -> Iterator[tuple[tuple[int, int, int], Window]]:
        """(first word, end of its starts, end of what may be matched) of each window, and its
        passages; windows with too few content words, or without a passage, are left out.

        Many are asked for at a time, since some of the reference may be far.
        """
        settings, units = self.settings, self._units.of_text(words)
        out = sorted(exclude)
        spans = []
        for first in range(0, len(words), settings.window):
            stop = min(len(words), first + settings.window)
            tail = min(len(words), stop + MAX_WORDS)
            if np.count_nonzero(is_content(units[first:tail])) >= settings.floor:
                spans.append((first, stop, tail))
        for at in range(0, len(spans), _N_WINDOWS):
            some = spans[at : at + _N_WINDOWS]
            texts = [words[first : stop + settings.window // 2] for first, stop, _ in some]
            chosen = self.index.best_many(texts, settings.n_passages, exclude=out)
            tokens = self.index.read(chosen)
            self._units.see(tokens)
            for span, passages in zip(some, chosen, strict=True):
                if len(passages):
                    yield span, self._units.window(units[span[0] : span[2]], passages, tokens)

    def _search(
        self,
        window: Window,
        exact: NDArray[np.int32],
        stop: int,
        j: int,
        min_words: int,
        found: NDArray[np.int32],
    ) -> int:
        """`search_near` over the starts before `stop`; `j` is where the second pointer stands."""
        return int(
            search_near(
                window.sims, window.columns, exact, 0, stop, j, window.content, window.places,
                window.offsets, window.lengths, min_words, self.settings.floor, MAX_WORDS,
                self.settings.threshold, found,
            )
        )  # fmt: skip

    def _nearest(self, window: Window, columns: NDArray[np.int32], min_words: int) -> _Nearest:
        where = np.flatnonzero(columns >= 0)
        own = columns[where]
        similarity, p, a, b = best_passage(
            window.sims, own, window.content, window.places, window.offsets, window.lengths,
            min_words, self.settings.floor,
        )  # fmt: skip
        low = int(window.offsets[p])
        places = window.places[low + a : low + b]
        first, last = int(places[0]), int(places[-1])
        sims = window.sims[window.content[low + a : low + b]][:, own]
        return _Nearest(
            similarity=float(min(similarity, 1.0)),
            number=int(window.numbers[p]),
            first_word=int(window.first_words[p]) + first,
            n_words=last - first + 1,
            pairs=tuple(
                (int(i), int(places[j]) - first, float(sims[j, c]))
                for c, (i, j) in enumerate(zip(where, sims.argmax(axis=0), strict=True))
            ),
        )

    def _counterparts(self, nearest: Mapping[int, _Nearest]) -> dict[int, Counterpart]:
        """With the texts that they stand in, which are fetched many at a time."""
        reference = self.index.reference
        found = {}
        by_document = sorted(nearest, key=lambda i: nearest[i].number)
        for at in range(0, len(by_document), N_LOCATED):
            some = by_document[at : at + N_LOCATED]
            reference.fetch(sorted({nearest[i].number for i in some}))
            for i in some:
                one = nearest[i]
                found[i] = Counterpart(
                    similarity=one.similarity,
                    source=reference.occurrence(one.number, one.first_word, one.n_words),
                    words=reference.located_document(one.number)[1].part(
                        one.first_word, one.n_words
                    ),
                    pairs=one.pairs,
                )
        return {i: found[i] for i in nearest}
