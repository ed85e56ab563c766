import math
import random
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import t as student_t

from fabula.stats.ranking import (
    Cells,
    Comparisons,
    Pair,
    Ranking,
    drawn_pairs,
    fit,
    is_told_apart,
    least_pairs,
    rank,
)


def comparisons(rows: list[tuple[int, int, float]], **more: Any) -> Comparisons:
    first, second, outcome = zip(*rows, strict=True)
    return Comparisons(np.array(first), np.array(second), np.array(outcome, np.float64), **more)


def ranked(answers: Comparisons, n_things: int, seed: int = 0) -> Ranking:
    return rank(answers, n_things, seed=seed, signature="s")


def values(ranking: Ranking) -> dict[int, float | None]:
    return {one.thing: one.estimate.value for one in ranking.strengths}


def simulated(
    strengths: list[float], place: float, n_times: int, rng: np.random.Generator, spread: float = 0
) -> Comparisons:
    """Both orders of every pair, `n_times`; `spread` is how much pairs deviate from strengths."""
    rows = []
    for a, b in combinations(range(len(strengths)), 2):
        gap = strengths[a] - strengths[b] + spread * rng.standard_normal()
        for x, y, ahead in ((a, b, gap), (b, a, -gap)):
            p = 1 / (1 + math.exp(-(ahead + place)))
            rows += [(x, y, float(rng.random() < p)) for _ in range(n_times)]
    return comparisons(rows)


# choix 0.4.1, ilsr_pairwise(max_iter=100000, tol=1e-13), on the data that `games` draws.
CHOIX = {
    (5, 60, 1): [1.481999154, 0.687650051, -0.39792074, -0.810305201, -0.961423263],
    (8, 150, 2): [2.331978354, -0.282680432, 0.371889167, 0.099383319, 1.073491665, -2.368484409,
                  -0.606496016, -0.619081647],
}  # fmt: skip


def games(n_things: int, n_games: int, seed: int) -> list[tuple[int, int, float]]:
    """Winner and loser of random games, by Python's generator, which is the same everywhere."""
    rng = random.Random(seed)
    strengths = [rng.gauss(0, 1) for _ in range(n_things)]
    found = []
    for _ in range(n_games):
        a, b = rng.sample(range(n_things), 2)
        p = 1 / (1 + 2.718281828459045 ** -(strengths[a] - strengths[b]))
        found.append((a, b, 1.0) if rng.random() < p else (b, a, 1.0))
    return found


@pytest.mark.parametrize("case", list(CHOIX))
def test_strengths_without_ties_and_place_are_those_of_choix(case: tuple[int, int, int]):
    tally = comparisons(games(*case)).tally(case[0])
    cells = Cells(tally.first, tally.second, np.zeros(case[0], np.int64), has_place=False)
    strengths = fit(cells, tally.shown[None], tally.preferred[None])[0]
    assert strengths == pytest.approx(CHOIX[case], abs=1e-6)


def oracle(answers: Comparisons, n_things: int) -> NDArray[np.float64]:
    """Strengths and place by a generic optimiser on the log-likelihood, answer by answer."""

    def loss(theta: NDArray[np.float64]) -> float:
        odds = theta[answers.first] - theta[answers.second] + theta[-1]
        won = answers.outcome * np.logaddexp(0, -odds)
        lost = (1 - answers.outcome) * np.logaddexp(0, odds)
        # The mean of strengths is free, so held at 0.
        return float((won + lost).sum() + theta[:-1].sum() ** 2)

    return np.asarray(minimize(loss, np.zeros(n_things + 1), method="BFGS", tol=1e-9).x)


