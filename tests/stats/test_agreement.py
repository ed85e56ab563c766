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
from tests.stats.test_random_tables import fleiss_by_fractions

from fabula.stats.reliability import (
    _alpha_parts,
    _icc_of_sums,
    alpha_interval,
    cohen_kappa,
    cohen_of_sums,
    cohen_sums,
    concordance_of_sums,
    fleiss_kappa,
    fleiss_of_sums,
    fleiss_sums,
    icc_agreement,
    icc_interval,
    krippendorff_alpha,
    pearson,
    pearson_of_sums,
    pearson_sums,
    percent_agreement,
    pooled_pairs,
)

NAN = np.nan


def test_krippendorff_alpha_of_the_published_example():
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C:
    # 4 observers, 12 units, missing data; nominal 0.743, ordinal 0.815, interval 0.849,
    # ratio 0.797.
    table = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
            [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
        ]
    ).T
    assert krippendorff_alpha(table) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(table, "ordinal") == pytest.approx(0.815, abs=5e-4)
    assert krippendorff_alpha(table, "interval") == pytest.approx(0.849, abs=5e-4)
    assert krippendorff_alpha(table, "ratio") == pytest.approx(0.797, abs=5e-4)
    assert krippendorff_alpha(table, lambda a, b: (a - b) ** 2) == pytest.approx(0.849, abs=5e-4)


def test_without_anything_to_disagree_on_there_is_no_value():
    assert krippendorff_alpha(np.empty((0, 3))) is None
    assert fleiss_kappa(np.array([[1.0], [0.0]])) is None
    assert percent_agreement(np.array([[1.0], [0.0]])) is None
    # Two values that a distance takes for one are constant too.
    assert krippendorff_alpha(np.array([[1.0, -1.0]]), lambda a, b: abs(a) - abs(b)) is None
    with pytest.raises(ValueError, match="interval"):
        krippendorff_alpha(np.array([[1.0, -1.0]]), "ratio")


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
        sums, of_sums = _alpha_parts(values, level)
        with np.errstate(all="ignore"):
            found = float(of_sums((times[:, None] * sums).sum(axis=0)))
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
            x = ratings - ratings.mean()
            parts = [np.ones(len(x)), (x**2).sum(axis=1), x.sum(axis=1) ** 2, x]
            with np.errstate(all="ignore"):
                of_sums = float(_icc_of_sums(weights @ np.column_stack(parts)))
            for found in (icc_agreement(drawn), of_sums):
                if expected is None:
                    assert found is None or not np.isfinite(found) or abs(found) > 1e6
                else:
                    assert found == pytest.approx(expected, abs=1e-7)
            n_known += expected is not None
        ratings[rng.integers(len(ratings)), 0] = NAN
        assert icc_agreement(ratings) is None, "the formula needs every person's every answer"
    assert n_known > 180


def test_intervals_of_alpha_and_icc_hold_what_the_ratings_were_drawn_from():
    """Marks with a story's part and a rater's own: ICC and alpha are its share of the variance."""
    rng = np.random.default_rng(8)
    n_held = np.zeros(2)
    for seed in range(60):
        marks = rng.normal(0, 1, (40, 1)) + rng.normal(0, 1, (40, 3))
        for k, found in enumerate((
            alpha_interval(marks, range(40), "interval", seed=seed, signature="s"),
            icc_interval(marks, range(40), seed=seed, signature="s"),
        )):  # fmt: skip
            n_held[k] += found.low <= 0.5 <= found.high
    assert (n_held > 52).all()


def test_intervals_depend_on_no_shift_of_marks_and_take_any_number_of_values():
    rng = np.random.default_rng(9)
    marks = np.round(rng.normal(0, 2, (40, 1)) + rng.normal(0, 1, (40, 3)), 1)
    assert len(np.unique(marks)) > 25
    there, back = (
        alpha_interval(marks + shift, range(40), "interval", seed=0, signature="s")
        for shift in (0, 100)
    )
    assert (there.low, there.high) == pytest.approx((back.low, back.high))
    for level in ("nominal", "ordinal"):
        found = alpha_interval(marks, range(40), level, seed=0, signature="s")
        assert found.low <= (found.value or 0) <= found.high


def test_without_anything_to_compare_there_is_neither_value_nor_interval():
    for table in (np.ones((12, 3)), np.full((12, 3), NAN), np.empty((0, 0)), np.ones((12, 1))):
        for level in ("nominal", "ordinal", "interval"):
            found = alpha_interval(table, range(len(table)), level, seed=0, signature="s")  # type: ignore[arg-type]
            assert (found.value, found.low, found.high) == (None, None, None)
        found = icc_interval(table, range(len(table)), seed=0, signature="s")
        assert (found.value, found.low, found.high) == (None, None, None)
    few = alpha_interval(np.array([[1.0, 2.0], [2.0, 2.0]]), "ab", seed=0, signature="s")
    assert few.value is not None
    assert few.low is None, "two stories say nothing of others"


def test_values_that_differ_by_rounding_alone_are_constant():
    third, marks = np.full(500, 200 / 3), np.arange(500.0)
    with np.errstate(all="ignore"):
        for offset in (0.0, 1 / 3, 1e6):
            same = pearson_sums(third + offset, marks).sum(axis=0)
            assert np.isnan(pearson_of_sums(same))
            both = pearson_sums(third + offset, third + offset).sum(axis=0)
            assert np.isnan(concordance_of_sums(both))
    # What differs by little, of what is large, differs all the same.
    a, b = np.array([0.5, 0.501, 0.502]), np.array([0.5, 0.501, 0.5025])
    for offset in (0.0, 1000.0):
        found = float(pearson_of_sums(pearson_sums(a + offset, b + offset).sum(axis=0)))
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
    one, other = (pearson(*pooled_pairs(some)[:2]) for some in (ratings, shuffled))
    assert (one is None) == (other is None)
    if one is not None:
        assert one == pytest.approx(other)


def test_pooled_pairs_are_all_ordered_pairs():
    a, b, _ = pooled_pairs(np.array([[1.0, 2.0, NAN], [3.0, 4.0, 5.0]]))
    expected = [(1, 2), (2, 1), (3, 4), (4, 3), (3, 5), (5, 3), (4, 5), (5, 4)]
    assert sorted(zip(a, b, strict=True)) == sorted(expected)


ratings_of_three = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 15), st.just(3)), elements=st.sampled_from([0.0, 1.0, NAN])
)


@given(ratings_of_three)
def test_sums_give_what_the_libraries_give(ratings: NDArray[np.float64]):
    a, b = ratings[:, 0], ratings[:, 1]
    with np.errstate(all="ignore"):
        pairs = [
            (fleiss_by_fractions(ratings), fleiss_of_sums(fleiss_sums(ratings).sum(axis=0))),
            (cohen_kappa(a, b), cohen_of_sums(cohen_sums(a, b).sum(axis=0))),
            (pearson(a, b), pearson_of_sums(pearson_sums(a, b).sum(axis=0))),
        ]
    for library, ours in pairs:
        if library is None:
            assert not np.isfinite(ours)
        else:
            assert ours == pytest.approx(library, abs=1e-9)
