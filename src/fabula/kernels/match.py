"""Searching a suffix array: longest matches, intervals, and what is left when documents are out.

Queries are token ids in which 0 stands for "no word of this corpus" and for the gap between two
documents; no match goes across it. `tokens` ends with 0, so comparing never runs past the end.

The longest match at a position is found by binary search for the place where the query's suffix
would stand; one of its two neighbours there shares the longest prefix with it. Two things make it
fast. A hash table of token pairs gives the interval to search in. And many positions are searched
in lock-step: their memory accesses do not depend on each other, so the processor overlaps them,
where a single binary search would wait for each.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = [
    "allowed_matches",
    "count_allowed",
    "count_pairs",
    "fill_pair_table",
    "find_interval",
    "longest_matches",
    "pair_slots",
    "run_ends",
]

WIDTH = 64
"""Positions searched in lock-step; enough to keep every memory channel busy."""

_LOAD = 0.7


@nb.njit(inline="always")
def pair_slot(first, second, n_slots):
    """Where to look first for a pair: the finaliser of MurmurHash3, scaled to the table."""
    h = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return np.int64(((h >> np.uint64(32)) * np.uint64(n_slots)) >> np.uint64(32))


@nb.njit(inline="always")
def pair_end(tokens, suffixes, i):
    """The end of the group of suffixes that begin with the same two tokens as suffixes[i]."""
    n = len(tokens)
    p = np.int64(suffixes[i])
    first = tokens[p]
    second = tokens[p + 1] if p + 1 < n else np.uint32(0)
    j = i + 1
    while j < n:
        q = np.int64(suffixes[j])
        if tokens[q] != first or q + 1 >= n or tokens[q + 1] != second:
            break
        j += 1
    return j, first, second


@nb.njit(nogil=True, cache=True)
def count_pairs(tokens, suffixes):
    """The number of different pairs of neighbouring tokens, those with a separator left out."""
    n_pairs = 0
    i = 0
    while i < len(tokens):
        i, first, second = pair_end(tokens, suffixes, i)
        if first != 0 and second != 0:
            n_pairs += 1
    return n_pairs


def pair_slots(n_pairs: int) -> int:
    """The number of slots of a table for `n_pairs` pairs."""
    return int(n_pairs / _LOAD) + 1


@nb.njit(nogil=True, cache=True)
def fill_pair_table(tokens, suffixes, table):
    """Fill an open-addressing table from a pair of tokens to its interval in the suffix array.

    tokens, suffixes: uint32, shape (n,); table: uint32, shape (`pair_slots`, 4), all zero: the two
    tokens, then the interval's half-open bounds; an empty slot has upper bound 0. Pairs with a
    separator are left out: no query holds one.
    """
    n_slots = len(table)
    i = 0
    while i < len(tokens):
        j, first, second = pair_end(tokens, suffixes, i)
        if first != 0 and second != 0:
            slot = pair_slot(first, second, n_slots)
            while table[slot, 3] != 0:
                slot = slot + 1 if slot + 1 < n_slots else 0
            table[slot, 0] = first
            table[slot, 1] = second
            table[slot, 2] = i
            table[slot, 3] = j
        i = j


@nb.njit(nogil=True, cache=True)
def run_ends(query):
    """For each position, where its run of known tokens ends. int64, shape (n_query,)."""
    n = len(query)
    ends = np.empty(n, np.int64)
    end = n
    for i in range(n - 1, -1, -1):
        if query[i] == 0:
            end = i
        ends[i] = end
    return ends


@nb.njit(inline="always")
def extend(tokens, p, query, i, end, length):
    """How far the text at p and the query at i agree, knowing that they do for `length` tokens."""
    while i + length < end and tokens[p + length] == query[i + length]:
        length += 1
    return length


@nb.njit(nogil=True, cache=True)
def longest_matches(tokens, suffixes, pairs, query, ends, begin, stop, lengths, witnesses):
    """Length of the longest match that starts at each position in [begin, stop).

    tokens, suffixes: uint32, shape (n,); pairs: from `fill_pair_table`; query: uint32, shape
    (n_query,); ends: from `run_ends`. Fills lengths: int32, shape (n_query,), and witnesses:
    uint32, shape (n_query,), a place in the suffix array with such a match (for lengths above 1).
    """
    n_slots = len(pairs)
    low = np.empty(WIDTH, np.int64)
    high = np.empty(WIDTH, np.int64)
    common_low = np.empty(WIDTH, np.int64)
    common_high = np.empty(WIDTH, np.int64)
    where = np.empty(WIDTH, np.int64)
    probe = np.empty(WIDTH, np.int64)
    for base in range(begin, stop, WIDTH):
        m = min(WIDTH, stop - base)
        for w in range(m):
            i = base + w
            if i + 1 < ends[i]:
                probe[w] = pair_slot(query[i], query[i + 1], n_slots)
            else:
                probe[w] = -1
        n_active = 0
        for w in range(m):
            i = base + w
            witnesses[i] = 0
            lengths[i] = 1 if i < ends[i] else 0
            slot = probe[w]
            if slot < 0:
                continue
            first = query[i]
            second = query[i + 1]
            while pairs[slot, 3] != 0:
                if pairs[slot, 0] == first and pairs[slot, 1] == second:
                    low[n_active] = pairs[slot, 2]
                    high[n_active] = pairs[slot, 3]
                    common_low[n_active] = 2
                    common_high[n_active] = 2
                    where[n_active] = i
                    lengths[i] = 2
                    witnesses[i] = pairs[slot, 2]
                    n_active += 1
                    break
                slot = slot + 1 if slot + 1 < n_slots else 0
        # All searches advance by one step in turn. The first loop only asks for memory, so that the
        # requests overlap; the second uses what has come.
        while n_active > 0:
            for w in range(n_active):
                probe[w] = suffixes[(low[w] + high[w]) >> 1]
            n_left = 0
            for w in range(n_active):
                i = where[w]
                a = low[w]
                b = high[w]
                ca = common_low[w]
                cb = common_high[w]
                middle = (a + b) >> 1
                p = probe[w]
                length = extend(tokens, p, query, i, ends[i], min(ca, cb))
                if length > lengths[i]:
                    lengths[i] = length
                    witnesses[i] = middle
                if i + length == ends[i]:
                    continue
                if tokens[p + length] < query[i + length]:
                    a = middle + 1
                    ca = length
                else:
                    b = middle
                    cb = length
                if a < b:
                    low[n_left] = a
                    high[n_left] = b
                    common_low[n_left] = ca
                    common_high[n_left] = cb
                    where[n_left] = i
                    n_left += 1
            n_active = n_left


@nb.njit(inline="always")
def document_at(starts, position):
    """The document that holds a position: the last one that starts at or before it."""
    a = 0
    b = len(starts)
    while b - a > 1:
        middle = (a + b) >> 1
        if np.int64(starts[middle]) <= position:
            a = middle
        else:
            b = middle
    return a


@nb.njit(nogil=True, cache=True)
def find_interval(tokens, suffixes, query):
    """The half-open interval of suffixes that begin with `query` (uint32, shape (m,), no zeros)."""
    m = len(query)
    bounds = np.zeros(2, np.int64)
    for side in range(2):
        a = np.int64(0)
        b = np.int64(len(suffixes))
        while a < b:
            middle = (a + b) >> 1
            p = np.int64(suffixes[middle])
            length = extend(tokens, p, query, 0, m, 0)
            if length == m:
                below = side == 1
            else:
                below = tokens[p + length] < query[length]
            if below:
                a = middle + 1
            else:
                b = middle
        bounds[side] = a
    return bounds[0], bounds[1]


@nb.njit(nogil=True, cache=True)
def count_allowed(suffixes, starts, excluded, low, high):
    """How many of suffixes[low:high] stand in documents that are not excluded."""
    count = 0
    for k in range(low, high):
        if not excluded[document_at(starts, np.int64(suffixes[k]))]:
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def allowed_matches(tokens, suffixes, starts, excluded, query, ends, lengths, witnesses):
    """Shorten `lengths` in place to what matches outside the excluded documents.

    starts: int64, shape (n_documents,); excluded: bool, shape (n_documents,). From the witness of
    the longest match outwards, matches only get shorter, so the nearest suffix on each side that
    is not excluded has the longest match that remains. Single words are looked up by bisection.
    """
    n = len(suffixes)
    for i in range(len(query)):
        if lengths[i] == 0:
            continue
        if lengths[i] == 1:
            witness, _ = find_interval(tokens, suffixes, query[i : i + 1])
        else:
            witness = np.int64(witnesses[i])
        if not excluded[document_at(starts, np.int64(suffixes[witness]))]:
            continue
        best = 0
        for step in (-1, 1):
            k = witness + step
            while 0 <= k < n:
                p = np.int64(suffixes[k])
                length = extend(tokens, p, query, i, ends[i], 0)
                if length <= best:
                    break
                if not excluded[document_at(starts, p)]:
                    best = length
                    witnesses[i] = k
                    break
                k += step
        lengths[i] = best
