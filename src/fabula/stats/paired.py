"""Which differences between systems are significant: permutation tests between all pairs.

All systems continue the same passages, so a test is paired: if two systems were alike, their texts
could be swapped on any passage (a sign flip of the difference). Passages of one chapter are
correlated, the more so where they overlap, so a cluster is swapped as a whole. With few enough
clusters, all permutations are tried and p is exact; otherwise p is (b + 1) / (m + 1), with b of m
random permutations at least as extreme as the observed one (Phipson and Smyth 2010), so no p is 0.
P-values are corrected over the pairs of a metric, separately for pairs with a control: a control is
a yardstick, and should not reduce the power of comparisons between systems.

The tests of Roemmele, Gordon and Swanson 2017, section 5, are of two independent samples; they are
included for comparison with the paper. Each test comes with its effect size and interval.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.types import Contrast, Estimate
from fabula.kernels.permute import count_types, draw_labels, sum_chosen
from fabula.stats import resampling
from fabula.stats.contrasts import holm, pooled_estimate
from fabula.stats.resampling import NONE, Floats, Units, estimate

_N_GROUPS = 50
_UNITS = "clusters of passages"
Design = Literal["paired", "two-sample"]
Means = Mapping[str, Mapping[str, Floats]]
"""By metric and system: float64, shape (n_items,), NaN if an item has no value. Item k belongs to
the same passage in every system."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a system's items, for a type-token ratio over all of them.

    types: int64, shape (n_tokens,), numbered identically in every system.
    ends: int64, shape (n_items,), where each item's tokens end.
    """

    types: NDArray[np.int64]
    ends: NDArray[np.int64]

    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each item: int64, shape (n_items,)."""
        return np.diff(self.ends, prepend=0)

    def take(self, kept: NDArray[np.bool_]) -> Tokens:
        """Only the items selected by a mask."""
        lengths = self.lengths()
        return Tokens(self.types[np.repeat(kept, lengths)], np.cumsum(lengths[kept]))

    def ratio(self) -> float | None:
        """Distinct tokens as a share of all; None if there are none."""
        return len(np.unique(self.types)) / len(self.types) if len(self.types) else None


def compare_pairs(
    means: Means,
    ratios: Mapping[str, Mapping[str, Tokens]],
    *,
    clusters: NDArray[np.int64] | None = None,
    controls: Collection[str] = (),
    design: Design = "paired",
    seed: int = 0,
    n_permutations: int = resampling.N_PERMUTATIONS,
    signature: str = "",
) -> list[Contrast]:
    """Test every pair of systems in every metric, over the items that both have.

    `p_adjusted` is Holm's over the pairs of a metric without a control, or over those with one.
    Details: `cohens_d` (None for ratios, which have no values per item), `p_bonferroni` over the
    same pairs, and `least`, the smallest that one could be with so many clusters and permutations.

    means: by metric and system, as in `Means`. ratios: by metric and system, for the same items.
    clusters: int64, shape (n_items,), which items are swapped together; by default each item is its
    own cluster. controls: systems whose pairs are corrected separately. A `two-sample` test
    reassigns all items, ignoring clusters. A pair without an item in common is not tested.
    """
    by_metric = [*means.values(), *ratios.values()]
    pairs = list(combinations(by_metric[0] if by_metric else (), 2))
    p_by_pair: dict[tuple[str, str, str], tuple[float, float]] = {}
    """Each p, and the smallest that its test can give."""
    for a, b in pairs:
        # Sorted, so that the order of the systems does not change the draws.
        first, second = sorted((a, b))
        for pool in _pools(means, ratios, first, second, clusters):
            p_values = pool.p_values(design, n_permutations, seed)
            p_by_pair.update({(metric, a, b): p for metric, p in p_values})
    tests: list[Contrast] = []
    for metric in [*means, *ratios]:
        # By Bonferroni, by Holm, and the smallest by Bonferroni.
        corrected: dict[tuple[str, str], tuple[float, float | None, float]] = {}
        for with_control in (False, True):
            tested = (pair for pair in pairs if (metric, *pair) in p_by_pair)
            family = [pair for pair in tested if any(s in controls for s in pair) == with_control]
            by_holm = holm([p_by_pair[metric, *pair][0] for pair in family])
            for pair, p_holm in zip(family, by_holm, strict=True):
                of_pair, smallest = (min(1.0, p * len(family)) for p in p_by_pair[metric, *pair])
                corrected[pair] = of_pair, p_holm, smallest
        for a, b in pairs:
            if metric in means:
                difference, d = _effect(means[metric][a], means[metric][b], clusters, signature)
            else:
                mine, other = ratios[metric][a], ratios[metric][b]
                difference = ratio_estimate(mine, signature, clusters=clusters, minus=other)
                d = None
            p = p_by_pair.get((metric, a, b), (None, None))[0]
            bonferroni, p_holm, least = corrected.get((a, b), (None, None, None))
            details: dict[str, Any] = {"cohens_d": d, "p_bonferroni": bonferroni, "least": least}
            test = f"permutation, {design}"
            tests.append(Contrast(metric, a, b, difference, p, p_holm, test, details=details))
    return tests


