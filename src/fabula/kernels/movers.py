"""Near-verbatim search by symmetric word-mover similarity.

Lu et al. 2024, appendix A.2, Algorithms 3 and 4. The similarity of two n-grams is the smaller of
two means: the mean, over the content words of one, of the best cosine with a content word of the
other, and the same with the two exchanged. The kernels return the same results as the plain
transcription, and only skip what cannot change the answer:

- a passage is skipped if even its best word for each word of the n-gram is not enough (with prefix
  sums over the text, one subtraction per passage);
- within a passage, a span can end only where the running deficit of its words is no higher than
  where it began (prefix sums and suffix minima of the deficit).

Cosines are sums of products of 16-bit integers, so they are the same in any order on any machine.
"""

import numba as nb
import numpy as np

MOST_ALIKE = np.float32(0.999)
"""The highest cosine of two different words: equal vectors do not make them identical."""
TOLERANCE = 1e-9
"""Means this far below the threshold still pass: rounded sums depend on their order."""


@nb.njit(nogil=True, cache=True)
def similarities(vectors, rows, columns, out):
    """Cosines of word vectors: out[r, c] of row `rows[r]` and row `columns[c]` of `vectors`.

    vectors: int16 (n_words, n_dimensions), unit vectors times 32,767, with a last row of zeros.
    rows, columns: int32; a negative one is a word without a vector, which is similar only to the
    same number. out: float32 (n_rows, n_columns), at most `MOST_ALIKE` for different rows.
    """
    n_rows, n_columns, n_dimensions = len(rows), len(columns), vectors.shape[1]
    scale = np.float32(1.0 / (32767.0 * 32767.0))
    # Two by two, so that each value read is used twice; gathered, so that they are contiguous.
    near = np.zeros((n_columns + 1, n_dimensions), np.int16)
    for c in range(n_columns):
        near[c] = vectors[max(columns[c], -1)]
    for r in range(0, n_rows, 2):
        last = min(r + 1, n_rows - 1)
        first_row, second_row = vectors[max(rows[r], -1)], vectors[max(rows[last], -1)]
        for c in range(0, n_columns, 2):
            first, second = near[c], near[c + 1]
            a, b, d, e = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
            for k in range(n_dimensions):
                u, v = np.int32(first_row[k]), np.int32(second_row[k])
                x, y = np.int32(first[k]), np.int32(second[k])
                a += u * x
                b += u * y
                d += v * x
                e += v * y
            out[r, c], out[last, c] = np.float32(a) * scale, np.float32(d) * scale
            if c + 1 < n_columns:
                out[r, c + 1], out[last, c + 1] = np.float32(b) * scale, np.float32(e) * scale
    for r in range(n_rows):
        for c in range(n_columns):
            if rows[r] == columns[c]:
                out[r, c] = np.float32(1.0)
            else:
                out[r, c] = min(out[r, c], MOST_ALIKE)


@nb.njit(nogil=True, cache=True)
def _occurs_in(
    sims, words, passage, places, length, min_words, floor, threshold, work, best
):  # fmt: skip
    """Whether a span of the passage is similar to the n-gram.

    A span extends from just after the preceding content word to just before the following one,
    and has at least `min_words` words, `floor` of them content words.
    """
    m, n = len(words), len(passage)
    deficit, lowest = work[0], work[1]
    deficit[0] = 0.0
    for j in range(n):
        row = sims[passage[j]]
        top = np.float32(-1.0)
        for i in range(m):
            top = max(top, row[words[i]])
        deficit[j + 1] = deficit[j] + (threshold - top)
    lowest[n] = deficit[n]
    for j in range(n - 1, 0, -1):
        lowest[j] = min(deficit[j], lowest[j + 1])
    slack = TOLERANCE * (n + 1)
    need = threshold * m - TOLERANCE * m
    for a in range(n):
        if lowest[a + 1] > deficit[a] + slack:
            continue
        begin = places[a - 1] + 1 if a else 0
        for i in range(m):
            best[i] = np.float32(-1.0)
        for b in range(a, n):
            if lowest[b + 1] > deficit[a] + slack:
                break
            row = sims[passage[b]]
            for i in range(m):
                best[i] = max(best[i], row[words[i]])
            end = places[b + 1] if b + 1 < n else length
            if b + 1 - a < floor or end - begin < min_words:
                continue
            if deficit[b + 1] > deficit[a] + TOLERANCE * (b + 1 - a):
                continue
            total = 0.0
            for i in range(m):
                total += best[i]
            if total >= need:
                return True
    return False


