from itertools import combinations, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.stats.ranking import Pair, drawn_pairs, least_pairs


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
def test_the_pairs_drawn_first_connect_what_can_be_connected(
    sizes: list[int], seed: int, n_more: int
):
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
