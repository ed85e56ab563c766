"""Choosing a few documents that cover most of a text."""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def choose_documents(offsets, firsts, ends, n_words, n_most, n_target):
    """Choose documents greedily, each the one that covers the most words not yet covered.

    offsets: int64 (n_documents + 1,), where each document's intervals begin; firsts, ends: int32,
    half-open intervals of words. Chooses `n_most` documents, and more until `n_target` words are
    covered, as long as a document adds anything. Ties go to the first document.

    Returns (chosen documents, words that each added), int64. A document's gain only shrinks as
    others are chosen, so its previous gain is an upper bound, and few gains are recomputed.
    """
    n_documents = len(offsets) - 1
    is_covered = np.zeros(n_words, np.bool_)
    bounds = np.empty(n_documents, np.int64)
    for d in range(n_documents):
        bounds[d] = n_words
    chosen = np.empty(n_documents, np.int64)
    gains = np.empty(n_documents, np.int64)
    seen = np.full(n_words, -1, np.int64)
    n, n_covered, stamp = 0, 0, 0
    while n < n_documents and (n < n_most or n_covered < n_target):
        while True:
            best = np.argmax(bounds)
            if bounds[best] <= 0:
                return chosen[:n], gains[:n]
            stamp += 1
            gain = 0
            for k in range(offsets[best], offsets[best + 1]):
                for w in range(firsts[k], ends[k]):
                    if not is_covered[w] and seen[w] != stamp:
                        seen[w] = stamp
                        gain += 1
            if gain == bounds[best]:
                break
            bounds[best] = gain
        if gain == 0:
            break
        for k in range(offsets[best], offsets[best + 1]):
            is_covered[firsts[k] : ends[k]] = True
        chosen[n], gains[n] = best, gain
        bounds[best] = 0
        n += 1
        n_covered += gain
    return chosen[:n], gains[:n]
