"""Searching a suffix array: longest matches, intervals, and matches with documents excluded.

Queries are token ids in which 0 stands for "not a word of this corpus" and for the gap between two
documents; no match extends across it. `tokens` ends with 0, so comparing never runs past the end.
Tokens and suffixes are read in their on-disk format (`kernels.packed`). They may be damaged: values
read from one array are bounds-checked before they index another, so a search may return nonsense
(which checksums detect first) but never reads outside the arrays.

The longest match at a position is found by binary search for the place where the query's suffix
would be inserted; one of its two neighbours there shares the longest prefix with it. Two things
make it fast. A hash table of token pairs gives the interval to search in. And many positions are
searched in lock-step: their memory accesses do not depend on each other, so the processor overlaps
them, where a single binary search would wait for each.

A match of n tokens contains one of n - 1 that begins one token later. So a match found is a lower
bound for the positions after it, and the longest match at a position is an upper bound for those
before it. Where the bounds meet nothing is left to search: of the positions whose matches may end
at the same place, one search mostly decides all.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import (
    PairTable,
    find_mark,
    pair_bucket,
    pair_hash,
    pair_interval,
    pair_mark,
)
from fabula.kernels.packed import RARE, Packed, Tokens, ask_for, rare_token, unpack
from fabula.kernels.sampled_keys import Keys, begin_at_keys, narrow_by_pairs

WIDTH = 128
"""Positions searched in lock-step; enough to keep every memory channel busy."""


@nb.njit(nogil=True, cache=True)
def run_ends(query):
    """For each position, where its run of known tokens ends. int64, shape (n_query,)."""
    n = len(query)
    ends = np.empty(n, np.int64)
    end = n
    for i in range(n - 1, -1, -1):
        if query[i] == 0:
            end = i
        ends[i] = end
    return ends


def longest_matches(
    tokens: Tokens,
    suffixes: Packed,
    pairs: PairTable,
    keys: Keys,
    query: NDArray[np.uint32],
    ends: NDArray[np.int64],
    known: NDArray[np.int32],
    starts: NDArray[np.int64],
    excluded: NDArray[np.bool_],
    *,
    from_disk: bool = False,
    ahead: bool = False,
) -> NDArray[np.int32]:
    """Length of the longest match that starts at each of the first n positions: int32 (n,).

    query: uint32 (n_query,); ends: int64 (n,), from `run_ends` or, tighter, `grams.bound_ends`;
    known: int32 (n,), lengths found elsewhere: where a match is not longer, the result is any
    number up to its length; starts: int64 (n_documents,), each document's first token; excluded:
    bool (n_documents,), those whose matches do not count, or empty. from_disk: whether to search in
    rounds (`implied`) and begin at the keys, if there are any, which saves reads and costs time;
    ahead: whether to prefetch pages, which pays off if they come from the disk.
    """
    lengths = np.empty(len(ends), np.int32)
    search_in_rounds(
        *tokens, *suffixes, *pairs.buckets, *pairs.entries, *keys, query, ends, known, starts,
        excluded, lengths, from_disk, ahead,
    )  # fmt: skip
    return lengths


@nb.njit(nogil=True, cache=True)
def search_in_rounds(
    codes, rare_before, rare_ids, places, place_bits, n_tokens, buckets, bucket_bits, n_buckets,
    entries, entry_bits, n_pairs, keys, n_block, query, ends, known, starts, excluded, lengths,
    from_disk, ahead,
):  # fmt: skip
    """`longest_matches` on plain arrays; records would be unpacked at every access."""
    bounds = ends.copy()
    witnesses = np.zeros(len(ends), np.uint32)
    chosen = np.empty(len(ends), np.int64)
    for i in range(len(ends)):
        lengths[i] = 1 if i < ends[i] and known[i] == 0 else 0
    by_keys = from_disk and len(keys) > 0
    for n_done in range(0 if from_disk else N_ROUNDS - 1, N_ROUNDS):
        positions = chosen[: choose_positions(bounds, known, lengths, n_done, chosen)]
        if len(positions) == 0:
            break
        search_in_step(
            codes, rare_before, rare_ids, places, place_bits, n_tokens, buckets, bucket_bits,
            n_buckets, entries, entry_bits, n_pairs, keys, n_block, query, bounds, positions,
            lengths, witnesses, by_keys, ahead,
        )  # fmt: skip
        if len(excluded) > 0:
            shorten(
                codes, rare_before, rare_ids, places, place_bits, n_tokens, starts, excluded, query,
                bounds, positions, lengths, witnesses,
            )  # fmt: skip
        spread_matches(positions, bounds, lengths)
    if len(excluded) > 0:
        # Whether single words occur was not searched: the vocabulary says so.
        n = 0
        for i in range(len(ends)):
            if lengths[i] == 1:
                chosen[n] = i
                n += 1
        shorten(
            codes, rare_before, rare_ids, places, place_bits, n_tokens, starts, excluded, query,
            bounds, chosen[:n], lengths, witnesses,
        )  # fmt: skip


@nb.njit(nogil=True, cache=True)
def search_in_step(
    codes, rare_before, rare_ids, places, place_bits, n_tokens, buckets, bucket_bits, n_buckets,
    entries, entry_bits, n_pairs, keys, n_block, query, ends, positions, lengths, witnesses,
    by_keys, ahead,
):  # fmt: skip
    """Find the longest match at each of the positions.

    Fills lengths, and witnesses: places in the suffix array of such matches of several words.
    """
    low = np.empty(WIDTH, np.int64)
    high = np.empty(WIDTH, np.int64)
    common_low = np.empty(WIDTH, np.int64)
    common_high = np.empty(WIDTH, np.int64)
    where = np.empty(WIDTH, np.int64)
    probe = np.empty(WIDTH, np.int64)
    seen = np.empty(WIDTH, np.uint32)
    slots = np.empty(WIDTH, np.int64)
    slot_ends = np.empty(WIDTH, np.int64)
    marks = np.empty(WIDTH, np.uint64)
    last = n_tokens - 1
    for base in range(0, len(positions), WIDTH):
        asked = positions[base : base + WIDTH]
        common_low[:] = 0
        common_high[:] = 0
        if by_keys:
            n_active = begin_at_keys(
                keys, n_block, n_tokens, query, ends, asked, lengths, witnesses,
                where, low, high, common_low, common_high,
            )  # fmt: skip
            n_active = narrow_by_pairs(
                buckets, bucket_bits, n_buckets - 1, entries, entry_bits, n_pairs, n_tokens, query,
                n_active, where, low, high, common_low, common_high, slots, slot_ends, marks, ahead,
            )  # fmt: skip
        else:
            n_active = begin_at_pairs(
                buckets, bucket_bits, n_buckets - 1, entries, entry_bits, n_pairs, n_tokens, query,
                ends, asked, lengths, witnesses,
                where, low, high, slots, slot_ends, marks, ahead,
            )  # fmt: skip
        # All searches advance one step at a time. The first two loops only request memory, so that
        # the requests overlap; the third uses what has arrived.
        while n_active > 0:
            if ahead:
                ask_for_suffixes(places, place_bits, low, high, n_active)
            for w in range(n_active):
                probe[w] = unpack(places, place_bits, (low[w] + high[w]) >> 1)
            if ahead:
                for w in range(n_active):
                    ask_for(codes, min(probe[w] + min(common_low[w], common_high[w]), last))
            for w in range(n_active):
                seen[w] = codes[np.uint64(min(probe[w] + min(common_low[w], common_high[w]), last))]
            n_left = 0
            for w in range(n_active):
                i = where[w]
                a = low[w]
                b = high[w]
                ca = common_low[w]
                cb = common_high[w]
                middle = (a + b) >> 1
                length = min(ca, cb)
                token = seen[w]
                if token == RARE:
                    at = min(probe[w] + length, last)
                    token = rare_token(codes, rare_before, rare_ids, at)
                if token == query[i + length]:
                    # This is not the last token, which is 0.
                    length += 1
                    while i + length < ends[i]:
                        token = np.uint32(codes[np.uint64(probe[w] + length)])
                        if token == RARE:
                            token = rare_token(codes, rare_before, rare_ids, probe[w] + length)
                        if token != query[i + length]:
                            break
                        length += 1
                    if length > lengths[i]:
                        lengths[i] = length
                        witnesses[i] = middle
                    if i + length == ends[i]:
                        continue
                if token < query[i + length]:
                    a = middle + 1
                    ca = length
                else:
                    b = middle
                    cb = length
                slot = slots[w]
                if a == b:
                    # Another entry with the mark may be the right one for the pair.
                    slot = find_mark(entries, entry_bits, slot + 1, slot_ends[w], marks[w])
                    if slot == slot_ends[w]:
                        continue
                    a, b = pair_interval(entries, entry_bits, slot, n_tokens)
                    ca = 0
                    cb = 0
                low[n_left] = a
                high[n_left] = b
                common_low[n_left] = ca
                common_high[n_left] = cb
                where[n_left] = i
                slots[n_left] = slot
                slot_ends[n_left] = slot_ends[w]
                marks[n_left] = marks[w]
                n_left += 1
            n_active = n_left


@nb.njit(inline="always")
def ask_for_suffixes(places, place_bits, low, high, n_active):
    """Prefetch the pages of the suffixes in the middle of each interval."""
    for w in range(n_active):
        ask_for(places, ((low[w] + high[w]) >> 1) * place_bits >> 6)


@nb.njit(nogil=True, cache=True)
def begin_at_pairs(
    buckets, bucket_bits, n_buckets, entries, entry_bits, n_pairs, n_tokens, query, ends, asked,
    lengths, witnesses, where, low, high, slots, slot_ends, marks, ahead,
):  # fmt: skip
    """Look up the pairs that begin at the positions asked; returns the number of searches to run.

    Each loop prefetches what the next one uses, so that memory accesses overlap.
    """
    n = 0
    for i in asked:
        witnesses[i] = 0
        lengths[i] = 1
        if i + 1 < ends[i]:
            h = pair_hash(query[i], query[i + 1])
            where[n] = i
            marks[n] = pair_mark(h)
            slots[n] = pair_bucket(h, n_buckets)
            n += 1
    if ahead:
        for w in range(n):
            ask_for(buckets, slots[w] * bucket_bits >> 6)
    for w in range(n):
        bucket = slots[w]
        slots[w] = min(np.int64(unpack(buckets, bucket_bits, bucket)), n_pairs)
        slot_ends[w] = min(np.int64(unpack(buckets, bucket_bits, bucket + 1)), n_pairs)
    if ahead:
        for w in range(n):
            ask_for(entries, slots[w] * entry_bits >> 6)
    for w in range(n):
        if slots[w] < slot_ends[w]:
            low[w] = unpack(entries, entry_bits, slots[w])
    n_left = 0
    for w in range(n):
        slot = find_mark(entries, entry_bits, slots[w], slot_ends[w], marks[w])
        if slot < slot_ends[w]:
            low[n_left], high[n_left] = pair_interval(entries, entry_bits, slot, n_tokens)
            where[n_left] = where[w]
            slots[n_left] = slot
            slot_ends[n_left] = slot_ends[w]
            marks[n_left] = marks[w]
            n_left += 1
    return n_left


@nb.njit(inline="always")
def document_at(starts, position):
    """The document at a position: the last one that starts at or before it."""
    a = 0
    b = len(starts)
    while b - a > 1:
        middle = (a + b) >> 1
        if np.int64(starts[middle]) <= position:
            a = middle
        else:
            b = middle
    return a


@nb.njit(nogil=True, cache=True)
def compare(codes, rare_before, rare_ids, p, query, i, end):
    """How many tokens the text at p and the query at i share, up to `end`; and the text's next."""
    length = 0
    while True:
        token = np.uint32(codes[p + length])
        if token == RARE:
            token = rare_token(codes, rare_before, rare_ids, p + length)
        if i + length == end or token != query[i + length]:
            return length, token
        length += 1


