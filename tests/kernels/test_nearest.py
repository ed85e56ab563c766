import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabula.continuation.corpus import Shard
from fabula.continuation.retrieval import _index
from fabula.kernels.nearest import STEPS, nearest, signatures
from fabula.kernels.packed import fixed

N_WORDS = 9
bags = st.lists(st.lists(st.integers(0, N_WORDS - 1), max_size=8), min_size=1, max_size=12)


def obvious(query: list[int], sentences: list[list[int]]) -> tuple[int, float]:
    """Every cosine; the first of the largest."""
    best, best_cosine = -1, 0.0
    for k, sentence in enumerate(sentences):
        product = sum(query.count(w) * sentence.count(w) for w in range(N_WORDS))
        a = sum(query.count(w) ** 2 for w in range(N_WORDS))
        b = sum(sentence.count(w) ** 2 for w in range(N_WORDS))
        cosine = product / math.sqrt(a * b) if a and b else 0.0
        if cosine > best_cosine + 1e-12:
            best, best_cosine = k, cosine
    return best, best_cosine


@given(st.lists(st.integers(0, N_WORDS - 1), max_size=8), bags)
def test_the_nearest_is_what_all_comparisons_find(query: list[int], sentences: list[list[int]]):
    arrays = index_of(sentences)
    words, counts = np.unique(np.array(query, np.int64), return_counts=True)
    found, cosine, _ = nearest(words, counts.astype(np.int64), *arrays, 0.0)
    expected, best = obvious(query, sentences)
    assert abs(cosine - best) < 1e-9
    assert found == expected


@given(st.lists(st.integers(0, N_WORDS - 1), min_size=1, max_size=8), bags)
def test_nothing_is_found_that_is_not_better_than_what_is_at_hand(
    query: list[int], sentences: list[list[int]]
):
    arrays = index_of(sentences)
    words, counts = np.unique(np.array(query, np.int64), return_counts=True)
    _, best = obvious(query, sentences)
    found, cosine, _ = nearest(words, counts.astype(np.int64), *arrays, best)
    assert (found, cosine) == (-1, best) or cosine >= best


def index_of(sentences: list[list[int]]) -> tuple[np.ndarray, ...]:
    """As the corpus is indexed; a sentence more follows, so that each one has a next."""
    tokens = [w for sentence in sentences for w in sentence]
    ends = np.cumsum([len(sentence) for sentence in [*sentences, []]])
    shard = Shard(
        None, None, np.zeros(len(ends), np.int64), np.array([len(ends)]),
        np.array(tokens, np.uint32), ends.astype(np.int64),
    )  # fmt: skip
    return tuple(map(fixed, _index(shard, np.ones(N_WORDS, np.bool_))))


def test_an_index_keeps_what_its_parts_are_for():
    list_ends, lists, shares, word_ends, words, counts, norms, bits = index_of([[1, 1, 2], [2]])
    assert lists[list_ends[2] : list_ends[3]].tolist() == [0, 1]
    assert shares[list_ends[1] : list_ends[2]].tolist() == [math.ceil(4 / 5 * STEPS)]
    assert (words.tolist(), counts.tolist()) == ([1, 2, 2], [2, 1, 1])
    assert norms.tolist() == [5, 1, 0]
    assert bits.tolist() == signatures(word_ends, words).tolist()
