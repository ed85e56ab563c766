"""Upper bounds of a share that was counted in clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy

_N_DRAWS = 20_000


def clopper_pearson_high(n_hits: int, n: int, confidence: float = 0.95) -> float:
    """One-sided upper bound of a share, given n_hits in n independent cases (Clopper and Pearson
    1934)."""
    beta = scipy("stats").beta
    return float(beta.ppf(confidence, n_hits + 1, n - n_hits)) if n_hits < n else 1.0


def share_high(shares: NDArray[np.float64], confidence: float = 0.95) -> float:
    """One-sided upper bound of the mean share over all clusters, from a sample of clusters.

    shares: float64 (n,), between 0 and 1: the share of each cluster's cases. Within a cluster they
    may be correlated in any way. Gaffke's bound (2005; Learned-Miller and Thomas 2020): the
    clusters and one more, whose share is 1, get random weights (uniform over all weights that sum
    to 1), and the bound is the quantile of their weighted mean. If each share is 0 or 1, it equals
    Clopper and Pearson's. `bench/false_alarms.py` shows how often it is exceeded.
    """
    values, counts = np.unique(np.append(shares, 1.0), return_counts=True)
    if set(values) <= {0.0, 1.0}:
        return clopper_pearson_high(int((shares == 1).sum()), len(shares), confidence)
    # Weights of clusters with the same share sum to a gamma variable, over the total of all.
    weights = np.random.default_rng(0).standard_gamma(counts, size=(_N_DRAWS, len(counts)))
    return float(np.quantile((weights @ values) / weights.sum(axis=1), confidence))
