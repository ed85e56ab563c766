"""Which differences between systems are real: Monte Carlo permutation tests between all pairs.

Roemmele, Gordon and Swanson 2017, section 5: two-sample tests, and a level divided by the number of
pairs (Bonferroni). P-values are (b + 1) / (m + 1), with b of m permutations at least as extreme as
what was seen (Phipson and Smyth 2010), so that none is 0. Beside each stands how large the
difference is, with its interval.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.permute import count_types, draw_labels, sum_chosen
from fabula.stats.compare import holm
from fabula.stats.effects import Bootstrap, Tokens, ratio_difference
from fabula.types import Estimate

__all__ = ["N_PERMUTATIONS", "PairTest", "compare_pairs"]

N_PERMUTATIONS = 10_000
# Two sums of the same numbers in another order differ by less than this share of their size.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class PairTest:
    """How A differs from B in one metric; None where one of them has no value."""

    metric: str
    a: str
    b: str
    difference: Estimate
    """A - B."""
    d: Estimate | None
    """Cohen's d; None for ratios, whose items have no values of their own."""
    p: float | None
    p_bonferroni: float | None
    p_holm: float | None
    """Both corrected over the pairs of this metric."""


def compare_pairs(
    means: Mapping[str, Mapping[str, NDArray[np.float64]]],
    ratios: Mapping[str, Mapping[str, Tokens]],
    *,
    seed: int = 0,
    n_permutations: int = N_PERMUTATIONS,
    signature: str = "",
) -> list[PairTest]:
    """Test every pair of systems in every metric.

    means: by metric and system, float64, shape (n_items,), NaN where an item has no value; item k
    of every system belongs to the same passage. ratios: by metric and system. Only items that have
    a value are dealt out again, as many to each side as it had; ratios are compared over the items
    that have tokens on both sides, since they fall with the amount of text. What has no value on
    one side is not tested.
    """
    by_metric = [*means.values(), *ratios.values()]
    systems = list(by_metric[0]) if by_metric else []
    pairs = list(combinations(systems, 2))
    bootstrap = Bootstrap(means, seed)
    p_values: dict[tuple[str, str, str], float | None] = {}
    for a, b in pairs:
        # In an order of their own, so that the order of the systems does not change the draws.
        first, second = sorted((a, b))
        for pool in _pools(means, ratios, first, second):
            found = pool.p_values(n_permutations, seed)
            p_values.update({(metric, a, b): p for metric, p in found})
    tests: list[PairTest] = []
    for metric in [*means, *ratios]:
        raw = [p_values.get((metric, a, b)) for a, b in pairs]
        n_tests = sum(p is not None for p in raw)
        for (a, b), p, p_holm in zip(pairs, raw, holm(raw), strict=True):
            if metric in means:
                difference, d = bootstrap.effect(metric, a, b, signature)
            else:
                both = _in_common(ratios[metric][a], ratios[metric][b])
                difference, d = ratio_difference(*both, signature), None
            bonferroni = None if p is None else min(1.0, p * n_tests)
            tests.append(PairTest(metric, a, b, difference, d, p, bonferroni, p_holm))
    return tests


def _in_common(a: Tokens, b: Tokens) -> tuple[Tokens, Tokens]:
    """The items that have tokens in both systems."""
    kept = (a.lengths() > 0) & (b.lengths() > 0)
    return a.take(kept), b.take(kept)


def _pools(
    means: Mapping[str, Mapping[str, NDArray[np.float64]]],
    ratios: Mapping[str, Mapping[str, Tokens]],
    a: str,
    b: str,
) -> Iterator[_Pool]:
    """The items of two systems thrown together; metrics with the same items share a pool."""
    pools: dict[tuple[bytes, bytes], _Pool] = {}

    def pool_of(kept_a: NDArray[np.bool_], kept_b: NDArray[np.bool_]) -> _Pool:
        key = kept_a.tobytes(), kept_b.tobytes()
        return pools.setdefault(key, _Pool(int(kept_a.sum()), int(kept_b.sum())))

    for metric, columns in means.items():
        kept_a, kept_b = (~np.isnan(columns[system]) for system in (a, b))
        if kept_a.any() and kept_b.any():
            pool = pool_of(kept_a, kept_b)
            pool.means[metric] = np.concatenate([columns[a][kept_a], columns[b][kept_b]])
    for metric, tokens in ratios.items():
        kept = (tokens[a].lengths() > 0) & (tokens[b].lengths() > 0)
        if kept.any():
            pool_of(kept, kept).ratios[metric] = tokens[a].take(kept), tokens[b].take(kept)
    return iter(pools.values())


