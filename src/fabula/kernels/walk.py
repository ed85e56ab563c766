"""Stretches of a text that occur reworded in a reference, found by walking its suffix array.

Three steps. *Anchors*: from each content word, the suffix array is walked word by word until the
walked sequence is rare enough that all its places can be examined; rare words are anchors at once.
On the way a word may be replaced by a similar one, left out, or swapped with the next.
*Alignments*: from each place both sides are followed to the left and to the right. Similar words
gain bits, skipped ones cost some; an alignment ends where its score was highest, and is abandoned
when the score has fallen by `drop` since then (the X-drop of Altschul et al. 1990, "Basic local
alignment search tool", J. Mol. Biol. 215). *Chains*: alignments near each other, in any order, form
one stretch, so clauses may be reordered.

Scores are integers, `PARTS` to a bit, and so the same in any order and on any machine. Token 0
separates documents; nothing extends across it.
"""

import numba as nb
import numpy as np

from fabula.kernels.match import document_at
from fabula.kernels.packed import RARE, rare_token, unpack

PARTS = 64
"""Scores are counted in this fraction of a bit."""
MAX_STEPS = 5
"""Maximum words of an anchor; a sequence not rare by then is not an anchor."""
_NONE = np.int32(-(1 << 29))
_AROUND, _NEAR = 8, 16
"""Words around an anchor's place that may support it, and around its word in the text."""
_BLOCK = 8
"""Words of the text per bit."""


@nb.njit(inline="always")
def token_at(codes, rare_before, rare_ids, p):
    """The token id at a place of the reference."""
    code = codes[p]
    return np.int64(code if code < RARE else rare_token(codes, rare_before, rare_ids, p))


@nb.njit(nogil=True, cache=True)
def child(codes, rare_before, rare_ids, places, place_bits, low, high, depth, wanted):
    """Of the suffixes from `low` up to `high`, exclusive, which agree on `depth` tokens, the
    half-open bounds of those that continue with `wanted`."""
    last = len(codes) - 1
    bounds = np.empty(2, np.int64)
    for side in range(2):
        a, b = low, high
        while a < b:
            middle = (a + b) >> 1
            p = min(np.int64(unpack(places, place_bits, middle)) + depth, last)
            token = token_at(codes, rare_before, rare_ids, p)
            if token < wanted or (side == 1 and token == wanted):
                a = middle + 1
            else:
                b = middle
        bounds[side] = a
    return bounds[0], bounds[1]


@nb.njit(nogil=True, cache=True)
def find_anchors(
    codes, rare_before, rare_ids, places, place_bits, firsts, units, is_content, starts, ends, ids,
    rarities, enough,
):  # fmt: skip
    """Find where walks that begin at a content word of the text have become rare.

    firsts: int64 (n_vocabulary + 2,), where the suffixes of each token begin. units: int32
    (n_words,), the text's distinct words; is_content: bool (n_units,). Word u may occur as any of
    the tokens `ids[starts[u] : ends[u]]` (int64), with their rarities (int32, in parts of a bit).
    A walk is rare when its tokens' rarities sum to `enough`.

    Returns int64 (n_anchors, 3): place in the text, and half-open bounds in the suffix array.
    """
    n = len(units)
    found = np.empty((256, 3), np.int64)
    n_found = 0
    # A node: bounds, tokens so far, the next word of the text, rarity so far, whether a word was
    # left out or swapped (once per walk), and the word still missing from a swap, or -1.
    stack = np.empty((1024, 7), np.int64)
    for i in range(n):
        if not is_content[units[i]]:
            continue
        n_open = 0
        for k in range(starts[units[i]], ends[units[i]]):
            if n_open < len(stack):
                stack[n_open] = (
                    firsts[ids[k]], firsts[ids[k] + 1], 1, i + 1, np.int64(rarities[k]), 0, -1
                )  # fmt: skip
                n_open += 1
        while n_open:
            n_open -= 1
            low, high, depth = stack[n_open, 0], stack[n_open, 1], stack[n_open, 2]
            a, rarity = stack[n_open, 3], stack[n_open, 4]
            is_changed, owed = stack[n_open, 5], stack[n_open, 6]
            if low >= high:
                continue
            if rarity >= enough and owed < 0:
                if n_found == len(found):
                    longer = np.empty((2 * n_found, 3), np.int64)
                    longer[:n_found] = found
                    found = longer
                found[n_found] = i, low, high
                n_found += 1
                continue
            if depth == MAX_STEPS:
                continue
            # The next word; or the one after it, with this one left out or still to come.
            for way in range(1 if is_changed else 3):
                word, after, debt, changed = a, a + 1, np.int64(-1), is_changed
                if owed >= 0:
                    word, after = owed, a
                elif way > 0:
                    word, after, changed = a + 1, a + 2, np.int64(1)
                    debt = a if way == 2 else np.int64(-1)
                if word >= n:
                    continue
                for k in range(starts[units[word]], ends[units[word]]):
                    if n_open == len(stack):
                        break
                    b, c = child(
                        codes, rare_before, rare_ids, places, place_bits, low, high, depth, ids[k]
                    )
                    if b < c:
                        stack[n_open] = (
                            b, c, depth + 1, after, rarity + np.int64(rarities[k]), changed, debt
                        )  # fmt: skip
                        n_open += 1
    return found[:n_found]


