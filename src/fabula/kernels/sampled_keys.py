"""Sampled keys: the first tokens of the suffixes at regular places, kept in memory.

They tell in which block of the suffix array a query would be inserted, so that a search begins
there without reading anything else. A gram that begins one of the sampled suffixes occurs, and no
file is read for it at all: that is the case of most frequent ones. This is the first level of a
string B-tree (Ferragina and Grossi 1999) with keys of a fixed size.

A key holds up to four tokens of 16 bits, the first one highest, so that keys compare as suffixes
do. A rare token is stored as `RARE`; it and the end of a document are the last that a key holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import find_mark, pair_bucket, pair_hash, pair_interval, pair_mark
from fabula.kernels.packed import RARE, ask_for, fixed, unpack

BLOCK_SUFFIXES = 80
"""Suffixes for each key of a shard: 0.1 bytes of memory per token."""
KEY_TOKENS = 4
_U1, _UALL = np.uint64(1), np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class Keys(NamedTuple):
    """The keys of every `n_block`-th suffix, starting with the first."""

    values: NDArray[np.uint64]
    """(n_keys,), ascending."""
    n_block: int


NO_KEYS = Keys(fixed(np.empty(0, np.uint64)), 1)


def sample_keys(
    codes: NDArray[np.uint16], places: NDArray[np.uint32], n_block: int = BLOCK_SUFFIXES
) -> Keys:
    """The keys of the suffixes at `places`, which are every `n_block`-th of a suffix array.

    codes: uint16 (n_tokens,), as in `packed.Tokens`; places: uint32 (n_keys,).
    """
    keys = np.zeros(len(places), np.uint64)
    fill_keys(codes, np.ascontiguousarray(places), keys)
    return Keys(fixed(keys), n_block)


@nb.njit(nogil=True, cache=True)
def fill_keys(codes, places, keys):
    """`sample_keys` into `keys`, which must be 0."""
    for k in range(len(keys)):
        for j in range(KEY_TOKENS):
            p = np.int64(places[k]) + j
            code = np.uint64(codes[p]) if p < len(codes) else np.uint64(0)
            keys[k] |= code << np.uint64(16 * (KEY_TOKENS - 1 - j))
            if code == 0 or code == RARE:
                break


@nb.njit(inline="always")
def query_key(query, i, end):
    """The lowest and the highest key of a suffix that begins as the query at i does, up to `end`.

    Also how many of its tokens a key holds exactly.
    """
    low = np.uint64(0)
    n = np.int64(0)
    n_exact = np.int64(0)
    while n < KEY_TOKENS and i + n < end:
        token = query[i + n]
        low |= np.uint64(min(token, RARE)) << np.uint64(16 * (KEY_TOKENS - 1 - n))
        n += 1
        if token >= RARE:
            break
        n_exact = n
    rest = _UALL >> np.uint64(16 * n - 1) >> _U1
    return low, low | rest, n_exact


@nb.njit(inline="always")
def first_at_least(keys, key, begin):
    """The first k from `begin` on with keys[k] >= key; or their number."""
    n = len(keys) - begin
    a = begin
    while n > 0:
        half = n >> 1
        is_below = keys[a + half] < key
        a = a + half + 1 if is_below else a
        n = n - half - 1 if is_below else half
    return a


@nb.njit(inline="always")
def n_common(key, other, n_exact):
    """The number of tokens that both keys begin with, `n_exact` at most."""
    differs = key ^ other
    n = np.int64(0)
    while n < n_exact and differs >> np.uint64(16 * (KEY_TOKENS - 1 - n)) == 0:
        n += 1
    return n


@nb.njit(nogil=True, cache=True)
def begin_at_keys(
    keys, n_block, n_tokens, query, ends, asked, lengths, witnesses,
    where, low, high, common_low, common_high,
):  # fmt: skip
    """Find the block of each position asked by its key; returns the number of searches to run.

    A gram that begins a sampled suffix occurs; if no longer one can, there is nothing to search.
    """
    n = 0
    for i in asked:
        key, last_key, n_exact = query_key(query, i, ends[i])
        a = first_at_least(keys, key, 0)
        b = a
        if last_key == _UALL:
            b = len(keys)
        elif b < len(keys) and keys[b] <= last_key:
            b = first_at_least(keys, last_key + _U1, a + 1)
        low[n] = 0
        common_low[n] = 0
        high[n] = n_tokens
        common_high[n] = 0
        lengths[i] = 1
        witnesses[i] = 0
        if a > 0:
            low[n] = (a - 1) * n_block + 1
            common_low[n] = n_common(keys[a - 1], key, n_exact)
            if common_low[n] > lengths[i]:
                lengths[i] = common_low[n]
                witnesses[i] = low[n] - 1
        if b < len(keys):
            high[n] = b * n_block
            common_high[n] = n_common(keys[b], key, n_exact)
            if common_high[n] > lengths[i]:
                lengths[i] = common_high[n]
                witnesses[i] = high[n]
        if a < b and n_exact > lengths[i]:
            lengths[i] = n_exact
            witnesses[i] = a * n_block
        if i + lengths[i] < ends[i] and low[n] < high[n]:
            where[n] = i
            n += 1
    return n


@nb.njit(nogil=True, cache=True)
def narrow_by_pairs(
    buckets, bucket_bits, n_buckets, entries, entry_bits, n_pairs, n_tokens, query, n_active,
    where, low, high, common_low, common_high, slots, slot_ends, marks, ahead,
):  # fmt: skip
    """Narrow the interval of searches whose block holds other pairs; returns how many remain."""
    for w in range(n_active):
        i = where[w]
        h = pair_hash(query[i], query[i + 1])
        marks[w] = pair_mark(h)
        slots[w] = -1
        if min(common_low[w], common_high[w]) < 2:
            slots[w] = pair_bucket(h, n_buckets)
            if ahead:
                ask_for(buckets, slots[w] * bucket_bits >> 6)
    for w in range(n_active):
        bucket = slots[w]
        if bucket >= 0:
            slots[w] = min(np.int64(unpack(buckets, bucket_bits, bucket)), n_pairs)
            slot_ends[w] = min(np.int64(unpack(buckets, bucket_bits, bucket + 1)), n_pairs)
            if ahead:
                ask_for(entries, slots[w] * entry_bits >> 6)
    n_left = 0
    for w in range(n_active):
        a = low[w]
        b = high[w]
        ca = common_low[w]
        cb = common_high[w]
        if slots[w] >= 0:
            slot = find_mark(entries, entry_bits, slots[w], slot_ends[w], marks[w])
            first = n_tokens
            last = np.int64(0)
            while slot < slot_ends[w]:
                begin, end = pair_interval(entries, entry_bits, slot, n_tokens)
                if begin < b and end > a:
                    first = min(first, max(begin, a))
                    last = max(last, min(end, b))
                slot = find_mark(entries, entry_bits, slot + 1, slot_ends[w], marks[w])
            if first >= last:
                continue
            if first > a:
                a = first
                ca = 0
            if last < b:
                b = last
                cb = 0
        low[n_left] = a
        high[n_left] = b
        common_low[n_left] = ca
        common_high[n_left] = cb
        where[n_left] = where[w]
        # No other entry is left to try.
        slots[n_left] = 0
        slot_ends[n_left] = 1
        n_left += 1
    return n_left
