"""The suffix array equals the sorted suffixes, whatever the text and the number of threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import suffix_order

from fabula.kernels import suffix
from fabula.kernels.suffix import DEPTH, build_suffix_array


def build(tokens: list[int], n_ids: int, n_threads: int = 1) -> list[int]:
    return build_suffix_array(np.array(tokens, np.uint32), n_ids, n_threads=n_threads).tolist()


@given(st.lists(st.integers(0, 4), max_size=200), st.sampled_from([1, 2, 3]))
def test_small_vocabularies_sort_as_their_suffixes(tokens: list[int], n_threads: int):
    assert build(tokens, 5, n_threads) == suffix_order(tokens)


@given(st.lists(st.integers(0, 60), max_size=120), st.sampled_from([61, 70_000, 2**22]))
def test_the_size_of_the_vocabulary_changes_keys_but_not_the_order(tokens: list[int], n_ids: int):
    assert build(tokens, n_ids) == suffix_order(tokens)


@pytest.mark.parametrize(
    "tokens",
    [
        [], [3], [1] * 300, [1, 2] * 200, [0] * 50, ([1, 2, 3, 4] * 20 + [0]) * 5,
        [1] * DEPTH + [0] + [1] * DEPTH + [2] + [1] * (DEPTH + 1), list(range(1, 90)) * 3,
    ],
    ids=["empty", "one", "same", "period 2", "separators", "copies", "at the depth", "long repeat"],
)  # fmt: skip
def test_long_repeats_are_resolved(tokens: list[int]):
    assert build(tokens, 100) == suffix_order(tokens)


@pytest.mark.parametrize("n_bits", [1, 11, 12, 24, 51, 64])
@pytest.mark.parametrize("n", [0, 1, 2, 21, 600, 5000])
def test_both_sorts_of_keys_order_keys_and_carry_their_values(n: int, n_bits: int):
    rng = np.random.default_rng(n + n_bits)
    keys = rng.integers(2**64, size=n, dtype=np.uint64) >> np.uint64(64 - n_bits)
    keys[n // 2 :] &= np.uint64(0xFF)
    values = np.arange(n, dtype=np.uint32)
    for sort in ("pairs", "digits"):
        k, v = keys.copy(), values.copy()
        if sort == "pairs":
            suffix.sort_pairs(k, v)
        elif n:
            room = np.empty(n + 7, np.uint64), np.empty(n + 7, np.uint32)
            suffix.sort_by_digits(k, v, n_bits, *room)
        assert np.array_equal(k, np.sort(keys))
        assert np.array_equal(keys[v], k)
        assert np.array_equal(np.sort(v), values)


def test_many_groups_over_many_threads_sort_as_on_one():
    rng = np.random.default_rng(5)
    tokens = np.minimum(rng.zipf(1.3, 60_000), 3000).astype(np.uint32)
    tokens[30_000:31_000] = tokens[:1000]
    one, two = (build_suffix_array(tokens, 3001, n_threads=n) for n in (1, 4))
    assert np.array_equal(one, two)
    assert np.array_equal(np.sort(one), np.arange(len(tokens)))
    text = tokens.tolist()
    for a, b in zip(one[:-1:97], one[1::97], strict=False):
        assert text[a : a + 2000] <= text[b : b + 2000]
