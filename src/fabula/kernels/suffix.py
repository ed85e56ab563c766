"""Building a suffix array over token ids.

Three steps. (1) A counting sort by the first token. (2) Within each group, repeated sorting by
packed keys of the next few tokens. Groups are independent, so threads share them. (3) Remaining
ties after `DEPTH` tokens are sorted deeper in the same way if there are few; long repeats, such as
whole documents, are sorted by prefix doubling on the ranks (Larsson & Sadakane 2007).

Token id 0 separates documents. A suffix that ends sorts before one that continues.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numba as nb
import numpy as np
from numpy.typing import NDArray

DEPTH = 32
"""Ties of this many tokens are rare, unless text repeats."""
_DEEP = 1024
"""Depth to which a few ties are sorted before building ranks, which cost memory."""
_FEW = 64
"""Ties are few if they make up less than one in this many."""
_N_PARTS = 64
_DIGIT = 11
"""Bits per digit; its counts stay in the L1 cache."""
_FEW_KEYS = 20
"""Up to this many keys are sorted fastest by insertion."""
_MANY = 512
"""From this many keys on, radix sort is faster than comparison sort."""
_U1 = np.uint64(1)


def build_suffix_array(
    tokens: NDArray[np.uint32], n_ids: int, *, n_threads: int = 1
) -> NDArray[np.uint32]:
    """The suffix array of `tokens`, independent of `n_threads`.

    tokens: uint32, shape (n,), ids below `n_ids`, n below 2**32 - 1. Returns uint32, shape (n,).
    Peak memory is about 9 bytes per token, including `tokens`; 12 per token plus 8 per tied group
    if much text repeats.
    """
    n = len(tokens)
    if n >= 2**32 - 1:
        raise ValueError("a shard must have fewer than 2**32 - 1 tokens")
    if n == 0:
        return np.empty(0, np.uint32)
    suffixes: NDArray[np.uint32]
    suffixes, first = sort_by_token(tokens, n_ids)
    # Parts with about equal numbers of suffixes, each consisting of whole groups.
    edges = first[np.searchsorted(first, np.linspace(0, n, _N_PARTS + 1).astype(np.int64))]
    with ThreadPoolExecutor(n_threads) as pool:
        parts = [
            pool.submit(refine, tokens, suffixes, groups_within(first, low, high), 1, DEPTH, n_ids)
            for low, high in pairwise(edges)
            if low < high
        ]
        ties = np.concatenate([part.result() for part in parts])
    depth = DEPTH
    if len(ties) and np.diff(ties, axis=1).sum() * _FEW < n:
        ties, depth = refine(tokens, suffixes, ties, DEPTH, _DEEP, n_ids), _DEEP
    if len(ties):
        double_ranks(suffixes, ties, depth)
    return suffixes


def groups_within(first: NDArray[np.int64], low: int, high: int) -> NDArray[np.int64]:
    """The groups of at least two suffixes in [low, high): int64, shape (n_groups, 2)."""
    a, b = np.searchsorted(first, [low, high])
    bounds = np.column_stack([first[a:b], first[a + 1 : b + 1]])
    return np.ascontiguousarray(bounds[bounds[:, 1] - bounds[:, 0] > 1])


@nb.njit(nogil=True, cache=True)
def sort_by_token(tokens, n_ids):
    """Order suffixes by their first token, then by position, with a counting sort.

    tokens: uint32, shape (n,). Returns uint32, shape (n,), and the place where each token's
    suffixes begin, int64, shape (n_ids + 1,).
    """
    n = len(tokens)
    first = np.zeros(n_ids + 1, np.int64)
    for i in range(n):
        first[tokens[i] + 1] += 1
    for v in range(n_ids):
        first[v + 1] += first[v]
    place = first.copy()
    order = np.empty(n, np.uint32)
    for i in range(n):
        v = tokens[i]
        order[place[v]] = i
        place[v] += 1
    return order, first


@nb.njit(inline="always")
def packed_key(tokens, position, bits):
    """Pack the next 64 // bits tokens into one number in sort order; past the end counts as 0."""
    n = len(tokens)
    key = np.uint64(0)
    for k in range(64 // bits):
        key <<= np.uint64(bits)
        if position + k < n:
            key |= np.uint64(tokens[position + k]) + _U1
    return key


@nb.njit(inline="always")
def insert_pairs(keys, low, high, values, at):
    """Insertion sort of keys[low:high], moving the same number of values from `at` on along."""
    shift = at - low
    for i in range(low + 1, high):
        key = keys[i]
        value = values[i + shift]
        j = i - 1
        while j >= low and keys[j] > key:
            keys[j + 1] = keys[j]
            values[j + 1 + shift] = values[j + shift]
            j -= 1
        keys[j + 1] = key
        values[j + 1 + shift] = value


@nb.njit(nogil=True, cache=True)
def sort_pairs(keys, values):
    """Sort `keys` in place and `values` with them: three-way quicksort, insertion when small.

    keys: uint64, shape (m,); values: uint32, shape (m,).
    """
    stack = np.empty((96, 2), np.int64)
    stack[0, 0] = 0
    stack[0, 1] = len(keys)
    depth = 1
    while depth > 0:
        depth -= 1
        low = stack[depth, 0]
        high = stack[depth, 1]
        while high - low > _FEW_KEYS:
            x = keys[low]
            y = keys[(low + high) >> 1]
            z = keys[high - 1]
            if x > y:
                x, y = y, x
            pivot = y if y < z else max(x, z)
            below = low
            i = low
            above = high
            while i < above:
                key = keys[i]
                if key < pivot:
                    value = values[i]
                    keys[i] = keys[below]
                    values[i] = values[below]
                    keys[below] = key
                    values[below] = value
                    below += 1
                    i += 1
                elif key > pivot:
                    above -= 1
                    value = values[i]
                    keys[i] = keys[above]
                    values[i] = values[above]
                    keys[above] = key
                    values[above] = value
                else:
                    i += 1
            # The larger side is pushed, so the depth of the stack is logarithmic.
            if below - low < high - above:
                stack[depth, 0] = above
                stack[depth, 1] = high
                high = below
            else:
                stack[depth, 0] = low
                stack[depth, 1] = below
                low = above
            depth += 1
        insert_pairs(keys, low, high, values, low)


@nb.njit(nogil=True, cache=True)
def sort_by_digits(keys, values, n_bits, other_keys, other_values):
    """Sort `keys` in place and `values` with them: a radix sort from the lowest digit up.

    keys: uint64, shape (m,), below 2**n_bits; values: uint32, shape (m,). other_*: scratch arrays
    of the same types, length at least m. A digit in which all keys agree costs only one pass.
    """
    m = len(keys)
    counts = np.empty(1 << _DIGIT, np.int64)
    mask = np.uint64((1 << _DIGIT) - 1)
    from_keys, to_keys = keys, other_keys[:m]
    from_values, to_values = values, other_values[:m]
    is_home = True
    for low in range(0, n_bits, _DIGIT):
        shift = np.uint64(low)
        counts[:] = 0
        for i in range(m):
            counts[(from_keys[i] >> shift) & mask] += 1
        if counts[(from_keys[0] >> shift) & mask] == m:
            continue
        total = 0
        for digit in range(len(counts)):
            here = counts[digit]
            counts[digit] = total
            total += here
        for i in range(m):
            key = from_keys[i]
            digit = (key >> shift) & mask
            place = counts[digit]
            counts[digit] = place + 1
            to_keys[place] = key
            to_values[place] = from_values[i]
        from_keys, to_keys = to_keys, from_keys
        from_values, to_values = to_values, from_values
        is_home = not is_home
    if not is_home:
        for i in range(m):
            keys[i] = from_keys[i]
            values[i] = from_values[i]


@nb.njit(nogil=True, cache=True)
def refine(tokens, suffixes, groups, depth, until, n_ids):
    """Sort groups of suffixes that agree on `depth` tokens, in place, to at least `until` tokens.

    groups: int64, shape (n_groups, 2), bounds within `suffixes`. Returns the groups that still
    tie, in the same form. All groups advance together, so that the keys of many small ones are
    fetched in one loop, where the processor overlaps the memory accesses.
    """
    bits = 1
    while n_ids >> bits:
        bits += 1
    step = 64 // bits
    keys = np.empty(0, np.uint64)
    other_keys = np.empty(0, np.uint64)
    other_values = np.empty(0, np.uint32)
    while depth < until and len(groups) > 0:
        n_members = 0
        for g in range(len(groups)):
            n_members += groups[g, 1] - groups[g, 0]
        if n_members > len(keys):
            keys = np.empty(n_members, np.uint64)
        k = 0
        for g in range(len(groups)):
            for i in range(groups[g, 0], groups[g, 1]):
                keys[k] = packed_key(tokens, np.int64(suffixes[i]) + depth, bits)
                k += 1
        left = np.empty((64, 2), np.int64)
        n_left = 0
        k = 0
        for g in range(len(groups)):
            a = groups[g, 0]
            m = groups[g, 1] - a
            if m <= _FEW_KEYS:
                insert_pairs(keys, k, k + m, suffixes, a)
            elif m < _MANY:
                sort_pairs(keys[k : k + m], suffixes[a : a + m])
            else:
                if m > len(other_keys):
                    other_keys = np.empty(m, np.uint64)
                    other_values = np.empty(m, np.uint32)
                sort_by_digits(
                    keys[k : k + m], suffixes[a : a + m], step * bits, other_keys, other_values
                )
            i = 0
            while i < m:
                j = i + 1
                while j < m and keys[k + j] == keys[k + i]:
                    j += 1
                if j - i > 1:
                    if n_left == len(left):
                        left = widen(left)
                    left[n_left, 0] = a + i
                    left[n_left, 1] = a + j
                    n_left += 1
                i = j
            k += m
        groups = left[:n_left]
        depth += step
    return groups


@nb.njit(nogil=True, cache=True)
def widen(rows):
    """The same rows in an array with room for twice as many."""
    wider = np.empty((2 * len(rows), rows.shape[1]), rows.dtype)
    for i in range(len(rows)):
        for k in range(rows.shape[1]):
            wider[i, k] = rows[i, k]
    return wider


@nb.njit(nogil=True, cache=True)
def double_ranks(suffixes, groups, depth):
    """Order the groups that agree on `depth` tokens, in place, by prefix doubling.

    suffixes: uint32, shape (n,), ordered except within these groups; groups: int64, shape
    (n_groups, 2). A suffix's rank is the place of the first suffix of its group.
    """
    n = len(suffixes)
    rank = np.empty(n, np.uint32)
    for i in range(n):
        rank[suffixes[i]] = i
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            rank[suffixes[i]] = groups[g, 0]
    keys = np.empty(1024, np.uint64)
    while len(groups) > 0:
        left = np.empty((64, 2), np.int64)
        n_left = 0
        for g in range(len(groups)):
            a = groups[g, 0]
            m = groups[g, 1] - a
            if m > len(keys):
                keys = np.empty(max(m, 2 * len(keys)), np.uint64)
            for i in range(m):
                p = np.int64(suffixes[a + i]) + depth
                keys[i] = np.uint64(rank[p]) + _U1 if p < n else np.uint64(0)
            if m <= _FEW_KEYS:
                insert_pairs(keys, 0, m, suffixes, a)
            else:
                sort_pairs(keys[:m], suffixes[a : a + m])
            i = 0
            while i < m:
                j = i + 1
                while j < m and keys[j] == keys[i]:
                    j += 1
                for k in range(i, j):
                    rank[suffixes[a + k]] = a + i
                if j - i > 1:
                    if n_left == len(left):
                        left = widen(left)
                    left[n_left, 0] = a + i
                    left[n_left, 1] = a + j
                    n_left += 1
                i = j
        groups = left[:n_left]
        depth *= 2