@nb.njit(nogil=True, cache=True)
def search_near(
    sims, words, exact, passages, places, offsets, lengths, min_words, floor, max_words, threshold,
    found,
):  # fmt: skip
    """DJ Search: two pointers over all n-grams (Algorithm 2).

    sims: float32 (n_units, n_columns), passage words by text words. words: int32 (n_words,), each
    word's column, -1 if not a content word; exact: int32 (n_words,), longest exact matches.
    passages, places: int32, content words of all passages, offsets: int64 (n_passages + 1,),
    lengths: int32 (n_passages,), in words. found: int32 (n_words,), the longest match at each
    start, modified. n-grams longer than `max_words` are not searched.
    """
    n = len(words)
    n_passages = len(lengths)
    before = np.zeros(n + 1, np.int64)
    content = np.empty(n, np.int32)
    for k in range(n):
        before[k + 1] = before[k]
        if words[k] >= 0:
            content[before[k]] = words[k]
            before[k + 1] += 1
    enough = _prefix_sums(sims, content[: before[n]], passages, offsets)
    longest = 0
    for p in range(n_passages):
        longest = max(longest, offsets[p + 1] - offsets[p])
    work = np.empty((2, longest + 1), np.float64)
    best = np.empty(n + 1, np.float32)
    i, j = 0, min_words
    while i < n and j <= n:
        occurs = j - i <= exact[i]
        a, b = before[i], before[j]
        if not occurs and b - a < floor and j < n and j - i < max_words:
            # Too little to compare yet, not a No: the n-gram grows until it is enough.
            j += 1
            continue
        if not occurs and b - a >= floor and j - i <= max_words:
            need = threshold * (b - a) - 2 * TOLERANCE * (n + 1)
            for p in range(n_passages):
                if enough[b, p] - enough[a, p] < need:
                    continue
                low, high = offsets[p], offsets[p + 1]
                occurs = _occurs_in(
                    sims, content[a:b], passages[low:high], places[low:high], lengths[p], min_words,
                    floor, threshold, work, best,
                )  # fmt: skip
                if occurs:
                    break
        if occurs:
            found[i] = max(found[i], j - i)
            # Anything known to occur verbatim need not be searched again.
            j = max(j, i + min(exact[i], n - i)) + 1
        else:
            i += 1
            j = max(j, i + min_words)


@nb.njit(nogil=True, cache=True)
def _prefix_sums(sims, content, passages, offsets):
    """Sums over the text's content words of each passage's best cosine.

    float64, shape (n_content + 1, n_passages).
    """
    n_columns = sims.shape[1]
    n_passages = len(offsets) - 1
    sums = np.zeros((len(content) + 1, n_passages), np.float64)
    top = np.empty(n_columns, np.float32)
    for p in range(n_passages):
        top[:] = np.float32(-1.0)
        for k in range(offsets[p], offsets[p + 1]):
            row = sims[passages[k]]
            for c in range(n_columns):
                top[c] = max(top[c], row[c])
        for k in range(len(content)):
            sums[k + 1, p] = top[content[k]]
    for k in range(len(content)):
        for p in range(n_passages):
            sums[k + 1, p] += sums[k, p]
    return sums


@nb.njit(nogil=True, cache=True)
def best_span(sims, words, passage, places, length, min_words, floor, least):
    """The span of the passage that is most similar to the n-gram, above `least`.

    words: int32 (m,), its content words as columns; passage, places: int32 (n,). Returns
    (similarity, first content word, end); (least, 0, 0) if none is above it. Ties go to the first,
    then the shortest.
    """
    m, n = len(words), len(passage)
    best = np.full(m, np.float32(-1.0))
    tops = np.empty(n, np.float32)
    for j in range(n):
        for i in range(m):
            best[i] = max(best[i], sims[passage[j]][words[i]])
    if best.sum() <= least * m:
        return least, 0, 0
    for j in range(n):
        row = sims[passage[j]]
        tops[j] = np.float32(-1.0)
        for i in range(m):
            tops[j] = max(tops[j], row[words[i]])
    top, first, after = least, 0, 0
    for a in range(n):
        begin = places[a - 1] + 1 if a else 0
        best[:] = np.float32(-1.0)
        there = 0.0
        for b in range(a, n):
            row = sims[passage[b]]
            there += tops[b]
            here = 0.0
            for i in range(m):
                best[i] = max(best[i], row[words[i]])
                here += best[i]
            end = places[b + 1] if b + 1 < n else length
            if b + 1 - a < floor or end - begin < min_words:
                continue
            similarity = min(here / m, there / (b + 1 - a))
            if similarity > top + TOLERANCE:
                top, first, after = similarity, a, b + 1
    return top, first, after


@nb.njit(nogil=True, cache=True)
def best_passage(sims, words, passages, places, offsets, lengths, min_words, floor):
    """`best_span` over all passages: (similarity, passage, first content word, end)."""
    top, chosen, first, after = 0.0, -1, 0, 0
    for p in range(len(lengths)):
        low, high = offsets[p], offsets[p + 1]
        found, a, b = best_span(
            sims, words, passages[low:high], places[low:high], lengths[p], min_words, floor, top
        )
        if b:
            top, chosen, first, after = found, p, a, b
    return top, chosen, first, after
