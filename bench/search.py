"""Longest matches beside infini-gram and beside plain binary search: same corpus, queries, ids.

    python bench/search.py [N_TOKENS ...] [--smoke]

Warm, one query text a call. `creativity()` is the call that the published Creativity Index makes;
it starts a thread a token. Plain binary search is numba too, one search a position over the whole
suffix array. Then the cost of a position against the size of the corpus.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

import corpora
import peer
import plain
from fabula.core.workers import default_jobs
from fabula.kernels import match
from fabula.kernels.grams import bound_ends, list_pairs, pack_pairs
from fabula.kernels.packed import Packed, Tokens, bits_below, pack, pack_tokens
from fabula.kernels.sampled_keys import NO_KEYS
from fabula.kernels.suffix import build_suffix_array
from fabula.reference.build import make_filter

Query = NDArray[np.uint32]


@nb.njit(nogil=True, cache=True)
def plain_search(tokens, suffixes, query, ends, lengths):  # type: ignore[no-untyped-def]
    """A binary search over all suffixes for each position, keeping the common prefixes."""
    n = len(suffixes)
    for i in range(len(query)):
        low, high, common_low, common_high, best = 0, n, 0, 0, 0
        while low < high:
            middle = (low + high) >> 1
            p = np.int64(suffixes[middle])
            length = plain.extend(tokens, p, query, i, ends[i], min(common_low, common_high))
            best = max(best, length)
            if i + length == ends[i]:
                break
            if tokens[p + length] < query[i + length]:
                low, common_low = middle + 1, length
            else:
                high, common_high = middle, length
        lengths[i] = best


def count_steps(tokens: Tokens, suffixes: Packed, query: Query, ends: NDArray[np.int64]) -> float:
    """Steps of the binary searches: the logarithm of the interval of each position's pair."""
    steps = 0.0
    for i in range(len(query)):
        if i + 2 < ends[i]:
            low, high = match.find_interval(*tokens, *suffixes, query[i : i + 2])
            steps += float(np.ceil(np.log2(high - low + 1)))
    return steps


class Index:
    def __init__(self, tokens: NDArray[np.uint32], n_threads: int) -> None:
        self.tokens = tokens
        self.suffixes = build_suffix_array(tokens, int(tokens.max()) + 1, n_threads=n_threads)
        n = len(tokens)
        self.pairs = pack_pairs([list_pairs(tokens, self.suffixes, 0, n)], n)
        self.coded, self.packed = pack_tokens(tokens), pack(self.suffixes, bits_below(n))
        self.grams = make_filter(tokens, n_threads=n_threads)

    def lockstep(self, query: Query) -> NDArray[np.int32]:
        ends = bound_ends(self.grams, query, match.run_ends(query))
        return match.longest_matches(
            self.coded, self.packed, self.pairs, NO_KEYS, query, ends,
            np.zeros(len(query), np.int32), np.zeros(1, np.int64), np.empty(0, np.bool_),
        )  # fmt: skip

    def plain(self, query: Query) -> NDArray[np.int32]:
        lengths = np.zeros(len(query), np.int32)
        plain_search(self.tokens, self.suffixes, query, match.run_ends(query), lengths)
        return lengths


def longest_by_hand(tokens: NDArray[np.uint32], query: Query) -> int:
    """The longest run that `query` begins with, by going through all places of its first token."""
    longest = 0
    for place in np.flatnonzero(tokens == query[0]) if query[0] else ():
        run = tokens[place : place + len(query)]
        differs = np.flatnonzero((run != query[: len(run)]) | (run == 0))
        longest = max(longest, int(differs[0]) if len(differs) else len(run))
    return longest


def rate(
    search: Callable[[Query], Any], queries: list[Query], seconds: float = corpora.sized(30, 1) / 20
) -> float:
    """Thousands of positions a second, the best of three rounds after one to warm up."""
    best = 0.0
    for _ in range(4):
        start, n = time.perf_counter(), 0
        for query in queries:
            search(query)
            n += len(query)
            if time.perf_counter() - start > seconds:
                break
        best = max(best, n / (time.perf_counter() - start) / 1e3)
    return best


def rate_of_threads(search: Callable[[Query], Any], queries: list[Query], n_threads: int) -> float:
    with ThreadPoolExecutor(n_threads) as pool:
        parts = [queries[k::n_threads] for k in range(n_threads)]
        return sum(pool.map(lambda part: rate(search, part), parts))


def compare(index: Index, ids: dict[str, int], folder: Path, n_threads: int) -> None:
    peer.write_tokens(index.tokens, folder)
    peer.build_index(folder, n_threads=n_threads)
    engine, known = peer.open_engine(folder), np.unique(index.tokens)
    for n_words in (250, 1500):
        # A shard's search is asked for the words of the shard, of which every one occurs.
        queries = [np.where(np.isin(q, known), q, 0) for q in corpora.queries(ids, n_words)]

        def creativity(query: Query) -> NDArray[np.int32]:
            return peer.longest_matches(engine, np.where(query == 0, 65_000, query))

        n_slips = 0
        for query in queries[:20]:
            ours, plain, theirs = index.lockstep(query), index.plain(query), creativity(query)
            assert np.array_equal(ours, plain)
            # The peer finds nothing for a query below all suffixes. Of a tiny index it is wrong
            # now and then at one word more: there, going through all places decides.
            for place in np.flatnonzero((ours != theirs) & ((theirs > 0) | (ours == 0))):
                assert ours[place] == longest_by_hand(index.tokens, query[place:])
                n_slips += 1
        if n_slips:
            print(f"  the peer is wrong at {n_slips:,} positions", flush=True)
        lockstep = rate(index.lockstep, queries)
        plain_rate = rate(index.plain, queries)
        peer_rate = rate(creativity, queries)
        threads = rate_of_threads(index.lockstep, queries, n_threads)
        print(
            f"  queries of {n_words}: fabula {lockstep:,.0f} ktok/s, plain {plain_rate:,.0f}, "
            f"infini-gram {peer_rate:.1f}; ratios {lockstep / peer_rate:,.0f} and "
            f"{lockstep / plain_rate:.2f}; {n_threads} threads {threads:,.0f} ktok/s, "
            f"{threads / lockstep:.2f} times one",
            flush=True,
        )


def main() -> None:
    sizes = [int(float(size)) for size in sys.argv[1:]] or (
        [20_000] if corpora.SMOKE else [10_000_000, 150_000_000]
    )
    n_threads = default_jobs()
    real, ids = corpora.real_corpus()
    for size in sizes:
        print(f"{size / 1e6:,.0f}M tokens")
        index = Index(corpora.corpus_of(real, size), n_threads)
        with corpora.scratch() as name:
            compare(index, ids, name, n_threads)
    print("cost against size, queries of 1500")
    queries = corpora.queries(ids, 1500)
    for size in (corpora.sized(n, n // 1000) for n in (1_000_000, 10_000_000, 100_000_000)):
        index = Index(corpora.corpus_of(real, size), n_threads)
        ns = 1e6 / rate(index.lockstep, queries)
        steps = sum(
            count_steps(index.coded, index.packed, query, match.run_ends(query))
            for query in queries[:40]
        ) / (40 * 1500)
        print(
            f"  {size / 1e6:,.0f}M (log2 {np.log2(size):.1f}): {steps:.1f} steps and {ns:,.0f} ns "
            f"a position, {ns / max(steps, 1):.0f} ns a step",
            flush=True,
        )


if __name__ == "__main__":
    main()
