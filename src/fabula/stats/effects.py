"""Effect sizes between systems, with intervals.

All systems continue the same passages, so a difference is over the passages that both have, and
these are intervals of paired differences. Passages of one chapter are correlated, the more so where
they overlap, so clusters of them are the units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.intervals import MIN_UNITS, Floats, influence_interval
from fabula.types import Estimate

_N_GROUPS = 50
_HOW = "t corrected for skewness over clusters of passages"

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


def number_clusters(clusters: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Number the clusters of these items from 0; also returns their count."""
    distinct, numbers = np.unique(clusters, return_inverse=True)
    return numbers.astype(np.int64), len(distinct)


class Effects:
    """Means of systems, and their differences, with intervals over clusters of passages.

    clusters: int64, shape (n_items,); by default each item is its own cluster.
    """

    def __init__(self, means: Means, clusters: NDArray[np.int64] | None = None) -> None:
        self._means = means
        n_items = max((len(v) for metric in means.values() for v in metric.values()), default=0)
        own = np.arange(n_items) if clusters is None else clusters
        self._clusters, _ = number_clusters(own)

    def mean(self, metric: str, system: str, signature: str) -> Estimate:
        """The mean of a system's values, with its 95 % interval."""
        column = self._means[metric][system]
        kept = ~np.isnan(column)
        values = column[kept]
        n, how = len(values), f"mean, {_HOW}"
        if not n:
            return Estimate(None, None, None, 0, how, signature, 0)
        value = float(values.mean())
        added = self._by_cluster(values - value, kept) / n
        return Estimate(value, *influence_interval(value, added), n, how, signature, len(added))

    def effect(self, metric: str, a: str, b: str, signature: str) -> tuple[Estimate, Estimate]:
        """The mean difference over the passages that both have, and their Cohen's d, each with its
        95 % interval."""
        values = [self._means[metric][system] for system in (a, b)]
        kept = ~(np.isnan(values[0]) | np.isnan(values[1]))
        first, second = (column[kept] for column in values)
        n, n_units = len(first), number_clusters(self._clusters[: len(kept)][kept])[1]
        if not n:
            nothing = Estimate(None, None, None, 0, _HOW, signature, 0)
            return nothing, nothing
        apart = first - second
        value = float(apart.mean())
        added = self._by_cluster(apart - value, kept) / n
        ends, how = influence_interval(value, added), f"mean paired difference, {_HOW}"
        difference = Estimate(value, *ends, n, how, signature, n_units)
        variances = (first - first.mean()) ** 2 + (second - second.mean()) ** 2
        pooled = float((variances.sum() / max(1, 2 * n - 2)) ** 0.5)
        if not pooled > 0:
            return difference, Estimate(None, None, None, n, _HOW, signature, n_units)
        d = value / pooled
        of_pooled = self._by_cluster(variances - variances.mean(), kept) / max(1, 2 * n - 2)
        ends = influence_interval(d, added / pooled - d * of_pooled / (2 * pooled**2))
        return difference, Estimate(d, *ends, n, f"Cohen's d, {_HOW}", signature, n_units)

    def _by_cluster(self, values: Floats, kept: NDArray[np.bool_]) -> Floats:
        numbers, n = number_clusters(self._clusters[: len(kept)][kept])
        return np.bincount(numbers, values, minlength=n).astype(np.float64)


def mean_estimates(
    means: Means, *, clusters: NDArray[np.int64] | None = None, signature: str = ""
) -> dict[tuple[str, str], Estimate]:
    """The mean of each metric and system with its 95 % interval; arguments as for
    `permutation.compare_pairs`."""
    effects = Effects(means, clusters)
    return {
        (metric, system): effects.mean(metric, system, signature)
        for metric, columns in means.items()
        for system in columns
    }


def ratio_estimate(
    tokens: Tokens, signature: str = "", *, clusters: NDArray[np.int64] | None = None
) -> Estimate:
    """The type-token ratio with its 95 % interval.

    By leaving out each of 50 groups of clusters of passages. A bootstrap would be biased: passages
    drawn twice repeat their words, which lowers the ratio.
    """
    kept = tokens.lengths() > 0
    of = tokens.take(kept)
    groups, n_units, n_groups = _deal(kept, clusters)
    ratio = of.ratio()
    left = None if ratio is None else _without_groups(of, groups, n_groups)
    return _jackknife(ratio, left, len(of.ends), n_units, "ratio", signature)


def ratio_difference(
    a: Tokens, b: Tokens, signature: str, *, clusters: NDArray[np.int64] | None = None
) -> Estimate:
    """The difference of two ratios over the items that both have, with its 95 % interval."""
    kept = (a.lengths() > 0) & (b.lengths() > 0)
    first, second = a.take(kept), b.take(kept)
    groups, n_units, n_groups = _deal(kept, clusters)
    n, what = len(first.ends), "difference of ratios"
    ratio_a, ratio_b = first.ratio(), second.ratio()
    if ratio_a is None or ratio_b is None:
        return _jackknife(None, None, n, n_units, what, signature)
    left = _without_groups(first, groups, n_groups) - _without_groups(second, groups, n_groups)
    return _jackknife(ratio_a - ratio_b, left, n, n_units, what, signature)


def _deal(
    kept: NDArray[np.bool_], clusters: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], int, int]:
    """The group of each kept item, with clusters assigned to groups in turn; the number of
    clusters, and the number of groups."""
    own = np.arange(len(kept)) if clusters is None else clusters
    numbers, n_clusters = number_clusters(own[kept])
    n_groups = max(1, min(_N_GROUPS, n_clusters))
    return numbers % n_groups, n_clusters, n_groups


def _jackknife(
    value: float | None, left: Floats | None, n: int, n_units: int, what: str, signature: str
) -> Estimate:
    """A statistic with its interval, from its values with each group left out."""
    how = f"{what}, jackknife over groups of clusters of passages"
    nothing = Estimate(value, None, None, n, how, signature, n_units)
    if value is None or left is None or n_units < MIN_UNITS or np.isnan(left).any():
        return nothing
    t = scipy("stats").t
    spread = np.sqrt((len(left) - 1) / len(left) * np.square(left - left.mean()).sum())
    if not spread:
        return nothing  # no group makes a difference, so its uncertainty is unknown
    reach = float(t.ppf(0.975, len(left) - 1) * spread)
    least = 0.0 if what == "ratio" else -1.0
    low, high = max(least, value - reach), min(1.0, value + reach)
    return Estimate(value, low, high, n, how, signature, n_units)


def _without_groups(tokens: Tokens, groups_of_items: NDArray[np.int64], n_groups: int) -> Floats:
    """The ratio with each group of items left out: float64, shape (n_groups,)."""
    groups = np.repeat(groups_of_items, tokens.lengths())
    _, numbers = np.unique(tokens.types, return_inverse=True)
    n_types = int(numbers.max(initial=-1)) + 1
    lowest, highest = np.full(n_types, n_groups), np.full(n_types, -1)
    np.minimum.at(lowest, numbers, groups)
    np.maximum.at(highest, numbers, groups)
    # Only a type that no other group holds disappears with its group.
    lost = np.bincount(lowest[lowest == highest], minlength=n_groups)
    n_left = (n_types - lost).astype(np.float64)
    left = (len(groups) - np.bincount(groups, minlength=n_groups)).astype(np.float64)
    ratios: Floats = np.divide(n_left, left, out=np.full(n_groups, np.nan), where=left > 0.5)
    return ratios