@given(st.integers(2, 5), st.data())
def test_the_fit_with_ties_and_place_is_that_of_a_generic_optimiser(n_things: int, data: Any):
    thing = st.integers(0, n_things - 1)
    row = st.tuples(thing, thing, st.sampled_from([0.0, 0.5, 1.0])).filter(lambda r: r[0] != r[1])
    answers = comparisons(data.draw(st.lists(row, min_size=4, max_size=40)))
    found = ranked(answers, n_things)
    strengths = values(found)
    assume(all(value is not None for value in strengths.values()) and found.place_reason is None)
    expected = oracle(answers, n_things)
    assert [strengths[k] for k in range(n_things)] == pytest.approx(expected[:-1], abs=2e-3)
    assert found.place.value == pytest.approx(expected[-1], abs=2e-3)
    assert math.fsum(v for v in strengths.values() if v is not None) == pytest.approx(0, abs=1e-9)


@given(st.integers(0, 1000), st.permutations(range(5)))
def test_names_do_not_matter_and_turned_outcomes_turn_the_ranking(seed: int, order: list[int]):
    rng = np.random.default_rng(seed)
    answers = simulated([1, 0.5, 0, -0.5, -1], 0.3, 4, rng)
    plain = values(ranked(answers, 5))
    numbers = np.array(order)
    renamed = Comparisons(numbers[answers.first], numbers[answers.second], answers.outcome)
    other = values(ranked(renamed, 5))
    turned = ranked(Comparisons(answers.second, answers.first, answers.outcome), 5)
    opposite = values(turned)
    for thing, value in plain.items():
        assert other[order[thing]] == pytest.approx(value, abs=1e-7)
        assert opposite[thing] == (None if value is None else pytest.approx(-value, abs=1e-7))


def test_what_is_preferred_every_time_has_a_place_in_the_order_and_no_strength():
    # 0 beats all, 3 loses to all; 1 and 2 each win once.
    rows = [(0, 1), (0, 2), (0, 3), (1, 2), (2, 1), (1, 3), (2, 3)]
    found = ranked(comparisons([(a, b, 1.0) for a, b in rows] + [(b, a, 0.0) for a, b in rows]), 4)
    assert [one.thing for one in found.strengths] == [0, 1, 2, 3]
    assert [one.missing_reason for one in found.strengths] == ["one_sided", None, None, "one_sided"]
    assert [one.estimate.value for one in found.strengths] == [None, 0.0, 0.0, None]
    assert [(int(gap.a), int(gap.b)) for gap in found.gaps] == [(1, 2)]
    # A consistent order is an order without strengths.
    found = ranked(comparisons([(a, b, 1.0) for a, b in combinations([3, 1, 0, 2], 2)]), 4)
    assert [one.thing for one in found.strengths] == [3, 1, 0, 2]
    assert {one.missing_reason for one in found.strengths} == {"one_sided"}


def test_what_is_not_connected_lies_in_parts_of_its_own():
    rows = [(0, 1, 1.0), (0, 1, 1.0), (1, 0, 1.0), (2, 3, 1.0), (3, 2, 1.0), (3, 2, 1.0)]
    found = ranked(comparisons(rows), 5)
    parts = {one.thing: one.part for one in found.strengths}
    assert parts[0] == parts[1] != parts[2] == parts[3]
    by_thing = values(found)
    assert by_thing[0] == pytest.approx(-(by_thing[1] or 0))
    assert by_thing[3] == pytest.approx(-(by_thing[2] or 0))
    reasons = {one.thing: one.missing_reason for one in found.strengths}
    assert (by_thing[4], reasons[4]) == (None, "not_compared")


def test_a_rater_who_always_takes_the_first_ranks_nothing():
    rows = [(a, b, 1.0) for a in range(6) for b in range(6) if a != b]
    found = ranked(comparisons(rows), 6)
    assert (found.place.value, found.place_reason) == (None, "one_sided")
    assert all(value == pytest.approx(0, abs=1e-9) for value in values(found).values())
    assert not found.is_told_from_chance
    # Nor is a place told that cannot be told from strengths.
    found = ranked(comparisons([(0, 1, 1.0), (0, 1, 1.0), (0, 1, 0.0)]), 2)
    assert (found.place.value, found.place_reason) == (None, "place_unknown")
    assert values(found)[0] == pytest.approx(math.log(2) / 2)


