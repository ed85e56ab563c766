"""What the matches at some positions of a query say about those at others.

A match of n tokens contains one of n - 1 that begins one token later. So a match found is a lower
bound for the positions after it, and the longest match at a position is an upper bound for those
before it. Where the bounds meet nothing is left to search: of the positions whose matches may end
at the same place, one search mostly decides all.
"""

from __future__ import annotations

import numba as nb
import numpy as np

N_ROUNDS = 3
"""Rounds of searches: one position for each end, another one, and all that are left."""


@nb.njit(nogil=True, cache=True)
def choose_positions(ends, known, lengths, n_done, chosen):
    """List the positions to search in the round after `n_done` rounds; returns their number.

    ends: int64 (n,), not descending, where matches end at most; known: int32 (n,), shorter matches
    are not wanted; lengths: int32 (n,), lower bounds; chosen: int64 (n,), filled in order.

    Of the positions with the same end, the first decides all others if its match reaches the end,
    as it mostly does if the filter of a first shard says so. Where matches of other shards are
    known the filter is mostly wrong. There the last decides all others if its match does not.
    """
    n = 0
    group_end = np.int64(-1)
    for i in range(len(ends)):
        if i + max(1, known[i], lengths[i]) >= ends[i]:
            continue
        takes_last = (known[i] > 0) != (n_done == 1)
        if n_done >= N_ROUNDS - 1 or ends[i] != group_end:
            chosen[n] = i
            n += 1
        elif takes_last:
            chosen[n - 1] = i
        group_end = ends[i]
    return n


@nb.njit(nogil=True, cache=True)
def spread_matches(searched, ends, lengths):
    """Tighten `ends` and `lengths`, given the longest matches at the positions searched.

    searched: int64 (n_searched,), ascending; their `lengths` are exact.
    """
    for i in searched:
        ends[i] = min(ends[i], i + max(1, lengths[i]))
    for i in range(len(ends) - 2, -1, -1):
        ends[i] = min(ends[i], ends[i + 1])
    for i in range(1, len(ends)):
        lengths[i] = max(lengths[i], lengths[i - 1] - 1)
