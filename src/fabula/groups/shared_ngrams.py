"""The n-grams of words, or of tags, that texts have in common, and the measures that count them.

Shaib, Elazar, Li and Wallace 2024, "Detection and Measurement of Syntactic Templates in Generated
Text": the 100 most frequent sequences of parts of speech are templates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import chain, count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core.types import Span
from fabula.jobs.result import picked
from fabula.kernels import ngram_counts as kernels
from fabula.kernels.ngram_counts import count_pairs
from fabula.text import TextWords
from fabula.text.pipeline import TAGS, load_pipeline, pipeline_parts
from fabula.text.sentences import encodable

SHARED = range(3, 9)
"""Lengths for which the share found in another text is reported; prompts count from the first."""
DISTINCT = range(1, 5)
BLEU = range(1, 5)
REPEATED = 4
PHRASES = range(4, 9)
"""Lengths of phrases that are listed."""
TEMPLATE_TAGS = 5
_N_TEMPLATES = 100
_N_EXAMPLES = 3
_N_LOOKED_AT = 50
"""Candidates of each length for every phrase that is listed."""
_BATCH = 64
_BUDGET_ENTRIES = 200_000_000
"""Limit on the n-grams that a pair's permutations may process per draw: seconds."""
_SMOOTHING = 0.1
_N_AT_ONCE = 32
"""Subsets counted at the same time."""
_CELLS_AT_ONCE = 1 << 21
"""Subsets times texts counted at the same time by a thread, about 64 bytes each."""


class Located:
    """The words, or tags, of texts one after the other, and where they are in their documents."""

    def __init__(self, ids: Sequence[str], texts: Sequence[TextWords]) -> None:
        self.ids, self.texts = ids, texts
        ends = np.cumsum([len(text.words) for text in texts])
        self.starts = np.concatenate([[0], ends])[:-1].astype(np.int64)
        """(n_texts,): where each text begins."""

    def at(self, place: int) -> tuple[int, int]:
        """The text of the word at a place, and its number in it."""
        text = int(np.searchsorted(self.starts, place, "right")) - 1
        return text, place - int(self.starts[text])

    def words(self, place: int, n: int) -> list[str]:
        text, first = self.at(place)
        return self.texts[text].words[first : first + n]

    def span(self, place: int, n: int) -> Span:
        text, first = self.at(place)
        words = self.texts[text]
        return Span(self.ids[text], int(words.starts[first]), int(words.ends[first + n - 1]))