def joined(*parts: Comparisons, **more: Any) -> Comparisons:
    names = ("first", "second", "outcome")
    return Comparisons(*(np.concatenate([getattr(p, n) for p in parts]) for n in names), **more)


def by_cluster(n_clusters: int, seed: int) -> Comparisons:
    """Texts of three groups on each prompt, whose worth varies from prompt to prompt."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(0, 0.7, (n_clusters, 3))
    parts = [simulated([1 + a, b, -1 + c], 0.3, 1, rng) for a, b, c in worth]
    return joined(*parts, cluster=np.repeat(np.arange(n_clusters), [len(p.first) for p in parts]))


@pytest.mark.parametrize("units", ["pairs", "clusters"])
def test_errors_are_those_of_leaving_out_each_pair_or_cluster_in_one_step(units: str):
    if units == "pairs":
        answers = simulated([1, 0.3, 0, -0.4, -0.9], 0.4, 3, np.random.default_rng(5), 0.5)
        unit_of, n_things = answers.units().of, 5
    else:
        answers = by_cluster(14, 3)
        # Clusters of several sizes: some lack a group, or have one comparison only.
        some = np.random.default_rng(0).random(len(answers.first)) < 0.7
        answers = answers.take(some | (answers.cluster == 13))
        unit_of, n_things = np.array(answers.cluster), 3
    n_units = len(np.unique(unit_of))
    found = ranked(answers, n_things)
    theta = oracle(answers, n_things)
    eye = np.eye(n_things)
    rows = np.column_stack([eye[answers.first] - eye[answers.second], np.ones(len(answers.first))])
    p = 1 / (1 + np.exp(-rows @ theta))
    centre = np.zeros((n_things + 1, n_things + 1))
    centre[:n_things, :n_things] = 1
    moves = []
    for unit in np.unique(unit_of):
        out = unit_of == unit
        left = rows[~out].T * (p * (1 - p))[~out] @ rows[~out] + centre
        moves.append(np.linalg.solve(left, rows[out].T @ (answers.outcome - p)[out]))
    covariance = (n_units - 1) / n_units * sum(np.outer(move, move) for move in moves)
    for one in found.strengths:
        reach = student_t.ppf(0.975, n_units - 1) * covariance[one.thing, one.thing] ** 0.5
        assert one.estimate.high - one.estimate.value == pytest.approx(reach, rel=1e-3)
    assert (found.units, found.n_units) == (units, n_units)
    assert n_units >= 10


def test_fewer_than_ten_pairs_have_no_interval():
    found = ranked(simulated([1, 0.5, 0, -1], 0.2, 20, np.random.default_rng(0)), 4)
    assert found.n_units == 6
    estimates = [one.estimate for one in found.strengths] + [one.difference for one in found.gaps]
    for one in (*estimates, found.place):
        assert one.value is not None
        assert (one.low, one.high) == (None, None)
    assert [is_told_apart(gap) for gap in found.gaps] == [None] * 3


def test_a_pair_that_alone_connects_others_leaves_no_error():
    left = simulated([0.5, 0, -0.5, 0, 0.2], 0.0, 6, np.random.default_rng(1))
    right = simulated([0.5, 0, -0.5, 0, 0.2], 0.0, 6, np.random.default_rng(2))
    bridge = comparisons([(0, 5, 1.0), (5, 0, 1.0), (0, 5, 0.0), (5, 0, 0.0)])
    right = Comparisons(right.first + 5, right.second + 5, right.outcome)
    found = ranked(joined(left, right, bridge), 10)
    assert all(one.estimate.value is not None for one in found.strengths)
    assert all(one.estimate.low is None for one in found.strengths)
    assert found.place.low is not None


def test_the_test_of_chance_is_that_of_every_way_to_turn_pairs():
    answers = simulated([1.2, 0.4, -0.2, -1.4], 0.5, 2, np.random.default_rng(3))
    residual = answers.outcome - answers.outcome.mean()
    nets = []
    for a, b in combinations(range(4), 2):
        ours = (answers.first == a) & (answers.second == b)
        theirs = (answers.first == b) & (answers.second == a)
        net = residual[ours].sum() - residual[theirs].sum()
        nets.append(net * (np.eye(4)[a] - np.eye(4)[b]))
    # All pairs met as often, so the weights are the same for all.
    scores = [((np.array(way) @ nets) ** 2).sum() for way in product((1, -1), repeat=6)]
    exact = np.mean(np.array(scores) >= scores[0] - 1e-9)
    # 2,000 ways drawn of 64: within four standard errors.
    found = ranked(answers, 4).p_chance
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 2000) + 1e-3)


def test_equal_things_are_seldom_told_from_chance_however_alike_answers_about_a_pair_are():
    n_told = 0
    for seed in range(60):
        answers = simulated([0.0] * 6, 0.8, 10, np.random.default_rng(seed), spread=1.5)
        n_told += ranked(answers, 6, seed).is_told_from_chance
    # 60 at 5 %: more than 9 have a chance below 0.2 %.
    assert n_told <= 9


def test_groups_are_told_apart_over_many_clusters_and_not_over_nine():
    found = ranked(by_cluster(40, 0), 3)
    assert (found.units, found.n_units) == ("clusters", 40)
    assert [one.thing for one in found.strengths] == [0, 1, 2]
    assert found.is_told_from_chance
    assert [is_told_apart(gap) for gap in found.gaps] == [True, True]
    nine = ranked(by_cluster(9, 0), 3)
    assert all(one.estimate.low is None for one in nine.strengths)
    assert [gap.p for gap in nine.gaps] == [None, None]


@pytest.mark.parametrize("row", [(0, 0, 1.0), (0, 1, 0.7)])
def test_what_is_no_comparison_is_refused(row: tuple[int, int, float]):
    with pytest.raises(ValueError, match=r"itself|outcome"):
        comparisons([row])
    # No answers are no ranking.
    nothing = Comparisons(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    found = ranked(nothing, 3)
    assert {one.missing_reason for one in found.strengths} == {"not_compared"}
    assert (found.p_chance, found.place.value, found.is_told_from_chance) == (None, None, False)


def all_pairs(*parts: range) -> list[Pair]:
    return [pair for part in parts for pair in combinations(part, 2)]


def connected(pairs: list[Pair]) -> set[frozenset[int]]:
    """The sets of things that pairs connect, by merging until nothing merges."""
    parts = {frozenset(pair) for pair in pairs}
    for a, b in pairs:
        touching = {part for part in parts if a in part or b in part}
        parts = (parts - touching) | {frozenset().union(*touching)}
    return parts


@given(st.lists(st.integers(2, 9), min_size=1, max_size=4), st.integers(0, 99), st.integers(0, 40))
def test_pairs_drawn_first_connect_what_can_be_connected(sizes: list[int], seed: int, n_more: int):
    ends = np.cumsum([0, *sizes])
    pairs = all_pairs(*(range(a, b) for a, b in pairwise(ends)))
    least = least_pairs(pairs)
    assert least == sum(sizes) - len(sizes)
    chosen = drawn_pairs(pairs, least + n_more, np.random.default_rng(seed))
    # A larger number continues a smaller one.
    assert chosen == drawn_pairs(pairs, len(pairs), np.random.default_rng(seed))[: least + n_more]
    assert len(set(chosen)) == len(chosen) == min(least + n_more, len(pairs))
    assert set(chosen) <= set(pairs)
    assert connected(chosen) == connected(pairs)
