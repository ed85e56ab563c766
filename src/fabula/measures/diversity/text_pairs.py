"""Similar pairs: the texts that have the most words in common, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.ngram_counts import count_pairs
from fabula.measures.diversity.shared_ngrams import Ngrams, WordTable
from fabula.text import TextWords
from fabula.types import Span

_MAX_HOLDERS = 200
"""Runs in more texts than this are common phrases, and do not make a pair."""
_MAX_PAIRS = 50_000_000
_N_LOOKED_AT = 20
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
            "a": self.a,
            "b": self.b,
            "n_words": self.n_words,
            "longest_run": self.longest,
            "share_a": self.share_a,
            "share_b": self.share_b,
            "runs": [
                {
                    "n_words": run.n_words,
                    "a": {"start": run.a.start, "end": run.a.end},
                    "b": {"start": run.b.start, "end": run.b.end},
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


def shared_texts(
    ids: Sequence[str], table: WordTable, n_words: int, owners: Sequence[int] | None = None
) -> list[SharedText]:
    """What each text shares with any other in runs of `n_words` or more, most shared first.

    owners: a number for each text; texts with the same number are not compared with each other.
    Runs found in very many texts are ignored, as in `similar_pairs`.
    """
    *_, (ngrams, numbers) = table.ngrams(n_words)
    own = [numbers[a:b] for a, b in pairwise(table.starts[: len(ids) + 1].tolist())]
    n_holders = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    of_owner: dict[int, list[NDArray[np.int32]]] = {}
    for owner, mine in zip(owners or range(len(ids)), own, strict=True):
        of_owner.setdefault(owner, []).append(mine)
    for several in of_owner.values():
        held = np.concatenate(several)
        n_holders[np.unique(held[held >= 0])] += 1
    is_shared = (n_holders > 1) & (n_holders <= _MAX_HOLDERS)
    keys, times = _counted_pairs(ngrams, owners)
    partners: dict[int, list[tuple[int, int]]] = {}
    for key, n in zip(keys.tolist(), times.tolist(), strict=True):
        a, b = key >> 32, key & 0xFFFFFFFF
        partners.setdefault(a, []).append((-n, b))
        partners.setdefault(b, []).append((-n, a))
    found = []
    for k, (id_, mine) in enumerate(zip(ids, own, strict=True)):
        covered = np.zeros(len(mine) + n_words, bool)
        for i in np.flatnonzero(mine >= 0).tolist():
            if is_shared[mine[i]]:
                covered[i : i + n_words] = True
        _, best = min(partners.get(k, [(0, -1)]))
        longest = 0
        if best >= 0:
            longest = max((n for _, _, n in common_runs(mine, own[best], n_words)), default=0)
        share = float(covered[: len(mine)].mean()) if len(mine) else 0.0
        found.append(
            SharedText(
                id_,
                len(mine),
                share,
                longest,
                ids[best] if best >= 0 else None,
                len(partners.get(k, ())),
            )
        )
    return sorted(found, key=lambda one: (-one.share, -one.longest))


def similar_pairs(
    ids: Sequence[str],
    located: Sequence[TextWords],
    table: WordTable,
    n_words: int,
    n_listed: int,
    owners: Sequence[int] | None = None,
) -> list[SimilarPair]:
    """The pairs with most words in common runs of `n_words` or more, the most similar first.

    located: the words of each text of the table. owners: as for `shared_texts`. Only the pairs that
    share the most n-grams of `n_words` words are examined.
    """
    *_, (ngrams, numbers) = table.ngrams(n_words)
    keys, times = _counted_pairs(ngrams, owners)
    best = np.argsort(-times, kind="stable")[: n_listed * _N_LOOKED_AT]
    pairs = []
    for a, b in zip((keys[best] >> 32).tolist(), (keys[best] & 0xFFFFFFFF).tolist(), strict=True):
        mine = numbers[table.starts[a] : table.starts[a + 1]]
        other = numbers[table.starts[b] : table.starts[b + 1]]
        runs = common_runs(mine, other, n_words)
        if not runs:
            continue
        covered_a, covered_b = (np.zeros(len(located[k].words), bool) for k in (a, b))
        found = []
        for i, j, n in runs:
            covered_a[i : i + n] = covered_b[j : j + n] = True
            places = _span(ids[a], located[a], i, n), _span(ids[b], located[b], j, n)
            found.append(CommonRun(n, *places))
        found.sort(key=lambda run: -run.n_words)
        shares = float(covered_a.mean()), float(covered_b.mean())
        pairs.append(SimilarPair(ids[a], ids[b], int(covered_a.sum()), *shares, tuple(found)))
    pairs.sort(key=lambda pair: (-pair.n_words, -pair.longest))
    return pairs[:n_listed]


def _counted_pairs(
    ngrams: Ngrams, owners: Sequence[int] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each pair of texts with n-grams in common, encoded as one number, and how many."""
    n_holders = np.diff(ngrams.ends, prepend=0)
    max_holders = _MAX_HOLDERS
    while max_holders > 2:
        some = n_holders[n_holders <= max_holders]
        if int((some * (some - 1) // 2).sum()) <= _MAX_PAIRS:
            break
        max_holders //= 2
    pairs = count_pairs(ngrams.ends, ngrams.texts, max_holders)
    keys, times = np.unique(pairs, return_counts=True)
    if owners is not None:
        owner = np.array(owners, np.int64)
        is_other = owner[keys >> 32] != owner[keys & 0xFFFFFFFF]
        keys, times = keys[is_other], times[is_other]
    return keys, times


def common_runs(
    a: NDArray[np.int32], b: NDArray[np.int32], n_words: int
) -> list[tuple[int, int, int]]:
    """Common runs, from left to right in A: (start in A, start in B, words).

    a, b: int32, the number of the n-gram of `n_words` that begins at each word, -1 for one that
    does not count. At each word of A the longest run of B is taken, and the search continues after
    it.
    """
    places: dict[int, list[int]] = {}
    for j in np.flatnonzero(b >= 0).tolist():
        places.setdefault(int(b[j]), []).append(j)
    mine, other = a.tolist(), b.tolist()
    runs = []
    i = 0
    while i < len(mine):
        best = 0
        where = 0
        for j in places.get(mine[i], ()) if mine[i] >= 0 else ():
            k = 1
            while i + k < len(mine) and j + k < len(other) and mine[i + k] == other[j + k] >= 0:
                k += 1
            if k > best:
                best, where = k, j
        if best:
            runs.append((i, where, best + n_words - 1))
            i += best + n_words - 1
        else:
            i += 1
    return runs


def _span(document: str, words: TextWords, first: int, n_words: int) -> Span:
    return Span(document, int(words.starts[first]), int(words.ends[first + n_words - 1]))
