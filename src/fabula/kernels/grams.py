"""Pairs of tokens and the longer grams of a shard: where they are, and which do not occur.

A table leads from pairs to intervals of the suffix array, in about five bytes per pair. Pairs are
stored in buckets by their hash, on average `PER_BUCKET` in each. An entry holds the place where the
pair's suffixes begin, the logarithm of their number, rounded up, and eight bits of the hash, but
not the pair itself. So an entry may belong to another pair; a search notices this, since it finds
no match of two tokens in that pair's interval. The interval may also be too long: suffixes beyond
the pair's last one are larger than all of the pair, so a search ends at the same place.

A Bloom filter of the 3-grams and 4-grams rules out most searches. A gram that is not in it does not
occur, so no match extends across it; one that is in it occurs, or is a false positive. A 3-gram and
the 4-grams that begin with it share a block of 64 bytes, so a query costs one memory access (Putze,
Sanders and Singler 2007). Most words of an uncopied text begin a match of two or three words. It
ends as soon as it has found these, and is skipped if an earlier shard has a match as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from fabula.kernels.packed import Packed, bits_below, fixed, n_packed_words, pack, put, unpack

PER_BUCKET = 4
_SIZE_BITS, _MARK_BITS = 5, 8
_REST_BITS = _SIZE_BITS + _MARK_BITS
_SIZE_MASK = np.uint64((1 << _SIZE_BITS) - 1)
_MARK_MASK = np.uint64((1 << _MARK_BITS) - 1)
_U1, _U32 = np.uint64(1), np.uint64(32)


class PairTable(NamedTuple):
    """The table: where each bucket begins, and all entries, concatenated."""

    buckets: Packed
    """(n_buckets + 1,)"""
    entries: Packed
    """(n_pairs,): mark, logarithm of the size, place; starting at the highest bit."""


def open_pairs(
    buckets: NDArray[np.uint64], entries: NDArray[np.uint64], n_pairs: int, n_tokens: int
) -> PairTable:
    """The table of `n_pairs` pairs over `n_tokens` tokens, from its words.

    Raises `ValueError` if their number does not match.
    """
    n_buckets, bucket_bits, entry_bits = _sizes(n_pairs, n_tokens)
    n_words = n_packed_words(n_buckets + 1, bucket_bits), n_packed_words(n_pairs, entry_bits)
    if (len(buckets), len(entries)) != n_words:
        raise ValueError(f"the table is not one of {n_pairs} pairs")
    return PairTable(
        Packed(buckets, bucket_bits, n_buckets + 1), Packed(entries, entry_bits, n_pairs)
    )


def pack_pairs(listed: Sequence[NDArray[np.uint32]], n_tokens: int) -> PairTable:
    """Build the table from parts as returned by `list_pairs`, over `n_tokens` tokens."""
    n_pairs = sum(map(len, listed))
    n_buckets, bucket_bits, entry_bits = _sizes(n_pairs, n_tokens)
    begins = np.zeros(n_buckets + 1, np.uint32)
    for pairs in listed:
        count_buckets(pairs, begins[1:])
    np.cumsum(begins, out=begins)
    buckets = pack(begins, bucket_bits)
    entries = np.zeros(n_packed_words(n_pairs, entry_bits), np.uint64)
    for pairs in listed:
        fill_buckets(pairs, begins, entries, entry_bits)
    return PairTable(buckets, Packed(fixed(entries), entry_bits, n_pairs))


def _sizes(n_pairs: int, n_tokens: int) -> tuple[int, int, int]:
    """The number of buckets, the bits of a bucket's begin, and the bits of an entry."""
    return n_pairs // PER_BUCKET + 1, bits_below(n_pairs + 1), bits_below(n_tokens) + _REST_BITS


@nb.njit(inline="always")
def pair_hash(first, second):
    """The finaliser of MurmurHash3 on both tokens: uint64."""
    h = (np.uint64(first) << _U32) | np.uint64(second)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


@nb.njit(inline="always")
def pair_bucket(h, n_buckets):
    """The bucket, or the filter's block, for a hash: its upper half, scaled."""
    return np.int64(((h >> _U32) * np.uint64(n_buckets)) >> _U32)


@nb.njit(inline="always")
def pair_mark(h):
    """The bits of a hash that an entry stores: uint64."""
    return h & _MARK_MASK


