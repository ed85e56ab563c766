"""Groups that share clusters: against SciPy's tests of independent and of paired values."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f_oneway, permutation_test, ttest_1samp, ttest_ind, ttest_rel
from statsmodels.stats.anova import AnovaRM
from tests.stats.contrasted import clusters, means, percent

from fabula.stats.contrasts import _Design, mean_estimate, permutation_f

Values = dict[str, list[float]]


def groups(n: int, shift: float) -> list[Values]:
    rng = np.random.default_rng(0)
    own = rng.normal(10, 3, size=n)
    columns = own + shift + rng.normal(size=n) / 5, own + rng.normal(size=n) / 5
    return [{f"c{k}": [float(x)] for k, x in enumerate(column)} for column in columns]


def alone(columns: Sequence[Sequence[float]]) -> list[Values]:
    """Groups whose values are independent: each a cluster of its own."""
    numbered = enumerate(columns)
    return [{f"{k}-{i}": [float(x)] for i, x in enumerate(column)} for k, column in numbered]


def test_clusters_are_compared_with_themselves():
    a, b = groups(40, 0.05)
    found = clusters(a, b)
    x, y = (np.array([*side.values()])[:, 0] for side in (a, b))
    how = {"n_resamples": 9_999, "random_state": 1, "permutation_type": "samples"}
    oracle = permutation_test((x, y), lambda x, y, axis: np.mean(x - y, axis=axis), **how)
    assert 0.005 < oracle.pvalue < 0.2
    assert found.p == pytest.approx(oracle.pvalue, abs=0.01)
    for end in (percent(found).low, percent(found).high):
        # Fieller's: the ratio that the paired test rejects at 5 %.
        assert ttest_1samp(x - (1 + end / 100) * y, 0).pvalue == pytest.approx(0.05)
    # Far narrower than if the clusters' own level were chance.
    assert percent(found).high - percent(found).low < 3
    shuffled = dict(sorted(a.items(), reverse=True))
    assert clusters(shuffled, b) == found


def test_groups_that_share_no_cluster_are_compared_by_whole_clusters():
    rng = np.random.default_rng(3)
    a = {f"x{k}": rng.normal(8, 0.1, size=5).tolist() for k in range(15)}
    b = {f"y{k}": rng.normal(7.9, 0.1, size=5).tolist() for k in range(15)}
    means = [[math.fsum(values) / 5 for values in group.values()] for group in (a, b)]
    found = clusters(a, b)
    assert (percent(found).n, percent(found).n_units) == (30, 15)
    assert percent(found).value == pytest.approx(100 * (np.mean(means[0]) / np.mean(means[1]) - 1))
    assert percent(found).low is not None
    how = {"n_resamples": 9_999, "random_state": 1}
    oracle = permutation_test(means, lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis), **how)
    assert found.p == pytest.approx(oracle.pvalue, abs=0.01)
    assert 0.0001 < oracle.pvalue < 0.1


def test_only_clusters_that_both_have_count_where_most_are_shared():
    a, b = groups(20, 0.5)
    whole = clusters(a, b)
    assert clusters(a | {"x": [1e6]}, b | {"y": [-1e6]}) == whole
    few = {**{f"p{k}": [9.0] for k in range(20)}, "c0": a["c0"]}
    assert percent(clusters(few, b)).n == 40
    assert percent(clusters({}, {"y": [2.0]})).n == 0


def test_fewer_than_ten_clusters_have_neither_interval_nor_test():
    found = clusters(*groups(9, 5.0))
    assert percent(found).value is not None
    assert (percent(found).low, percent(found).high, found.p) == (None, None, None)
    assert permutation_f(groups(9, 5.0), seed=0).p is None
    ten = clusters(*groups(10, 5.0))
    assert None not in (percent(ten).low, percent(ten).high, ten.p)


def test_f_is_that_of_the_usual_tests_where_they_apply():
    """Equal groups: `f_oneway`; two groups: the squares of Welch's and of the paired t; complete
    clusters: repeated measures, by statsmodels."""
    rng = np.random.default_rng(5)
    columns = [rng.normal(m, 1, size=15) for m in (0, 0.9, 0.3)]
    found, oracle = permutation_f(alone(columns), seed=0), f_oneway(*columns)
    assert found.statistic == pytest.approx(oracle.statistic)
    assert found.p == pytest.approx(oracle.pvalue, abs=0.05)
    unequal = [rng.normal(0, 1, 30), rng.normal(1, 3, 12)]
    found, oracle = permutation_f(alone(unequal), seed=0), ttest_ind(*unequal, equal_var=False)
    assert found.statistic == pytest.approx(oracle.statistic**2)
    assert found.p == pytest.approx(oracle.pvalue, abs=0.02)
    paired = [{str(k): [float(x)] for k, x in enumerate(column)} for column in columns]
    found, oracle = permutation_f(paired[:2], seed=0), ttest_rel(*columns[:2])
    assert found.statistic == pytest.approx(oracle.statistic**2)
    rows = [(k, c, x) for c, column in enumerate(columns) for k, x in enumerate(column)]
    table = pd.DataFrame(rows, columns=["story", "group", "value"])
    repeated = AnovaRM(table, "value", "story", within=["group"]).fit().anova_table
    assert permutation_f(paired, seed=0).statistic == pytest.approx(repeated["F Value"].iloc[0])


@pytest.mark.parametrize("spreads", [(1, 4), (1, 1, 1, 4)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_groups_of_unequal_spread_differ_in_one_of_twenty(spreads: Any, is_shared: bool):
    """People and models: the F of equal spreads rejects 18 to 22 %."""
    rng, n_rejected, n = np.random.default_rng(3), 0, 300
    for _ in range(n):
        level = rng.normal(0, 2 * is_shared, size=24)
        made: list[Values] = []
        for k, spread in enumerate(spreads):
            own = range(24) if is_shared else range(100 * k, 100 * k + (8 if spread > 1 else 24))
            made.append({str(c): [level[c % 24] + rng.normal(0, spread)] for c in own})
        p = permutation_f(made, seed=0, n_permutations=199).p
        n_rejected += p is not None and p <= 0.05
    assert 0.02 * n <= n_rejected <= 0.09 * n


@given(st.lists(st.lists(st.integers(-100, 100), min_size=2, max_size=6), min_size=2, max_size=4))
def test_f_does_not_depend_on_the_order_of_groups_or_a_common_shift(columns: list[list[int]]):
    there = permutation_f(alone(columns), seed=0, n_permutations=1).statistic
    shifted = [[value + 8 for value in column] for column in reversed(columns)]
    back = permutation_f(alone(shifted), seed=0, n_permutations=1).statistic
    if there is not None and there < 1e6:
        assert back == pytest.approx(there, rel=1e-3, abs=1e-3)


def test_values_change_places_within_their_cluster_only():
    """Clusters of unequal numbers of values; those of one group change places as a whole."""
    a = {"s": [1.0, 2.0], "t": [10.0], "x": [100.0]}
    b = {"s": [4.0], "t": [11.0, 12.0, 16.0], "y": [101.0], "z": [105.0]}
    design = _Design([a, b])
    drawn = design.permuted(50, np.random.default_rng(0))
    for members in ([0, 1, 4], [2, 5, 6, 7], [3, 8, 9]):
        kept = np.sort(design.values[members])
        np.testing.assert_array_equal(np.sort(drawn[:, members], axis=1), np.tile(kept, (50, 1)))
        assert len(np.unique(drawn[:, members], axis=0)) > 2


@pytest.mark.parametrize("is_shared", [True, False])
def test_one_in_twenty_is_rejected_where_groups_are_alike(is_shared: bool):
    """Three groups, four texts each in 20 clusters whose level differs far more than texts do."""
    rng = np.random.default_rng(7)
    rejected = {"clusters": 0, "texts": 0}
    for _ in range(200):
        n = 20 if is_shared else 60
        level = rng.normal(0, 3, size=n)
        made: list[Values] = []
        for k in range(3):
            own = range(20) if is_shared else range(20 * k, 20 * k + 20)
            made.append({str(c): (level[c] + rng.exponential(size=4)).tolist() for c in own})
        p = permutation_f(made, seed=0, n_permutations=200).p
        rejected["clusters"] += p < 0.05
        rejected["texts"] += f_oneway(*(np.ravel([*g.values()]) for g in made)).pvalue < 0.05
    assert 2 <= rejected["clusters"] <= 20  # 10 are expected
    # As if texts were independent: never, since clusters are noise; or far too often.
    assert rejected["texts"] < 2 or rejected["texts"] > 60


def test_a_small_difference_shows_within_clusters_and_equal_values_never_do():
    rng = np.random.default_rng(2)
    level = rng.normal(0, 3, size=30)
    # One group wrote to half of the prompts only.
    numbers = [(k, level[: 15 if k == 2 else 30]) for k in range(3)]
    made = [{str(c): [x + 0.4 * k + rng.normal() / 3] for c, x in enumerate(z)} for k, z in numbers]
    assert permutation_f(made, seed=0).p == pytest.approx(1 / 10_001)
    same = [{str(c): [7.9] for c in range(20)} for _ in range(3)]
    found = permutation_f(same, seed=0)
    assert (found.statistic, found.p) == (0, 1)
    # Without variation within groups that differ F is no number.
    found = permutation_f(alone([[1.0] * 6, [2.0] * 6]), seed=0)
    assert found.statistic is None
    assert found.p < 0.01


def test_clusters_of_one_value_have_the_interval_of_independent_values():
    """Also of 10 against 200: the variance of the ten is theirs, not that of 210."""
    rng = np.random.default_rng(4)
    few, many = rng.normal(10, 3, 10), rng.normal(9, 1, 200)
    found = percent(clusters(*alone([few.tolist(), many.tolist()])))
    plain = means(few.tolist(), many.tolist()).details["percent"]
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


numbers = st.lists(st.floats(0, 8, width=16), min_size=1, max_size=12)


@given(numbers, numbers)
def test_mann_whitney_u_counts_pairs(a: list[float], b: list[float]):
    found = means(a, b)
    u = sum((x > y) + 0.5 * (x == y) for x, y in itertools.product(a, b))
    assert found.details["u"] == pytest.approx(u)
    for one in (found, clusters(*alone([a, b]))):
        assert one.details["superiority"] == pytest.approx(u / (len(a) * len(b)))
    assert 0 <= found.p <= 1


def test_the_percentage_difference_is_against_b():
    # Lu et al. 2024, footnote 2: (human - model) / model.
    found = percent(means([6.0] * 10, [4.0] * 11))
    assert (found.value, found.low, found.high, found.n) == (50.0, None, None, 21)


def test_empty_constant_and_single_groups_are_defined():
    same = means([2.0, 2.0], [2.0, 2.0, 2.0])
    assert (same.p, same.details["superiority"], percent(same).value) == (1.0, 0.5, 0.0)
    assert means([], [1.0]).p is None
    assert percent(means([1.0], [0.0])).value is None
    for values, mean in (([3.0], 3.0), ([2.0] * 10, 2.0), ([], None)):
        found = mean_estimate(values, signature="")
        assert (found.value, found.low, found.high, found.n) == (mean, None, None, len(values))