class _Pool:
    """Items of two systems, the first system's before the second's."""

    def __init__(self, n_a: int, n_b: int) -> None:
        self.n_a, self.n_b = n_a, n_b
        self.means: dict[str, NDArray[np.float64]] = {}
        self.ratios: dict[str, tuple[Tokens, Tokens]] = {}

    def p_values(self, n_permutations: int, seed: int) -> Iterator[tuple[str, float]]:
        """Two-sided p-values of all metrics."""
        columns = list(self.means.values())
        shared = []
        for first, second in self.ratios.values():
            alone, n_tokens, several = _group_types(first, second, self.n_a + self.n_b)
            columns += [alone, n_tokens]
            shared.append(several)
        table = np.stack(columns)
        observed = np.zeros((1, self.n_a + self.n_b), np.uint64)
        observed[0, : self.n_a] = ~np.uint64(0)
        labels = _labels(self.n_a + self.n_b, self.n_a, -(-n_permutations // 64), seed)
        seen = self._differences(observed, table, shared)[:, 0]
        drawn = self._differences(labels, table, shared)[:, :n_permutations]
        for metric, one, others in zip([*self.means, *self.ratios], seen, drawn, strict=True):
            slack = _SLACK * max(1e-300, abs(one), float(np.abs(others).max()))
            n_extreme = np.count_nonzero(np.abs(others) >= abs(one) - slack)
            yield metric, float(n_extreme + 1) / (n_permutations + 1)

    def _differences(
        self,
        labels: NDArray[np.uint64],
        columns: NDArray[np.float64],
        shared: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> NDArray[np.float64]:
        """A - B in every metric under each labelling: float64, shape (n_metrics, 64 * n_words)."""
        chosen = sum_chosen(labels, columns)
        others = columns.sum(axis=1)[:, None] - chosen
        n_means = len(self.means)
        rows = list(chosen[:n_means] / self.n_a - others[:n_means] / self.n_b)
        for k, (items, ends) in enumerate(shared):
            types, tokens = n_means + 2 * k, n_means + 2 * k + 1
            n_shared = count_types(labels, items, ends)
            rows.append(
                (chosen[types] + n_shared[0]) / chosen[tokens]
                - (others[types] + n_shared[1]) / others[tokens]
            )
        return np.stack(rows)


@functools.lru_cache(maxsize=2)
def _labels(n_items: int, n_chosen: int, n_words: int, seed: int) -> NDArray[np.uint64]:
    """Pairs of the same sizes share their permutations: each test is valid by itself."""
    return draw_labels(n_items, n_chosen, n_words, seed)


def _group_types(
    first: Tokens, second: Tokens, n_items: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Types by the items that hold them.

    Returns how many types each item alone holds and how many tokens it has, float64, shape
    (n_items,); and for the types that several hold, those items and where each type's end.
    """
    lengths = np.concatenate([np.diff(first.ends, prepend=0), np.diff(second.ends, prepend=0)])
    items = np.repeat(np.arange(n_items), lengths)
    types = np.concatenate([first.types, second.types])
    order = np.lexsort((items, types))
    types, items = types[order], items[order]
    fresh = np.ones(len(types), np.bool_)
    fresh[1:] = (types[1:] != types[:-1]) | (items[1:] != items[:-1])
    types, items = types[fresh], items[fresh]
    begins = (
        np.flatnonzero(np.r_[True, types[1:] != types[:-1]]) if len(types) else np.empty(0, int)
    )
    n_holders = np.diff(np.r_[begins, len(types)])
    alone = np.bincount(items[begins[n_holders == 1]], minlength=n_items).astype(np.float64)
    several = np.repeat(n_holders > 1, n_holders)
    ends = np.cumsum(n_holders[n_holders > 1])
    return alone, lengths.astype(np.float64), (items[several], ends)
