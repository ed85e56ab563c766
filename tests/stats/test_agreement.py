from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from statsmodels.stats.anova import anova_lm

from fabula.stats.agreement import (
    alpha,
    cohen,
    concordance,
    fleiss,
    gwet,
    icc,
    pearson,
    percent_agreement,
    pooled_pairs,
)

NAN = np.nan


def test_krippendorff_alpha_of_the_published_example():
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C:
    # 4 observers, 12 units, missing data; nominal 0.743, ordinal 0.815, interval 0.849.
    table = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
            [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
        ]
    ).T
    assert alpha(table).value == pytest.approx(0.743, abs=5e-4)
    assert alpha(table, "ordinal").value == pytest.approx(0.815, abs=5e-4)
    assert alpha(table, "interval").value == pytest.approx(0.849, abs=5e-4)


def test_without_anything_to_disagree_on_there_is_no_value():
    assert alpha(np.empty((0, 3))).value is None
    assert fleiss(np.array([[1.0], [0.0]])).value is None
    assert percent_agreement(np.array([[1.0], [0.0]])) is None


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alphas_of_resampled_stories_are_those_of_their_table(level: Any):
    """100 tables with gaps, each subject drawn 0 to 3 times, as the package has them."""
    rng = np.random.default_rng(5)
    n_known = 0
    for _ in range(100):
        values = rng.choice([1.0, 2.0, 4.0, 7.0, NAN], (rng.integers(2, 12), rng.integers(2, 5)))
        times = rng.integers(0, 4, len(values))
        drawn = np.repeat(values, times, axis=0)
        paired = drawn[(~np.isnan(drawn)).sum(axis=1) > 1]
        statistic = alpha(values, level)
        with np.errstate(all="ignore"):
            found = float(statistic.of_sums((times[:, None] * statistic.rows).sum(axis=0)))
        if len(np.unique(paired[~np.isnan(paired)])) < 2:
            assert not np.isfinite(found)
            continue
        expected = krippendorff.alpha(reliability_data=paired.T, level_of_measurement=level)
        assert found == pytest.approx(expected, abs=1e-9)
        n_known += 1
    assert n_known > 66


def icc_by_statsmodels(ratings: NDArray[np.float64]) -> float | None:
    """Shrout and Fleiss's formula on the mean squares of statsmodels' analysis of variance."""
    n, k = ratings.shape
    rows, columns = np.indices(ratings.shape)
    table = pd.DataFrame({"x": ratings.ravel(), "row": rows.ravel(), "column": columns.ravel()})
    fit = smf.ols("x ~ C(row) + C(column)", table).fit()
    squares = anova_lm(fit)["mean_sq"]
    between, raters, error = squares["C(row)"], squares["C(column)"], squares["Residual"]
    whole = between + (k - 1) * error + k * (raters - error) / n
    return None if abs(whole) < 1e-9 else float((between - error) / whole)


def test_icc_of_tables_and_of_resampled_stories_as_statsmodels_has_it():
    rng = np.random.default_rng(6)
    n_known = 0
    for _ in range(100):
        ratings = rng.integers(1, 6, (rng.integers(2, 9), rng.integers(2, 5))).astype(np.float64)
        times = rng.integers(0, 3, len(ratings))
        times[:2] += 1
        for table, weights in ((ratings, np.ones(len(ratings))), (None, times)):
            drawn = np.repeat(ratings, times, axis=0) if table is None else table
            expected = icc_by_statsmodels(drawn) if np.ptp(drawn) > 0 else None
            whole = icc(ratings)
            with np.errstate(all="ignore"):
                of_sums = float(whole.of_sums(weights @ whole.rows))
            for found in (icc(drawn).value, of_sums):
                if expected is None:
                    assert found is None or not np.isfinite(found) or abs(found) > 1e6
                else:
                    assert found == pytest.approx(expected, abs=1e-7)
            n_known += expected is not None
        ratings[rng.integers(len(ratings)), 0] = NAN
        assert icc(ratings).value is None, "the formula needs every person's every answer"
    assert n_known > 180


