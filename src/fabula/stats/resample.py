"""Intervals by resampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["N_RESAMPLES", "bootstrap_means", "percentile_interval"]

N_RESAMPLES = 10_000
_BLOCK = 1 << 22


def bootstrap_means(
    values: NDArray[np.float64], rng: np.random.Generator, n_resamples: int = N_RESAMPLES
) -> NDArray[np.float64]:
    """Means of samples drawn with replacement, each as large as `values`.

    values: float64, shape (n,) or (n, k), resampled by rows. Returns shape (n_resamples,) or
    (n_resamples, k). Rows are drawn in blocks, so that memory stays bounded.
    """
    n = len(values)
    means = np.empty((n_resamples, *values.shape[1:]))
    step = max(1, _BLOCK // max(1, values.size))
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        means[start:stop] = values[rng.integers(n, size=(stop - start, n))].mean(axis=1)
    return means


def percentile_interval(
    resamples: NDArray[np.float64], confidence: float = 0.95
) -> tuple[float, float]:
    """The central interval of resampled statistics, float64, shape (n_resamples,)."""
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(resamples, [tail, 100 - tail])
    return float(low), float(high)
