"""Longest matches in one shard, on one thread or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.match import allowed_matches, longest_matches, run_ends
from fabula.reference.layout import Shard

__all__ = ["match_shard", "number_words"]

_BLOCK = 4096
"""Positions that a thread searches at a time."""


def match_shard(
    shard: Shard, query: NDArray[np.uint32], excluded: NDArray[np.bool_] | None, n_threads: int
) -> NDArray[np.int32]:
    """Longest matches in one shard. query: uint32 (n,), 0 for unknown words and gaps."""
    n = len(query)
    ends = run_ends(query)
    lengths = np.zeros(n, np.int32)
    witnesses = np.zeros(n, np.uint32)

    def search(begin: int) -> None:
        stop = min(begin + _BLOCK, n)
        longest_matches(
            shard.tokens, shard.suffixes, shard.pairs, query, ends, begin, stop, lengths, witnesses
        )

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


def number_words(
    documents: Iterable[Sequence[str]],
) -> tuple[list[str], NDArray[np.int32]]:
    """The different words, and all documents in a row as their numbers, counted from 1.

    int32, shape (n_words + n_documents,): a 0 ends each document.
    """
    distinct: dict[str, int] = {}
    places: list[int] = []
    for words in documents:
        places += (distinct.setdefault(word, len(distinct) + 1) for word in words)
        places.append(0)
    return list(distinct), np.array(places, np.int32)
