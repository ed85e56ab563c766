"""Corrected means are those of PPI++, and their intervals hold for few labels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, norm

from fabula.stats.prediction_powered import (
    MIN_LABELS,
    MIN_VERDICTS,
    clopper_pearson_high,
    corrected_difference,
    corrected_mean,
    is_covered,
    n_labels_for,
    share_high,
    stratified,
    transfer,
)

# ppi-python 0.2.3, ppi_mean_pointestimate with the weight it chooses and with 0, 0.5 and 1; and the
# normal interval of ppi_mean_ci with weight 0.5, on the data of `drawn`.
GOLDEN = [
    (0, 12, 40, [0.509106170407815, 0.5045833333333334, 0.5210083333333334, 0.5374333333333334],
     [0.4238309279372152, 0.6181857387294516]),
    (1, 18, 90, [0.5139047954588667, 0.5254999999999999, 0.5026388888888889, 0.47977777777777764],
     [0.43953729532935915, 0.5657404824484186]),
    (2, 24, 140, [0.49610159711142454, 0.5107083333333334, 0.4870291666666666, 0.46334999999999993],
     [0.4275286142962795, 0.5465297190370537]),
    (3, 30, 190, [0.528469095534358, 0.5037333333333334, 0.5330771929824561, 0.5624210526315789],
     [0.46490811085872186, 0.6012462751061904]),
]  # fmt: skip


# cje-eval 0.9.3, on the data of `drawn` with predictions as they are: the weight on the mean over
# all documents (its own choice needs 20 labels), compute_direct_point_estimate, and the interval
# by labelled_cluster_crv1, labelled_cluster_variance and Student's t with n - 2 degrees.
CJE = [
    (0, 12, 40, 1.0, 0.5298525641025642, None),
    (1, 18, 90, 1.0, 0.4873981481481482, None),
    (2, 24, 140, 0.5178155656218428, 0.4897741656341438, (0.4245169002339846, 0.555031431034303)),
    (3, 30, 190, 0.47293087393268163, 0.5277037630224183,
     (0.4542352673590692, 0.6011722586857674)),
]  # fmt: skip


def drawn(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels and predictions of n documents, and the predictions of m more."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n + m)
    labels = np.round(1 / (1 + np.exp(-z)), 3)
    predicted = np.round(1 / (1 + np.exp(-(z * 0.6 + rng.normal(size=n + m) + 1))), 3)
    return labels[:n], predicted[:n], predicted[n:]


@pytest.mark.parametrize(("seed", "n", "m", "weight", "value", "ends"), CJE)
def test_means_and_intervals_are_those_of_a_second_package(
    seed: int, n: int, m: int, weight: float, value: float, ends: tuple[float, float] | None
):
    # Its weight is on the mean of all documents, ours on that of those without a label.
    found = corrected_mean(*drawn(seed, n, m), weight=weight * m / (n + m))
    assert found.value == pytest.approx(value, abs=1e-12)
    if ends is None:
        return
    assert found.freedom == n - 2
    # It shares the variance of predictions out among all documents, so widths differ by O(1/n).
    # Ours is widened a little for the skewness of labels.
    assert ends[1] - ends[0] < (found.high - found.low) * 1.005 < 1.06 * (ends[1] - ends[0])


@pytest.mark.parametrize(("seed", "n", "m", "values", "ends"), GOLDEN)
def test_means_are_those_of_the_published_package(
    seed: int, n: int, m: int, values: list[float], ends: list[float]
):
    data = drawn(seed, n, m)
    found = [corrected_mean(*data, weight=weight) for weight in (None, 0, 0.5, 1)]
    assert [one.value for one in found] == pytest.approx(values, abs=1e-12)
    half = found[2]
    # Its variance is over n and not n - 1 or n - 2, and its quantile normal: ours is wider by both.
    labels, predicted, others = data
    theirs = (ends[1] - ends[0]) / 2 / norm.ppf(0.975)
    variance = (labels - predicted / 2).var() / n + (others / 2).var() / m
    assert theirs**2 == pytest.approx(variance, rel=1e-9)
    assert half.low < ends[0] < ends[1] < half.high


def test_labels_that_are_all_alike_have_the_interval_of_their_number():
    for n in (4, 12, 30):
        found = corrected_mean(np.zeros(n), np.arange(n) % 2 * 1.0, np.ones(9))
        # Clopper and Pearson 1934 for 0 of n.
        assert (found.low, found.high) == (0.0, pytest.approx(beta.ppf(0.975, 1, n)))
    # A predictor that says nothing costs nothing.
    found = corrected_mean(np.arange(5) / 5, np.full(5, 0.9), np.full(20, 0.9))
    assert (found.weight, found.value, found.n_worth) == (0.0, pytest.approx(0.4), pytest.approx(5))
    # Few have no interval, and none have no mean.
    few = corrected_mean(np.ones(MIN_LABELS - 1), np.ones(MIN_LABELS - 1), np.ones(3))
    assert (few.value, few.low, few.high) == (1.0, None, None)
    assert corrected_mean(np.empty(0), np.empty(0), np.ones(3)) is None


def test_what_no_label_shows_may_be_among_the_texts_without_one():
    """Of 40 texts in ten clusters one each is labelled, all alike: the rest may differ."""
    clusters = [k % 10 for k in range(40)]
    columns = np.zeros(10), np.zeros(10), np.zeros(30)
    for is_finite in (True, False):
        found = corrected_mean(*columns, is_finite=is_finite, clusters=clusters)
        assert found.low == 0.0
        assert found.high > 0.2


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize("n", [8, 20])
def test_intervals_hold_the_truth_as_often_as_they_say(n: int, correlation: float):
    rng = np.random.default_rng([n, round(10 * correlation)])
    n_trials, n_others, held = 600, 60, 0
    for _ in range(n_trials):
        z, own = rng.normal(size=(2, n + n_others))
        w = correlation * z + math.sqrt(1 - correlation**2) * own
        labels = rng.binomial(14, norm.cdf(z - 0.5)) / 14
        predicted = rng.binomial(14, norm.cdf(w + 0.7)) / 14
        found = corrected_mean(labels[:n], predicted[:n], predicted[n:])
        # The mean of a normal distribution's share: P(X < z - 0.5) over z is P(Y < -0.5 / sqrt 2).
        held += found.low <= norm.cdf(-0.5 / math.sqrt(2)) <= found.high
    # 0.95 of 600, and four standard errors.
    assert 0.914 <= held / n_trials <= 0.986


def test_a_judge_that_is_biased_by_group_does_no_harm_where_groups_are_corrected_apart():
    rng = np.random.default_rng(5)
    held = n_stratified = 0
    for _ in range(300):
        parts = []
        for bias, n in ((0.3, 15), (-0.2, 6)):
            labels = np.clip(rng.normal(0.5, 0.1, 60), 0, 1)
            predicted = np.clip(labels + bias + rng.normal(0, 0.05, 60), 0, 1)
            parts.append(corrected_mean(labels[:n], predicted[:n], predicted[n:]))
        whole = stratified(parts)
        apart, p = corrected_difference(*parts)
        value, low, high = apart.ends().values()
        n_stratified += whole.low <= 0.5 <= whole.high
        held += low <= 0.0 <= high
        assert (p < 0.05) == (not low <= 0 <= high)
        assert value == pytest.approx(parts[0].value - parts[1].value)
    assert 0.9 <= held / 300 <= 0.99
    assert 0.9 <= n_stratified / 300 <= 0.99


def test_a_correction_that_holds_is_seldom_said_not_to():
    """Of two groups with one bias, at p < 0.05; `bench/label_coverage.py` shows its power."""
    rng = np.random.default_rng(6)
    n_broken = 0
    for _ in range(400):
        labels = rng.normal(0, 1, (2, 60))
        predicted = labels + 1 + rng.normal(0, 0.5, (2, 60))
        parts = [(y[:15], f[:15], f[15:]) for y, f in zip(labels, predicted, strict=True)]
        level, apart, p = transfer(*parts)
        _, low, high = apart.ends().values()
        assert (p is not None and p < 0.05) == (not low <= 0 <= high)
        n_broken += not low <= 0 <= high
        assert abs(level) < 1.5
    assert 0.02 <= n_broken / 400 <= 0.09


def test_a_share_over_groups_stays_within_0_and_1():
    """Also where the end of a group's own interval is 0: Student's would be -0.08 and 1.08."""
    nothing = np.zeros(40)
    none = corrected_mean(np.zeros(10), np.zeros(10), nothing)
    one = corrected_mean(np.array([1.0] + [0.0] * 9), np.zeros(10), nothing)
    every = corrected_mean(np.ones(10), np.zeros(10), nothing)
    most = corrected_mean(np.array([0.0] + [1.0] * 9), np.zeros(10), nothing)
    few, many = stratified([none, one]), stratified([every, most])
    assert (none.low, few.low, many.high) == (0.0, 0.0, 1.0)
    assert few.high == pytest.approx(1 - (many.low or 0))


def test_labels_of_another_kind_of_documents_are_refused():
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(500):
        scores = rng.binomial(14, 0.6, 40) / 14
        refused += not is_covered(scores[:10], scores[10:])
    assert refused <= 4
    scores = np.sort(rng.normal(size=40))
    assert not is_covered(scores[:10], scores[10:])
    assert is_covered(np.ones(6), np.ones(20))
    assert not is_covered(np.ones(12), np.zeros(20))


def test_more_labels_make_the_interval_as_narrow_as_is_asked():
    found = corrected_mean(*drawn(2, 24, 140))
    width = found.high - found.low
    assert n_labels_for(found, width * 1.0001) in (23, 24)
    wanted = n_labels_for(found, width * 0.7)
    assert 24 * 1.5 < wanted < 24 * 3
    assert n_labels_for(found, width / 100) is None


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20),
    st.lists(st.floats(0, 1), max_size=20),
)
def test_any_interval_holds_its_value(pairs: list[tuple[float, float]], rest: list[float]):
    labels, predicted = np.array(pairs, np.float64).T
    found = corrected_mean(labels, predicted, np.array(rest, np.float64))
    assert 0 <= found.value <= 1
    assert 0 <= found.weight <= 1
    # Labels that are all Yes or No, and differ, need more.
    least = MIN_VERDICTS if set(labels) == {0.0, 1.0} else MIN_LABELS
    assert (found.low is None) == (len(pairs) < least)
    if found.low is not None and found.high is not None:
        assert 0 <= found.low <= found.value + 1e-9
        assert found.value - 1e-9 <= found.high <= 1


@given(st.integers(1, 300), st.data())
def test_whole_shares_have_clopper_and_pearsons_bound(n: int, data: st.DataObject):
    k = data.draw(st.integers(0, n))
    # A one-sided 95 % bound is an end of the two-sided 90 % interval.
    peer = binomtest(k, n).proportion_ci(0.9, "exact").high
    assert clopper_pearson_high(k, n) == pytest.approx(peer)
    assert share_high(np.repeat([0.0, 1.0], [n - k, k])) == pytest.approx(peer)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=40))
def test_the_bound_lies_above_the_mean_and_grows_with_each_share(counts: list[int]):
    shares = np.array(counts) / 10
    high = share_high(shares)
    assert shares.mean() <= high <= 1
    assert share_high(np.minimum(1, shares + 0.1)) >= high - 0.005
    assert share_high(np.sort(shares)) == share_high(shares)


def test_nearly_whole_shares_have_nearly_clopper_and_pearsons_bound():
    # The weights are drawn, the formula is not: they agree to a hundredth.
    shares = np.repeat([1e-9, 1 - 1e-9], [95, 5])
    assert share_high(shares) == pytest.approx(clopper_pearson_high(5, 100), rel=0.01)
    assert share_high(shares) == share_high(shares)


@pytest.mark.parametrize("spread", [0.2, 1.0, 5.0])
def test_the_bound_is_exceeded_in_5_percent_at_most(spread: float):
    rng = np.random.default_rng(1)
    mean = 0.1
    studies = (rng.beta(mean * spread, (1 - mean) * spread, 25) for _ in range(100))
    exceeded = sum(share_high(shares) < mean for shares in studies)
    assert exceeded <= 10  # 5 are expected at 5 %; more than 10 have a probability of 1 %