@nb.njit(nogil=True, cache=True)
def follow(
    codes, rare_before, rare_ids, rows, costs_there, gains, units, costs_here, p, i, step, width,
    drop, exchange, reach, work,
):  # fmt: skip
    """The best alignment that begins at place `p` of the reference and word `i` of the text.

    It extends to the right (step 1) or to the left (-1) by at most `reach` words, and never more
    than `width` words further on one side than on the other. rows: int32 (n_vocabulary + 1,), each
    token's row of `gains`, int32 (n_rows, n_units), where 0 means dissimilar; costs_there: int32
    (n_vocabulary + 1,), costs_here: int32 (n_units,), the cost of skipping a word. Ties go to the
    alignment that is shorter there, then here. Returns (score, words here, words there).
    """
    size = 2 * width + 1
    n_here = min(reach, len(units) - i if step > 0 else i + 1)
    n_there = min(reach, len(codes) - p if step > 0 else p + 1)
    before, last, now = work[0], work[1], work[2]
    best, best_here, best_there = np.int32(0), 0, 0
    before[:] = _NONE
    last[:] = _NONE
    now[:] = _NONE
    score = np.int32(0)
    for here in range(min(width, n_here) + 1):
        if here:
            score -= costs_here[units[i + step * (here - 1)]]
        if score < -drop:
            break
        last[here + width] = score
    row_before, was_alive = 0, True
    for there in range(1, n_there + 1):
        token = token_at(codes, rare_before, rare_ids, p + step * (there - 1))
        if token == 0 or token >= len(rows):
            break
        row, cost = rows[token], costs_there[token]
        is_alive = False
        for w in range(size):
            here = there + w - width
            now[w] = _NONE
            if here < 0 or here > n_here:
                continue
            # At the far edge of the band there is no predecessor.
            value = last[w + 1] - cost if w + 1 < size else _NONE
            if here:
                unit = units[i + step * (here - 1)]
                if row and gains[row, unit] > 0:
                    value = max(value, last[w] + gains[row, unit])
                if w:
                    value = max(value, now[w - 1] - costs_here[unit])
                if here > 1 and there > 1 and row and row_before:
                    first = gains[row, units[i + step * (here - 2)]]
                    second = gains[row_before, unit]
                    if first > 0 and second > 0:
                        value = max(value, before[w] + first + second - exchange)
            if value < best - drop:
                continue
            now[w] = value
            is_alive = True
            if value > best:
                best, best_here, best_there = value, here, there
        if not (is_alive or was_alive):
            # A swap spans one row.
            break
        was_alive = is_alive
        row_before = row
        before, last, now = last, now, before
    return best, best_here, best_there


@nb.njit(nogil=True, cache=True)
def has_company(
    codes, rare_before, rare_ids, rows, gains, blocks, units, is_content, i, p, company
):  # fmt: skip
    """Whether the words around place `p` of the reference match content words around word `i`.

    For each of the `_AROUND` words on either side of `p`, in its document, adds the most it gains
    from a content word of the text at most `_NEAR` words from `i`, except `i` itself; the sum must
    reach `company`.
    """
    low, high = max(0, i - _NEAR), min(len(units), i + _NEAR + 1)
    mask = block_mask(low, high - 1)
    total = 0
    for step in (1, -1):
        for distance in range(1, _AROUND + 1):
            q = p + step * distance
            if q < 0 or q >= len(codes):
                break
            token = token_at(codes, rare_before, rare_ids, q)
            if token == 0 or token >= len(rows):
                break
            row = rows[token]
            if not blocks[row] & mask:
                continue
            most = np.int32(0)
            for j in range(low, high):
                if j != i and is_content[units[j]]:
                    most = max(most, gains[row, units[j]])
            total += most
            if total >= company:
                return True
    return total >= company


@nb.njit(inline="always")
def block_mask(first, last):
    """The bits of the blocks that contain the words `first` to `last` of the text."""
    low = max(first, 0) // _BLOCK
    n = last // _BLOCK - low + 1
    bits = (np.uint64(1) << np.uint64(n)) - np.uint64(1)
    turn = np.uint64(low % 64)
    return bits << turn | bits >> np.uint64(1) >> (np.uint64(63) - turn)


@nb.njit(nogil=True, cache=True)
def note_blocks(units, is_content, starts, row_of, blocks):
    """Set the bit of each content word's block in the rows that gain from it."""
    for i in range(len(units)):
        if not is_content[units[i]]:
            continue
        for k in range(starts[units[i]], starts[units[i] + 1]):
            blocks[row_of[k]] |= block_mask(i, i)


