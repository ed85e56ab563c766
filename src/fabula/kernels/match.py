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
    "fill_pair_table",
    "find_interval",
    "list_pairs",
    "longest_matches",
    "pair_slots",
    "run_ends",
]

WIDTH = 128
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
    """Where the suffixes end that begin with the same two tokens as suffixes[i]."""
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
    """The pairs of tokens whose suffixes begin in [low, high), with their intervals.

    tokens, suffixes: uint32, shape (n,), tokens ending with 0. Returns uint32, shape (n_pairs, 4):
    the two tokens, then the half-open bounds. Pairs with a separator are left out: no query holds
    one. The last interval may end beyond `high`.
    """
    pairs = np.empty((1024, 4), np.uint32)
    n_pairs = 0
    i = low
    if low > 0:
        i = pair_end(tokens, suffixes, low - 1)
    while i < high:
        end = pair_end(tokens, suffixes, i)
        p = np.int64(suffixes[i])
        # No token follows a separator at the very end; what follows one is of no interest.
        if tokens[p] != 0 and tokens[p + 1] != 0:
            if n_pairs == len(pairs):
                wider = np.empty((2 * n_pairs, 4), np.uint32)
                wider[:n_pairs] = pairs
                pairs = wider
            pairs[n_pairs, 0] = tokens[p]
            pairs[n_pairs, 1] = tokens[p + 1]
            pairs[n_pairs, 2] = i
            pairs[n_pairs, 3] = end
            n_pairs += 1
        i = end
    return pairs[:n_pairs]


def pair_slots(n_pairs: int) -> int:
    """The number of slots of a table for `n_pairs` pairs."""
    return int(n_pairs / _LOAD) + 1


@nb.njit(nogil=True, cache=True)
def fill_pair_table(pairs, table):
    """Enter pairs into an open-addressing table.

    pairs: from `list_pairs`; table: uint32, shape (`pair_slots`, 4), zero where it is empty, rows
    as in `pairs`. An empty slot has upper bound 0.
    """
    n_slots = len(table)
    slots = np.empty(WIDTH, np.int64)
    taken = np.empty(WIDTH, np.uint32)
    for base in range(0, len(pairs), WIDTH):
        m = min(WIDTH, len(pairs) - base)
        for w in range(m):
            slots[w] = pair_slot(pairs[base + w, 0], pairs[base + w, 1], n_slots)
        # Only asks for memory, so that the requests overlap.
        for w in range(m):
            taken[w] = table[slots[w], 3]
        for w in range(m):
            slot = slots[w]
            while table[slot, 3] != 0:
                slot = slot + 1 if slot + 1 < n_slots else 0
            table[slot] = pairs[base + w]


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
    seen = np.empty(WIDTH, np.uint32)
    for base in range(begin, stop, WIDTH):
        m = min(WIDTH, stop - base)
        for w in range(m):
            i = base + w
            if i + 1 < ends[i]:
                probe[w] = pair_slot(query[i], query[i + 1], n_slots)
            else:
                probe[w] = -1
        # Ask for all the table's rows before using one.
        for w in range(m):
            seen[w] = pairs[probe[w], 3] if probe[w] >= 0 else 0
        n_active = 0
        for w in range(m):
            i = base + w
            witnesses[i] = 0
            lengths[i] = 1 if i < ends[i] else 0
            if seen[w] == 0:
                continue
            slot = probe[w]
            first = query[i]
            second = query[i + 1]
            while pairs[slot, 3] != 0:
                if pairs[slot, 0] == first and pairs[slot, 1] == second:
                    lengths[i] = 2
                    witnesses[i] = pairs[slot, 2]
                    if i + 2 == ends[i]:
                        break
                    low[n_active] = pairs[slot, 2]
                    high[n_active] = pairs[slot, 3]
                    common_low[n_active] = 2
                    common_high[n_active] = 2
                    where[n_active] = i
                    n_active += 1
                    break
                slot = slot + 1 if slot + 1 < n_slots else 0
        # All searches advance by one step in turn. The first two loops only ask for memory, so
        # that the requests overlap; the third uses what has come.
        while n_active > 0:
            for w in range(n_active):
                probe[w] = suffixes[(low[w] + high[w]) >> 1]
            for w in range(n_active):
                seen[w] = tokens[probe[w] + min(common_low[w], common_high[w])]
            n_left = 0
            for w in range(n_active):
                i = where[w]
                a = low[w]
                b = high[w]
                ca = common_low[w]
                cb = common_high[w]
                middle = (a + b) >> 1
                length = min(ca, cb)
                next_token = seen[w]
                if next_token == query[i + length]:
                    length = extend(tokens, probe[w], query, i, ends[i], length + 1)
                    if length > lengths[i]:
                        lengths[i] = length
                        witnesses[i] = middle
                    if i + length == ends[i]:
                        continue
                    next_token = tokens[probe[w] + length]
                if next_token < query[i + length]:
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
