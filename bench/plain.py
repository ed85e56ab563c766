"""The layout before: 32 bits for each token and suffix, 16 bytes a slot of the table of pairs.

Kept to measure beside: its table of pairs says which pair a slot is for, and where its suffixes
end, so a search begins sure of two tokens.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import list_pairs, pair_hash

WIDTH = 128
_LOAD = 0.7


def pair_table(tokens: NDArray[np.uint32], suffixes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Open addressing: uint32, shape (n_slots, 4), rows as of `list_pairs`."""
    pairs = list_pairs(tokens, suffixes, 0, len(tokens))
    table = np.zeros((int(len(pairs) / _LOAD) + 1, 4), np.uint32)
    fill_pair_table(pairs, table)
    return table


@nb.njit(inline="always")
def pair_slot(first, second, n_slots):  # type: ignore[no-untyped-def]
    h = pair_hash(first, second)
    return np.int64(((h >> np.uint64(32)) * np.uint64(n_slots)) >> np.uint64(32))


@nb.njit(nogil=True, cache=True)
def fill_pair_table(pairs, table):  # type: ignore[no-untyped-def]
    for k in range(len(pairs)):
        slot = pair_slot(pairs[k, 0], pairs[k, 1], len(table))
        while table[slot, 3] != 0:
            slot = slot + 1 if slot + 1 < len(table) else 0
        table[slot] = pairs[k]


@nb.njit(inline="always")
def extend(tokens, p, query, i, end, length):  # type: ignore[no-untyped-def]
    while i + length < end and tokens[p + length] == query[i + length]:
        length += 1
    return length


@nb.njit(nogil=True, cache=True)
def longest_matches(tokens, suffixes, pairs, query, ends, lengths, witnesses):  # type: ignore[no-untyped-def]
    """As `fabula.kernels.match.longest_matches`."""
    n_slots = len(pairs)
    low = np.empty(WIDTH, np.int64)
    high = np.empty(WIDTH, np.int64)
    common_low = np.empty(WIDTH, np.int64)
    common_high = np.empty(WIDTH, np.int64)
    where = np.empty(WIDTH, np.int64)
    probe = np.empty(WIDTH, np.int64)
    seen = np.empty(WIDTH, np.uint32)
    for base in range(0, len(query), WIDTH):
        m = min(WIDTH, len(query) - base)
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
