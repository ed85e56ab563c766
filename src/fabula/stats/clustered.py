"""Two groups whose values belong to the same clusters, such as people and models on one prompt."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fabula.stats.compare import Difference
from fabula.stats.resample import MIN_UNITS, bootstrap_means, percentile_interval
from fabula.types import Estimate

__all__ = ["compare_clusters"]


def compare_clusters(
    a: Mapping[str, float], b: Mapping[str, float], *, seed: int, signature: str
) -> Difference:
    """Compare the means of two groups, cluster by cluster, over the clusters that both have.

    a, b: the mean of each cluster's values. The interval is by bootstrap over clusters, for both
    groups at once. p is of the t-test that the mean difference is 0: rank tests would compare a
    mean of many texts with a single text's value, which differ where values are skewed though their
    means agree. With fewer than ten clusters there is neither.
    """
    shared = sorted(a.keys() & b.keys())
    n, method = len(shared), "percentage difference of means, percentile bootstrap over clusters"
    if not n:
        return Difference(Estimate(None, None, None, 0, method, signature), None, None, None)
    table = np.array([[a[name], b[name]] for name in shared], np.float64)
    first, second = table.mean(axis=0)
    apart = table[:, 0] - table[:, 1]
    superiority = float(np.mean((apart > 0) + 0.5 * (apart == 0)))
    value = float(100 * (first - second) / second) if second else None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    if n >= MIN_UNITS:
        p = _p_of(apart)
        means = bootstrap_means(table, np.random.default_rng(seed))
        if means[:, 1].all():
            resampled = 100 * (means[:, 0] - means[:, 1]) / means[:, 1]
            low, high = percentile_interval(resampled, n)
    return Difference(Estimate(value, low, high, n, method, signature), None, superiority, p)


def _p_of(differences: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    from scipy.stats import ttest_1samp

    if np.ptp(differences) == 0:
        return 1.0 if differences[0] == 0 else 0.0
    return float(ttest_1samp(differences, 0).pvalue)