@nb.njit(inline="always")
def find_mark(entries, entry_bits, slot, end, mark):
    """The first entry with the mark from `slot` up to `end`, exclusive; or `end`."""
    shift = np.uint64(entry_bits - _MARK_BITS)
    while slot < end and unpack(entries, entry_bits, slot) >> shift != mark:
        slot += 1
    return slot


@nb.njit(inline="always")
def pair_interval(entries, entry_bits, slot, n_tokens):
    """An interval that starts at the entry's first suffix and contains all suffixes of its pair."""
    entry = unpack(entries, entry_bits, slot)
    place_bits = np.uint64(entry_bits - _REST_BITS)
    # Even for a damaged entry, the interval lies in the array and is not empty.
    low = min(np.int64(entry & ((_U1 << place_bits) - _U1)), n_tokens - 1)
    size = np.int64(_U1 << ((entry >> place_bits) & _SIZE_MASK))
    return low, min(low + size, n_tokens)


@nb.njit(nogil=True, cache=True)
def count_buckets(pairs, counts):
    """Add the number of pairs of each bucket to `counts`: uint32, shape (n_buckets,)."""
    for k in range(len(pairs)):
        counts[pair_bucket(pair_hash(pairs[k, 0], pairs[k, 1]), len(counts))] += 1


@nb.njit(nogil=True, cache=True)
def fill_buckets(pairs, free, entries, entry_bits):
    """Insert each pair at the first free place of its bucket, and advance that place.

    free: uint32, shape (n_buckets + 1,); the last one is not used.
    """
    place_bits = np.uint64(entry_bits - _REST_BITS)
    for k in range(len(pairs)):
        h = pair_hash(pairs[k, 0], pairs[k, 1])
        low = np.uint64(pairs[k, 2])
        n = np.uint64(pairs[k, 3]) - low
        size = np.uint64(0)
        while (_U1 << size) < n:
            size += _U1
        entry = (((pair_mark(h) << np.uint64(_SIZE_BITS)) | size) << place_bits) | low
        bucket = pair_bucket(h, len(free) - 1)
        put(entries, entry_bits, free[bucket], entry)
        free[bucket] += np.uint32(1)


@nb.njit(inline="always")
def pair_end(tokens, suffixes, i):
    """The end of the suffixes that begin with the same two tokens as suffixes[i]."""
    p = np.int64(suffixes[i])
    first = tokens[p]
    j = i + 1
    if first == 0:
        return j
    second = tokens[p + 1]
    while j < len(suffixes):
        q = np.int64(suffixes[j])
        if tokens[q] != first or tokens[q + 1] != second:
            break
        j += 1
    return j


@nb.njit(nogil=True, cache=True)
def list_pairs(tokens, suffixes, low, high):
    """List the pairs of tokens whose suffixes begin in [low, high), with their intervals.

    tokens, suffixes: uint32, shape (n,), tokens ending with 0. Returns uint32, shape (n_pairs, 4):
    the two tokens, then the half-open bounds. Pairs with a separator are left out, as queries
    never contain one. The last interval may end beyond `high`.
    """
    pairs = np.empty((1024, 4), np.uint32)
    n_pairs = 0
    i = low
    if low > 0:
        i = pair_end(tokens, suffixes, low - 1)
    while i < high:
        end = pair_end(tokens, suffixes, i)
        p = np.int64(suffixes[i])
        # No token follows the last separator; what follows any other is irrelevant.
        if tokens[p] != 0 and tokens[p + 1] != 0:
            if n_pairs == len(pairs):
                wider = np.empty((2 * n_pairs, 4), np.uint32)
                for k in range(n_pairs):
                    for column in range(4):
                        wider[k, column] = pairs[k, column]
                pairs = wider
            pairs[n_pairs, 0] = tokens[p]
            pairs[n_pairs, 1] = tokens[p + 1]
            pairs[n_pairs, 2] = i
            pairs[n_pairs, 3] = end
            n_pairs += 1
        i = end
    return pairs[:n_pairs]


BLOCK_WORDS = 8
"""64-bit words per block, which is one cache line."""
_BITS_A_TOKEN = 3.2
_N_BITS = 2
"""Bits per gram. Books have about as many distinct grams as tokens."""
_N_GATHERED = 1024
_U6, _U9, _U63 = np.uint64(6), np.uint64(9), np.uint64(63)
_U29, _U511 = np.uint64(29), np.uint64(511)
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
            block = pair_bucket(h, len(blocks))
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
        block = pair_bucket(h, len(blocks))
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
