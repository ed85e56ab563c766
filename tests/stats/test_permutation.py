from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.kernels.permute import count_types, draw_labels
from fabula.stats.effects import Tokens, mean_estimates, ratio_estimate
from fabula.stats.permutation import compare_pairs


def bit(labels: np.ndarray, permutation: int, item: int) -> bool:
    return bool(int(labels[permutation // 64, item]) >> (permutation % 64) & 1)


@given(st.integers(1, 30), st.data())
def test_every_permutation_chooses_as_many_as_it_should(n: int, data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, n))
    labels = draw_labels(n, chosen, 2, 7)
    for permutation in range(128):
        assert sum(bit(labels, permutation, item) for item in range(n)) == chosen


def test_every_choice_is_as_likely_as_another() -> None:
    labels = draw_labels(5, 2, 1000, 1)
    counts = dict.fromkeys(itertools.combinations(range(5), 2), 0)
    for permutation in range(64_000):
        counts[tuple(k for k in range(5) if bit(labels, permutation, k))] += 1
    # 6,400 each; the standard deviation is 76
    assert all(abs(n - 6400) < 5 * 76 for n in counts.values())


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=12))
def test_types_are_counted_as_sets_would(items: list[list[int]]) -> None:
    labels = draw_labels(len(items), len(items) // 2, 1, 3)
    holders = [
        sorted({k for k, tokens in enumerate(items) if kind in tokens})
        for kind in range(5)
        if any(kind in tokens for tokens in items)
    ]
    flat = np.array([k for held in holders for k in held], np.int64)
    ends = np.cumsum([len(held) for held in holders]).astype(np.int64)
    counts = count_types(labels, flat, ends)
    for permutation in range(64):
        inside = {t for k, ts in enumerate(items) if bit(labels, permutation, k) for t in ts}
        outside = {t for k, ts in enumerate(items) if not bit(labels, permutation, k) for t in ts}
        assert counts[:, permutation].tolist() == [len(inside), len(outside)]


def exact_p(a: list[float], b: list[float]) -> float:
    """Over all ways to deal the values out again."""
    pooled = a + b
    seen = abs(sum(a) / len(a) - sum(b) / len(b))
    n_extreme = n = 0
    for chosen in itertools.combinations(range(len(pooled)), len(a)):
        first = [pooled[k] for k in chosen]
        second = [pooled[k] for k in range(len(pooled)) if k not in chosen]
        n += 1
        n_extreme += abs(sum(first) / len(first) - sum(second) / len(second)) >= seen - 1e-12
    return n_extreme / n


def test_p_values_of_means_agree_with_all_permutations() -> None:
    a, b = [1.0, 2.0, 2.5, 4.0, 4.5], [3.0, 5.0, 6.0, 6.5, 2.0]
    (test,) = compare_pairs({"m": {"a": np.array(a), "b": np.array(b)}}, {}, n_permutations=20_000)
    # of 252 ways; the standard error of 20,000 draws is at most 0.0036
    assert test.p == pytest.approx(exact_p(a, b), abs=0.015)
    assert test.difference.value == pytest.approx(2.8 - 4.5)


def tokens(items: list[str]) -> Tokens:
    numbers = {c: k for k, c in enumerate("abcdefghijklmnopqrstuvwxyz")}
    return Tokens(
        np.array([numbers[c] for item in items for c in item], np.int64),
        np.cumsum([len(item) for item in items]).astype(np.int64),
    )


def test_p_values_of_ratios_agree_with_all_permutations() -> None:
    a, b = ["ab", "cd", "efg", "hi"], ["aa", "ab", "abc", "b"]

    def ratio(items: list[str]) -> float:
        text = "".join(items)
        return len(set(text)) / len(text)

    seen = abs(ratio(a) - ratio(b))
    ways = list(itertools.combinations(range(8), 4))
    pooled = a + b
    n_extreme = sum(
        abs(
            ratio([pooled[k] for k in chosen])
            - ratio([pooled[k] for k in range(8) if k not in chosen])
        )
        >= seen - 1e-12
        for chosen in ways
    )
    (test,) = compare_pairs({}, {"r": {"a": tokens(a), "b": tokens(b)}}, n_permutations=20_000)
    assert test.p == pytest.approx(n_extreme / len(ways), abs=0.015)
    assert test.difference.value == pytest.approx(9 / 9 - 3 / 8)


def test_no_p_value_is_0_and_equal_systems_have_p_1() -> None:
    far = {"m": {"a": np.zeros(50), "b": np.ones(50)}}
    assert compare_pairs(far, {}, n_permutations=999)[0].p == 1 / 1000
    same = {"m": {"a": np.ones(9), "b": np.ones(9)}}
    (test,) = compare_pairs(same, {}, n_permutations=999)
    assert test.p == 1
    assert test.d is not None
    assert test.d.value is None  # 0 / 0


def test_missing_values_are_left_out_and_none_at_all_is_no_test() -> None:
    nan = np.nan
    values = {"m": {"a": np.array([1.0, nan, 3.0]), "b": np.array([nan, 4.0, 6.0]),
                    "c": np.full(3, nan)}}  # fmt: skip
    tests = {(t.a, t.b): t for t in compare_pairs(values, {}, n_permutations=999)}
    assert tests["a", "b"].difference.value == pytest.approx(2 - 5)
    assert tests["a", "c"].p is None
    assert tests["a", "c"].difference.value is None
    # one test was made, so nothing is corrected
    assert tests["a", "b"].p_bonferroni == tests["a", "b"].p


def test_bonferroni_and_holm_over_the_pairs_of_a_metric() -> None:
    rng = np.random.default_rng(5)
    values = {"m": {name: rng.normal(shift, 1, 40) for name, shift in
                    (("a", 0.0), ("b", 0.5), ("c", 0.6))}}  # fmt: skip
    tests = compare_pairs(values, {}, n_permutations=9999)
    raw = [t.p for t in tests]
    assert [t.p_bonferroni for t in tests] == [min(1.0, 3 * p) for p in raw]
    smallest = min(range(3), key=lambda k: raw[k])
    assert tests[smallest].p_holm == min(1.0, 3 * raw[smallest])
    assert all(t.p_holm <= t.p_bonferroni for t in tests)


def test_cohens_d_by_hand() -> None:
    # means 2 and 4; variances over n - 1 are 1 and 4: pooled sqrt((2 * 1 + 2 * 4) / 4)
    values = {"m": {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([2.0, 4.0, 6.0])}}
    (test,) = compare_pairs(values, {}, n_permutations=999)
    assert test.d is not None
    assert test.d.value == pytest.approx((2 - 4) / math.sqrt(2.5))


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    n_covered = 0
    for _ in range(100):
        values = {"m": {"a": rng.normal(1, 1, 60), "b": rng.normal(0, 1, 60)}}
        (test,) = compare_pairs(values, {}, n_permutations=99)
        assert test.difference.low is not None
        n_covered += test.difference.low <= 1 <= test.difference.high
    assert 88 <= n_covered <= 100


def test_intervals_of_a_ratio_hold_it() -> None:
    rng = np.random.default_rng(2)
    lengths = rng.integers(5, 15, 200)
    many = Tokens(rng.zipf(1.5, lengths.sum()).astype(np.int64), np.cumsum(lengths))
    estimate = ratio_estimate(many)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.value == len(set(many.types.tolist())) / lengths.sum()
    assert ratio_estimate(Tokens(np.empty(0, np.int64), np.zeros(3, np.int64))).value is None


def test_same_seed_same_numbers_and_another_seed_others() -> None:
    rng = np.random.default_rng(0)
    values = {"m": {name: rng.normal(0, 1, 30) for name in "ab"}}
    first, again, other = (compare_pairs(values, {}, seed=s, n_permutations=999) for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_interval_of_a_mean_needs_two_values() -> None:
    estimates = mean_estimates({"m": {"a": np.array([2.0, np.nan])}})
    assert estimates["m", "a"].value == 2
    assert estimates["m", "a"].low is None


@pytest.mark.parametrize("kept", [1.0, 0.5, 0.1])
def test_missing_items_make_no_difference_where_there_is_none(kept: float) -> None:
    """Two systems of one distribution, of which the second lacks a share of its items."""
    rng = np.random.default_rng(4)
    n_false = {"m": 0, "r": 0}
    for trial in range(100):
        has = rng.random(100) < kept
        has[0] = True
        means = {"a": rng.normal(0, 1, 100), "b": np.where(has, rng.normal(0, 1, 100), np.nan)}
        lengths = {"a": np.full(100, 12), "b": np.where(has, 12, 0)}
        ratios = {
            name: Tokens(rng.zipf(1.6, n.sum()).astype(np.int64), np.cumsum(n))
            for name, n in lengths.items()
        }
        for test in compare_pairs({"m": means}, {"r": ratios}, seed=trial, n_permutations=199):
            n_false[test.metric] += test.p <= 0.05
    # 5 of 100 are expected; more than 13 have a probability of 0.0005
    assert max(n_false.values()) <= 13


def test_few_values_have_no_interval_and_no_interval_leaves_its_range() -> None:
    few = {"m": {"a": np.arange(9.0), "b": np.arange(9.0) + 1}}
    (test,) = compare_pairs(few, {}, n_permutations=99)
    assert test.difference.low is None
    spread = Tokens(np.arange(40, dtype=np.int64) // 2, np.arange(1, 41, dtype=np.int64))
    estimate = ratio_estimate(spread)
    assert estimate.low is None or 0 <= estimate.low <= estimate.high <= 1
    all_new = Tokens(np.arange(40, dtype=np.int64), np.arange(1, 41, dtype=np.int64))
    assert (ratio_estimate(all_new).value, ratio_estimate(all_new).low) == (1, None)
