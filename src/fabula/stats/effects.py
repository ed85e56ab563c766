"""Effect sizes between systems, with intervals.

All systems continue the same passages, so a difference is over the passages that both have, and
resampling draws the same passages for both: these are intervals of paired differences. Passages of
one chapter are correlated, the more so where they overlap, so whole clusters of them are drawn.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.resample import MIN_UNITS, percentile_interval
from fabula.types import Estimate

_N_RESAMPLES = 2_000
_N_GROUPS = 50
# If one resample in a hundred has no value, there are too few items for an interval.
_MIN_KNOWN = 0.99

Means = Mapping[str, Mapping[str, NDArray[np.float64]]]
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


def _divide(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quotients of sums by counts, NaN if a count is 0."""
    quotient: NDArray[np.float64] = np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0.5)
    return quotient


@functools.lru_cache(maxsize=1)
def _resampled_weights(n_clusters: int, seed: int) -> NDArray[np.float64]:
    """How often each resample draws each cluster: float64, shape (n_resamples, n_clusters)."""
    rng = np.random.default_rng([seed, 2])
    weights = np.empty((_N_RESAMPLES, n_clusters))
    for row in weights:
        row[:] = np.bincount(rng.integers(n_clusters, size=n_clusters), minlength=n_clusters)
    return weights


class Bootstrap:
    """Means and deviations of each system over clusters of passages drawn with replacement.

    All systems are resampled by the same clusters, since they continue the same passages.
    clusters: int64, shape (n_items,); by default each item is its own cluster.
    """

    def __init__(self, means: Means, seed: int, clusters: NDArray[np.int64] | None = None) -> None:
        self._means = means
        n_items = max((len(v) for metric in means.values() for v in metric.values()), default=0)
        own = np.arange(n_items) if clusters is None else clusters
        self._clusters, self._n_clusters = number_clusters(own)
        self._weights = _resampled_weights(self._n_clusters, seed)
        self._known: dict[
            tuple[str, str, bytes], tuple[NDArray[np.float64], NDArray[np.float64]]
        ] = {}

    def mean(self, metric: str, system: str, signature: str) -> Estimate:
        """The mean of a system's values, with its 95 % interval."""
        column = self._means[metric][system]
        kept = ~np.isnan(column)
        n, n_units = int(kept.sum()), self._n_units(kept)
        how = "mean, percentile bootstrap over clusters of passages"
        if not n:
            return Estimate(None, None, None, 0, how, signature, 0)
        means = self._resampled(metric, system, kept)[0]
        ends = percentile_interval(means, n_units, min_known=_MIN_KNOWN)
        return Estimate(float(column[kept].mean()), *ends, n, how, signature, n_units)

    def effect(self, metric: str, a: str, b: str, signature: str) -> tuple[Estimate, Estimate]:
        """The mean difference over the passages that both have, and their Cohen's d, each with its
        95 % interval."""
        values = [self._means[metric][system] for system in (a, b)]
        kept = ~(np.isnan(values[0]) | np.isnan(values[1]))
        n, n_units = int(kept.sum()), self._n_units(kept)
        how = "percentile bootstrap over clusters of passages"
        nothing = Estimate(None, None, None, n, how, signature, n_units)
        if not n:
            return nothing, nothing
        first, second = (column[kept] for column in values)
        value = float((first - second).mean())
        (mean_a, var_a), (mean_b, var_b) = (self._resampled(metric, s, kept) for s in (a, b))
        differences = mean_a - mean_b
        ends = percentile_interval(differences, n_units, min_known=_MIN_KNOWN)
        what = f"mean paired difference, {how}"
        difference = Estimate(value, *ends, n, what, signature, n_units)
        pooled = float(_pooled(np.array([first.var()]), np.array([second.var()]), n)[0])
        if not pooled > 0:
            return difference, nothing
        with np.errstate(divide="ignore", invalid="ignore"):
            ds = differences / _pooled(var_a, var_b, n)
        ends = percentile_interval(ds, n_units, min_known=_MIN_KNOWN)
        return difference, Estimate(
            value / pooled, *ends, n, f"Cohen's d, {how}", signature, n_units
        )

    def _n_units(self, kept: NDArray[np.bool_]) -> int:
        return number_clusters(self._clusters[: len(kept)][kept])[1]

    def _resampled(
        self, metric: str, system: str, kept: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of these items in each resample, float64, shape (n_resamples,)."""
        key = metric, system, kept.tobytes()
        if key not in self._known:
            column = self._means[metric][system][kept]
            clusters = self._clusters[: len(kept)][kept]
            centre = float(column.mean())
            centred = column - centre
            columns = np.stack(
                [
                    np.bincount(clusters, part, minlength=self._n_clusters)
                    for part in (np.ones(len(column)), centred, centred**2)
                ],
                axis=1,
            )
            n, total, squares = (self._weights @ columns).T
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = total / n
                variance = squares / n - mean**2
            self._known[key] = mean + centre, np.maximum(variance, 0)
        return self._known[key]


def _pooled(var_a: NDArray[np.float64], var_b: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The pooled standard deviation of two groups of n, from their variances over n."""
    deviation: NDArray[np.float64] = np.sqrt(n * (var_a + var_b) / max(1, 2 * n - 2))
    return deviation


def mean_estimates(
    means: Means,
    *,
    clusters: NDArray[np.int64] | None = None,
    seed: int = 0,
    signature: str = "",
) -> dict[tuple[str, str], Estimate]:
    """The mean of each metric and system with its 95 % interval; arguments as for
    `permutation.compare_pairs`."""
    bootstrap = Bootstrap(means, seed, clusters)
    return {
        (metric, system): bootstrap.mean(metric, system, signature)
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
    value: float | None,
    left: NDArray[np.float64] | None,
    n: int,
    n_units: int,
    what: str,
    signature: str,
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


def _without_groups(
    tokens: Tokens, groups_of_items: NDArray[np.int64], n_groups: int
) -> NDArray[np.float64]:
    """The ratio with each group of items left out: float64, shape (n_groups,)."""
    groups = np.repeat(groups_of_items, tokens.lengths())
    _, numbers = np.unique(tokens.types, return_inverse=True)
    n_types = int(numbers.max(initial=-1)) + 1
    lowest, highest = np.full(n_types, n_groups), np.full(n_types, -1)
    np.minimum.at(lowest, numbers, groups)
    np.maximum.at(highest, numbers, groups)
    # Only a type that no other group holds disappears with its group.
    lost = np.bincount(lowest[lowest == highest], minlength=n_groups)
    left = len(groups) - np.bincount(groups, minlength=n_groups)
    return _divide((n_types - lost).astype(np.float64), left.astype(np.float64))
