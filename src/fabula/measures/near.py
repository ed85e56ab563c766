"""Near-verbatim matches: n-grams that occur in the reference in other words.

Lu et al. 2024, section "DJ Search" and appendix A.2: an n-gram of the text matches if it occurs
verbatim, or if a span of one of the passages most similar to the text (by BM25) is as similar to
it as the threshold, by the smaller of the two directional means of best cosines between their
content words.

Details that the paper leaves open are decided as follows (all of it is in the signature):

- A text of any length is read in windows, each with its own passages: borrowing in one place is
  found whatever the rest is about. An n-gram is compared with the passages of the window that it
  starts in.
- Similarity needs content words on both sides, at least `floor` of them: two are too few.
- A content word without a vector resembles only itself.
- A near match has at most 100 words; no level of the index comes close to that.

Beyond the paper, unless its preset is selected: neither side is over `ratio` times as long as the
other; each is cut at the first and the last content word that resembles one of the other's; and for
what remains, the sentence encoder must agree that both sides mean the same (`meaning`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.kernels.movers import best_passage, search_near
from fabula.measures.counterparts import Counterpart, SearchForNear
from fabula.measures.near_windows import Units, Window, is_content
from fabula.models.encoder import Encoder
from fabula.models.vectors import WordVectors
from fabula.reference.passages import PassageIndex
from fabula.reference.search import N_LOCATED

__all__ = ["NEAR_PRESETS", "NearSearch", "NearSettings"]

MAX_WORDS = 100
_ROUNDING = 1e-6
"""For means of 32-bit cosines."""
_N_WINDOWS = 64
"""Windows whose passages are requested, and held, at a time."""


@dataclass(frozen=True, slots=True)
class NearSettings:
    """When two n-grams are near, and where to search."""

    threshold: float = 0.75
    floor: int = 5
    """Content words that both n-grams must have."""
    n_passages: int = 100
    """Passages that each window of the text is compared with."""
    window: int = 50
    """Words of a window; half a window more is read with it to find its passages."""
    ratio: float = 2.0
    """Maximum length ratio of the two sides in words; inf for any."""
    meaning: float = 0.7
    """Least cosine of the two sides' sentence vectors; 0 to skip the check."""
    trim: bool = True
    """Whether each side begins and ends with a content word that resembles one of the other's."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise InputError(
                f"`threshold` {self.threshold:g}: must be a similarity over 0 and at most 1"
            )
        if self.floor < 1 or self.n_passages < 1 or self.window < 1:
            raise InputError("`floor`, `n_passages` and `window` must be at least 1")
        if not (self.ratio >= 1 and 0 <= self.meaning <= 1):
            raise InputError(
                "near matches: the ratio must be at least 1, the meaning between 0 and 1"
            )

    def signature_parts(self) -> dict[str, str]:
        return {
            "T": repr(self.threshold),
            "floor": str(self.floor),
            "K": f"{self.n_passages}per{self.window}",
            "ratio": f"{self.ratio:g}",
            "ends": "cut" if self.trim else "found",
        }


NEAR_PRESETS = {
    "paper": NearSettings(threshold=0.95, floor=1, ratio=math.inf, meaning=0, trim=False)
}


@dataclass(frozen=True, slots=True)
class _Nearest:
    """An n-gram of the text, and the position of its counterpart."""

    first: int
    end: int
    """Its words: `first` to `end`, half-open."""
    similarity: float
    number: int
    """Its document's number."""
    first_word: int
    """The word of the document where it begins."""
    n_words: int
    pairs: tuple[tuple[int, int, float], ...]


