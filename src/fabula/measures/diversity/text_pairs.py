"""Similar pairs: the texts that have the most words in common, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.ngram_counts import count_pairs
from fabula.measures.diversity.shared_ngrams import Located, WordTable
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


class PairTable:
    """The n-grams of `n_words` words in texts, and how many each two of these have in common.

    owners: a number for each text; texts with the same number are not compared with each other.
    """

    def __init__(
        self, located: Located, table: WordTable, n_words: int, owners: Sequence[int] | None = None
    ) -> None:
        *_, (ngrams, numbers) = table.ngrams(n_words)
        n_holders = np.diff(ngrams.ends, prepend=0)
        max_holders = _MAX_HOLDERS
        while max_holders > 2:
            some = n_holders[n_holders <= max_holders]
            if int((some * (some - 1) // 2).sum()) <= _MAX_PAIRS:
                break
            max_holders //= 2
        # Each pair of texts is encoded as one number.
        keys, times = np.unique(
            count_pairs(ngrams.ends, ngrams.texts, max_holders), return_counts=True
        )
        a, b = keys >> 32, keys & 0xFFFFFFFF
        if owners is not None:
            owner = np.array(owners, np.int64)
            kept = owner[a] != owner[b]
            a, b, times = a[kept], b[kept], times[kept]
        self.located, self.n_words, self.owners = located, n_words, owners
        # The texts of each pair with any n-gram in common: (n_pairs,).
        self.a, self.b, self.times = a, b, times
        # For each text, the n-gram that begins at each word, -1 for one that does not count.
        bounds = pairwise(table.starts.tolist())
        self.numbers = [numbers[first:end] for first, end in bounds]

    def shared_texts(self) -> list[SharedText]:
        """What each text shares with any other in runs of `n_words` or more, most shared first.

        Runs found in very many texts are ignored, as in `similar_pairs`.
        """
        ids, n_words, numbers = self.located.ids, self.n_words, self.numbers
        most = max((int(own.max(initial=-1)) for own in numbers), default=-1)
        n_holders = np.zeros(most + 1, np.int64)
        of_owner: dict[int, list[NDArray[np.int32]]] = {}
        for owner, own in zip(self.owners or range(len(ids)), numbers, strict=True):
            of_owner.setdefault(owner, []).append(own)
        for several in of_owner.values():
            held = np.concatenate(several)
            n_holders[np.unique(held[held >= 0])] += 1
        is_shared = (n_holders > 1) & (n_holders <= _MAX_HOLDERS)
        partners: dict[int, list[tuple[int, int]]] = {}
        for a, b, n in zip(self.a.tolist(), self.b.tolist(), self.times.tolist(), strict=True):
            partners.setdefault(a, []).append((-n, b))
            partners.setdefault(b, []).append((-n, a))
        shared = []
        for k, (id_, own) in enumerate(zip(ids, numbers, strict=True)):
            covered = np.zeros(len(own) + n_words, bool)
            for i in np.flatnonzero(own >= 0).tolist():
                if is_shared[own[i]]:
                    covered[i : i + n_words] = True
            share = float(covered[: len(own)].mean()) if len(own) else 0.0
            longest, most_with = 0, None
            if k in partners:
                _, best = min(partners[k])
                runs = common_runs(own, numbers[best], n_words)
                longest, most_with = max((n for _, _, n in runs), default=0), ids[best]
            n_others = len(partners.get(k, ()))
            shared.append(SharedText(id_, len(own), share, longest, most_with, n_others))
        return sorted(shared, key=lambda one: (-one.share, -one.longest))

    def similar_pairs(self, n_listed: int) -> list[SimilarPair]:
        """The pairs with most words in common runs of `n_words` or more, the most similar first.

        Only the pairs that share the most n-grams of `n_words` words are examined.
        """
        located, pairs = self.located, []
        best = np.argsort(-self.times, kind="stable")[: n_listed * _N_LOOKED_AT]
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