@nb.njit(nogil=True, cache=True)
def align(
    codes, rare_before, rare_ids, places, place_bits, document_starts, excluded, anchors, rows,
    costs_there, gains, blocks, units, is_content, costs_here, width, drop, exchange, reach,
    company, least,
):  # fmt: skip
    """Align all places of these anchors, except in excluded documents.

    document_starts: int64 (n_documents,); excluded: bool (n_documents,), or empty. blocks: uint64
    (n_rows,), from `note_blocks`: a bit for each block of the text, modulo 64, with a content word
    that the row gains from. Places without `company` are skipped. Returns int64 (n_found, 5) of
    the alignments that score at least `least`: half-open bounds in the text, in the reference, and
    the score.
    """
    found = np.empty((256, 5), np.int64)
    work = np.empty((3, 2 * width + 1), np.int32)
    n_found = 0
    for k in range(len(anchors)):
        i = anchors[k, 0]
        for at in range(anchors[k, 1], anchors[k, 2]):
            p = min(np.int64(unpack(places, place_bits, at)), len(codes) - 1)
            if not has_company(
                codes, rare_before, rare_ids, rows, gains, blocks, units, is_content, i, p, company
            ):  # fmt: skip
                continue
            if len(excluded) and excluded[document_at(document_starts, p)]:
                continue
            right, after, there_after = follow(
                codes, rare_before, rare_ids, rows, costs_there, gains, units, costs_here, p, i, 1,
                width, drop, exchange, reach, work,
            )  # fmt: skip
            left, before, there_before = follow(
                codes, rare_before, rare_ids, rows, costs_there, gains, units, costs_here, p - 1,
                i - 1, -1, width, drop, exchange, reach, work,
            )  # fmt: skip
            score = np.int64(right) + np.int64(left)
            if score < least:
                continue
            if n_found == len(found):
                longer = np.empty((2 * n_found, 5), np.int64)
                longer[:n_found] = found
                found = longer
            found[n_found, 0], found[n_found, 1] = i - before, i + after
            found[n_found, 2], found[n_found, 3] = p - there_before, p + there_after
            found[n_found, 4] = score
            n_found += 1
    return found[:n_found]


@nb.njit(inline="always")
def corners(pieces, k):
    """Where the k-th piece begins and ends, in the text and in the reference."""
    return pieces[k, 0], pieces[k, 1], pieces[k, 2], pieces[k, 3]


@nb.njit(nogil=True, cache=True)
def chain(pieces, documents, gap, join, need):
    """Join alignments near each other; returns chains that score at least `need` in total.

    pieces: int64 (n, 5) from `align`, all distinct, by first place in the reference; documents:
    int64 (n,). In each run of pieces of one document, each at most `gap` words after the previous
    one, the best piece (the first if tied) is joined with the next best that shares no word with it
    and is at most `gap` words from it on both sides, at a cost of `join` each, as long as the score
    grows; then the best piece not yet in a chain starts another.

    Returns int64 (n_chains, 6): as the pieces, and the document.
    """
    found = np.empty((16, 6), np.int64)
    n_found = 0
    n = len(pieces)
    first = 0
    while first < n:
        end = first + 1
        reached, total = pieces[first, 3], pieces[first, 4]
        while (
            end < n and documents[end] == documents[first] and pieces[end, 2] - reached <= gap
        ):  # fmt: skip
            reached = max(reached, pieces[end, 3])
            total += pieces[end, 4]
            end += 1
        if total >= need:
            order = first + np.argsort(-pieces[first:end, 4], kind="mergesort")
            is_used = np.zeros(end - first, np.bool_)
            taken = np.empty(end - first, np.int64)
            for k in order:
                if total < need:
                    # Not even all remaining pieces would be enough.
                    break
                if is_used[k - first]:
                    continue
                a, b, c, d = corners(pieces, k)
                score = pieces[k, 4]
                n_taken = 1
                taken[0] = k
                for other in order:
                    e, f, g, h = corners(pieces, other)
                    more = pieces[other, 4]
                    if is_used[other - first] or more <= join:
                        continue
                    if e > b + gap or a > f + gap or g > d + gap or c > h + gap:
                        continue
                    is_apart = True
                    for m in taken[:n_taken]:
                        if e < pieces[m, 1] and pieces[m, 0] < f:
                            is_apart = False
                        if g < pieces[m, 3] and pieces[m, 2] < h:
                            is_apart = False
                    if is_apart:
                        taken[n_taken] = other
                        n_taken += 1
                        score += more - join
                        a, b, c, d = min(a, e), max(b, f), min(c, g), max(d, h)
                for other in range(first, end):
                    e, f, g, h = corners(pieces, other)
                    if not is_used[other - first] and e < b and a < f and g < d and c < h:
                        is_used[other - first] = True
                        total -= pieces[other, 4]
                if score >= need:
                    if n_found == len(found):
                        longer = np.empty((2 * n_found, 6), np.int64)
                        longer[:n_found] = found
                        found = longer
                    found[n_found] = a, b, c, d, score, documents[first]
                    n_found += 1
        first = end
    return found[:n_found]
