"""The nearest sentence by cosine of word counts, over an inverted index, without reading it all.

Words are numbered by descending frequency. Let w be the rarest word that query and sentence share.
All shared words are w or more frequent, so by Cauchy-Schwarz their cosine is at most sqrt(q * s),
where q is the share of w and more frequent words in the query's weight (the sum of squared counts),
and s their share in the sentence's. Each word's list is sorted by descending s, so a list is read
only while q * s is above the square of the best cosine so far, which leaves the long lists of
frequent words almost unread. (Bayardo, Ma and Srikant 2007 bound all-pairs similarity in this way.)
Before a sentence is compared word by word, its signature is checked: each word sets one of 64 bits,
so query words whose bit is not set are certainly absent.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

STEPS = 255
"""A share is stored as a number of steps, rounded up."""
_SLACK = 1 - 1e-12


@njit(cache=True, inline="always")
def _bit(word):
    """The bit, out of 64, that a word sets: the top of a multiplicative hash."""
    return (np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58)


@njit(cache=True, nogil=True)
def signatures(word_ends: NDArray[np.int64], bags: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """The bits set by each sentence's words: uint64, shape (n_sentences,)."""
    found = np.zeros(len(word_ends) - 1, np.uint64)
    for sentence in range(len(found)):
        for place in range(word_ends[sentence], word_ends[sentence + 1]):
            found[sentence] |= np.uint64(1) << _bit(bags[place])
    return found


@njit(cache=True, nogil=True)
def nearest(
    words: NDArray[np.int64],
    counts: NDArray[np.int64],
    list_ends: NDArray[np.int64],
    lists: NDArray[np.uint32],
    shares: NDArray[np.uint8],
    word_ends: NDArray[np.int64],
    bags: NDArray[np.uint32],
    bag_counts: NDArray[np.uint16],
    norms: NDArray[np.uint32],
    signatures: NDArray[np.uint64],
    best_cosine: float,
) -> tuple[int, float, int]:
    """The sentence with the largest cosine above `best_cosine`, the first if tied; -1 for none.

    words, counts: int64, shape (n_distinct,): the query, by ascending number. list_ends: int64,
    shape (n_words + 1,); word w occurs in the sentences `lists[list_ends[w] : list_ends[w + 1]]`,
    by descending `shares`. Sentence k holds the words `bags[word_ends[k] : word_ends[k + 1]]`, by
    ascending number, with counts `bag_counts`; `norms` are the sums of squares of these counts,
    `signatures` the bits set by its words.

    Returns the sentence, its cosine, and the number of sentences compared.
    """
    weight = 0
    for count in counts:
        weight += count * count
    best, n_compared = np.int64(-1), 0
    left = weight
    for k in range(len(words) - 1, -1, -1):
        for place in range(list_ends[words[k]], list_ends[words[k] + 1]):
            limit = best_cosine * best_cosine * weight * STEPS * _SLACK
            if left * np.int64(shares[place]) < limit:
                break
            sentence = np.int64(lists[place])
            common = 0
            signature = signatures[sentence]
            for j in range(k + 1):
                if (signature >> _bit(words[j])) & np.uint64(1):
                    common += counts[j] * counts[j]
            if common * np.int64(shares[place]) < limit:
                continue
            n_compared += 1
            product = _product(
                words, counts, bags, bag_counts, word_ends[sentence], word_ends[sentence + 1]
            )
            cosine = product / np.sqrt(float(weight) * float(norms[sentence]))
            if cosine > best_cosine or (cosine == best_cosine and sentence < best):
                best, best_cosine = sentence, cosine
        left -= counts[k] * counts[k]
    return int(best), best_cosine, n_compared


@njit(cache=True, inline="always")
def _product(words, counts, bags, bag_counts, start, end):
    """The dot product of two bags of words, each by ascending number."""
    total = np.int64(0)
    k = 0
    for place in range(start, end):
        word = np.int64(bags[place])
        while k < len(words) and words[k] < word:
            k += 1
        if k == len(words):
            break
        if words[k] == word:
            total += counts[k] * np.int64(bag_counts[place])
    return total
