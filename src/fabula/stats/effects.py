"""How large differences between systems are, with intervals.

All systems continue the same passages, so passages are resampled, for all systems at once: these
intervals are of paired differences, narrower than unpaired ones where systems do well on the same
passages. Fewer than ten values have no interval: resampling them says too little.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.stats.resample import percentile_interval
from fabula.types import Estimate

__all__ = [
    "Bootstrap",
    "Tokens",
    "mean_estimates",
    "ratio_difference",
    "ratio_estimate",
]

_N_RESAMPLES = 2_000
_N_GROUPS = 50
_MIN_VALUES = 10


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a system's items, for a ratio of types to tokens over all of them.

    types: int64, shape (n_tokens,), numbers that mean the same in every system.
    ends: int64, shape (n_items,), where each item's tokens end.
    """

    types: NDArray[np.int64]
    ends: NDArray[np.int64]

    def lengths(self) -> NDArray[np.int64]:
        """How many tokens each item has: int64, shape (n_items,)."""
        return np.diff(self.ends, prepend=0)

    def take(self, kept: NDArray[np.bool_]) -> Tokens:
        """The items of a mask alone."""
        lengths = self.lengths()
        return Tokens(self.types[np.repeat(kept, lengths)], np.cumsum(lengths[kept]))

    def ratio(self) -> float | None:
        """Different tokens as a share of all; None where there is none."""
        return len(np.unique(self.types)) / len(self.types) if len(self.types) else None


