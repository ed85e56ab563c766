"""A Bloom filter of the 3-grams and 4-grams of a shard, which rules out most searches.

A gram that is not in the filter does not occur, so no match extends across it; one that is in it
occurs, or is a false positive. A 3-gram and the 4-grams that begin with it share a block of 64
bytes, so a query costs one memory access (blocks: Putze, Sanders and Singler 2007).

Most words of a text that is not copied begin a match of two or three words. Such a search ends as
soon as it has found these, and is skipped if an earlier shard has a match as long.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from fabula.kernels.token_pairs import pair_hash

BLOCK_WORDS = 8
"""64-bit words per block, which is one cache line."""
_BITS_A_TOKEN = 3.2
_N_BITS = 2
"""Bits per gram. Books have about as many distinct grams as tokens."""
_N_GATHERED = 1024
_U1, _U6, _U9, _U63 = np.uint64(1), np.uint64(6), np.uint64(9), np.uint64(63)
_U29, _U32, _U511 = np.uint64(29), np.uint64(32), np.uint64(511)
_ODD = np.uint64(0x9E3779B97F4A7C15)


def n_gram_blocks(n_tokens: int) -> int:
    """The number of blocks of the filter for `n_tokens` tokens: 0.4 bytes per token."""
    return int(n_tokens * _BITS_A_TOKEN) // (64 * BLOCK_WORDS) + 1


@nb.njit(inline="always")
def longer(h, token):
    """The hash of a gram extended by a token, from the gram's hash: uint64."""
    h = (h ^ np.uint64(token)) * _ODD
    return h ^ (h >> _U29)


@nb.njit(inline="always")
def block_of(h, n_blocks):
    """The block for a 3-gram's hash: its upper half, scaled."""
    return np.int64(((h >> _U32) * np.uint64(n_blocks)) >> _U32)


@nb.njit(inline="always")
def set_bits(blocks, block, h):
    """Add the gram with that hash."""
    for _ in range(_N_BITS):
        bit = h & _U511
        blocks[block, np.int64(bit >> _U6)] |= _U1 << (bit & _U63)
        h >>= _U9


@nb.njit(inline="always")
def has_bits(blocks, block, h):
    """Whether the gram with that hash may be in the filter."""
    found = _U1
    for _ in range(_N_BITS):
        bit = h & _U511
        found &= blocks[block, np.int64(bit >> _U6)] >> (bit & _U63)
        h >>= _U9
    return found != 0


@nb.njit(nogil=True, cache=True)
def add_grams(tokens, blocks, first, end):
    """Add the grams of these tokens to the blocks from `first` to `end` of a filter.

    tokens: uint32 (n,), where 0 ends a document and no gram extends across it; blocks: uint64
    (n_blocks, BLOCK_WORDS). Several threads may fill one filter, each its own blocks. Hashes are
    buffered before they are added, so that memory accesses overlap.
    """
    n = len(tokens)
    hashes = np.empty((_N_GATHERED, 2), np.uint64)
    where = np.empty(_N_GATHERED, np.int64)
    goes_on = np.empty(_N_GATHERED, np.bool_)
    for begin in range(0, n - 2, _N_GATHERED):
        k = 0
        for i in range(begin, min(begin + _N_GATHERED, n - 2)):
            following = tokens[i + 3] if i + 3 < n else np.uint32(0)
            h = longer(pair_hash(tokens[i], tokens[i + 1]), tokens[i + 2])
            block = block_of(h, len(blocks))
            hashes[k, 0] = h
            hashes[k, 1] = longer(h, following)
            where[k] = block
            goes_on[k] = following != 0
            is_gram = (tokens[i] != 0) & (tokens[i + 1] != 0) & (tokens[i + 2] != 0)
            k += np.int64(is_gram & (first <= block) & (block < end))
        for j in range(k):
            set_bits(blocks, where[j], hashes[j, 0])
            if goes_on[j]:
                set_bits(blocks, where[j], hashes[j, 1])


@nb.njit(nogil=True, cache=True)
def bound_ends(blocks, query, ends):
    """For each position, an upper bound on the end of matches starting there. int64 (n_query,).

    query: uint32 (n_query,); ends: int64 (n_query,), where its run of known tokens ends. A gram
    not in the filter bounds all matches that would contain it, wherever they start.
    """
    n = len(query)
    bounds = ends.copy()
    # All blocks are requested before the first is used, so that memory accesses overlap.
    has = np.zeros((n, 2), np.bool_)
    for i in range(n - 2):
        following = query[i + 3] if i + 3 < n else np.uint32(0)
        h = longer(pair_hash(query[i], query[i + 1]), query[i + 2])
        block = block_of(h, len(blocks))
        has[i, 0] = has_bits(blocks, block, h)
        has[i, 1] = has_bits(blocks, block, longer(h, following))
    for i in range(n - 3, -1, -1):
        if i + 2 >= ends[i]:
            continue
        if not has[i, 0]:
            bounds[i] = i + 2
        elif i + 3 < ends[i] and not has[i, 1]:
            bounds[i] = i + 3
        else:
            bounds[i] = bounds[i + 1]
    return bounds
