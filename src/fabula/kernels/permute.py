"""Random labels for permutation tests, 64 permutations per machine word.

An item's label is one bit per permutation, so whether any or all items of a group are chosen is
one OR or AND for 64 permutations at once.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

_N_PLANES = 32


@njit(cache=True, inline="always")
def _next(state):
    """The next state of a splitmix64 generator, and its output."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, z ^ (z >> np.uint64(31))


@njit(cache=True, parallel=True)
def draw_labels(n_items: int, n_chosen: int, n_words: int, seed: int) -> NDArray[np.uint64]:
    """Draw 64 * n_words random choices of `n_chosen` out of `n_items`.

    Returns uint64, shape (n_words, n_items): bit p of word w of an item says whether choice
    64 * w + p includes it. Each word has its own stream, so threads do not change the result.

    Every item is first chosen by a coin toss, 64 choices at a time; then items are added or
    removed at random until the number is right. All sets of coin tosses of one size are equally
    likely, and so are the sets after adding or removing.
    """
    labels = np.empty((n_words, n_items), np.uint64)
    for word in prange(n_words):
        state, _ = _next(np.uint64(seed) ^ (np.uint64(word + 1) * np.uint64(0xD1B54A32D192ED03)))
        planes = np.zeros(_N_PLANES, np.uint64)
        for item in range(n_items):
            state, draw = _next(state)
            labels[word, item] = draw
            _add(planes, draw)
        for bit in range(64):
            surplus = _count(planes, bit) - np.int64(n_chosen)
            one = np.uint64(1) << np.uint64(bit)
            unwanted = one if surplus > 0 else np.uint64(0)
            n_left = abs(surplus)
            while n_left:
                state, draw = _next(state)
                # 32 random bits times the range: biased by less than one in 10^4 for 10^5 items.
                place = np.int64(((draw >> np.uint64(32)) * np.uint64(n_items)) >> np.uint64(32))
                if labels[word, place] & one == unwanted:
                    labels[word, place] ^= one
                    n_left -= 1
    return labels


@njit(cache=True, parallel=True)
def sum_chosen(labels: NDArray[np.uint64], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each column over the chosen items.

    columns: float64, shape (n_columns, n_items). Returns float64, (n_columns, 64 * n_words).
    """
    n_words, n_items = labels.shape
    n_columns = len(columns)
    sums = np.empty((n_columns, 64 * n_words))
    for word in prange(n_words):
        totals = np.zeros((n_columns, 64))
        flags = np.empty(64)
        for item in range(n_items):
            label = labels[word, item]
            for bit in range(64):
                flags[bit] = np.float64((label >> np.uint64(bit)) & np.uint64(1))
            for column in range(n_columns):
                value = columns[column, item]
                for bit in range(64):
                    totals[column, bit] += value * flags[bit]
        for column in range(n_columns):
            for bit in range(64):
                sums[column, 64 * word + bit] = totals[column, bit]
    return sums


@njit(cache=True, parallel=True)
def count_types(
    labels: NDArray[np.uint64], items: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the types held by some chosen item, and the types held by some item not chosen.

    labels: from `draw_labels`. Type t is held by `items[ends[t - 1] : ends[t]]`.
    Returns int64, shape (2, 64 * n_words).
    """
    n_words = labels.shape[0]
    counts = np.zeros((2, 64 * n_words), np.int64)
    for word in prange(n_words):
        planes = np.zeros((2, _N_PLANES), np.uint64)
        start = 0
        for end in ends:
            some = np.uint64(0)
            every = ~np.uint64(0)
            for k in range(start, end):
                label = labels[word, items[k]]
                some |= label
                every &= label
            start = end
            _add(planes[0], some)
            _add(planes[1], ~every)
        for side in range(2):
            for bit in range(64):
                counts[side, 64 * word + bit] = _count(planes[side], bit)
    return counts


@njit(cache=True, inline="always")
def _add(planes, carry):
    """Add 1 to each of 64 counters whose bit is set; plane k holds bit k of all counters."""
    plane = 0
    while carry:
        planes[plane], carry = planes[plane] ^ carry, planes[plane] & carry
        plane += 1


@njit(cache=True, inline="always")
def _count(planes, bit):
    """The value of the counter of a bit."""
    total = np.int64(0)
    for plane in range(_N_PLANES):
        total += np.int64((planes[plane] >> np.uint64(bit)) & np.uint64(1)) << plane
    return total
