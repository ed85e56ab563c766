"""Uniqueness when only the best documents may be used, against an exhaustive search."""

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabula.core.types import Document
from fabula.originality import measure as module
from fabula.originality.measure import find_spread, uniqueness
from fabula.reference import Reference

LEVEL = 2


def covered(words: list[str], other: list[str]) -> set[int]:
    """Words in an n-gram of LEVEL words or more that the other text holds."""
    held = {tuple(other[k : k + LEVEL]) for k in range(len(other) - LEVEL + 1)}
    return {
        w
        for i in range(len(words) - LEVEL + 1)
        if tuple(words[i : i + LEVEL]) in held
        for w in range(i, i + LEVEL)
    }


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), min_size=1, max_size=7),
    st.lists(st.sampled_from("abcde"), min_size=LEVEL, max_size=16),
    st.integers(0, 6),
    st.dictionaries(st.integers(0, 6), st.lists(st.tuples(st.integers(0, 8), st.integers(9, 16)),
                                                min_size=1, max_size=2), max_size=2),
)  # fmt: skip
def test_the_spread_is_that_of_a_slow_greedy_choice_and_near_the_best(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[list[str]],
    words: list[str],
    n: int,
    near: dict[int, list[tuple[int, int]]],
):
    texts = [Document(f"d{k}", " ".join(d)) for k, d in enumerate(documents)]
    reference = Reference.build(texts, tmp_path_factory.mktemp("ref"), shard_tokens=12)
    near = {
        k: [(a, min(b, len(words))) for a, b in spans if a < min(b, len(words))]
        for k, spans in near.items()
        if k < len(documents)
    }
    near = {k: spans for k, spans in near.items() if spans}
    exact = reference.longest_matches(words)
    found = find_spread(reference, words, exact, LEVEL, n, near=near)
    sets = [covered(words, d) for d in documents]
    for k, spans in near.items():
        sets[k] |= {w for a, b in spans for w in range(a, b)}
    done: set[int] = set()
    left, chosen, to_half = [1.0], [], None
    while True:
        gain, k = max((len(s - done), -k) for k, s in enumerate(sets))
        if gain == 0:
            break
        done |= sets[-k]
        chosen.append((f"d{-k}", gain))
        left.append(1 - len(done) / len(words))
        if to_half is None and left[-1] < 0.5:
            to_half = len(chosen)
    assert [(d.id, d.n_new_words) for d in found.documents] == chosen[:n]
    assert found.uniqueness == pytest.approx(left[: n + 1])
    assert found.n_to_half == to_half
    assert (found.n_documents, found.n_bounded) == (sum(map(bool, sets)), 0)
    if found.documents:
        best = max(
            len(set().union(*some))
            for some in combinations(sets, min(len(sets), len(found.documents)))
        )
        reached = sum(d.n_new_words for d in found.documents)
        assert reached >= (1 - 1 / math.e) * best, "the guarantee of a greedy choice"


def test_all_documents_leave_the_uniqueness_of_the_whole_reference(tmp_path: Path):
    rng = np.random.default_rng(0)
    texts = [Document(f"d{k}", " ".join(rng.choice(list("abcdefgh"), 30))) for k in range(40)]
    reference = Reference.build(texts, tmp_path)
    words = list(rng.choice(list("abcdefghij"), 60))
    exact = reference.longest_matches(words)
    found = find_spread(reference, words, exact, 3, 1000)
    assert found.uniqueness[-1] == pytest.approx(uniqueness(exact, 3))


def test_a_span_in_too_many_places_is_bounded_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    texts = [Document(f"d{k}", "a b c a b c") for k in range(20)]
    reference = Reference.build(texts, tmp_path)
    monkeypatch.setattr(module, "MAX_PLACES", 6)
    words = ["a", "b", "c", "q"]
    found = find_spread(reference, words, reference.longest_matches(words), 3, 5)
    assert found.n_bounded == 1
    assert 1 <= found.n_documents <= 6
    assert found.uniqueness == (1.0, 0.25)
    assert found.n_to_half == 1
