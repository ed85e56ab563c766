"""Random labels for permutation tests, 64 permutations to a machine word.

An item's label is a bit in each of 64 permutations, so that what holds of any or all items of a
group is one OR or AND for 64 permutations at once.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

__all__ = ["count_types", "draw_labels"]

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
    """Which items are chosen, in 64 * n_words random choices of `n_chosen` of `n_items`.

    Returns uint64, shape (n_words, n_items): bit p of word w of an item tells whether choice
    64 * w + p holds it. Each word has its own stream, so threads do not change the result.
    """
    labels = np.zeros((n_words, n_items), np.uint64)
    for word in prange(n_words):
        state, _ = _next(np.uint64(seed) ^ (np.uint64(word + 1) * np.uint64(0xD1B54A32D192ED03)))
        places = np.arange(n_items)
        for bit in range(64):
            one = np.uint64(1) << np.uint64(bit)
            for k in range(n_chosen):
                state, draw = _next(state)
                # 32 random bits times the range: uneven by less than one in 10^5 for 10^5 items.
                width = np.uint64(n_items - k)
                other = k + np.int64(((draw >> np.uint64(32)) * width) >> np.uint64(32))
                place = places[other]
                places[other] = places[k]
                places[k] = place
                labels[word, place] |= one
    return labels


@njit(cache=True, parallel=True)
def count_types(
    labels: NDArray[np.uint64], items: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many types some chosen item holds, and how many some item holds that is not chosen.

    labels: as `draw_labels` gives them. Type t is held by `items[ends[t - 1] : ends[t]]`.
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
                total = np.int64(0)
                for plane in range(_N_PLANES):
                    total += (
                        np.int64((planes[side, plane] >> np.uint64(bit)) & np.uint64(1)) << plane
                    )
                counts[side, 64 * word + bit] = total
    return counts


@njit(cache=True, inline="always")
def _add(planes, carry):
    """Add 1 to each of 64 counters whose bit is set; plane k holds bit k of all of them."""
    plane = 0
    while carry:
        planes[plane], carry = planes[plane] ^ carry, planes[plane] & carry
        plane += 1