def test_intervals_of_alpha_and_icc_hold_what_the_ratings_were_drawn_from():
    """Marks with a story's part and a rater's own: ICC and alpha are its share of the variance."""
    rng = np.random.default_rng(8)
    n_held = np.zeros(2)
    for seed in range(60):
        marks = rng.normal(0, 1, (40, 1)) + rng.normal(0, 1, (40, 3))
        for k, found in enumerate((
            alpha(marks, "interval").estimate(range(40), method="", seed=seed, signature="s"),
            icc(marks).estimate(range(40), method="", seed=seed, signature="s"),
        )):  # fmt: skip
            n_held[k] += found.low <= 0.5 <= found.high
    assert (n_held > 52).all()


def test_intervals_depend_on_no_shift_of_marks_and_take_any_number_of_values():
    rng = np.random.default_rng(9)
    marks = np.round(rng.normal(0, 2, (40, 1)) + rng.normal(0, 1, (40, 3)), 1)
    assert len(np.unique(marks)) > 25
    there, back = (
        alpha(marks + shift, "interval").estimate(range(40), method="", seed=0, signature="s")
        for shift in (0, 100)
    )
    assert (there.low, there.high) == pytest.approx((back.low, back.high))
    for level in ("nominal", "ordinal"):
        found = alpha(marks, level).estimate(range(40), method="", seed=0, signature="s")
        assert found.low <= (found.value or 0) <= found.high


def test_without_anything_to_compare_there_is_neither_value_nor_interval():
    for table in (np.ones((12, 3)), np.full((12, 3), NAN), np.empty((0, 0)), np.ones((12, 1))):
        for level in ("nominal", "ordinal", "interval"):
            found = alpha(table, level).estimate(
                range(len(table)), method="", seed=0, signature="s"
            )  # type: ignore[arg-type]
            assert (found.value, found.low, found.high) == (None, None, None)
        found = icc(table).estimate(range(len(table)), method="", seed=0, signature="s")
        assert (found.value, found.low, found.high) == (None, None, None)
    few = alpha(np.array([[1.0, 2.0], [2.0, 2.0]])).estimate("ab", method="", seed=0, signature="s")
    assert few.value is not None
    assert few.low is None, "two stories say nothing of others"


def test_values_that_differ_by_rounding_alone_are_constant():
    third, marks = np.full(500, 200 / 3), np.arange(500.0)
    for offset in (0.0, 1 / 3, 1e6):
        assert pearson(third + offset, marks).value is None
        assert concordance(third + offset, third + offset).value is None
    # What differs by little, of what is large, differs all the same.
    a, b = np.array([0.5, 0.501, 0.502]), np.array([0.5, 0.501, 0.5025])
    for offset in (0.0, 1000.0):
        found = pearson(a + offset, b + offset).value
        assert found == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-6)


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(2, 4)),
               elements=st.sampled_from([0.0, 1.0, 2.0, NAN])),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_pooled_correlation_does_not_depend_on_who_sits_where(
    ratings: NDArray[np.float64], random: object
):
    shuffled = ratings.copy()
    for row in shuffled:
        random.shuffle(row)  # type: ignore[attr-defined]
    one, other = (pearson(*pooled_pairs(some)[:2]).value for some in (ratings, shuffled))
    assert (one is None) == (other is None)
    if one is not None:
        assert one == pytest.approx(other)


def test_pooled_pairs_are_all_ordered_pairs():
    a, b, _ = pooled_pairs(np.array([[1.0, 2.0, NAN], [3.0, 4.0, 5.0]]))
    expected = [(1, 2), (2, 1), (3, 4), (4, 3), (3, 5), (5, 3), (4, 5), (5, 4)]
    assert sorted(zip(a, b, strict=True)) == sorted(expected)


def test_ac1_is_that_of_irrcac_and_stands_where_yes_is_rare():
    # The vignette of Gwet's R package irrCAC: `cont3x3abstractors`, 100 patients, two abstractors;
    # AC1 0.8493305, Cohen's kappa 0.7964094.
    cells = {(0, 0): 13, (1, 1): 20, (1, 2): 7, (2, 1): 4, (2, 2): 56}
    table = np.array([cell for cell, n in cells.items() for _ in range(n)], np.float64)
    assert gwet(table, n_categories=3).value == pytest.approx(0.8493305, abs=1e-7)
    assert cohen(*table.T).value == pytest.approx(0.7964094, abs=1e-7)
    rare = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [118, 5, 2], axis=0)
    assert cohen(*rare.T).value < 0 < 0.9 < gwet(rare).value
    assert gwet(np.ones((9, 3))).value == 1