class NearSearch(SearchForNear):
    """Near-verbatim search in a reference; its passages must have been built.

    `encoder` reads both sides of each match if `settings.meaning` requires it; the packaged one is
    the default.
    """

    def __init__(
        self,
        index: PassageIndex,
        vectors: WordVectors,
        settings: NearSettings = NearSettings(),
        encoder: Encoder | None = None,
        *,
        is_english: bool = True,
    ) -> None:
        """`is_english`: the vectors are of English words, so other texts are not searched."""
        super().__init__(
            vectors, index.stop_words, settings.meaning, encoder, is_english=is_english
        )
        self.index = index
        self.settings = settings
        self._units = Units(index, vectors)

    def signature_parts(self) -> dict[str, str]:
        """Everything that determines a near match besides the reference."""
        cut = self.index.settings
        return {
            **self.settings.signature_parts(),
            "pass": f"{cut.n_words}-{cut.overlap}",
            **super().signature_parts(),
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
        raw = exact.copy()
        nearest: dict[tuple[int, int], _Nearest] = {}
        j, reach = 0, 0
        for (first, stop, tail), window in self._windows(words, exclude):
            j = first + self._search(
                window,
                exact[first:tail],
                stop - first,
                max(0, j - first),
                min_words,
                raw[first:tail],
            )
            for i in range(first, stop):
                if raw[i] >= min_words and i + raw[i] > reach:
                    reach = i + int(raw[i])
                    if raw[i] > exact[i]:
                        one = self._nearest(window, first, i, reach, min_words)
                        if one is not None and one.end - one.first > exact[one.first]:
                            nearest[one.first, one.end] = one
        return self._longest(words, exact, self._counterparts(nearest), min_words)

    def covered_by(
        self,
        words: Sequence[str],
        min_words: int,
        *,
        within: Iterable[tuple[int, int]],
        exclude: Iterable[int] = (),
    ) -> dict[int, list[tuple[int, int]]]:
        """The half-open stretches of words that lie in a near match with each document, by number.

        Searches the passages of one document at a time, before `search` cuts and drops matches;
        only stretches with at least `min_words` words `within` those that it kept.
        """
        kept = list(within)
        covered: dict[int, list[tuple[int, int]]] = {}
        for (first, stop, tail), window in self._windows(words, exclude) if kept else ():
            if not any(begin < tail and end > first for begin, end in kept):
                continue
            none = np.zeros(len(window.columns), np.int32)
            for p, number in enumerate(window.numbers.tolist()):
                found = none.copy()
                self._search(window.one(p), none, stop - first, 0, min_words, found)
                spans = [(int(first + i), int(first + i + found[i])) for i in np.flatnonzero(found)]
                both = {(max(a, c), min(b, d)) for a, b in spans for c, d in kept}
                if here := sorted((a, b) for a, b in both if b - a >= min_words):
                    covered.setdefault(number, []).extend(here)
        return covered

    def _windows(
        self, words: Sequence[str], exclude: Iterable[int]
    ) -> Iterator[tuple[tuple[int, int, int], Window]]:
        """(first word, end of its starts, end of what may be matched) of each window, and its
        passages; windows with too few content words, or without a passage, are omitted.

        Many are requested at a time, since parts of the reference may be remote.
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
        """`search_near` over the starts before `stop`; `j` is where the second pointer starts."""
        return int(
            search_near(
                window.sims,
                window.columns,
                exact,
                0,
                stop,
                j,
                window.content,
                window.places,
                window.offsets,
                window.lengths,
                min_words,
                self.settings.floor,
                MAX_WORDS,
                self.settings.threshold,
                self.settings.ratio,
                found,
            )
        )

    def _nearest(
        self, window: Window, begin: int, first: int, end: int, min_words: int
    ) -> _Nearest | None:
        """The best counterpart of the n-gram from `first` to `end`, in a window from `begin`.

        None if too little is left of it when its ends are cut.
        """
        settings = self.settings
        columns = window.columns[first - begin : end - begin]
        where = np.flatnonzero(columns >= 0)
        own = columns[where]
        _, p, a, b = best_passage(
            window.sims,
            own,
            len(columns),
            window.content,
            window.places,
            window.offsets,
            window.lengths,
            min_words,
            settings.floor,
            settings.ratio,
        )
        there = slice(int(window.offsets[p]) + a, int(window.offsets[p]) + b)
        places, sims = window.places[there], window.sims[window.content[there]][:, own]
        if settings.trim:
            rows, held = _cut_ends(sims, settings.threshold)
            where = where[held]
            first, end = first + int(where[0]), first + int(where[-1]) + 1
            where -= where[0]
            places, sims = places[rows], sims[rows, held]
        if min(sims.shape) < settings.floor or end - first < min_words:
            return None
        n_there = int(places[-1] - places[0]) + 1
        if max(n_there, end - first) > settings.ratio * min(n_there, end - first):
            return None
        here, back = sims.max(axis=0), sims.max(axis=1)
        similarity = min(1.0, float(here.mean(dtype=float)), float(back.mean(dtype=float)))
        if similarity < settings.threshold - _ROUNDING:
            return None
        return _Nearest(
            first=first,
            end=end,
            similarity=similarity,
            number=int(window.numbers[p]),
            first_word=int(window.first_words[p]) + int(places[0]),
            n_words=n_there,
            pairs=tuple(
                (int(i), int(places[j]) - int(places[0]), float(here[c]))
                for c, (i, j) in enumerate(zip(where, sims.argmax(axis=0), strict=True))
            ),
        )

    def _counterparts(
        self, nearest: Mapping[tuple[int, int], _Nearest]
    ) -> dict[tuple[int, int], Counterpart]:
        """With the texts that contain them, fetched many at a time."""
        reference = self.index.reference
        found = {}
        by_document = sorted(nearest.items(), key=lambda item: item[1].number)
        for at in range(0, len(by_document), N_LOCATED):
            some = by_document[at : at + N_LOCATED]
            reference.fetch(sorted({one.number for _, one in some}))
            for span, one in some:
                found[span] = Counterpart(
                    similarity=one.similarity,
                    source=reference.occurrence(one.number, one.first_word, one.n_words),
                    words=reference.located_document(one.number)[1].part(
                        one.first_word, one.n_words
                    ),
                    pairs=one.pairs,
                )
        return {span: found[span] for span in nearest}


def _cut_ends(sims: NDArray[np.float32], threshold: float) -> tuple[slice, slice]:
    """Rows and columns of `sims` that remain after removing ends that resemble nothing remaining.

    sims: float32 (n_there, n_here). At least one of each remains.
    """
    least = threshold - _ROUNDING
    top, bottom, left, right = 0, sims.shape[0], 0, sims.shape[1]
    while True:
        part = sims[top:bottom, left:right]
        is_row, is_column = part.max(axis=1) >= least, part.max(axis=0) >= least
        if not is_row.any():
            return slice(top, top + 1), slice(left, left + 1)
        rows, columns = np.flatnonzero(is_row), np.flatnonzero(is_column)
        edges = (
            top + int(rows[0]),
            top + int(rows[-1]) + 1,
            left + int(columns[0]),
            left + int(columns[-1]) + 1,
        )
        if edges == (top, bottom, left, right):
            return slice(top, bottom), slice(left, right)
        top, bottom, left, right = edges
