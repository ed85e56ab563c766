"""The n-grams that texts have in common, and the measures that count them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.ngram_counts import (
    count_in_subsets,
    count_places,
    extend_ngrams,
    group_places,
    list_holders,
    narrow_holders,
)

SHARED = range(3, 9)
"""Lengths for which the share found in another text is reported; prompts count from the first."""
DISTINCT = range(1, 5)
BLEU = range(1, 5)
REPEATED = 4
_BUDGET_ENTRIES = 200_000_000
"""Limit on the n-grams that a pair's permutations may process per draw: seconds."""
_SMOOTHING = 0.1
_N_AT_ONCE = 32
"""Subsets counted at the same time."""
_CELLS_AT_ONCE = 1 << 21
"""Subsets times texts counted at the same time by a thread, about 64 bytes each."""


@dataclass(frozen=True, slots=True)
class WordTable:
    """The words of texts as numbers, one text after the other, then those of their prompts."""

    words: NDArray[np.int32]
    """(n_words,): the word's number; -1 where it occurs once."""
    text_of: NDArray[np.int32]
    """(n_words,): the word's text; from `n_texts` on these are prompts."""
    n_left: NDArray[np.int32]
    """(n_words,): words to the end of the segment (a text, a sentence)."""
    starts: NDArray[np.int64]
    """(n_texts + 1,): where each text begins."""
    n_texts: int
    prompt_of: NDArray[np.int32]
    """(n_texts,): the prompt's number in `text_of`, or -1."""

    @classmethod
    def of(
        cls,
        texts: Sequence[Sequence[str]],
        prompts: Sequence[Sequence[str]] = (),
        prompt_of: Sequence[int] = (),
        *,
        segments: Sequence[Sequence[int]] = (),
    ) -> WordTable:
        """Takes words in normal form.

        prompt_of: for each text the index of its prompt in `prompts`, or -1; without it no text has
        one. segments: for each text where its segments end, which n-grams do not cross; without it
        each text is one segment.
        """
        both = [*texts, *prompts]
        lengths = np.array([len(words) for words in both], np.int64)
        # The number of each word, from 0 by first appearance.
        known: defaultdict[str, int] = defaultdict(count().__next__)
        numbers = map(known.__getitem__, chain.from_iterable(both))
        flat = np.fromiter(numbers, np.int32, int(lengths.sum()))
        several = np.bincount(flat, minlength=len(known)) > 1
        numbers_of_several = np.where(several, np.cumsum(several) - 1, -1).astype(np.int32)
        ends = np.cumsum(lengths)
        cuts = ends
        if segments:
            cuts = np.concatenate(
                [ends, *(ends[k] - lengths[k] + np.array(own) for k, own in enumerate(segments))]
            )
        cuts = np.unique(cuts.astype(np.int64))
        n_left = np.repeat(cuts, np.diff(cuts, prepend=0)) - np.arange(len(flat))
        shift = len(texts)
        own_prompt = np.array(prompt_of or [-1] * shift, np.int32)
        return cls(
            numbers_of_several[flat],
            np.repeat(np.arange(len(both), dtype=np.int32), lengths),
            n_left.astype(np.int32),
            np.concatenate([[0], ends[:shift]]).astype(np.int64),
            shift,
            np.where(own_prompt >= 0, own_prompt + shift, -1).astype(np.int32),
        )

    def ngrams(self, longest: int) -> Iterator[tuple[Ngrams, NDArray[np.int32]]]:
        """The n-grams of 1 word, 2 words, ... up to `longest`, and the number of each one.

        Numbers are int32, (n_words,), of the n-gram that begins at each word: -1 where it occurs
        once, or is in the text's prompt. Prompts are checked from three words on: a single word of
        a prompt is not an echo.
        """
        numbers = self.words
        begins, places = group_places(numbers, int(numbers.max(initial=-1)) + 1)
        without = np.full(self.n_texts, -1, np.int32)
        for n in range(1, longest + 1):
            if n > 1:
                numbers, n_numbers = extend_ngrams(numbers, begins, places, self.n_left, n)
                begins, places = group_places(numbers, n_numbers)
            marked = numbers.copy()
            prompts = self.prompt_of if n >= SHARED.start else without
            ends, texts, counts, firsts, n_own, n_echoed = list_holders(
                marked, begins, places, self.text_of, self.n_texts, prompts
            )
            in_all, n_single = count_places(numbers, self.n_left, self.text_of, self.n_texts, n)
            found = Ngrams(n, in_all - n_echoed, n_own + n_single, ends, texts, counts, firsts)
            yield found, marked


