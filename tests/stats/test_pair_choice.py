from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.stats.pair_choice import Pair, first_pairs, least_pairs, next_pairs
from fabula.stats.ranking import Comparisons


def all_pairs(*parts: range) -> list[Pair]:
    return [pair for part in parts for pair in combinations(part, 2)]


def connected(pairs: list[Pair]) -> set[frozenset[int]]:
    """The sets of things that pairs connect, by merging until nothing merges."""
    parts = {frozenset(pair) for pair in pairs}
    for a, b in pairs:
        touching = {part for part in parts if a in part or b in part}
        parts = (parts - touching) | {frozenset().union(*touching)}
    return parts


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 9), min_size=1, max_size=4), st.integers(0, 99), st.integers(0, 40))
def test_the_first_pairs_connect_what_can_be_connected(
    sizes: list[int], seed: int, n_more: int
) -> None:
    ends = np.cumsum([0, *sizes])
    pairs = all_pairs(*(range(a, b) for a, b in pairwise(ends)))
    least = least_pairs(pairs)
    assert least == sum(sizes) - len(sizes)
    chosen = first_pairs(pairs, least + n_more, np.random.default_rng(seed))
    assert chosen == first_pairs(pairs, least + n_more, np.random.default_rng(seed))
    assert len(set(chosen)) == len(chosen) <= least + n_more
    assert set(chosen) <= set(pairs)
    assert connected(chosen) == connected(pairs)


def drawn(n_things: int, seed: int) -> tuple[Comparisons, list[Pair]]:
    """Answers to half of the pairs in both orders, and the other half."""
    rng = np.random.default_rng(seed)
    pairs = all_pairs(range(n_things))
    asked, left = pairs[::2], pairs[1::2]
    first = np.array([a for a, b in asked] + [b for a, b in asked])
    second = np.array([b for a, b in asked] + [a for a, b in asked])
    outcome = rng.integers(0, 2, len(first)).astype(np.float64)
    return Comparisons(first, second, outcome), left


def log_determinant(
    answers: Comparisons, chosen: list[Pair], theta: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> float:
    """Of the information about strengths and place, prior included, term by term."""
    information = np.eye(len(theta))
    shown = [*zip(answers.first, answers.second, [1.0] * len(answers.first), strict=True)]
    for a, b, place in [*shown, *((a, b, 0.0) for a, b in chosen for _ in range(2))]:
        row = np.zeros(len(theta))
        row[a], row[b], row[-1] = 1.0, -1.0, place
        p = 1 / (1 + np.exp(-row @ theta))
        information += p * (1 - p) * np.outer(row, row)
    return float(np.linalg.slogdet(information)[1])


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 7), st.integers(0, 30))
def test_each_next_pair_adds_most_to_the_determinant(n_things: int, seed: int) -> None:
    from scipy.optimize import minimize

    answers, left = drawn(n_things, seed)

    def loss(theta: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        odds = theta[answers.first] - theta[answers.second] + theta[-1]
        signs = 2 * answers.outcome - 1
        return float(np.logaddexp(0, -signs * odds).sum() + theta @ theta / 2)

    theta = minimize(loss, np.zeros(n_things + 1), tol=1e-10).x
    chosen = next_pairs(left, answers, n_things, 3, 2)
    assert len(set(chosen)) == min(3, len(left))
    for k, pair in enumerate(chosen):
        gains = {
            one: log_determinant(answers, [*chosen[:k], one], theta)
            for one in left
            if one not in chosen[:k]
        }
        assert gains[pair] >= max(gains.values()) - 1e-4


def test_no_pair_is_chosen_where_none_is_left() -> None:
    assert next_pairs([], drawn(4, 0)[0], 4, 3, 2) == []
