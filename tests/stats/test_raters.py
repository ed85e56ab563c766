from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fabula.stats.raters import dawid_skene

NAN = np.nan


def ratings_of(rows: list[str]) -> NDArray[np.float64]:
    return np.array([[NAN if c == "." else float(c) for c in row] for row in rows])


@pytest.fixture(autouse=True, scope="module")
def few_resamples() -> Iterator[None]:
    """Intervals are not what most of these tests are about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fabula.stats.raters._N_RESAMPLES", 40)
        yield


# Of crowd-kit 1.4.2, DawidSkene(n_iter=400, tol=-1e9): a row a task, a column a worker, `.` where
# none. With its own tolerance it stops after three steps, where its loss falls for once.
TWO = ratings_of(
    ["00.1", "0.00", "..00", "0110", "1111", "1011", "101.", "0000", "1111", "1011", "1111", "1111",
     "0000", "1.11", "1111", "0.00", "1111", "1100", ".000", "..00", "1010", "11.1", "1011", "1.01"]
)  # fmt: skip
THREE = ratings_of(
    ["02122", "02.22", "0..02", "20221", "1.111", "111.0", "12111", "0010.", "22.22", ".10.0",
     "2.00.", ".1120", "111.0", "12111", "20002", "00.00", "00000", "00101", ".1001", ".2222",
     "00.02", "11011", "..222", "00...", "20.00", "11111", "00012", "2.222", "0000.", "22220"]
)  # fmt: skip


def test_dawid_skene_of_two_categories_as_crowd_kit_has_it() -> None:
    fit = dawid_skene(TWO)
    assert fit.has_converged
    assert fit.shares == pytest.approx((0.478712, 0.521288), abs=1e-4)
    wanted = [(1, 0), (1, 0), (1, 0), (1, 0), (0.003168, 0.996832), (0.014361, 0.985639)]
    for found, row in zip(fit.probabilities, wanted, strict=False):
        assert found == pytest.approx(row, abs=1e-4)
    confusions = [
        ((0.706791, 0.293209), (0.0, 1.0)), ((0.716962, 0.283038), (0.355913, 0.644087)),
        ((0.792226, 0.207774), (0.060868, 0.939132)), ((0.878586, 0.121414), (0.0, 1.0)),
    ]  # fmt: skip
    for skill, rows in zip(fit.raters, confusions, strict=True):
        assert np.array(skill.confusion) == pytest.approx(np.array(rows), abs=1e-4)
        assert skill.ability.value == pytest.approx((rows[0][0] + rows[1][1]) / 2, abs=1e-4)


def test_dawid_skene_of_three_categories_with_gaps_as_crowd_kit_has_it() -> None:
    fit = dawid_skene(THREE)
    assert fit.shares == pytest.approx((0.449641, 0.281978, 0.268381), abs=1e-4)
    wanted = [
        [[0.748924, 0.0, 0.251076], [0.0, 1.0, 0.0], [0.338999, 0.0, 0.661001]],
        [[0.865904, 0.134096, 0.0], [0.0, 0.73188, 0.26812], [0.173748, 0.0, 0.826252]],
        [[0.765826, 0.234174, 0.0], [0.172513, 0.827487, 0.0], [0.0, 0.166667, 0.833333]],
        [[0.916667, 0.083333, 0.0], [0.0, 0.833333, 0.166667], [0.0, 0.0, 1.0]],
        [[0.371112, 0.209629, 0.419258], [0.408938, 0.591062, 0.0], [0.125, 0.125, 0.75]],
    ]
    for skill, rows in zip(fit.raters, wanted, strict=True):
        assert np.array(skill.confusion) == pytest.approx(np.array(rows), abs=1e-4)


def slow_em(
    ratings: NDArray[np.float64], n_iterations: int
) -> tuple[list[list[float]], list[list[list[float]]]]:
    """Dawid and Skene step by step, one number at a time: probabilities, and masses of answers."""
    names = sorted({v for row in ratings.tolist() for v in row if not math.isnan(v)})
    n_raters, k = ratings.shape[1], len(names)
    answers = [
        [(r, names.index(v)) for r, v in enumerate(row) if not math.isnan(v)]
        for row in ratings.tolist()
    ]
    answered = [row for row in answers if row]
    chances = [[sum(a == c for _, a in row) / len(row) for c in range(k)] for row in answered]
    for _ in range(n_iterations):
        shares = [math.fsum(p[c] for p in chances) / len(chances) for c in range(k)]
        mass = [[[0.0] * k for _ in range(k)] for _ in range(n_raters)]
        for row, p in zip(answered, chances, strict=True):
            for r, a in row:
                for c in range(k):
                    mass[r][c][a] += p[c]
        mass = [[[max(m, 1e-10) for m in row] for row in of_rater] for of_rater in mass]
        chances = []
        for row in answered:
            likely = []
            for c in range(k):
                product = max(shares[c], 1e-10)
                for r, a in row:
                    product *= mass[r][c][a] / math.fsum(mass[r][c])
                likely.append(product)
            chances.append([one / math.fsum(likely) for one in likely])
    return chances, mass


tables = hnp.arrays(
    np.float64, st.tuples(st.integers(4, 12), st.integers(3, 5)),
    elements=st.sampled_from([0.0, 1.0, 1.0, 4.0, NAN]),
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(tables)
def test_dawid_skene_is_em_step_by_step(ratings: NDArray[np.float64]) -> None:
    fit = dawid_skene(ratings)
    if fit.missing_reason:
        assert all(one.ability.value is None for one in fit.raters)
        return
    if fit.n_iterations > 100:
        # Where a table treats two categories alike, EM stands on a ridge: after so many steps the
        # last bits of a sum have decided on which side it comes down.
        return
    chances, _ = slow_em(ratings, fit.n_iterations)
    found = [row for row in fit.probabilities if row is not None]
    # Latent categories may have been renamed after the votes: the same columns in another order.
    orders = list(itertools.permutations(range(len(fit.categories))))
    assert any(np.allclose(np.array(found)[:, o], chances, atol=1e-5) for o in orders)
    assert len(fit.probabilities) == len(ratings)
    assert (np.isnan(ratings).all(axis=1) == [row is None for row in fit.probabilities]).all()


@settings(deadline=None, max_examples=40)
@given(tables)
def test_nothing_is_nan(ratings: NDArray[np.float64]) -> None:
    fit = dawid_skene(ratings)
    for skill in fit.raters:
        assert (skill.ability.value is None) == (skill.missing_reason is not None)
        assert skill.ability.value is None or math.isfinite(skill.ability.value)
        if skill.ability.value is not None:
            assert 0 <= skill.ability.value <= 1
            rows = [row for row in skill.confusion if row is not None]
            assert [math.fsum(row) for row in rows] == pytest.approx([1] * len(rows))
    for row in fit.probabilities:
        assert row is None or math.fsum(row) == pytest.approx(1)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (["...", "..."], "there are no answers"),
        (["1..", "0..", "1.."], "there is one rater only"),
        (["111", "111"], "everybody gave the same answer to everything"),
        (["10.", "01.", "..1"], "no subject was answered by 3 raters"),
    ],
)
def test_a_table_that_determines_nothing_has_a_reason(rows: list[str], reason: str) -> None:
    fit = dawid_skene(ratings_of(rows))
    assert fit.missing_reason == reason
    assert set(fit.probabilities) == {None}
    assert {one.missing_reason for one in fit.raters} == {reason}


def test_a_rater_who_meets_nobody_has_no_ability() -> None:
    ratings = ratings_of([*["111..", "000..", "110.."] * 4, "...1.", "...0."])
    fit = dawid_skene(ratings)
    assert fit.raters[3].missing_reason == "shares no subject with two other raters"
    assert fit.raters[4].missing_reason == "gave no answer"
    assert fit.raters[0].ability.value is not None


def test_who_always_says_the_contrary_is_told_from_who_guesses() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    good = [np.where(rng.random(300) < 0.9, truth, 1 - truth) for _ in range(3)]
    ratings = np.array([*good, 1 - truth, rng.integers(0, 2, 300)], np.float64).T
    fit = dawid_skene(ratings)
    values = [one.ability.value or 0 for one in fit.raters]
    assert min(values[:3]) > 0.85
    assert values[3] < 0.05
    assert abs(values[4] - 0.5) < 0.1
    right = [row is not None and row[t] > 0.5 for row, t in zip(fit.probabilities, truth,
                                                                strict=True)]  # fmt: skip
    assert np.mean(right) > 0.95


def test_categories_keep_the_names_that_the_votes_give_them() -> None:
    # Renaming answers 0 and 1 renames the result, and nothing else.
    for ratings in (TWO, THREE[:, :3]):
        top = np.nanmax(ratings)
        straight, turned = dawid_skene(ratings), dawid_skene(top - ratings)
        for a, b in zip(straight.probabilities, turned.probabilities, strict=True):
            assert a == pytest.approx(b and b[::-1], abs=1e-4)


def test_intervals_are_over_documents_and_take_ten() -> None:
    subjects = np.repeat(np.arange(12), 2)
    few = np.repeat(np.arange(6), 4)
    by_twelve, again = dawid_skene(TWO, subjects.tolist()), dawid_skene(TWO, subjects.tolist())
    assert by_twelve == again
    for skill in by_twelve.raters:
        one = skill.ability
        assert one.n_units in (11, 12)  # One rater answered nothing of one document.
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high
    by_six = dawid_skene(TWO, few.tolist())
    assert {(one.ability.low, one.ability.n_units) for one in by_six.raters} == {(None, 6)}
