"""Groups that share clusters: against SciPy's paired test and a plain bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from fabula.stats.clustered import compare_clusters


def groups(n: int, shift: float, seed: int = 0) -> tuple[dict[str, float], dict[str, float]]:
    rng = np.random.default_rng(seed)
    own = rng.normal(10, 3, size=n)
    a, b = own + shift + rng.normal(size=n) / 5, own + rng.normal(size=n) / 5
    names = [f"c{k}" for k in range(n)]
    return dict(zip(names, a.tolist(), strict=True)), dict(zip(names, b.tolist(), strict=True))


def test_clusters_are_compared_with_themselves() -> None:
    a, b = groups(40, 0.3)
    found = compare_clusters(a, b, seed=0, signature="s")
    assert found.p == pytest.approx(ttest_rel(list(a.values()), list(b.values())).pvalue)
    rng = np.random.default_rng(1)
    table = np.array([[a[name], b[name]] for name in a])
    plain = [table[rng.integers(40, size=40)].mean(axis=0) for _ in range(4000)]
    ends = np.percentile([100 * (x - y) / y for x, y in plain], [2.5, 97.5])
    assert (found.percent.low, found.percent.high) == pytest.approx(tuple(ends), abs=0.1)
    # Far narrower than if the clusters' own level were chance.
    assert found.percent.high - found.percent.low < 3
    shuffled = dict(sorted(a.items(), reverse=True))
    assert compare_clusters(shuffled, b, seed=0, signature="s") == found


def test_only_clusters_that_both_have_count() -> None:
    a, b = groups(20, 0.5)
    whole = compare_clusters(a, b, seed=0, signature="s")
    assert compare_clusters(a | {"x": 1e6}, b | {"y": -1e6}, seed=0, signature="s") == whole
    assert compare_clusters({"x": 1.0}, {"y": 2.0}, seed=0, signature="s").percent.n == 0


def test_fewer_than_ten_clusters_have_neither_interval_nor_test() -> None:
    found = compare_clusters(*groups(9, 5.0), seed=0, signature="s")
    assert found.percent.value is not None
    assert (found.percent.low, found.percent.high, found.p) == (None, None, None)


def test_means_of_many_and_single_skewed_values_do_not_differ() -> None:
    # A rank test of 6 texts' mean against one text rejects equal means, since values are skewed.
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(200):
        values = 8 - rng.exponential(size=(48, 7))
        a = {str(k): float(row[0]) for k, row in enumerate(values)}
        b = {str(k): float(row[1:].mean()) for k, row in enumerate(values)}
        p = compare_clusters(a, b, seed=0, signature="s").p
        rejected += p is not None and p < 0.05
    assert rejected <= 22  # 10 are expected