def mean_estimates(
    means: Means, *, clusters: NDArray[np.int64] | None = None, signature: str = ""
) -> dict[tuple[str, str], Estimate]:
    """Each metric's and system's mean with its 95 % interval; arguments as for `compare_pairs`."""
    return {
        (metric, system): _mean(column, clusters, "mean", signature)
        for metric, columns in means.items()
        for system, column in columns.items()
    }


def _mean(values: Floats, clusters: NDArray[np.int64] | None, of: str, signature: str) -> Estimate:
    """Of the values that are not NaN, over clusters."""
    kept = ~np.isnan(values)
    units = np.flatnonzero(kept) if clusters is None else clusters[: len(kept)][kept]
    how = f"{of} over {_UNITS}"
    return pooled_estimate(
        values[kept], np.ones(len(units)), units.tolist(), method=how, signature=signature
    )


def _effect(
    a: Floats, b: Floats, clusters: NDArray[np.int64] | None, signature: str
) -> tuple[Estimate, Estimate]:
    """The mean difference over the passages of both, and Cohen's d, each with its 95 % interval."""
    gaps = a - b
    difference = _mean(gaps, clusters, "mean paired difference", signature)
    kept = ~np.isnan(gaps)
    first, second, gaps = a[kept], b[kept], gaps[kept]
    n, d, ends = len(gaps), None, NONE
    if n:
        value, below = float(gaps.mean()), max(1, 2 * n - 2)
        variances = (first - first.mean()) ** 2 + (second - second.mean()) ** 2
        pooled = float((variances.sum() / below) ** 0.5)
        if pooled > 0:
            units = Units.by(np.arange(len(kept)) if clusters is None else clusters[: len(kept)])
            units = units.take(kept)
            added = units.sums(gaps - value) / n
            of_pooled = units.sums(variances - variances.mean())
            d = value / pooled
            added = added / pooled - d * of_pooled / below / (2 * pooled**2)
            ends = resampling.influence_interval(d, added)
    n_units = difference.n_units or 0
    how = f"Cohen's d over {_UNITS}"
    by = resampling.STUDENT
    return difference, estimate(d, ends, n, n_units, of=how, by=by, signature=signature)