@dataclass(frozen=True, slots=True)
class Ngrams:
    """The n-grams of one length that occur in two or more texts, as from `list_holders`."""

    n: int
    totals: NDArray[np.int64]
    """(n_texts,): the text's n-grams, without those of its prompt."""
    n_own: NDArray[np.int64]
    """(n_texts,): its distinct n-grams that no other text has."""
    ends: NDArray[np.int64]
    texts: NDArray[np.int32]
    counts: NDArray[np.int32]
    firsts: NDArray[np.int32]

    def narrowed(self, kept: NDArray[np.int64]) -> Ngrams:
        """Restrict to these texts, numbered in this (ascending) order."""
        if len(kept) == len(self.totals):
            return self
        place = np.full(len(self.totals), -1, np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        ends, texts, counts, firsts, n_alone = narrow_holders(
            self.ends, self.texts, self.counts, self.firsts, place, len(kept)
        )
        n_own = self.n_own[kept] + n_alone
        return Ngrams(self.n, self.totals[kept], n_own, ends, texts, counts, firsts)


@dataclass(frozen=True, slots=True)
class NgramMeasures:
    """All measures that count n-grams of words.

    `shared_ngrams.N`: the share of n-gram occurrences that another text has too.
    `self_bleu`: the mean BLEU-4 of each text with all others as references (Zhu et al. 2018),
    smoothed as NLTK's method 1; texts are equally long, so there is no brevity penalty.
    `self_repetition`: the mean over texts of ln(1 + the number of other texts that have each of its
    distinct 4-grams, summed) (Salkar et al. 2022, as Shaib et al. 2024 compute it).
    `distinct.N`: distinct n-grams over all n-grams (Li et al. 2016), within texts.
    """

    lengths: tuple[Ngrams, ...]
    """Of 1 word, of 2 words, ..."""
    n_threads: int = 1
    max_draws: int = 1 << 30
    max_blocks: int = 100

    @property
    def max_permutations(self) -> int:
        return _BUDGET_ENTRIES // max(1, sum(len(one.texts) for one in self.lengths))

    @property
    def names(self) -> tuple[str, ...]:
        return (
            *(f"shared_ngrams.{n}" for n in SHARED),
            "self_bleu",
            "self_repetition",
            *(f"distinct.{n}" for n in DISTINCT),
        )

    def narrowed(self, kept: NDArray[np.int64]) -> NgramMeasures:
        return replace(self, lengths=tuple(one.narrowed(kept) for one in self.lengths))

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Each measure of each subset: float64, shape (n_subsets, n_measures); NaN for none."""
        step = max(1, min(_N_AT_ONCE, _CELLS_AT_ONCE // max(1, members.shape[1])))
        parts = [members[k : k + step] for k in range(0, len(members), step)]
        with ThreadPoolExecutor(self.n_threads) as pool:
            return np.concatenate([*pool.map(self._values, parts)])

    def _values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        n_members = members.sum(axis=1, dtype=np.int64)
        found: dict[str, NDArray[np.float64]] = {}
        log_bleu = np.zeros(members.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            for one in self.lengths:
                n_different, n_shared, n_others, n_clipped = count_in_subsets(
                    one.ends, one.texts, one.counts, members
                )
                totals = (members @ one.totals.astype(np.float64)).astype(np.float64)
                if one.n in SHARED:
                    found[f"shared_ngrams.{one.n}"] = n_shared.sum(axis=1) / totals
                if one.n in DISTINCT:
                    own = members @ one.n_own.astype(np.float64)
                    found[f"distinct.{one.n}"] = (n_different + own) / totals
                if one.n in BLEU:
                    smooth = np.where(n_clipped == 0, _SMOOTHING, n_clipped)
                    if one.n == 1:
                        # A text that shares no words scores 0.
                        smooth = n_clipped.astype(np.float64)
                    log_bleu += np.log(smooth / np.maximum(1, one.totals)) / len(BLEU)
                if one.n == REPEATED:
                    each = members * np.log1p(n_others)
                    found["self_repetition"] = each.sum(axis=1) / n_members
            found["self_bleu"] = (members * np.exp(log_bleu)).sum(axis=1) / n_members
        return np.stack([found[name] for name in self.names], axis=1)