class WordTable:
    """The words of texts as numbers, one text after the other, then those of their prompts."""

    def __init__(
        self,
        texts: Sequence[Sequence[str]],
        prompts: Sequence[Sequence[str]] = (),
        prompt_of: Sequence[int] = (),
        *,
        segments: Sequence[Sequence[int]] = (),
    ) -> None:
        """Takes words in normal form.

        prompt_of: each text's index in `prompts`, or -1; without it none has one. segments: where
        each text's segments end, which n-grams do not cross; without it a text is one.
        """
        both = [*texts, *prompts]
        lengths = np.array([len(words) for words in both], np.int64)
        # The number of each word, from 0 by first appearance.
        known: defaultdict[str, int] = defaultdict(count().__next__)
        numbers = map(known.__getitem__, chain.from_iterable(both))
        flat = np.fromiter(numbers, np.int32, int(lengths.sum()))
        is_repeated = np.bincount(flat, minlength=len(known)) > 1
        self.words = np.where(is_repeated, np.cumsum(is_repeated) - 1, -1).astype(np.int32)[flat]
        """(n_words,): the word's number; -1 where it occurs once."""
        self.text_of = np.repeat(np.arange(len(both), dtype=np.int32), lengths)
        """(n_words,): the word's text; from `n_texts` on these are prompts."""
        ends = np.cumsum(lengths)
        inside = (ends[k] - lengths[k] + np.array(cut) for k, cut in enumerate(segments))
        cuts = np.unique(np.concatenate([ends, *inside]).astype(np.int64))
        n_left = np.repeat(cuts, np.diff(cuts, prepend=0)) - np.arange(len(flat))
        self.n_left = n_left.astype(np.int32)
        """(n_words,): words to the end of the segment (a text, a sentence)."""
        self.n_texts = len(texts)
        self.starts = np.concatenate([[0], ends[: self.n_texts]]).astype(np.int64)
        """(n_texts + 1,): where each text begins."""
        of_text = np.array(prompt_of or [-1] * self.n_texts, np.int32)
        self.prompt_of = np.where(of_text >= 0, of_text + self.n_texts, -1).astype(np.int32)
        """(n_texts,): the prompt's number in `text_of`, or -1."""

    def ngrams(self, longest: int) -> Iterator[tuple[Ngrams, NDArray[np.int32]]]:
        """The n-grams of 1 word, 2 words, ... up to `longest`, and the number of each one.

        Numbers are int32, (n_words,), of the n-gram that begins at each word: -1 where it occurs
        once, or is in the text's prompt. Prompts are checked from three words on: one or
        two words of a prompt are not an echo.
        """
        numbers = self.words
        begins, places = kernels.group_places(numbers, int(numbers.max(initial=-1)) + 1)
        without = np.full(self.n_texts, -1, np.int32)
        for n in range(1, longest + 1):
            if n > 1:
                numbers, n_numbers = kernels.extend_ngrams(numbers, begins, places, self.n_left, n)
                begins, places = kernels.group_places(numbers, n_numbers)
            marked = numbers.copy()
            prompts = self.prompt_of if n >= SHARED.start else without
            ends, texts, counts, firsts, n_own, n_echoed = kernels.list_holders(
                marked, begins, places, self.text_of, self.n_texts, prompts
            )
            total, once = kernels.count_places(numbers, self.n_left, self.text_of, self.n_texts, n)
            yield Ngrams(n, total - n_echoed, n_own + once, ends, texts, counts, firsts), marked


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

    def entries(self, t: int) -> slice:
        """Those of the texts that hold the n-gram `t`."""
        return slice(int(self.ends[t - 1]) if t else 0, int(self.ends[t]))

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """For each n-gram, the sum of the entries' values over the texts that hold it."""
        if not len(self.ends):
            return values[:0]
        return np.add.reduceat(values, np.concatenate([[0], self.ends[:-1]]))

    def narrowed(self, kept: NDArray[np.int64]) -> Ngrams:
        """Restrict to these texts, numbered in this (ascending) order."""
        if len(kept) == len(self.totals):
            return self
        place = np.full(len(self.totals), -1, np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        ends, texts, counts, firsts, n_alone = kernels.narrow_holders(
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

    max_draws, max_blocks = 1 << 30, 100
    names = (
        *(f"shared_ngrams.{n}" for n in SHARED),
        "self_bleu",
        "self_repetition",
        *(f"distinct.{n}" for n in DISTINCT),
    )

    @property
    def max_permutations(self) -> int:
        return _BUDGET_ENTRIES // max(1, sum(len(ngrams.texts) for ngrams in self.lengths))

    @classmethod
    def of(cls, table: WordTable, n_threads: int = 1) -> NgramMeasures:
        return cls(tuple(ngrams for ngrams, _ in table.ngrams(SHARED[-1])), n_threads)

    def narrowed(self, kept: NDArray[np.int64]) -> NgramMeasures:
        return replace(self, lengths=tuple(ngrams.narrowed(kept) for ngrams in self.lengths))

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Each measure of each subset: float64, shape (n_subsets, n_measures); NaN for none."""

        def of(subsets: NDArray[np.uint8]) -> NDArray[np.float64]:
            n_members = subsets.sum(axis=1, dtype=np.int64)
            columns: dict[str, NDArray[np.float64]] = {}
            log_bleu = np.zeros(subsets.shape)
            with np.errstate(invalid="ignore", divide="ignore"):
                for ngrams in self.lengths:
                    n_different, n_shared, n_others, n_clipped = kernels.count_in_subsets(
                        ngrams.ends, ngrams.texts, ngrams.counts, subsets
                    )
                    totals = (subsets @ ngrams.totals.astype(np.float64)).astype(np.float64)
                    if ngrams.n in SHARED:
                        columns[f"shared_ngrams.{ngrams.n}"] = n_shared.sum(axis=1) / totals
                    if ngrams.n in DISTINCT:
                        n_own = subsets @ ngrams.n_own.astype(np.float64)
                        columns[f"distinct.{ngrams.n}"] = (n_different + n_own) / totals
                    if ngrams.n in BLEU:
                        # A text that shares no words scores 0.
                        least = _SMOOTHING if ngrams.n > 1 else 0.0
                        smooth = np.where(n_clipped == 0, least, n_clipped)
                        log_bleu += np.log(smooth / np.maximum(1, ngrams.totals)) / len(BLEU)
                    if ngrams.n == REPEATED:
                        repeats = subsets * np.log1p(n_others)
                        columns["self_repetition"] = repeats.sum(axis=1) / n_members
                columns["self_bleu"] = (subsets * np.exp(log_bleu)).sum(axis=1) / n_members
            return np.stack([columns[name] for name in self.names], axis=1)

        step = max(1, min(_N_AT_ONCE, _CELLS_AT_ONCE // max(1, members.shape[1])))
        parts = [members[k : k + step] for k in range(0, len(members), step)]
        with ThreadPoolExecutor(self.n_threads) as pool:
            return np.concatenate([*pool.map(of, parts)])


@dataclass(frozen=True, slots=True)
class Tagged:
    """The parts of speech (Penn Treebank) of a text's tokens, and where its sentences end."""

    tags: TextWords
    sentence_ends: list[int]


class Tagger:
    """spaCy's tagger for English. Raises `ModelError` if it is not installed."""

    def __init__(self) -> None:
        self._nlp: Any = load_pipeline(TAGS)
        self.signature_parts = pipeline_parts(self._nlp)

    def tag(self, texts: Sequence[str], advance: Callable[[int], None]) -> Iterator[Tagged]:
        # Replace unencodable characters one for one, so that offsets are preserved.
        for doc in self._nlp.pipe(map(encodable, texts), batch_size=_BATCH):
            tokens, ends = [], []
            for sentence in doc.sents:
                tokens += [token for token in sentence if not token.is_space]
                ends.append(len(tokens))
            starts = np.array([token.idx for token in tokens], np.int64)
            n_chars = np.array([len(token) for token in tokens], np.int64)
            yield Tagged(TextWords([t.tag_ for t in tokens], starts, starts + n_chars), ends)
            advance(1)


def templates_of(tagged: Sequence[Tagged]) -> tuple[Ngrams, NDArray[np.int32]]:
    """The sequences of `TEMPLATE_TAGS` tags within sentences that occur in two or more texts.

    And the number of each, as from `WordTable.ngrams`.
    """
    segments = [text.sentence_ends for text in tagged]
    table = WordTable([text.tags.words for text in tagged], segments=segments)
    *_, longest = table.ngrams(TEMPLATE_TAGS)
    return longest


@dataclass(frozen=True, slots=True)
class Templates:
    """`templates`: occurrences of the subset's 100 most frequent sequences of five tags, divided by
    its tokens; sequences found in only one text do not count.
    """

    ngrams: Ngrams
    n_tokens: NDArray[np.int64]
    """(n_texts,)"""

    names = ("templates",)
    max_draws, max_blocks, max_permutations = 1 << 30, 100, 1 << 30

    def narrowed(self, kept: NDArray[np.int64]) -> Templates:
        return replace(self, ngrams=self.ngrams.narrowed(kept), n_tokens=self.n_tokens[kept])

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Float64, shape (n_subsets, 1)."""

        def value(row: NDArray[np.uint8]) -> float:
            n_tokens = int(self.n_tokens @ row.astype(np.int64))
            is_in = row[self.ngrams.texts].astype(np.int64)
            n_times = self.ngrams.sums(is_in * self.ngrams.counts)
            n_times[self.ngrams.sums(is_in) < 2] = 0
            n_templates = float(np.sort(n_times)[-_N_TEMPLATES:].sum())
            return n_templates / n_tokens if n_tokens else float("nan")

        return np.array([*map(value, members)], np.float64).reshape(-1, 1)


@dataclass(frozen=True, slots=True)
class SharedPhrase:
    """A phrase shared by texts of a group; texts of other groups may have it too."""

    phrase: str
    n_texts: int
    n_times: int
    n_texts_elsewhere: int
    examples: tuple[Span, ...]

    def to_json(self) -> dict[str, Any]:
        examples = [{"id": a.document_id, "start": a.start, "end": a.end} for a in self.examples]
        return asdict(self) | {"examples": examples}


def shared_phrases(
    lengths: Sequence[Ngrams], is_in: NDArray[np.bool_], n_listed: int, located: Located
) -> list[SharedPhrase]:
    """The most widespread phrases, by texts times words, none of them very similar to another.

    is_in: (n_texts,), the texts of the group; located: the words, or tags, of all.
    """
    candidates: list[tuple[int, int, Ngrams]] = []
    for ngrams in lengths:
        n_texts = ngrams.sums(is_in[ngrams.texts].astype(np.int64))
        best = np.argsort(-n_texts, kind="stable")[: n_listed * _N_LOOKED_AT]
        candidates += [(int(n_texts[t]), int(t), ngrams) for t in best if n_texts[t] > 1]
    # Python's sort is stable, so ties keep the order of the texts.
    candidates.sort(key=lambda entry: (-entry[0] * entry[2].n, -entry[2].n))
    listed: list[SharedPhrase] = []
    taken: list[Sequence[str]] = []
    for n_texts_in, t, ngrams in candidates:
        if len(listed) == n_listed:
            break
        entries = ngrams.entries(t)
        firsts, is_own = ngrams.firsts[entries], is_in[ngrams.texts[entries]]
        words = located.words(int(firsts[0]), ngrams.n)
        if any(_overlap(words, other) for other in taken):
            continue
        taken.append(words)
        examples = firsts[is_own][:_N_EXAMPLES].tolist()
        spans = tuple(located.span(first, ngrams.n) for first in examples)
        n_times, n_elsewhere = int(ngrams.counts[entries][is_own].sum()), len(is_own) - n_texts_in
        listed.append(SharedPhrase(" ".join(words), n_texts_in, n_times, n_elsewhere, spans))
    return listed


def _overlap(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether more than half of the shorter occurs in the longer as a run."""
    shorter, longer = sorted((a, b), key=len)
    n = len(shorter) // 2 + 1
    runs = {tuple(longer[k : k + n]) for k in range(len(longer) - n + 1)}
    return any(tuple(shorter[k : k + n]) in runs for k in range(len(shorter) - n + 1))


_MAX_HOLDERS = 200
"""Runs in more texts than this are common phrases, and do not make a pair."""
_MAX_PAIRS = 50_000_000
_N_PAIRS_LOOKED_AT = 20
"""Pairs whose runs are examined for each one that is listed."""


@dataclass(frozen=True, slots=True)
class CommonRun:
    """Words that occur in both texts of a pair."""

    n_words: int
    a: Span
    b: Span


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two texts, and the runs of words that they have in common, the longest first."""

    a: str
    b: str
    n_words: int
    """Words of A in common runs."""
    share_a: float
    """The share of A's words that lie in common runs; `share_b` likewise."""
    share_b: float
    runs: tuple[CommonRun, ...]

    @property
    def longest(self) -> int:
        return self.runs[0].n_words

    def to_json(self) -> dict[str, Any]:
        return {
            **picked(self, "a", "b", "n_words"),
            "longest_run": self.longest,
            **picked(self, "share_a", "share_b"),
            "runs": [
                {
                    "n_words": run.n_words,
                    "a": picked(run.a, "start", "end"),
                    "b": picked(run.b, "start", "end"),
                }
                for run in self.runs
            ],
        }


@dataclass(frozen=True, slots=True)
class SharedText:
    """How much of a text occurs in others of its set, and in which one most."""

    id: str
    n_words: int
    share: float
    """The share of its words in runs that another text has."""
    longest: int
    """Words in the longest run in common with `most_with`."""
    most_with: str | None
    """The text with which it has most in common; None if there is none."""
    n_others: int
    """Texts with which it has anything in common."""


class PairTable:
    """The n-grams of `n_words` words in texts, and how many each two of these have in common.

    owners: a number for each text; texts with the same number are not compared with each other.
    """

    def __init__(
        self, located: Located, table: WordTable, n_words: int, owners: Sequence[int] | None = None
    ) -> None:
        *_, (ngrams, numbers) = table.ngrams(n_words)
        n_holders = np.diff(ngrams.ends, prepend=0)
        most = _MAX_HOLDERS
        while most > 2:
            counts = n_holders[n_holders <= most]
            if int((counts * (counts - 1) // 2).sum()) <= _MAX_PAIRS:
                break
            most //= 2
        # Each pair of texts is encoded as one number.
        keys, times = np.unique(count_pairs(ngrams.ends, ngrams.texts, most), return_counts=True)
        a, b = keys >> 32, keys & 0xFFFFFFFF
        if owners is not None:
            owner = np.array(owners, np.int64)
            kept = owner[a] != owner[b]
            a, b, times = a[kept], b[kept], times[kept]
        self.located, self.n_words, self.owners = located, n_words, owners
        # The texts of each pair with any n-gram in common: (n_pairs,).
        self.a, self.b, self.times = a, b, times
        # For each text, the n-gram that begins at each word, -1 for one that does not count.
        self.numbers = [numbers[first:end] for first, end in pairwise(table.starts.tolist())]

    def shared_texts(self) -> list[SharedText]:
        """What each text shares with any other in runs of `n_words` or more, most shared first.

        Runs found in very many texts are ignored, as in `similar_pairs`.
        """
        ids, n_words, numbers = self.located.ids, self.n_words, self.numbers
        most = max((int(grams.max(initial=-1)) for grams in numbers), default=-1)
        n_holders = np.zeros(most + 1, np.int64)
        of_owner: dict[int, list[NDArray[np.int32]]] = {}
        for owner, grams in zip(self.owners or range(len(ids)), numbers, strict=True):
            of_owner.setdefault(owner, []).append(grams)
        for texts in of_owner.values():
            all_grams = np.concatenate(texts)
            n_holders[np.unique(all_grams[all_grams >= 0])] += 1
        is_shared = (n_holders > 1) & (n_holders <= _MAX_HOLDERS)
        partners: dict[int, list[tuple[int, int]]] = {}
        for a, b, n in zip(self.a.tolist(), self.b.tolist(), self.times.tolist(), strict=True):
            partners.setdefault(a, []).append((-n, b))
            partners.setdefault(b, []).append((-n, a))
        shared = []
        for k, (id_, grams) in enumerate(zip(ids, numbers, strict=True)):
            covered = np.zeros(len(grams) + n_words, bool)
            for i in np.flatnonzero(grams >= 0).tolist():
                if is_shared[grams[i]]:
                    covered[i : i + n_words] = True
            share = float(covered[: len(grams)].mean()) if len(grams) else 0.0
            longest, most_with = 0, None
            if k in partners:
                _, best = min(partners[k])
                runs = common_runs(grams, numbers[best], n_words)
                longest, most_with = max((n for _, _, n in runs), default=0), ids[best]
            n_others = len(partners.get(k, ()))
            shared.append(SharedText(id_, len(grams), share, longest, most_with, n_others))
        return sorted(shared, key=lambda text: (-text.share, -text.longest))

    def similar_pairs(self, n_listed: int) -> list[SimilarPair]:
        """The pairs with most words in common runs of `n_words` or more, the most similar first.

        Only the pairs that share the most n-grams of `n_words` words are examined.
        """
        located, pairs = self.located, []
        best = np.argsort(-self.times, kind="stable")[: n_listed * _N_PAIRS_LOOKED_AT]
        for a, b in zip(self.a[best].tolist(), self.b[best].tolist(), strict=True):
            places = common_runs(self.numbers[a], self.numbers[b], self.n_words)
            if not places:
                continue
            covered_a, covered_b = (np.zeros(len(self.numbers[k]), bool) for k in (a, b))
            runs = []
            for i, j, n in places:
                covered_a[i : i + n] = covered_b[j : j + n] = True
                begins = int(located.starts[a]) + i, int(located.starts[b]) + j
                runs.append(CommonRun(n, *(located.span(begin, n) for begin in begins)))
            runs.sort(key=lambda run: -run.n_words)
            shares = float(covered_a.mean()), float(covered_b.mean())
            ids = located.ids[a], located.ids[b]
            pairs.append(SimilarPair(*ids, int(covered_a.sum()), *shares, tuple(runs)))
        pairs.sort(key=lambda pair: (-pair.n_words, -pair.longest))
        return pairs[:n_listed]


def common_runs(
    a: NDArray[np.int32], b: NDArray[np.int32], n_words: int
) -> list[tuple[int, int, int]]:
    """Common runs, from left to right in A: (start in A, start in B, words).

    a, b: int32, the number of the n-gram of `n_words` that begins at each word, -1 for one that
    does not count. At each word of A the longest run of B is taken; the search continues after.
    """
    places: dict[int, list[int]] = {}
    for j in np.flatnonzero(b >= 0).tolist():
        places.setdefault(int(b[j]), []).append(j)
    mine, other = a.tolist(), b.tolist()
    runs = []
    i = 0
    while i < len(mine):
        best = where = 0
        for j in places.get(mine[i], ()) if mine[i] >= 0 else ():
            k = 1
            while i + k < len(mine) and j + k < len(other) and mine[i + k] == other[j + k] >= 0:
                k += 1
            if k > best:
                best, where = k, j
        if best:
            runs.append((i, where, best + n_words - 1))
        i += best + n_words - 1 if best else 1
    return runs
