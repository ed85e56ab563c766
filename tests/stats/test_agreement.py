from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from statsmodels.stats.anova import anova_lm

from fabula.core.types import Estimate
from fabula.stats.agreement import (
    Association,
    alpha,
    association_within,
    cohen,
    concordance,
    gwet,
    icc,
    pearson,
    pooled_pairs,
)

NAN = np.nan
LEVELS: tuple[Any, ...] = ("nominal", "ordinal", "interval")


def estimate(statistic: Any, n: int, seed: int = 0) -> Any:
    """Over n stories."""
    return statistic.estimate(range(n), method="", seed=seed, signature="s")


def test_krippendorff_alpha_of_the_published_example():
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C:
    # 4 observers, 12 units, missing data; nominal 0.743, ordinal 0.815, interval 0.849.
    rows = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    table = np.array([[NAN if one == "." else float(one) for one in row] for row in rows]).T
    assert alpha(table).value == pytest.approx(0.743, abs=5e-4)
    assert alpha(table, "ordinal").value == pytest.approx(0.815, abs=5e-4)
    assert alpha(table, "interval").value == pytest.approx(0.849, abs=5e-4)


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
    for _ in range(25):
        ratings = rng.integers(1, 6, (rng.integers(2, 9), rng.integers(2, 5))).astype(np.float64)
        times = rng.integers(0, 3, len(ratings))
        times[:2] += 1
        for weights in (np.ones(len(ratings), np.int64), times):
            drawn = np.repeat(ratings, weights, axis=0)
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
    assert n_known > 44


def test_intervals_of_alpha_and_icc_hold_what_the_ratings_were_drawn_from():
    """Marks with a story's part and a rater's own: ICC and alpha are its share of the variance."""
    rng = np.random.default_rng(8)
    n_held = np.zeros(2)
    for seed in range(60):
        marks = rng.normal(0, 1, (40, 1)) + rng.normal(0, 1, (40, 3))
        for k, statistic in enumerate((alpha(marks, "interval"), icc(marks))):
            found = estimate(statistic, 40, seed)
            n_held[k] += found.low <= 0.5 <= found.high
    assert (n_held > 52).all()


def test_intervals_depend_on_no_shift_of_marks_and_take_any_number_of_values():
    rng = np.random.default_rng(9)
    marks = np.round(rng.normal(0, 2, (40, 1)) + rng.normal(0, 1, (40, 3)), 1)
    assert len(np.unique(marks)) > 25
    there, back = (estimate(alpha(marks + shift, "interval"), 40) for shift in (0, 100))
    assert (there.low, there.high) == pytest.approx((back.low, back.high))
    for level in ("nominal", "ordinal"):
        found = estimate(alpha(marks, level), 40)
        assert found.low <= (found.value or 0) <= found.high


@pytest.mark.parametrize(
    "table",
    [np.ones((12, 3)), np.full((12, 3), NAN), np.empty((0, 0)), np.empty((0, 3)), np.ones((12, 1))],
)
def test_without_anything_to_compare_there_is_neither_value_nor_interval(table: Any):
    for statistic in (*(alpha(table, level) for level in LEVELS), icc(table)):
        found = estimate(statistic, len(table))
        assert (found.value, found.low, found.high) == (None, None, None)
    few = estimate(alpha(np.array([[1.0, 2.0], [2.0, 2.0]])), 2)
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
def test_pooled_correlation_does_not_depend_on_seats(ratings: NDArray[np.float64], random: object):
    shuffled = ratings.copy()
    for row in shuffled:
        random.shuffle(row)  # type: ignore[attr-defined]
    one, other = (pearson(*pooled_pairs(some)[:2]).value for some in (ratings, shuffled))
    assert (one is None) == (other is None)
    if one is not None:
        assert one == pytest.approx(other)


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


Floats = NDArray[np.float64]


def within(x: Floats, y: Floats, strata: list[int], kind: Association, of: Any = None) -> Estimate:
    """Over clusters, where they are given."""
    clusters = list(range(len(x))) if of is None else of
    return association_within(x, y, strata, clusters, kind=kind, method="m", signature="s")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(0, 3)), min_size=2,
                max_size=30))  # fmt: skip
def test_it_is_the_regression_with_a_constant_for_each_stratum(rows: list[tuple[int, int, int]]):
    x, y = (np.array([row[k] for row in rows], np.float64) for k in (0, 1))
    strata = [row[2] for row in rows]
    dummies = np.array([[s == k for k in range(4)] for s in strata], np.float64)
    # What is left of each when the strata are regressed out.
    left_x = x - dummies @ np.linalg.lstsq(dummies, x, rcond=None)[0]
    left_y = y - dummies @ np.linalg.lstsq(dummies, y, rcond=None)[0]
    slope, correlation = within(x, y, strata, "slope"), within(x, y, strata, "correlation")
    if np.allclose(left_x, 0):
        assert slope.value is None
    else:
        full = np.linalg.lstsq(np.column_stack([x, dummies]), y, rcond=None)[0]
        assert slope.value == pytest.approx(full[0], abs=1e-6)
    if np.allclose(left_x, 0) or np.allclose(left_y, 0):
        assert correlation.value is None
    else:
        assert correlation.value == pytest.approx(np.corrcoef(left_x, left_y)[0, 1], abs=1e-6)


def test_the_slope_of_two_groups_is_the_difference_of_mantel_and_haenszel():
    # Cochran 1954: differences of shares, weighted by n1 n0 / n of each stratum.
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 2, 90).astype(np.float64) for _ in range(2))
    strata = rng.integers(0, 3, 90)
    total = weights = 0.0
    for stratum in range(3):
        a, b = (y[(strata == stratum) & (x == side)] for side in (1, 0))
        weight = len(a) * len(b) / (len(a) + len(b))
        total, weights = total + weight * (a.mean() - b.mean()), weights + weight
    assert within(x, y, strata.tolist(), "slope").value == pytest.approx(total / weights)


def test_intervals_are_over_clusters_and_take_ten():
    rng = np.random.default_rng(2)
    x = np.repeat(rng.random(20), 5)
    y = np.repeat(rng.random(20), 5)
    clusters = np.repeat(np.arange(20), 5).tolist()
    whole, rows = (within(x, y, [0] * 100, "correlation", of) for of in (clusters, None))
    few = within(x[:45], y[:45], [0] * 45, "correlation", clusters[:45])
    assert whole.n_units == 20
    assert None not in (whole.low, whole.high, rows.low, rows.high)
    assert (whole.high or 0) - (whole.low or 0) > 1.5 * ((rows.high or 0) - (rows.low or 0))
    assert few.value is not None
    assert few.low is None
