import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabula.core.types import Estimate
from fabula.stats.agreement import Association, association_within


def within(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    strata: list[int],
    kind: Association,
    clusters: list[int] | None = None,
) -> Estimate:
    of = list(range(len(x))) if clusters is None else clusters
    return association_within(x, y, strata, of, kind=kind, method="m", signature="s")


@settings(deadline=None)
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


def test_what_strata_explain_is_no_association():
    strata = [0] * 40 + [1] * 40
    rng = np.random.default_rng(1)
    # Long texts are better, and the judge follows the experts, not the length.
    x = np.array(strata) * 100 + rng.integers(0, 10, 80)
    y = np.where(rng.random(80) < 0.9, strata, 1 - np.array(strata)).astype(np.float64)
    alone = within(x.astype(np.float64), y, [0] * 80, "correlation").value or 0
    given_experts = within(x.astype(np.float64), y, strata, "correlation").value or 0
    assert alone > 0.7
    assert abs(given_experts) < 0.25


def test_intervals_are_over_clusters_and_take_ten():
    rng = np.random.default_rng(2)
    x = np.repeat(rng.random(20), 5)
    y = np.repeat(rng.random(20), 5)
    whole = within(x, y, [0] * 100, "correlation", np.repeat(np.arange(20), 5).tolist())
    rows = within(x, y, [0] * 100, "correlation")
    few = within(x[:45], y[:45], [0] * 45, "correlation", np.repeat(np.arange(9), 5).tolist())
    assert whole.n_units == 20
    assert None not in (whole.low, whole.high, rows.low, rows.high)
    assert (whole.high or 0) - (whole.low or 0) > 1.5 * ((rows.high or 0) - (rows.low or 0))
    assert few.value is not None
    assert few.low is None
