"""DJ Search: longest matches in a reference that only answers yes or no."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def dj_search(
    n_words: int,
    min_words: int,
    occurs: Callable[[int, int], bool],
    *,
    begin: int = 0,
    end: int | None = None,
) -> NDArray[np.int32]:
    """Longest matches by DJ Search, for a reference that only answers yes or no.

    Algorithm 2 of appendix A.1 (Lu et al. 2024): two pointers over the words from `begin` to `end`
    (half-open; all `n_words` if not given) at which a match may start; it may extend beyond `end`.
    `occurs(i, j)` returns whether words i to j (half-open) occur in the reference. If it is true
    for a run, it must be true for every part of it; so the parts of a text may be searched
    separately. Its exceptions propagate: a failed lookup is not a No.

    It is called at most 2 * (end - begin) times, and once more for each word by which the longest
    match exceeds `min_words`; never more than (end - begin) + (n_words - begin) times.
    match is longer than `min_words`; never more than (end - begin) + (n_words - begin) times.

    Returns int32, shape (end - begin,): lengths of at least `min_words`, otherwise 0.
    """
    end = n_words if end is None else end
    lengths = np.zeros(end - begin, np.int32)
    i, j = begin, begin + min_words
    while i < end:
        if j <= n_words and occurs(i, j):
            j += 1
            continue
        # Words i to j - 1 occur, or are fewer than min_words.
        if j - 1 - i >= min_words:
            lengths[i - begin] = j - 1 - i
        i += 1
        j = max(j, i + min_words)
    return lengths
