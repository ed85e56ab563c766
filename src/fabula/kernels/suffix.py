"""Building a suffix array over token ids.

Three steps. (1) A counting sort by the first two tokens. (2) Within each group, sorting by packed
keys of the next few tokens, again and again to a depth of `DEPTH` tokens; groups are independent,
so threads share them. (3) What still ties (long repeats) by prefix doubling on the ranks
(Larsson & Sadakane 2007).

Token id 0 separates documents. A suffix that ends sorts before one that goes on.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = ["DEPTH", "build_suffix_array"]

DEPTH = 32
"""Suffixes that agree on so many tokens are left to prefix doubling."""

_N_PARTS = 64
_U1 = np.uint64(1)


def build_suffix_array(
    tokens: NDArray[np.uint32], n_ids: int, *, n_threads: int = 1
) -> NDArray[np.uint32]:
    """The suffix array of `tokens`, the same whatever `n_threads`.

    tokens: uint32, shape (n,), ids below `n_ids`, n below 2**32 - 1.
    Returns uint32, shape (n,). Peak memory is 13 bytes a token, `tokens` included.
    """
    n = len(tokens)
    if n >= 2**32 - 1:
        raise ValueError("a shard holds fewer than 2**32 - 1 tokens")
    if n == 0:
        return np.empty(0, np.uint32)
    suffixes: NDArray[np.uint32] = sort_by_two(tokens, n_ids)
    bits = max(int(n_ids).bit_length(), 1)
    tied = np.zeros(n, np.bool_)
    edges = np.linspace(0, n, _N_PARTS + 1).astype(np.int64)
    for part in range(1, _N_PARTS):
        edges[part] = max(next_group(tokens, suffixes, edges[part]), edges[part - 1])
    with ThreadPoolExecutor(n_threads) as pool:
        parts = [
            pool.submit(refine, tokens, suffixes, tied, low, high, bits)
            for low, high in zip(edges[:-1], edges[1:], strict=True)
            if low < high
        ]
        n_tied = sum(part.result() for part in parts)
    if n_tied:
        resolve_ties(suffixes, tied, DEPTH)
    return suffixes


@nb.njit(nogil=True, cache=True)
def sort_by_two(tokens, n_ids):
    """Suffixes ordered by their first two tokens: two passes of a counting sort.

    tokens: uint32, shape (n,). Returns uint32, shape (n,).
    """
    n = len(tokens)
    first = np.zeros(n_ids + 1, np.int64)
    for i in range(n):
        first[tokens[i] + 1] += 1
    for v in range(n_ids):
        first[v + 1] += first[v]
    place = first.copy()
    by_token = np.empty(n, np.uint32)
    for i in range(n):
        v = tokens[i]
        by_token[place[v]] = i
        place[v] += 1
    # Positions in the order of their token; their predecessors, placed in this order, come out
    # ordered by (token, next token). The last suffix has no second token: first in its group.
    place[:] = first
    order = np.empty(n, np.uint32)
    v = tokens[n - 1]
    order[place[v]] = n - 1
    place[v] += 1
    for k in range(n):
        j = np.int64(by_token[k])
        if j > 0:
            v = tokens[j - 1]
            order[place[v]] = j - 1
            place[v] += 1
    return order


@nb.njit(inline="always")
def packed_key(tokens, position, bits):
    """The next 64 // bits tokens in one number that orders as they do; past the end counts as 0."""
    n = len(tokens)
    key = np.uint64(0)
    for k in range(64 // bits):
        key <<= np.uint64(bits)
        if position + k < n:
            key |= np.uint64(tokens[position + k]) + _U1
    return key


@nb.njit(inline="always")
def same_two(tokens, i, j):
    """Whether the suffixes at i and j begin with the same two tokens (or one, at the very end)."""
    n = len(tokens)
    if tokens[i] != tokens[j]:
        return False
    a = np.int64(tokens[i + 1]) if i + 1 < n else np.int64(-1)
    b = np.int64(tokens[j + 1]) if j + 1 < n else np.int64(-1)
    return a == b


@nb.njit(nogil=True, cache=True)
def next_group(tokens, suffixes, at):
    """The first place at or after `at` where a new group of equal first two tokens begins."""
    n = len(suffixes)
    while 0 < at < n and same_two(tokens, np.int64(suffixes[at]), np.int64(suffixes[at - 1])):
        at += 1
    return at


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
        while high - low > 20:
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
            # The larger side waits on the stack, so the stack stays logarithmic.
            if below - low < high - above:
                stack[depth, 0] = above
                stack[depth, 1] = high
                high = below
            else:
                stack[depth, 0] = low
                stack[depth, 1] = below
                low = above
            depth += 1
        for i in range(low + 1, high):
            key = keys[i]
            value = values[i]
            j = i - 1
            while j >= low and keys[j] > key:
                keys[j + 1] = keys[j]
                values[j + 1] = values[j]
                j -= 1
            keys[j + 1] = key
            values[j + 1] = value


@nb.njit(nogil=True, cache=True)
def refine(tokens, suffixes, tied, low, high, bits):
    """Sort suffixes[low:high], whole groups of equal first two tokens, to `DEPTH` tokens.

    Marks tied[i] where suffix i agrees with suffix i - 1 that far. Returns how many suffixes are
    in such ties. An explicit stack, because a self-recursive kernel does not survive the cache.
    """
    step = 64 // bits
    n_tied = 0
    keys = np.empty(1024, np.uint64)
    stack = np.empty((1024, 3), np.int64)
    start = low
    while start < high:
        end = start + 1
        first = np.int64(suffixes[start])
        while end < high and same_two(tokens, first, np.int64(suffixes[end])):
            end += 1
        stack[0, 0] = start
        stack[0, 1] = end
        stack[0, 2] = 2
        n_stacked = 1 if end - start > 1 else 0
        while n_stacked > 0:
            n_stacked -= 1
            a = stack[n_stacked, 0]
            b = stack[n_stacked, 1]
            depth = stack[n_stacked, 2]
            if depth >= DEPTH:
                n_tied += b - a
                tied[a + 1 : b] = True
                continue
            m = b - a
            if m > len(keys):
                keys = np.empty(max(m, 2 * len(keys)), np.uint64)
            for i in range(m):
                keys[i] = packed_key(tokens, np.int64(suffixes[a + i]) + depth, bits)
            sort_pairs(keys[:m], suffixes[a:b])
            i = 0
            while i < m:
                j = i + 1
                while j < m and keys[j] == keys[i]:
                    j += 1
                if j - i > 1:
                    if n_stacked == len(stack):
                        wider = np.empty((2 * len(stack), 3), np.int64)
                        wider[:n_stacked] = stack
                        stack = wider
                    stack[n_stacked, 0] = a + i
                    stack[n_stacked, 1] = a + j
                    stack[n_stacked, 2] = depth + step
                    n_stacked += 1
                i = j
        start = end
    return n_tied


@nb.njit(nogil=True, cache=True)
def resolve_ties(suffixes, tied, depth):
    """Order the groups that tie on `depth` tokens, in place, by prefix doubling.

    suffixes: uint32, shape (n,); tied: bool, shape (n,), true where a suffix agrees with the one
    before it on at least `depth` tokens. A rank is the place of the first suffix of its group.
    """
    n = len(suffixes)
    rank = np.empty(n, np.uint32)
    n_groups = 0
    for i in range(n):
        if not tied[i]:
            group = i
        elif not tied[i - 1]:
            n_groups += 1
        rank[suffixes[i]] = group
    groups = np.empty((n_groups, 2), np.uint32)
    n_groups = 0
    i = 1
    while i < n:
        if tied[i]:
            groups[n_groups, 0] = i - 1
            while i < n and tied[i]:
                i += 1
            groups[n_groups, 1] = i
            n_groups += 1
        i += 1
    keys = np.empty(1024, np.uint64)
    while n_groups > 0:
        kept = np.empty((2 * n_groups, 2), np.uint32)
        n_kept = 0
        for g in range(n_groups):
            a = np.int64(groups[g, 0])
            b = np.int64(groups[g, 1])
            m = b - a
            if m > len(keys):
                keys = np.empty(max(m, 2 * len(keys)), np.uint64)
            for i in range(m):
                p = np.int64(suffixes[a + i]) + depth
                keys[i] = np.uint64(rank[p]) + _U1 if p < n else np.uint64(0)
            sort_pairs(keys[:m], suffixes[a:b])
            i = 0
            while i < m:
                j = i + 1
                while j < m and keys[j] == keys[i]:
                    j += 1
                for k in range(i, j):
                    rank[suffixes[a + k]] = a + i
                if j - i > 1:
                    if n_kept == len(kept):
                        wider = np.empty((2 * n_kept, 2), np.uint32)
                        wider[:n_kept] = kept
                        kept = wider
                    kept[n_kept, 0] = a + i
                    kept[n_kept, 1] = a + j
                    n_kept += 1
                i = j
        groups = kept
        n_groups = n_kept
        depth *= 2
    return rank
