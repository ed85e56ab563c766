import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.types import Contrast
from fabula.kernels.permute import count_types, draw_labels
from fabula.stats.paired import Tokens, compare_pairs, ratio_estimate


def compared(a: Any, b: Any, **how: Any) -> Contrast:
    """Two systems in one number."""
    return compare_pairs({"m": {"a": np.array(a), "b": np.array(b)}}, {}, **how)[0]


def bit(labels: np.ndarray, permutation: int, item: int) -> bool:
    return bool(int(labels[permutation // 64, item]) >> (permutation % 64) & 1)


@given(st.integers(1, 30), st.data())
def test_every_permutation_chooses_as_many_as_it_should(n: int, data: st.DataObject):
    chosen = data.draw(st.integers(0, n))
    labels = draw_labels(n, chosen, 2, 7)
    for permutation in range(128):
        assert sum(bit(labels, permutation, item) for item in range(n)) == chosen


def test_every_choice_is_as_likely_as_another():
    labels = draw_labels(5, 2, 1000, 1)
    counts = dict.fromkeys(itertools.combinations(range(5), 2), 0)
    # A bit a permutation, the lowest first.
    chosen = np.unpackbits(labels.T.copy().view(np.uint8), axis=1, bitorder="little")
    for column in chosen.T:
        counts[tuple(np.flatnonzero(column).tolist())] += 1
    # 6,400 each; the standard deviation is 76
    assert all(abs(n - 6400) < 5 * 76 for n in counts.values())


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=12))
def test_types_are_counted_as_sets_would(items: list[list[int]]):
    labels = draw_labels(len(items), len(items) // 2, 1, 3)
    held = [[k for k, tokens in enumerate(items) if kind in tokens] for kind in range(5)]
    holders = [own for own in held if own]
    flat = np.array([k for held in holders for k in held], np.int64)
    ends = np.cumsum([len(held) for held in holders]).astype(np.int64)
    counts = count_types(labels, flat, ends)
    for permutation in range(64):
        kinds: list[set[int]] = [set(), set()]
        for k, tokens in enumerate(items):
            kinds[not bit(labels, permutation, k)].update(tokens)
        assert counts[:, permutation].tolist() == [*map(len, kinds)]


def exact_paired_p(a: list[Any], b: list[Any], clusters: list[int]) -> float | None:
    """Over all sign flips of the clusters of those items that both have."""
    both = [(x - y, c) for x, y, c in zip(a, b, clusters, strict=True) if None not in (x, y)]
    if not both:
        return None
    sums: dict[int, float] = {}
    for difference, cluster in both:
        sums[cluster] = sums.get(cluster, 0) + difference
    seen = abs(sum(sums.values())) - 1e-9 * len(both)
    ways = list(itertools.product((1, -1), repeat=len(sums)))
    return sum(abs(sum(map(operator.mul, sums.values(), way))) >= seen for way in ways) / len(ways)


some = st.one_of(st.none(), st.integers(0, 5).map(float))


@given(st.lists(st.tuples(some, some, st.integers(0, 6)), min_size=1, max_size=14))
def test_few_clusters_are_flipped_in_every_way(items: list[tuple[float | None, float | None, int]]):
    a, b, clusters = (list(column) for column in zip(*items, strict=True))
    given = ([np.nan if v is None else v for v in side] for side in (a, b))
    test = compared(*given, clusters=np.array(clusters), n_permutations=64)
    expected = exact_paired_p(a, b, clusters)
    assert test.p == (expected if expected is None else pytest.approx(expected, abs=1e-12))
    both = [x - y for x, y in zip(a, b, strict=True) if None not in (x, y)]
    assert test.difference.n == len(both)
    if both:
        assert test.difference.value == pytest.approx(sum(both) / len(both))


def test_many_clusters_are_flipped_at_random_to_the_same_end():
    rng = np.random.default_rng(8)
    clusters = np.repeat(np.arange(12), 3)
    a, b = rng.normal(0.4, 1, 36), rng.normal(0, 1, 36)
    expected = exact_paired_p(a.tolist(), b.tolist(), clusters.tolist())
    # The standard error of 2,047 draws is at most 0.011.
    for n, within in ((2048, 1e-12), (2047, 0.04)):
        test = compared(a, b, clusters=clusters, n_permutations=n)
        assert test.p == pytest.approx(expected, abs=within)
        assert test.details["least"] == 1 / 2048


def test_tests_and_intervals_hold_their_level_where_passages_are_clustered():
    """Two systems without a difference but for chapters that suit one or the other."""
    rng, clusters = np.random.default_rng(12), np.repeat(np.arange(25), 4)
    n_false = {"clusters": 0, "items": 0}
    n_outside = {"clusters": 0, "items": 0}
    for trial in range(100):
        suits = rng.normal(0, 1, 25)[clusters]
        a, b = suits + rng.normal(0, 0.7, 100), rng.normal(0, 0.7, 100)
        for name, units in (("clusters", clusters), ("items", None)):
            test = compared(a, b, clusters=units, seed=trial, n_permutations=199)
            n_false[name] += test.p <= 0.05
            n_outside[name] += not test.difference.low <= 0 <= test.difference.high
    # 5 of 100 are expected, with a standard deviation of 2.2.
    assert 1 <= n_false["clusters"] <= 11
    assert n_outside["clusters"] <= 14
    # As if passages were independent, three times as many and more.
    assert min(n_false["items"], n_outside["items"]) > 20


def test_a_ratio_of_clustered_passages_has_a_wider_interval():
    # Chapters of their own words: what is left out with a chapter is lost, passage by passage not.
    rng = np.random.default_rng(2)
    words = [w for chapter in range(30) for _ in range(8)
             for w in 100 * chapter + rng.zipf(1.3, 10).clip(1, 99) * (chapter % 3)]  # fmt: skip
    tokens_ = Tokens(np.array(words, np.int64), np.arange(10, 2401, 10))
    alone = ratio_estimate(tokens_)
    together = ratio_estimate(tokens_, clusters=np.repeat(np.arange(30), 8))
    assert together.value == alone.value
    assert together.n_units == 30
    assert together.high - together.low > 1.2 * (alone.high - alone.low)


def test_a_control_takes_no_power_from_the_pairs_of_systems():
    rng = np.random.default_rng(5)
    shifts = {"a": 0.0, "b": 0.5, "c": 0.6}
    values = {name: rng.normal(shift, 1, 40) for name, shift in shifts.items()}
    alone = compare_pairs({"m": values}, {}, n_permutations=999)
    control = {"m": values | {"control": rng.normal(0, 1, 40)}}
    found = compare_pairs(control, {}, controls=["control"], n_permutations=999)
    smallest = min(alone, key=lambda test: test.p)
    assert smallest.p_adjusted == min(1.0, 3 * smallest.p)
    assert [test for test in found if test.b != "control"] == alone
    assert len(found) == 6
    for test in found:
        assert test.details["p_bonferroni"] == min(1.0, 3 * test.p)
        assert test.p_adjusted <= test.details["p_bonferroni"]


def exact_p(a: list[Any], b: list[Any], statistic: Callable[[list[Any]], float]) -> float:
    """Over all ways to deal the values out again."""
    pooled = a + b
    seen = abs(statistic(a) - statistic(b))
    differences = [
        statistic([pooled[k] for k in chosen])
        - statistic([pooled[k] for k in range(len(pooled)) if k not in chosen])
        for chosen in itertools.combinations(range(len(pooled)), len(a))
    ]
    return float(np.mean(np.abs(differences) >= seen - 1e-12))


def test_p_values_of_means_agree_with_all_permutations():
    a, b = [1.0, 2.0, 2.5, 4.0, 4.5], [3.0, 5.0, 6.0, 6.5, 2.0]
    test = compared(a, b, design="two-sample", n_permutations=20_000)
    # of 252 ways; the standard error of 20,000 draws is at most 0.0036
    assert test.p == pytest.approx(exact_p(a, b, np.mean), abs=0.015)
    assert test.difference.value == pytest.approx(2.8 - 4.5)


def tokens(items: list[str]) -> Tokens:
    kinds = np.array([ord(c) - ord("a") for item in items for c in item], np.int64)
    return Tokens(kinds, np.cumsum([len(item) for item in items]).astype(np.int64))


def test_p_values_of_ratios_agree_with_all_permutations():
    a, b = ["ab", "cd", "efg", "hi"], ["aa", "ab", "abc", "b"]

    def ratio(items: Iterable[str]) -> float:
        text = "".join(items)
        return len(set(text)) / len(text)

    seen = abs(ratio(a) - ratio(b))
    pairs = [[(x, y), (y, x)] for x, y in zip(a, b, strict=True)]
    flips = [zip(*way, strict=True) for way in itertools.product(*pairs)]
    by_flips = [abs(ratio(x) - ratio(y)) for x, y in flips]
    values = {"r": {"a": tokens(a), "b": tokens(b)}}
    (paired,) = compare_pairs({}, values)
    assert paired.p == sum(one >= seen - 1e-12 for one in by_flips) / 16
    (test,) = compare_pairs({}, values, design="two-sample", n_permutations=20_000)
    assert test.p == pytest.approx(exact_p(a, b, ratio), abs=0.015)
    assert test.difference.value == pytest.approx(9 / 9 - 3 / 8)


def test_no_p_value_is_0_and_equal_systems_have_p_1():
    far = np.zeros(50), np.ones(50)
    assert compared(*far, n_permutations=999).p == 1 / 1000
    # One cluster says nothing, and two cannot be below a half.
    for n_clusters, least in ((1, 1.0), (2, 0.5), (5, 1 / 16)):
        test = compared(*far, clusters=np.arange(50) % n_clusters)
        assert (test.p, test.details["least"]) == (least, least)
    test = compared(np.ones(9), np.ones(9), n_permutations=999)
    assert test.p == 1
    assert test.details["cohens_d"].value is None  # 0 / 0


def test_missing_values_are_left_out_and_none_at_all_is_no_test():
    nan = np.nan
    values = {"m": {"a": np.array([1.0, nan, 3.0]), "b": np.array([nan, 4.0, 6.0]),
                    "c": np.full(3, nan)}}  # fmt: skip
    ab, ac, _ = compare_pairs(values, {}, n_permutations=999)
    # Over the one item that both have.
    assert (ab.difference.value, ab.difference.n) == (pytest.approx(3 - 6), 1)
    assert (ac.p, ac.difference.value) == (None, None)
    # one test was made, so nothing is corrected
    assert ab.details["p_bonferroni"] == ab.p


def test_intervals_of_a_ratio_hold_it():
    rng = np.random.default_rng(2)
    lengths = rng.integers(5, 15, 200)
    many = Tokens(rng.zipf(1.5, lengths.sum()).astype(np.int64), np.cumsum(lengths))
    estimate = ratio_estimate(many)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.value == len(set(many.types.tolist())) / lengths.sum()
    assert ratio_estimate(Tokens(np.empty(0, np.int64), np.zeros(3, np.int64))).value is None
    # No interval leaves its range.
    kinds, ends = np.arange(40, dtype=np.int64), np.arange(1, 41, dtype=np.int64)
    twice, all_new = ratio_estimate(Tokens(kinds // 2, ends)), ratio_estimate(Tokens(kinds, ends))
    assert twice.low is None or 0 <= twice.low <= twice.high <= 1
    assert (all_new.value, all_new.low) == (1, None)


@pytest.mark.parametrize("kept", [1.0, 0.5, 0.1])
def test_missing_items_make_no_difference_where_there_is_none(kept: float):
    """Two systems of one distribution, of which the second lacks a share of its items."""
    rng = np.random.default_rng(4)
    n_false = {"m": 0, "r": 0}
    for trial in range(30):
        has = rng.random(100) < kept
        has[0] = True
        means = {"a": rng.normal(0, 1, 100), "b": np.where(has, rng.normal(0, 1, 100), np.nan)}
        lengths = {"a": np.full(100, 12), "b": np.where(has, 12, 0)}
        kinds = {name: rng.zipf(1.6, n.sum()).astype(np.int64) for name, n in lengths.items()}
        ratios = {name: Tokens(kinds[name], np.cumsum(n)) for name, n in lengths.items()}
        for test in compare_pairs({"m": means}, {"r": ratios}, seed=trial, n_permutations=199):
            assert test.p is not None, "the first item is there in both"
            n_false[test.number] += test.p <= 0.05
    # 1.5 of 30 are expected; more than 6 have a probability of 0.001
    assert max(n_false.values()) <= 6
