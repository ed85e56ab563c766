import itertools
from fractions import Fraction
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

from fabula.stats.reliability import (
    Confusion,
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
    spearman,
)

NAN = np.nan


def ratings_of(counts: list[list[int]]) -> NDArray[np.float64]:
    """A table of how many raters gave each category, as ratings."""
    rows = [[k for k, n in enumerate(row) for _ in range(n)] for row in counts]
    return np.array(rows, np.float64)


def test_fleiss_kappa_of_the_published_example():
    # Fleiss 1971 as worked through in the literature: 10 subjects, 14 raters, 5 categories: 0.210.
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(ratings_of(counts)) == pytest.approx(0.210, abs=5e-4)


def test_krippendorff_alpha_of_two_observers_as_published():
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section A: Meg and Owen,
    # ten items of 0 and 1, alpha 0.095; section B: Ben and Gerry, twelve items of a to e, 0.692.
    binary = np.array([list(map(float, who)) for who in ("0100000010", "1110010000")]).T
    assert krippendorff_alpha(binary) == pytest.approx(0.095, abs=5e-4)
    nominal = np.array([[float(ord(c)) for c in who] for who in ("aabbdcccedda", "babbbccceddd")]).T
    assert krippendorff_alpha(nominal) == pytest.approx(0.692, abs=5e-4)


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


def test_krippendorff_alpha_without_anything_to_disagree_on_is_none():
    lonely = np.array([[1.0, NAN], [NAN, 0.0]])
    constant = np.ones((5, 3))
    for ratings in (np.empty((0, 3)), lonely, constant):
        assert krippendorff_alpha(ratings) is None
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


def test_what_cannot_be_said_is_none_and_never_zero_or_nan():
    ones = np.ones((5, 3))
    assert fleiss_kappa(ones) is None
    assert krippendorff_alpha(ones) is None
    assert percent_agreement(ones) == 100
    assert cohen_kappa(np.ones(4), np.ones(4)) is None
    assert fleiss_kappa(np.array([[1.0], [0.0]])) is None
    assert krippendorff_alpha(np.array([[1.0, NAN], [NAN, 0.0]])) is None
    assert percent_agreement(np.array([[1.0], [0.0]])) is None
    assert pearson(np.ones(5), np.arange(5.0)) is None
    assert spearman(np.array([1.0]), np.array([2.0])) is None
    nothing = Confusion.of(np.zeros(3), np.zeros(3))
    assert nothing.precision is nothing.recall is nothing.f1 is nothing.phi is None
    assert nothing.balanced_accuracy is None
    assert nothing.accuracy == 1
    assert Confusion(0, 0, 0, 0).accuracy is None


def test_missing_ratings_are_left_out_of_pairs():
    a, b = np.array([1, 0, NAN, 1]), np.array([1, NAN, 0, 0])
    assert Confusion.of(a, b) == Confusion(1, 1, 0, 0)
    assert percent_agreement(np.column_stack([a, b])) == 50


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


def fleiss_by_pairs(ratings: NDArray[np.float64]) -> float | None:
    """Slow: over the pairs of each subject, and over what two raters of the whole would say."""
    subjects = [[r for r in row if not np.isnan(r)] for row in ratings.tolist()]
    subjects = [row for row in subjects if len(row) > 1]
    kinds = sorted({r for row in subjects for r in row})
    if len(kinds) < 2:
        return None
    equal, shares = [], []
    for row in subjects:
        pairs = list(itertools.combinations(row, 2))
        equal.append(Fraction(sum(a == b for a, b in pairs), len(pairs)))
        shares.append([Fraction(row.count(kind), len(row)) for kind in kinds])
    n = len(subjects)
    observed = sum(equal) / n
    chance = sum((sum(column) / n) ** 2 for column in zip(*shares, strict=True))
    return float((observed - chance) / (1 - chance))


unbalanced = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 15), st.integers(1, 5)),
    elements=st.sampled_from([0.0, 1.0, 2.0, NAN]),
)  # fmt: skip


def test_cohen_kappa_of_the_published_example():
    # Cohen 1968, "Nominal scale agreement with provision for scaled disagreement": 200 subjects
    # and two judges, kappa 0.492.
    counts = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    cells = np.argwhere(counts).repeat(counts.ravel(), axis=0)
    assert cohen_kappa(*cells.T.astype(np.float64)) == pytest.approx(0.492, abs=5e-4)


@given(unbalanced, st.integers(0, 4))
def test_a_rater_more_of_one_subject_drops_no_other(ratings: NDArray[np.float64], place: int):
    more = np.column_stack([ratings, np.full(len(ratings), NAN)])
    more[place % len(more), -1] = 1.0
    n, n_more = (fleiss_sums(table)[:, 0].sum() for table in (ratings, more))
    assert n <= n_more <= n + 1


def test_raters_may_sit_in_any_column():
    # Four raters by turns, two a subject: no column is whole, each subject has its pair.
    ratings = np.full((12, 4), NAN)
    for k in range(12):
        ratings[k, [k % 4, (k + 1) % 4]] = [k % 2, (k // 3) % 2]
    packed = np.array([row[~np.isnan(row)] for row in ratings])
    assert fleiss_kappa(ratings) == pytest.approx(fleiss_kappa(packed))


ratings_of_three = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 15), st.just(3)), elements=st.sampled_from([0.0, 1.0, NAN])
)


@given(ratings_of_three)
def test_sums_give_what_the_libraries_give(ratings: NDArray[np.float64]):
    a, b = ratings[:, 0], ratings[:, 1]
    with np.errstate(all="ignore"):
        pairs = [
            (fleiss_by_pairs(ratings), fleiss_of_sums(fleiss_sums(ratings).sum(axis=0))),
            (cohen_kappa(a, b), cohen_of_sums(cohen_sums(a, b).sum(axis=0))),
            (pearson(a, b), pearson_of_sums(pearson_sums(a, b).sum(axis=0))),
        ]
    for library, ours in pairs:
        if library is None:
            assert not np.isfinite(ours)
        else:
            assert ours == pytest.approx(library, abs=1e-9)
