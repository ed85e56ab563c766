"""Intervals by resampling, and when there are none.

A bootstrap of few units is unreliable: with two it can only give one, the other, or their mean, and
its 95 % intervals cover the truth far less often than that. So one rule applies everywhere, in one
function: no interval from fewer than `MIN_UNITS` independent units.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_UNITS = 10
"""Minimum number of independent units (texts, stories, prompts, chapters) for an interval."""

N_RESAMPLES = 10_000
_BLOCK = 1 << 22
_MANY = 100_000
"""Number of rows whose mean is normal to within 0.002 times the skewness in probability: by Berry
and Esseen the error is below 0.48 times the third absolute moment, over the root of the number."""


def bootstrap_means(
    values: NDArray[np.float64], rng: np.random.Generator, n_resamples: int = N_RESAMPLES
) -> NDArray[np.float64]:
    """Means of samples drawn with replacement, each as large as `values`.

    values: float64, shape (n,) or (n, k), resampled by rows. Returns shape (n_resamples,) or
    (n_resamples, k). Rows are drawn in blocks, so that memory stays bounded.

    For more than 100,000 rows the means are drawn from their normal distribution by the central
    limit theorem: drawing the rows themselves would take hours.
    """
    n = len(values)
    if n > _MANY:
        table = values.reshape(n, -1)
        spread = np.cov(table, rowvar=False, bias=True).reshape(table.shape[1], -1) / n
        drawn = rng.multivariate_normal(table.mean(axis=0), spread, n_resamples, method="eigh")
        return drawn.reshape(n_resamples, *values.shape[1:])
    means = np.empty((n_resamples, *values.shape[1:]))
    step = max(1, _BLOCK // max(1, values.size))
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        means[start:stop] = values[rng.integers(n, size=(stop - start, n))].mean(axis=1)
    return means


def interval_method(n: int, over: str = "") -> str:
    """How `bootstrap_means` of this many rows makes an interval, for an estimate's method."""
    if n > _MANY:
        return "interval of the normal distribution of the mean"
    return f"percentile bootstrap{over and f' over {over}'}"


def with_interval(signature: str, n: int) -> str:
    """The signature of an interval from this many rows, the most of any mean in it.

    The normal distribution is not the bootstrap, so it is named; the bootstrap is the rule.
    """
    return f"{signature}|interval:normal" if n > _MANY else signature


def percentile_interval(
    resamples: NDArray[np.float64], n_units: int, *, min_known: float = 0.5
) -> tuple[float | None, float | None]:
    """The central 95 % of resampled statistics, float64, shape (n_resamples,).

    n_units: how many of the independent units resampled affect the statistic; with fewer than
    `MIN_UNITS` there is no interval. Resamples without a value (NaN, infinite) are left out; there
    is no interval either if at most `min_known` of them remain.
    """
    known = resamples[np.isfinite(resamples)]
    if n_units < MIN_UNITS or len(known) <= min_known * len(resamples):
        return None, None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)
