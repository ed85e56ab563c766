"""Near matches of a text of 250 words: the default search, the published one, and Algorithm 3.

    python bench/near.py [--texts N] [--smoke]

The default search is timed with the similar words remembered, as after many texts of a kind, and
the first time; the published one over its 100 best passages, of which its two pointers alone are
compared with a transcription that enumerates every span of a few passages (compiled too, so that
the ratio is of the algorithms), and must find the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

import corpora
from fabula.models.vectors import open_vectors
from fabula.novelty.near import MAX_WORDS, NearSearch, PaperSearch
from fabula.reference.search import Reference
from fabula.text import read_documents
from fabula.text.words import load_stop_words

N_WORDS, MIN_WORDS, TARGET_MS = 250, 5, 15
N_PLAIN, N_PLAIN_PASSAGES = 3, 20


@nb.njit(nogil=True, cache=True)
def occurs_plainly(  # type: ignore[no-untyped-def]
    sims, words, passage, places, length, min_words, floor, threshold
):  # fmt: skip
    """Algorithm 3: every span of the passage, both means from scratch."""
    m, n = len(words), len(passage)
    for a in range(n):
        begin = places[a - 1] + 1 if a else 0
        for b in range(a + 1, n + 1):
            end = places[b] if b < n else length
            if b - a < floor or end - begin < min_words:
                continue
            here = 0.0
            for i in range(m):
                top = -1.0
                for j in range(a, b):
                    top = max(top, sims[passage[j], words[i]])
                here += top
            there = 0.0
            for j in range(a, b):
                top = -1.0
                for i in range(m):
                    top = max(top, sims[passage[j], words[i]])
                there += top
            if min(here / m, there / (b - a)) >= threshold - 1e-9:
                return True
    return False


@nb.njit(nogil=True, cache=True)
def search_plainly(  # type: ignore[no-untyped-def]
    sims, columns, exact, content, places, offsets, lengths, min_words, floor, max_words,
    threshold, found,
):  # fmt: skip
    """DJ Search with Algorithm 3."""
    i, j, n = 0, min_words, len(columns)
    while i < n and j <= n:
        occurs = j - i <= exact[i]
        words = columns[i:j][columns[i:j] >= 0]
        if not occurs and len(words) < floor and j < n and j - i < max_words:
            j += 1
            continue
        if not occurs and len(words) >= floor and j - i <= max_words:
            for p in range(len(lengths)):
                a, b = offsets[p], offsets[p + 1]
                occurs = occurs_plainly(
                    sims, words, content[a:b], places[a:b], lengths[p], min_words, floor, threshold
                )
                if occurs:
                    break
        if occurs:
            found[i] = max(found[i], j - i)
            j += 1
        else:
            i += 1
            j = max(j, i + min_words)


def best_of(n: int, call: Callable[[], Any]) -> float:
    """Milliseconds."""
    return min(1e3 * corpora.timed(call)[1] for _ in range(n))


def main() -> None:
    given = corpora.options(__doc__, texts=corpora.sized(20, 1))
    source, own = corpora.SHARED / "reference", corpora.SHARED / "human_vs_machine"
    long = (d.text for d in read_documents([str(own)]) if len(d.text.split()) > N_WORDS + 20)
    texts = [text for _, text in zip(range(given.texts), long, strict=False)]
    with corpora.scratch() as folder:
        reference = Reference.build(read_documents([str(source)]), folder, n_jobs=2)
        vectors, stop_words = open_vectors(), load_stop_words()
        default, own_s = corpora.timed(lambda: NearSearch(reference, vectors, stop_words))
        paper, paper_s = corpora.timed(lambda: PaperSearch(reference, vectors, stop_words))
        print(f"{reference.size}; opening the default search {own_s:.1f} s, the published one "
              f"{paper_s:.1f} s")  # fmt: skip
        compare(default, paper, [reference.locate(text).words[:N_WORDS] for text in texts])


def compare(default: NearSearch, paper: PaperSearch, texts: list[list[str]]) -> None:
    nothing = np.zeros(1, np.int32)
    for search in (default, paper):
        search.search(["walk"], nothing, MIN_WORDS)  # compiles it
    first, again, published, ratios = [], [], [], []
    for k, words in enumerate(texts):
        exact = default.reference.longest_matches(words)
        first.append(best_of(1, lambda w=words, e=exact: default.search(w, e, MIN_WORDS)))
        again.append(best_of(3, lambda w=words, e=exact: default.search(w, e, MIN_WORDS)))
        published.append(best_of(3, lambda w=words, e=exact: paper.search(w, e, MIN_WORDS)))
        if k < N_PLAIN:
            ratios.append(beside_plain(paper, words, exact))
    middle = float(np.median(again))
    print(
        f"{N_WORDS} words, default: median {middle:.1f} ms {corpora.beside(middle, TARGET_MS)}, "
        f"slowest {max(again):.1f} ms; the first time {np.median(first):.0f} ms\n"
        f"published: median {np.median(published):.1f} ms, slowest {max(published):.1f} ms; its "
        f"two pointers {np.median(ratios):,.0f} times as fast as Algorithm 3"
    )


def beside_plain(paper: PaperSearch, words: list[str], exact: NDArray[np.int32]) -> float:
    """The ratio over a few passages: the transcription takes minutes for all."""
    few = paper._best(words, ())[:N_PLAIN_PASSAGES]
    mine, columns, sims, passages = paper._compared(words, few, exact, MIN_WORDS)
    own = best_of(3, lambda: paper._compared(words, few, exact, MIN_WORDS))

    def plainly(words: NDArray[np.int32]) -> NDArray[np.int32]:
        found = exact[: len(words)].copy()
        search_plainly(
            sims, words, exact, passages.content, passages.places, passages.offsets,
            passages.lengths, MIN_WORDS, paper.settings.floor, MAX_WORDS, paper.settings.threshold,
            found,
        )  # fmt: skip
        return found

    plainly(columns[:MIN_WORDS])  # compiles it
    theirs, taken_s = corpora.timed(lambda: plainly(columns))
    assert np.array_equal(mine, theirs), "the kernel and the transcription disagree"
    return 1e3 * taken_s / own


if __name__ == "__main__":
    main()
