"""The n-gram filter of a shard."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import BLOCK_WORDS, add_grams, n_gram_blocks

__all__ = ["make_filter"]


def make_filter(
    chunks: Iterable[NDArray[np.uint32]], n_tokens: int, *, n_threads: int
) -> NDArray[np.uint64]:
    """The filter of `n_tokens` tokens; each chunk starts with the last tokens of the previous one.

    uint64 (n_blocks, BLOCK_WORDS); the same bytes for any number of threads or chunks.
    """
    blocks = np.zeros((n_gram_blocks(n_tokens), BLOCK_WORDS), np.uint64)
    edges = list(pairwise(np.linspace(0, len(blocks), n_threads + 1).astype(int).tolist()))
    with ThreadPoolExecutor(n_threads) as pool:
        for tokens in chunks:
            list(pool.map(lambda edge, tokens=tokens: add_grams(tokens, blocks, *edge), edges))
    return blocks
