"""Longest matches in one shard, on one thread or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import bound_ends
from fabula.kernels.match import allowed_matches, longest_matches, run_ends
from fabula.reference.layout import Shard

__all__ = ["match_shard", "number_words"]

_BLOCK = 4096
"""Number of positions that a thread searches at a time."""


def match_shard(
    shard: Shard,
    query: NDArray[np.uint32],
    known: NDArray[np.int32],
    excluded: NDArray[np.bool_] | None,
    n_threads: int,
) -> NDArray[np.int32]:
    """Longest matches in one shard, where they exceed the known ones of other shards.

    query: uint32 (n,), 0 for unknown words and gaps; known: int32 (n,), matches found elsewhere.
    Returns int32 (n,): where they are not longer, any number up to the shard's longest match.
    """
    n = len(query)
    ends = run_ends(query)
    if shard.grams is not None:
        ends = bound_ends(shard.grams, query, ends)
    lengths = np.zeros(n, np.int32)
    witnesses = np.zeros(n, np.uint32)

    def search(begin: int) -> None:
        stop = min(begin + _BLOCK, n)
        n_before = blocks_read() if shard.is_on_disk else 0
        longest_matches(
            shard.tokens,
            shard.suffixes,
            shard.pairs,
            query,
            ends,
            known,
            begin,
            stop,
            lengths,
            witnesses,
            ahead=shard.asks_ahead,
        )
        if shard.is_on_disk:
            # Prefetching pages that are in memory takes several times as long as the search.
            shard.asks_ahead = blocks_read() > n_before

    if n_threads == 1 or n <= _BLOCK:
        search_all = map(search, range(0, n, _BLOCK))
        for _ in search_all:
            pass
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            for _ in pool.map(search, range(0, n, _BLOCK)):
                pass
    if excluded is not None:
        allowed_matches(
            shard.tokens, shard.suffixes, shard.starts, excluded, query, ends, lengths, witnesses
        )
    return lengths


def blocks_read() -> int:
    """Number of blocks that this thread has read from disks so far."""
    import resource

    whose = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return resource.getrusage(whose).ru_inblock


def number_words(
    documents: Iterable[Sequence[str]],
) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct words, and all documents concatenated as word numbers, counted from 1.

    int32, shape (n_words + n_documents,): a 0 ends each document.
    """
    distinct: dict[str, int] = {}
    places: list[int] = []
    for words in documents:
        places += (distinct.setdefault(word, len(distinct) + 1) for word in words)
        places.append(0)
    return list(distinct), np.array(places, np.int32)
