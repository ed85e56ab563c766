import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabula.continuation.corpus import Shard
from fabula.continuation.retrieval import _index
from fabula.kernels.nearest import nearest
from fabula.kernels.packed import fixed

N_WORDS = 9
bags = st.lists(st.lists(st.integers(0, N_WORDS - 1), max_size=8), min_size=1, max_size=12)


def obvious(query: list[int], sentences: list[list[int]]) -> tuple[int, float]:
    """Every cosine; the first of the largest."""
    best, best_cosine = -1, 0.0
    for k, sentence in enumerate(sentences):
        a, b = (np.bincount(np.array(w, int), minlength=N_WORDS) for w in (query, sentence))
        cosine = a @ b / math.sqrt((a @ a) * (b @ b)) if query and sentence else 0.0
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
    # Nothing is found that is not better than what is at hand.
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