def ratio_estimate(
    tokens: Tokens,
    signature: str = "",
    *,
    clusters: NDArray[np.int64] | None = None,
    minus: Tokens | None = None,
) -> Estimate:
    """The type-token ratio, or the difference of two over shared items, with its 95 % interval.

    By leaving out each of 50 groups of clusters of passages. A bootstrap would be biased: passages
    drawn twice repeat their words, which lowers the ratio.
    """
    sides = [tokens] if minus is None else [tokens, minus]
    kept = np.logical_and.reduce([side.lengths() > 0 for side in sides])
    units = Units.by(np.arange(len(kept)) if clusters is None else clusters).take(kept)
    n_groups = max(1, min(_N_GROUPS, units.n))
    values, left_out = [], []
    for side in sides:
        mine = side.take(kept)
        values.append(mine.ratio())
        groups = np.repeat(units.of % n_groups, mine.lengths())
        _, numbers = np.unique(mine.types, return_inverse=True)
        n_types = int(numbers.max(initial=-1)) + 1
        lowest, highest = np.full(n_types, n_groups), np.full(n_types, -1)
        np.minimum.at(lowest, numbers, groups)
        np.maximum.at(highest, numbers, groups)
        # Only a type that no other group holds disappears with its group.
        lost = np.bincount(lowest[lowest == highest], minlength=n_groups)
        n_left = (n_types - lost).astype(np.float64)
        n_tokens = (len(groups) - np.bincount(groups, minlength=n_groups)).astype(np.float64)
        nothing = np.full(n_groups, np.nan)
        left_out.append(np.divide(n_left, n_tokens, out=nothing, where=n_tokens > 0.5))
    value, ends, without = values[0], NONE, left_out[0]
    what, least = "ratio", 0.0
    if minus is not None:
        what, least, without = "difference of ratios", -1.0, left_out[0] - left_out[1]
        value = None if value is None or values[1] is None else value - values[1]
    error = resampling.jackknife_error(without)
    if value is not None and units.n >= resampling.MIN_UNITS and error is not None:
        half = resampling.reach(error, n_groups)
        ends = max(least, value - half), min(1.0, value + half)
    how = f"{what} over groups of {_UNITS}"
    n = int(kept.sum())
    return estimate(value, ends, n, units.n, of=how, by=resampling.JACKKNIFE, signature=signature)


def _pools(
    means: Means,
    ratios: Mapping[str, Mapping[str, Tokens]],
    a: str,
    b: str,
    clusters: NDArray[np.int64] | None,
) -> Iterator[_Pool]:
    """The items that two systems have in common; metrics with the same items share a pool."""
    pools: dict[bytes, _Pool] = {}

    def pool_of(kept: NDArray[np.bool_]) -> _Pool:
        units = np.arange(len(kept)) if clusters is None else clusters
        return pools.setdefault(kept.tobytes(), _Pool(units[kept]))

    for metric, columns in means.items():
        kept = ~(np.isnan(columns[a]) | np.isnan(columns[b]))
        if kept.any():
            pool_of(kept).means[metric] = np.concatenate([columns[a][kept], columns[b][kept]])
    for metric, tokens in ratios.items():
        kept = (tokens[a].lengths() > 0) & (tokens[b].lengths() > 0)
        if kept.any():
            pool_of(kept).ratios[metric] = tokens[a].take(kept), tokens[b].take(kept)
    return iter(pools.values())