def _divide(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quotients of sums by counts, NaN where a count is 0."""
    quotient: NDArray[np.float64] = np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0.5)
    return quotient


@functools.lru_cache(maxsize=1)
def _resampled_weights(n_items: int, seed: int) -> NDArray[np.float64]:
    """How often each resample holds each item: float64, shape (n_resamples, n_items)."""
    rng = np.random.default_rng([seed, 2])
    weights = np.empty((_N_RESAMPLES, n_items))
    for row in weights:
        row[:] = np.bincount(rng.integers(n_items, size=n_items), minlength=n_items)
    return weights


class Bootstrap:
    """Means and deviations of each system over passages drawn with replacement.

    All systems are resampled by the same passages, since they continue the same ones.
    """

    def __init__(self, means: Mapping[str, Mapping[str, NDArray[np.float64]]], seed: int) -> None:
        self._means = means
        n_items = max((len(v) for metric in means.values() for v in metric.values()), default=0)
        self._weights = _resampled_weights(n_items, seed)
        self._known: dict[tuple[str, str], tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def mean(self, metric: str, system: str, signature: str) -> Estimate:
        """The mean of a system's values, with its 95 % interval."""
        column = self._means[metric][system]
        known = column[~np.isnan(column)]
        how = "mean, percentile bootstrap over passages"
        if not len(known):
            return Estimate(None, None, None, 0, how, signature)
        low_high = _interval(self._resampled(metric, system)[0], len(known))
        return Estimate(float(known.mean()), *low_high, len(known), how, signature)

    def effect(self, metric: str, a: str, b: str, signature: str) -> tuple[Estimate, Estimate]:
        """The difference of the means, and Cohen's d, each with its 95 % interval."""
        values = [self._means[metric][system] for system in (a, b)]
        known = [column[~np.isnan(column)] for column in values]
        n, n_least = sum(map(len, known)), min(map(len, known))
        how = "percentile bootstrap over passages"
        nothing = Estimate(None, None, None, n, how, signature)
        if not n_least:
            return nothing, nothing
        (mean_a, var_a), (mean_b, var_b) = (self._resampled(metric, s) for s in (a, b))
        differences = mean_a - mean_b
        difference = float(known[0].mean() - known[1].mean())
        d: float | None = None
        first, second = (np.array([column.var()]) for column in known)
        pooled = _pooled(first, second, *map(len, known))[0]
        if pooled > 0:
            d = difference / float(pooled)
        with np.errstate(divide="ignore", invalid="ignore"):
            ds = differences / _pooled(var_a, var_b, *map(len, known))
        return (
            Estimate(
                difference,
                *_interval(differences, n_least),
                n,
                f"difference of means, {how}",
                signature,
            ),
            nothing
            if d is None
            else Estimate(d, *_interval(ds, n_least), n, f"Cohen's d, {how}", signature),
        )

    def _resampled(
        self, metric: str, system: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of each resample, float64, shape (n_resamples,)."""
        if (metric, system) not in self._known:
            column = self._means[metric][system]
            known = ~np.isnan(column)
            centre = float(column[known].mean())
            centred = np.where(known, column - centre, 0.0)
            columns = np.stack([known.astype(np.float64), centred, centred**2], axis=1)
            n, total, squares = (self._weights[:, : len(column)] @ columns).T
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = total / n
                variance = squares / n - mean**2
            self._known[metric, system] = mean + centre, np.maximum(variance, 0)
        return self._known[metric, system]


def _pooled(
    var_a: NDArray[np.float64], var_b: NDArray[np.float64], n_a: int, n_b: int
) -> NDArray[np.float64]:
    """The pooled standard deviation of two groups, from their variances over n."""
    both = max(1, n_a + n_b - 2)
    deviation: NDArray[np.float64] = np.sqrt((n_a * var_a + n_b * var_b) / both)
    return deviation


def _interval(resamples: NDArray[np.float64], n_values: int) -> tuple[float | None, float | None]:
    finite = resamples[np.isfinite(resamples)]
    if n_values < _MIN_VALUES:
        return None, None
    # A resample without a value says that there are too few items for an interval.
    return percentile_interval(finite) if len(finite) > 0.99 * len(resamples) else (None, None)


def mean_estimates(
    means: Mapping[str, Mapping[str, NDArray[np.float64]]], *, seed: int = 0, signature: str = ""
) -> dict[tuple[str, str], Estimate]:
    """The mean of each metric and system with its 95 % interval; arguments as for
    `permutation.compare_pairs`."""
    bootstrap = Bootstrap(means, seed)
    return {
        (metric, system): bootstrap.mean(metric, system, signature)
        for metric, columns in means.items()
        for system in columns
    }


def ratio_estimate(tokens: Tokens, signature: str = "") -> Estimate:
    """The ratio of types to tokens with its 95 % interval.

    By leaving out each of 50 groups of passages. The bootstrap would not do: passages drawn twice
    repeat their words, which lowers the ratio.
    """
    ratio = tokens.ratio()
    left = None if ratio is None else _without_groups(tokens, _n_groups(tokens))
    return _jackknife(ratio, left, len(tokens.ends), "ratio", signature)


def ratio_difference(a: Tokens, b: Tokens, signature: str) -> Estimate:
    """The difference of two ratios with its 95 % interval, by the same groups."""
    n_groups = min(_n_groups(a), _n_groups(b))
    n, what = len(a.ends) + len(b.ends), "difference of ratios"
    ratio_a, ratio_b = a.ratio(), b.ratio()
    if ratio_a is None or ratio_b is None:
        return _jackknife(None, None, n, what, signature)
    left = _without_groups(a, n_groups) - _without_groups(b, n_groups)
    return _jackknife(ratio_a - ratio_b, left, n, what, signature)


def _n_groups(tokens: Tokens) -> int:
    return min(_N_GROUPS, len(tokens.ends))


def _jackknife(
    value: float | None, left: NDArray[np.float64] | None, n: int, what: str, signature: str
) -> Estimate:
    """A statistic with its interval from its values without each group."""
    how = f"{what}, jackknife over groups of passages"
    nothing = Estimate(value, None, None, n, how, signature)
    if value is None or left is None or len(left) < _MIN_VALUES or np.isnan(left).any():
        return nothing
    from scipy.stats import t

    spread = np.sqrt((len(left) - 1) / len(left) * np.square(left - left.mean()).sum())
    if not spread:
        return nothing  # no group makes a difference, which says nothing of how sure it is
    reach = float(t.ppf(0.975, len(left) - 1) * spread)
    least = 0.0 if what == "ratio" else -1.0
    return Estimate(value, max(least, value - reach), min(1.0, value + reach), n, how, signature)


def _without_groups(tokens: Tokens, n_groups: int) -> NDArray[np.float64]:
    """The ratio without each group of items; items are dealt to the groups in turn."""
    lengths = tokens.lengths()
    groups = np.repeat(np.arange(len(lengths)) % n_groups, lengths)
    _, numbers = np.unique(tokens.types, return_inverse=True)
    n_types = int(numbers.max(initial=-1)) + 1
    lowest, highest = np.full(n_types, n_groups), np.full(n_types, -1)
    np.minimum.at(lowest, numbers, groups)
    np.maximum.at(highest, numbers, groups)
    # Only a type that no other group holds goes with its group.
    lost = np.bincount(lowest[lowest == highest], minlength=n_groups)
    left = len(groups) - np.bincount(groups, minlength=n_groups)
    return _divide((n_types - lost).astype(np.float64), left.astype(np.float64))
