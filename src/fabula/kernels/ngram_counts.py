"""n-grams that several texts hold: numbered exactly, and counted over subsets of the texts.

An n-gram is the pair of the (n-1)-gram that begins it and the one that ends it, so numbering pairs
numbers n-grams, and no two different n-grams ever have one number. What occurs once has no number,
nor has anything that contains it.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["count_in_subsets", "count_pairs", "extend_ngrams", "list_holders"]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@nb.njit(inline="always")
def _slot(key, shift):
    """Where a key is looked for first (Knuth's multiplicative hash)."""
    return np.int64((np.uint64(key) * _FACTOR) >> np.uint64(shift))


@nb.njit(nogil=True, cache=True)
def extend_ngrams(shorter, n_left, n):
    """Number the n-grams that occur twice or more, by those of n - 1 words.

    shorter: int32, shape (n_words,), the number of the (n-1)-gram that begins at each word, -1
    where it occurs once. n_left: int32, shape (n_words,), the words from each one to the end of its
    segment. Returns the same of n words (-1 also where the segment ends before), and how many
    numbers there are.
    """
    n_words = len(shorter)
    found = np.full(n_words, -1, np.int32)
    n_candidates = 0
    for p in range(n_words - 1):
        if n_left[p] >= n and shorter[p] >= 0 and shorter[p + 1] >= 0:
            n_candidates += 1
    bits = 4
    while (1 << bits) < 2 * n_candidates:
        bits += 1
    size = 1 << bits
    keys = np.full(size, -1, np.int64)
    # Where the pair was seen first, and from the second time on its number, as -2 - number.
    state = np.empty(size, np.int32)
    n_numbers = 0
    for p in range(n_words - 1):
        if n_left[p] < n or shorter[p] < 0 or shorter[p + 1] < 0:
            continue
        key = (np.int64(shorter[p]) << 32) | np.int64(shorter[p + 1])
        at = _slot(key, 64 - bits)
        while keys[at] != -1 and keys[at] != key:
            at = (at + 1) & (size - 1)
        if keys[at] == -1:
            keys[at] = key
            state[at] = p
            continue
        if state[at] >= 0:
            found[state[at]] = n_numbers
            state[at] = -2 - n_numbers
            n_numbers += 1
        found[p] = -2 - state[at]
    return found, n_numbers


@nb.njit(nogil=True, cache=True)
def _places_by_number(numbers, n_numbers):
    """Where n-grams begin, by number: those of t are places[begins[t] : begins[t + 1]].

    begins: int64 (n_numbers + 1,); places: int32, ascending for each number.
    """
    begins = np.zeros(n_numbers + 1, np.int64)
    for number in numbers:
        if number >= 0:
            begins[number + 1] += 1
    for t in range(n_numbers):
        begins[t + 1] += begins[t]
    places = np.empty(begins[n_numbers], np.int32)
    filled = begins.copy()
    for p in range(len(numbers)):
        if numbers[p] >= 0:
            places[filled[numbers[p]]] = p
            filled[numbers[p]] += 1
    return begins, places


@nb.njit(nogil=True, cache=True)
def list_holders(numbers, n_numbers, text_of, n_texts, prompt_of):
    """Which texts hold each n-gram, of those that two texts hold or more.

    numbers: int32, shape (n_words,), as `extend_ngrams` gives them; where a text's n-gram is one of
    its own prompt the number becomes -1. text_of: int32, shape (n_words,), ascending; `n_texts` and
    above are prompts. prompt_of: int32, shape (n_texts,), such a prompt, or -1. Returns

    - ends: int64 (n_held,); n-gram t is held by the texts of entries ends[t - 1] to ends[t];
    - texts, counts, firsts: int32 (n_entries,): the text, how often it holds the n-gram, and the
      word where it first does; the texts of an n-gram ascend;
    - n_own: int64 (n_texts,), how many different n-grams with a number no other text holds;
    - n_echoed: int64 (n_texts,), occurrences that were one of the prompt.
    """
    begins, places = _places_by_number(numbers, n_numbers)
    ends = np.empty(n_numbers, np.int64)
    texts = np.empty(len(places), np.int32)
    counts = np.empty(len(places), np.int32)
    firsts = np.empty(len(places), np.int32)
    n_own = np.zeros(n_texts, np.int64)
    n_echoed = np.zeros(n_texts, np.int64)
    # A prompt without a word has a number too, and stands nowhere.
    n_prompts = 1
    for p in range(len(numbers)):
        n_prompts = max(n_prompts, text_of[p] - n_texts + 1)
    for text in range(n_texts):
        n_prompts = max(n_prompts, prompt_of[text] - n_texts + 1)
    seen_in = np.full(n_prompts, -1, np.int64)
    n_held = 0
    size = 0
    for t in range(n_numbers):
        high = begins[t + 1]
        while high > begins[t] and text_of[places[high - 1]] >= n_texts:
            high -= 1
            seen_in[text_of[places[high]] - n_texts] = t
        start = size
        for k in range(begins[t], high):
            p = places[k]
            text = text_of[p]
            if prompt_of[text] >= 0 and seen_in[prompt_of[text] - n_texts] == t:
                n_echoed[text] += 1
                numbers[p] = -1
            elif size > start and texts[size - 1] == text:
                counts[size - 1] += 1
            else:
                texts[size] = text
                counts[size] = 1
                firsts[size] = p
                size += 1
        if size - start == 1:
            n_own[texts[start]] += 1
            size = start
        elif size > start:
            ends[n_held] = size
            n_held += 1
    return (
        ends[:n_held].copy(),
        texts[:size].copy(),
        counts[:size].copy(),
        firsts[:size].copy(),
        n_own,
        n_echoed,
    )


@nb.njit(nogil=True, cache=True)
def count_in_subsets(ends, texts, counts, members):
    """What the texts of each subset share.

    n-gram t is held by `texts[ends[t - 1] : ends[t]]` (int32), as often as `counts` says (int32).
    members: uint8, shape (n_subsets, n_texts), 1 where a text belongs to a subset. Returns

    - n_different: int64 (n_subsets,), how many of the n-grams a text of the subset holds;
    - n_shared: int64 (n_subsets, n_texts), the text's occurrences of n-grams that another holds;
    - n_others: int64 (n_subsets, n_texts), other holders, summed over the text's n-grams;
    - n_clipped: int64 (n_subsets, n_texts), the text's occurrences, of each n-gram no more than in
      the one other text that holds it most often (the matches of BLEU).
    """
    n_subsets, n_texts = members.shape
    n_different = np.zeros(n_subsets, np.int64)
    n_shared = np.zeros((n_subsets, n_texts), np.int64)
    n_others = np.zeros((n_subsets, n_texts), np.int64)
    n_clipped = np.zeros((n_subsets, n_texts), np.int64)
    for s in range(n_subsets):
        start = 0
        for end in ends:
            n_holders = 0
            most = 0
            second = 0
            for k in range(start, end):
                if members[s, texts[k]]:
                    n_holders += 1
                    if counts[k] > most:
                        second = most
                        most = counts[k]
                    elif counts[k] > second:
                        second = counts[k]
            if n_holders > 0:
                n_different[s] += 1
            if n_holders > 1:
                for k in range(start, end):
                    text = texts[k]
                    if members[s, text]:
                        n_shared[s, text] += counts[k]
                        n_others[s, text] += n_holders - 1
                        n_clipped[s, text] += min(counts[k], second)
            start = end
    return n_different, n_shared, n_others, n_clipped


@nb.njit(nogil=True, cache=True)
def count_pairs(ends, texts, max_holders):
    """The pairs of texts that hold an n-gram in common, once for each n-gram.

    ends, texts as in `count_in_subsets`, the texts of an n-gram ascending. An n-gram with more than
    `max_holders` is passed over. Returns int64, shape (n_pairs,): the first text in the upper 32
    bits, the second in the lower.
    """
    n_pairs = 0
    start = 0
    for end in ends:
        if end - start <= max_holders:
            n_pairs += (end - start) * (end - start - 1) // 2
        start = end
    pairs = np.empty(n_pairs, np.int64)
    at = 0
    start = 0
    for end in ends:
        if end - start <= max_holders:
            for a in range(start, end):
                for b in range(a + 1, end):
                    pairs[at] = (np.int64(texts[a]) << 32) | np.int64(texts[b])
                    at += 1
        start = end
    return pairs
