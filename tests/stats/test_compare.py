"""Statistics against published worked examples and slow definitions."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stats.contrasted import means, percent

from fabula.stats.contrasts import holm, mean_estimate

numbers = st.lists(st.floats(0, 8, width=16), min_size=1, max_size=12)


def test_holm_by_hand():
    # Four tests: 0.005 * 4, 0.01 * 3, then 0.03 * 2 = 0.06 is above 0.04 * 1, which rises to it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, None, 0.8]) == [1.0, None, 1.0]
    assert holm([]) == []


@given(numbers, numbers)
def test_mann_whitney_u_counts_pairs(a: list[float], b: list[float]):
    found = means(a, b)
    u = sum((x > y) + 0.5 * (x == y) for x, y in itertools.product(a, b))
    assert found.details["u"] == pytest.approx(u)
    assert found.details["superiority"] == pytest.approx(u / (len(a) * len(b)))
    assert 0 <= found.p <= 1


def test_mann_whitney_p_of_a_worked_example():
    # All of A below all of B, 3 against 4: 2 of the 35 orders are as extreme.
    assert means([1, 2, 3], [4, 5, 6, 7]).p == pytest.approx(2 / 35)


def test_the_percentage_difference_is_against_b():
    # Lu et al. 2024, footnote 2: (human - model) / model.
    found = percent(means([6.0] * 10, [4.0] * 11))
    assert (found.value, found.low, found.high, found.n) == (50.0, None, None, 21)


def test_empty_constant_and_single_groups_are_defined():
    same = means([2.0, 2.0], [2.0, 2.0, 2.0])
    assert (same.p, same.details["superiority"], percent(same).value) == (1.0, 0.5, 0.0)
    assert means([], [1.0]).p is None
    assert percent(means([1.0], [0.0])).value is None
    single = mean_estimate([3.0], signature="")
    assert (single.value, single.low, single.high, single.n) == (3.0, None, None, 1)
    constant = mean_estimate([2.0] * 10, signature="")
    assert (constant.value, constant.low, constant.high) == (2.0, None, None)
    assert mean_estimate([], signature="").value is None
