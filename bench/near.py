"""Near-verbatim search beside a plain transcription of Algorithm 3, on one thread.

    python bench/near.py [--texts N] [--smoke]

The search: DJ Search over a text's n-grams with the similarities at hand, ours against the
transcription, which enumerates every span of every passage (compiled too, so that the ratio is of
the algorithms, and in plain Python for a few). The whole: finding the 500 best passages of 300
words for a text of 250 words, their similarities, the search, and the sentence encoder's look at
what it found. Beside it the walk over the index on the same texts: with the words that are alike
remembered, as after many texts of a kind, and the first time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

import corpora
from fabula.kernels.movers import search_near
from fabula.measures.near import NearSearch, NearSettings
from fabula.measures.near_walk import NearWalk
from fabula.models.vectors import open_vectors
from fabula.reference import Reference
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.text import read_documents
from fabula.text.stopwords import load_stop_words

N_WORDS, N_PASSAGES, MIN_WORDS = 250, 500, 5
TARGET_MS = 15
"""By the index, a text."""
N_PLAIN, N_PLAIN_PASSAGES = 3, 20
SETTINGS = NearSettings(n_passages=N_PASSAGES, window=N_WORDS)


@nb.njit(nogil=True, cache=True)
def occurs_plainly(  # type: ignore[no-untyped-def]
    sims, words, n_words, passage, places, length, min_words, floor, threshold, ratio
):  # fmt: skip
    """Algorithm 3: every span of the passage, both means from scratch."""
    m, n = len(words), len(passage)
    for a in range(n):
        begin = places[a - 1] + 1 if a else 0
        for b in range(a + 1, n + 1):
            end = places[b] if b < n else length
            n_there = places[b - 1] - places[a] + 1
            if b - a < floor or end - begin < min_words:
                continue
            if max(n_there, n_words) > ratio * min(n_there, n_words):
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
    sims, columns, exact, passages, places, offsets, lengths, min_words, floor, max_words,
    threshold, ratio, found, deadline,
):  # fmt: skip
    """DJ Search with Algorithm 3, up to `deadline` evaluations of a passage; returns how many."""
    i, j, n, n_evaluated = 0, min_words, len(columns), 0
    while i < n and j <= n:
        occurs = j - i <= exact[i]
        words = columns[i:j][columns[i:j] >= 0]
        if not occurs and len(words) < floor and j < n and j - i < max_words:
            j += 1
            continue
        if not occurs and len(words) >= floor and j - i <= max_words:
            for p in range(len(lengths)):
                a, b = offsets[p], offsets[p + 1]
                n_evaluated += 1
                occurs = occurs_plainly(
                    sims, words, j - i, passages[a:b], places[a:b], lengths[p], min_words, floor,
                    threshold, ratio,
                )  # fmt: skip
                if occurs or n_evaluated >= deadline:
                    break
            if n_evaluated >= deadline:
                return n_evaluated
        if occurs:
            found[i] = max(found[i], j - i)
            j += 1
        else:
            i += 1
            j = max(j, i + min_words)
    return n_evaluated


def best_of(n: int, call: Any) -> float:
    times = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def texts_of(n: int, source: Path) -> list[str]:
    found = read_documents([str(source)])
    return [d.text for d in found if len(d.text.split()) > N_WORDS + 20][:n]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--smoke", action="store_true", default=corpora.SMOKE)
    given = parser.parse_args()
    examples = Path(__file__).parents[1] / "examples"
    source = examples / "library" if given.smoke else corpora.SHARED / "reference"
    own = examples / "the-count.txt" if given.smoke else corpora.SHARED / "human_vs_machine"
    texts = texts_of(1 if given.smoke else given.texts, own)
    stop_words = load_stop_words()
    with tempfile.TemporaryDirectory() as folder:
        reference = Reference.build(read_documents([str(source)]), folder, n_jobs=2)
        shards = [shard.info for shard in reference.local.shards]
        start = time.perf_counter()
        build_passages(folder, shards, PassageSettings(), stop_words)
        print(f"passages of {reference.size}: {time.perf_counter() - start:.1f} s to index")
        index = PassageIndex(reference, PassageSettings(), stop_words)
        compare(NearSearch(index, open_vectors(), SETTINGS), reference, texts)


def compare(search: NearSearch, reference: Reference, texts: list[str]) -> None:
    whole, ours, ratios = [], [], []
    walk = NearWalk(reference, search.vectors, search.index.stop_words)
    walked, first = [], []
    walk.search(["walk"], np.zeros(1, np.int32), MIN_WORDS)  # compiles it
    for k, text in enumerate(texts):
        words = reference.locate(text).words[:N_WORDS]
        exact = reference.longest_matches(words)
        search.search(words, exact, MIN_WORDS)  # loads what the text needs
        whole.append(best_of(3, lambda w=words, e=exact: search.search(w, e, MIN_WORDS)))
        first.append(best_of(1, lambda w=words, e=exact: walk.search(w, e, MIN_WORDS)))
        walked.append(best_of(3, lambda w=words, e=exact: walk.search(w, e, MIN_WORDS)))
        _, window = next(search._windows(words, ()))
        ours.append(best_of(3, lambda w=window, e=exact: fast(w, e, N_PASSAGES)))
        if k < N_PLAIN:
            ratios.append(beside_plain(window, exact))
    print(
        f"search: {1e3 * np.median(ours):.2f} ms a text (median), ratio {np.median(ratios):,.0f}\n"
        f"whole, {N_WORDS} words against the {N_PASSAGES} best passages: median "
        f"{1e3 * np.median(whole):.1f} ms, slowest {1e3 * max(whole):.1f} ms\n"
        f"by the index: median {1e3 * np.median(walked):.1f} ms, slowest "
        f"{1e3 * max(walked):.1f} ms, ratio {np.median(np.divide(walked, whole)):.2f}; the first "
        f"time {1e3 * np.median(first):.0f} ms\n"
        f"  median {corpora.beside(1e3 * float(np.median(walked)), TARGET_MS)}"
    )


def arguments(window: Any, n_passages: int) -> tuple[Any, ...]:
    offsets = window.offsets[: n_passages + 1]
    return (
        window.content[: offsets[-1]], window.places[: offsets[-1]], offsets,
        window.lengths[:n_passages], MIN_WORDS, SETTINGS.floor, 100, SETTINGS.threshold,
        SETTINGS.ratio,
    )  # fmt: skip


def fast(window: Any, exact: NDArray[np.int32], n_passages: int) -> NDArray[np.int32]:
    found = exact.copy()
    search_near(
        window.sims, window.columns, exact, 0, len(exact), 0, *arguments(window, n_passages), found
    )
    return found


def beside_plain(window: Any, exact: NDArray[np.int32]) -> float:
    """The ratio over a few passages: the transcription takes minutes for all."""
    few = arguments(window, N_PLAIN_PASSAGES)
    search_plainly(window.sims, window.columns, exact, *few, exact.copy(), 1)  # compiles it
    mine = fast(window, exact, N_PLAIN_PASSAGES)
    own = best_of(3, lambda: fast(window, exact, N_PLAIN_PASSAGES))
    theirs = exact.copy()
    start = time.perf_counter()
    n = search_plainly(window.sims, window.columns, exact, *few, theirs, 2**62)
    taken = time.perf_counter() - start
    assert np.array_equal(mine, theirs), "the kernel and the transcription disagree"
    print(
        f"  {N_PLAIN_PASSAGES} passages: transcription {taken:.1f} s for {n:,} questions, ours "
        f"{1e3 * own:.3f} ms; ratio {taken / own:,.0f}",
        flush=True,
    )
    return taken / own


if __name__ == "__main__":
    main()
