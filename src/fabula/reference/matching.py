"""Longest matches in one shard, on one thread or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import bound_ends
from fabula.kernels.match import longest_matches, run_ends
from fabula.reference.layout import Shard

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
    ends = bound_ends(shard.grams, query, run_ends(query))
    if excluded is None:
        excluded = np.empty(0, np.bool_)

    def search(begin: int) -> NDArray[np.int32]:
        here = slice(begin, begin + _BLOCK)
        n_before = blocks_read() if shard.is_on_disk else 0
        lengths = longest_matches(
            shard.tokens,
            shard.suffixes,
            shard.pairs,
            shard.keys,
            query[begin:],
            ends[here] - begin,
            known[here],
            shard.starts,
            excluded,
            from_disk=shard.is_on_disk,
            ahead=shard.asks_ahead,
        )
        if shard.is_on_disk:
            # Prefetching pages that are in memory takes several times as long as the search.
            shard.asks_ahead = blocks_read() > n_before
        return lengths

    blocks = range(0, len(query), _BLOCK)
    if n_threads == 1 or len(blocks) <= 1:
        found = [search(begin) for begin in blocks]
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            found = list(pool.map(search, blocks))
    return np.concatenate([np.empty(0, np.int32), *found])


def blocks_read() -> int:
    """Number of blocks that this thread has read from disks so far."""
    import resource

    whose = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return resource.getrusage(whose).ru_inblock


def number_words(documents: Iterable[Sequence[str]]) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct words, and all documents concatenated as word numbers, counted from 1.

    int32, shape (n_words + n_documents,): a 0 ends each document.
    """
    distinct: dict[str, int] = {}
    places: list[int] = []
    for words in documents:
        places += (distinct.setdefault(word, len(distinct) + 1) for word in words)
        places.append(0)
    return list(distinct), np.array(places, np.int32)
