"""Upper bounds of shares: against SciPy, and how often they are exceeded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fabula.stats.prediction_powered import clopper_pearson_high, share_high


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
    exceeded = sum(
        share_high(rng.beta(mean * spread, (1 - mean) * spread, 25)) < mean for _ in range(100)
    )
    assert exceeded <= 10  # 5 are expected at 5 %; more than 10 have a probability of 1 %
