"""Packed numbers and tokens give back what was put in, and the table of pairs forgets none."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.kernels import grams
from fabula.kernels.packed import (  # fmt: skip
    BLOCK,
    RARE,
    bits_below,
    n_packed_words,
    pack,
    pack_tokens,
    read_packed,
    read_tokens,
)
from fabula.kernels.suffix import build_suffix_array


@given(st.integers(1, 64), st.data())
def test_packed_numbers_are_the_bits_in_a_row(n_bits: int, data: Any):
    values = data.draw(st.lists(st.integers(0, 2**n_bits - 1), max_size=200))
    packed = pack(np.array(values, np.uint64), n_bits)
    # The oracle is Python's own integers, of any length.
    number = sum(value << (k * n_bits) for k, value in enumerate(values))
    assert int.from_bytes(packed.words.astype("<u8").tobytes(), "little") == number
    assert len(packed.words) == n_packed_words(len(values), n_bits)


@given(st.integers(1, 32), st.data())
def test_any_stretch_of_packed_numbers_is_read_back(n_bits: int, data: Any):
    values = data.draw(st.lists(st.integers(0, 2**n_bits - 1), max_size=200))
    begin, end = sorted(data.draw(st.integers(0, len(values))) for _ in range(2))
    packed = pack(np.array(values, np.uint32), n_bits)
    assert read_packed(packed, begin, end).tolist() == values[begin:end]


@pytest.mark.parametrize(("n", "n_bits"), [(1, 1), (2, 1), (3, 2), (2**27, 27), (2**27 + 1, 28)])
def test_the_bits_are_those_of_the_largest_number(n: int, n_bits: int):
    assert bits_below(n) == n_bits


@given(st.integers(0, 5), st.integers(1, 4 * BLOCK), st.floats(0, 1), st.data())
def test_tokens_are_read_back_however_many_are_rare(seed: int, n: int, share: float, data: Any):
    rng = np.random.default_rng(seed)
    common, rare = rng.integers(0, RARE, n), rng.integers(RARE, 2**32, n)
    ids = np.where(rng.random(n) < share, rare, common).astype(np.uint32)
    begin, end = sorted(data.draw(st.integers(0, n)) for _ in range(2))
    assert read_tokens(pack_tokens(ids), begin, end).tolist() == ids[begin:end].tolist()


def test_the_first_rare_id_and_the_last_common_one_are_told_apart():
    ids = np.array([RARE - 1, RARE, RARE + 1, 0], np.uint32)
    tokens = pack_tokens(ids)
    assert tokens.codes.tolist() == [RARE - 1, RARE, RARE, 0]
    assert tokens.rare_ids.tolist() == [RARE, RARE + 1]
    assert read_tokens(tokens, 0, 4).tolist() == ids.tolist()


@given(st.lists(st.integers(0, 30), max_size=400), st.integers(1, 3))
def test_each_pair_has_an_entry_that_holds_all_its_suffixes(text: list[int], n_parts: int):
    tokens = np.array([*text, 0], np.uint32)
    suffixes = build_suffix_array(tokens, 31)
    edges = np.linspace(0, len(tokens), n_parts + 1).astype(int)
    listed = [grams.list_pairs(tokens, suffixes, a, b) for a, b in pairwise(edges)]
    table = grams.pack_pairs(listed, len(tokens))
    (buckets, _, n_begins), (entries, entry_bits, n_pairs) = table
    begins = read_packed(table.buckets, 0, n_begins)
    assert n_pairs == len({(a, b) for a, b in pairwise(text) if a and b})
    for first, second, low, high in np.concatenate(listed).tolist():
        h = np.uint64(grams.pair_hash(first, second))
        bucket = grams.pair_bucket(h, n_begins - 1)
        mark = np.uint64(grams.pair_mark(h))
        slot, end, found = int(begins[bucket]), int(begins[bucket + 1]), []
        while (slot := grams.find_mark(entries, entry_bits, slot, end, mark)) < end:
            found.append(grams.pair_interval(entries, entry_bits, slot, len(tokens)))
            slot += 1
        assert any(a == low and high <= b <= max(high, low + 2 * (high - low)) for a, b in found)
    again = grams.open_pairs(buckets, entries, n_pairs, len(tokens))
    assert (again.buckets[1:], again.entries[1:]) == (table.buckets[1:], table.entries[1:])
    with pytest.raises(ValueError, match="not one of"):
        grams.open_pairs(buckets, entries[:-1], n_pairs, len(tokens))