class _Pool:
    """Items of two systems, the first system's before the second's."""

    def __init__(self, clusters: NDArray[np.int64]) -> None:
        self.n, self.units = len(clusters), Units.by(clusters)
        self.means: dict[str, Floats] = {}
        self.ratios: dict[str, tuple[Tokens, Tokens]] = {}

    def p_values(
        self, design: Design, n_permutations: int, seed: int
    ) -> Iterator[tuple[str, tuple[float, float]]]:
        """Two-sided p-values of all metrics, each with the smallest that is possible."""
        columns = list(self.means.values())
        shared = []
        for first, second in self.ratios.values():
            # Types by the items that hold them: how many only this item holds, its number of
            # tokens, and for types that several items hold, those items and where each type's end.
            sides = np.diff(first.ends, prepend=0), np.diff(second.ends, prepend=0)
            lengths = np.concatenate(sides)
            items = np.repeat(np.arange(2 * self.n), lengths)
            types = np.concatenate([first.types, second.types])
            order = np.lexsort((items, types))
            types, items = types[order], items[order]
            fresh = np.ones(len(types), np.bool_)
            fresh[1:] = (types[1:] != types[:-1]) | (items[1:] != items[:-1])
            types, items = types[fresh], items[fresh]
            begins = np.flatnonzero(np.r_[True, types[1:] != types[:-1]][: len(types)])
            n_holders = np.diff(np.r_[begins, len(types)])
            n_alone = np.bincount(items[begins[n_holders == 1]], minlength=2 * self.n)
            columns += [n_alone.astype(np.float64), lengths.astype(np.float64)]
            several = np.repeat(n_holders > 1, n_holders)
            shared.append((items[several], np.cumsum(n_holders[n_holders > 1])))
        table = np.stack(columns)
        observed = np.zeros((1, 2 * self.n), np.uint64)
        observed[0, : self.n] = ~np.uint64(0)
        seen = self._differences(observed, table, shared)[:, 0]
        if design == "two-sample":
            n_words, n_ways, is_exact = -(-n_permutations // 64), n_permutations, False
            labels = _drawn_labels(2 * self.n, self.n, n_words, seed)
        else:
            signs, n_ways, is_exact = _signs(self.units.n, n_permutations, seed)
            mine = signs[:, self.units.of]
            labels = np.concatenate([mine, ~mine], axis=1)
        drawn = self._differences(labels, table, shared)[:, :n_ways]
        # The observed labelling is one of all, but not one of those drawn.
        more = 0 if is_exact else 1
        for metric, statistic, others in zip([*self.means, *self.ratios], seen, drawn, strict=True):
            slack = resampling.SLACK * max(1e-300, abs(statistic), float(np.abs(others).max()))
            n_extreme = np.count_nonzero(np.abs(others) >= abs(statistic) - slack)
            yield metric, (float(n_extreme + more) / (n_ways + more), 1 / (n_ways + more))

    def _differences(
        self,
        labels: NDArray[np.uint64],
        columns: Floats,
        shared: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> Floats:
        """A - B for each metric and labelling: float64, shape (n_metrics, 64 * n_words)."""
        chosen = sum_chosen(labels, columns)
        others = columns.sum(axis=1)[:, None] - chosen
        n_means = len(self.means)
        rows = list((chosen[:n_means] - others[:n_means]) / self.n)
        for k, (items, ends) in enumerate(shared):
            types, tokens = n_means + 2 * k, n_means + 2 * k + 1
            n_shared = count_types(labels, items, ends)
            rows.append(
                (chosen[types] + n_shared[0]) / chosen[tokens]
                - (others[types] + n_shared[1]) / others[tokens]
            )
        return np.stack(rows)


@functools.lru_cache(maxsize=2)
def _signs(n_clusters: int, n_permutations: int, seed: int) -> tuple[NDArray[np.uint64], int, bool]:
    """Which clusters are not swapped: uint64, shape (n_words, n_clusters), one bit per permutation;
    the number of permutations; and whether they are all.

    Opposite permutations are equivalent in a two-sided test, so if all are tried the first cluster
    is never swapped. Pairs with as many clusters share permutations, which leaves each test valid.
    """
    if n_clusters - 1 <= np.log2(n_permutations):
        n_ways = 1 << (n_clusters - 1)
        ways = np.arange(64 * -(-n_ways // 64))
        stays = np.ones((len(ways), n_clusters), np.uint64)
        stays[:, 1:] = ~(ways[:, None] >> np.arange(n_clusters - 1)) & 1
        bits = stays.reshape(-1, 64, n_clusters) << np.arange(64, dtype=np.uint64)[:, None]
        return np.bitwise_or.reduce(bits, axis=1), n_ways, True
    rng = np.random.default_rng([seed, 3])
    n_words = -(-n_permutations // 64)
    return rng.integers(1 << 64, size=(n_words, n_clusters), dtype=np.uint64), n_permutations, False


_drawn_labels = functools.lru_cache(maxsize=2)(draw_labels)
"""Pairs of the same sizes share permutations, which leaves each test valid."""