@nb.njit(nogil=True, cache=True)
def find_interval(codes, rare_before, rare_ids, places, place_bits, n_tokens, query):
    """The half-open interval of suffixes that begin with `query` (uint32, shape (m,), no zeros)."""
    m = len(query)
    bounds = np.zeros(2, np.int64)
    for side in range(2):
        a = 0
        b = n_tokens
        while a < b:
            middle = (a + b) >> 1
            # Suffixes of removed documents may be missing: more tokens than places.
            p = min(np.int64(unpack(places, place_bits, middle)), len(codes) - 1)
            length, token = compare(codes, rare_before, rare_ids, p, query, 0, m)
            if length == m:
                below = side == 1
            else:
                below = token < query[length]
            if below:
                a = middle + 1
            else:
                b = middle
        bounds[side] = a
    return bounds[0], bounds[1]


@nb.njit(nogil=True, cache=True)
def count_allowed(places, place_bits, starts, excluded, low, high):
    """Count the suffixes from `low` up to but not including `high` in documents not excluded."""
    count = 0
    for k in range(low, high):
        if not excluded[document_at(starts, np.int64(unpack(places, place_bits, k)))]:
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def shorten(
    codes, rare_before, rare_ids, places, place_bits, n_tokens, starts, excluded, query, ends,
    positions, lengths, witnesses,
):  # fmt: skip
    """Shorten `lengths` at the positions to matches outside the excluded documents.

    Matches only get shorter with distance from the longest match's witness, so the nearest suffix
    on either side that is not excluded has the longest remaining match. Single words are bisected.
    """
    for i in positions:
        if lengths[i] == 0:
            continue
        if lengths[i] == 1:
            witness, _ = find_interval(
                codes, rare_before, rare_ids, places, place_bits, n_tokens, query[i : i + 1]
            )
            witness = min(witness, n_tokens - 1)
        else:
            witness = np.int64(witnesses[i])
        if not excluded[document_at(starts, np.int64(unpack(places, place_bits, witness)))]:
            continue
        best = 0
        for step in (-1, 1):
            k = witness + step
            while 0 <= k < n_tokens:
                p = min(np.int64(unpack(places, place_bits, k)), len(codes) - 1)
                length, _ = compare(codes, rare_before, rare_ids, p, query, i, ends[i])
                if length <= best:
                    break
                if not excluded[document_at(starts, p)]:
                    best = length
                    witnesses[i] = k
                    break
                k += step
        lengths[i] = best


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
