"""n-grams shared by several texts: numbered exactly, and counted over subsets of the texts.

An n-gram is the pair of its first and last (n-1)-gram, so numbering pairs numbers n-grams, and
different n-grams never share a number; nothing is hashed. An n-gram that occurs only once has no
number, nor does anything that contains it.
"""

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def group_places(numbers, n_numbers):
    """Group the places where n-grams begin by number: places[begins[t] : begins[t + 1]] for t.

    numbers: int32, shape (n_words,), the number of the n-gram that begins at each word, or -1.
    begins: int64 (n_numbers + 1,); places: int32, ascending within each number.
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
def extend_ngrams(shorter, begins, places, n_left, n):
    """Number the n-grams that occur at least twice, from those of n - 1 words.

    shorter: int32, shape (n_words,), the number of the (n-1)-gram that begins at each word, -1 if
    it occurs once; begins, places: the same, from `group_places`. n_left: int32, shape (n_words,),
    the words from each one to the end of its segment. Returns the same as `shorter` for n words (-1
    also if the segment ends before), in order of the second appearance, and their number.

    All places of a (n-1)-gram are looked at together, so that a table of the (n-1)-grams that can
    follow is enough to tell its continuations apart.
    """
    n_words = len(shorter)
    n_shorter = len(begins) - 1
    found = np.full(n_words, -1, np.int32)
    born = np.full(n_words, -1, np.int32)
    # For each (n-1)-gram: the one that it last followed, and the place where that was first seen;
    # from the second time on, -2 - the number.
    seen = np.full((n_shorter, 2), -1, np.int32)
    n_numbers = 0
    for t in range(n_shorter):
        for k in range(begins[t], begins[t + 1]):
            p = places[k]
            if n_left[p] < n:
                continue
            following = shorter[p + 1]
            if following < 0:
                continue
            if seen[following, 0] != t:
                seen[following, 0] = t
                seen[following, 1] = p
                continue
            first = seen[following, 1]
            if first >= 0:
                found[first] = n_numbers
                born[p] = n_numbers
                first = -2 - n_numbers
                seen[following, 1] = first
                n_numbers += 1
            found[p] = -2 - first
    order = np.empty(n_numbers, np.int32)
    n_ordered = 0
    for p in range(n_words):
        if born[p] >= 0:
            order[born[p]] = n_ordered
            n_ordered += 1
    for p in range(n_words):
        if found[p] >= 0:
            found[p] = order[found[p]]
    return found, n_numbers


@nb.njit(nogil=True, cache=True)
def count_places(numbers, n_left, text_of, n_texts, n):
    """Count each text's n-grams, and those of them that have no number.

    numbers, n_left: as in `extend_ngrams`. text_of: int32, shape (n_words,), ascending; `n_texts`
    and above are prompts, which are not counted. Returns two arrays, int64 (n_texts,).
    """
    in_all = np.zeros(n_texts, np.int64)
    n_single = np.zeros(n_texts, np.int64)
    for p in range(len(numbers)):
        text = text_of[p]
        if text >= n_texts:
            break
        if n_left[p] >= n:
            in_all[text] += 1
            n_single[text] += numbers[p] < 0
    return in_all, n_single


@nb.njit(nogil=True, cache=True)
def list_holders(numbers, begins, places, text_of, n_texts, prompt_of):
    """List the texts that hold each n-gram, for n-grams held by at least two texts.

    numbers: int32, shape (n_words,), from `extend_ngrams`; set to -1 where a text's n-gram occurs
    in its own prompt. begins, places: the same, from `group_places`. text_of: int32, shape
    (n_words,), ascending; `n_texts` and above are prompts. prompt_of: int32, shape (n_texts,), the
    text's prompt, or -1. Returns

    - ends: int64 (n_held,); n-gram t is held by the texts of entries ends[t - 1] to ends[t];
    - texts, counts, firsts: int32 (n_entries,): the text, how often it holds the n-gram, and the
      word where it first does; the texts of an n-gram ascend;
    - n_own: int64 (n_texts,), the number of distinct numbered n-grams that no other text holds;
    - n_echoed: int64 (n_texts,), the number of occurrences that echo the prompt.
    """
    n_numbers = len(begins) - 1
    ends = np.empty(n_numbers, np.int64)
    texts = np.empty(len(places), np.int32)
    counts = np.empty(len(places), np.int32)
    firsts = np.empty(len(places), np.int32)
    n_own = np.zeros(n_texts, np.int64)
    n_echoed = np.zeros(n_texts, np.int64)
    # A prompt without words has a number too, and occurs nowhere.
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
def narrow_holders(ends, texts, counts, firsts, place, n_kept):
    """The n-grams that at least two of some texts hold, from those of all texts.

    ends, texts, counts, firsts: from `list_holders`. place: int32, shape (n_texts,), ascending: the
    number of each text that is kept, from 0 to n_kept - 1, or -1. Returns the same four arrays for
    the texts kept, and n_alone: int64 (n_kept,), the number of n-grams now held by that text alone.
    """
    size = 0
    for k in range(len(texts)):
        size += place[texts[k]] >= 0
    new_ends = np.empty(len(ends), np.int64)
    new_texts = np.empty(size, np.int32)
    new_counts = np.empty(size, np.int32)
    new_firsts = np.empty(size, np.int32)
    n_alone = np.zeros(n_kept, np.int64)
    n_held = 0
    size = 0
    begin = 0
    for end in ends:
        start = size
        for k in range(begin, end):
            text = place[texts[k]]
            if text >= 0:
                new_texts[size] = text
                new_counts[size] = counts[k]
                new_firsts[size] = firsts[k]
                size += 1
        if size - start == 1:
            n_alone[new_texts[start]] += 1
            size = start
        elif size > start:
            new_ends[n_held] = size
            n_held += 1
        begin = end
    return (
        new_ends[:n_held].copy(),
        new_texts[:size].copy(),
        new_counts[:size].copy(),
        new_firsts[:size].copy(),
        n_alone,
    )


@nb.njit(nogil=True, cache=True)
def count_in_subsets(ends, texts, counts, members):
    """Count what the texts of each subset share.

    n-gram t is held by `texts[ends[t - 1] : ends[t]]` (int32), with counts `counts` (int32).
    members: uint8, shape (n_subsets, n_texts), 1 if a text belongs to a subset. Returns

    - n_different: int64 (n_subsets,), the number of distinct n-grams held in the subset;
    - n_shared: int64 (n_subsets, n_texts), the text's occurrences of n-grams that another holds;
    - n_others: int64 (n_subsets, n_texts), other holders, summed over the text's n-grams;
    - n_clipped: int64 (n_subsets, n_texts), the text's occurrences, of each n-gram at most as many
      as in the one other text that holds it most often (the matches of BLEU).
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
    """List the pairs of texts with an n-gram in common, once for each n-gram.

    ends, texts as in `count_in_subsets`, the texts of an n-gram ascending. n-grams with more than
    `max_holders` holders are skipped. Returns int64, shape (n_pairs,): the first text in the upper
    32 bits, the second in the lower.
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
