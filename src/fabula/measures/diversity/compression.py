"""How well texts compress together."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["GZIP", "Compression", "compression_ratio"]

_LEVEL = 9
_NAME_BYTES = 11
"""Size of the file name in the header that the package's file has."""
_BUDGET_BYTES = 40_000_000
"""Approximate limit of what a pair's permutations compress: half a dozen seconds."""

GZIP = f"gzip{_LEVEL}-{zlib.ZLIB_RUNTIME_VERSION}"
"""For signatures: other versions of zlib give other sizes."""


def compression_ratio(texts: Sequence[bytes]) -> float:
    """Bytes of the texts, with a space between them, over their bytes after compression.

    The ratio of the package `diversity` (Shaib et al. 2024), which compresses the compressed data
    once more; above a few thousand words the difference is negligible.
    """
    data = b" ".join(texts)
    once = gzip.compress(data, _LEVEL, mtime=0)
    return len(data) / (len(gzip.compress(once, _LEVEL, mtime=0)) + _NAME_BYTES)


@dataclass(frozen=True, slots=True)
class Compression:
    """`compression`: the ratio, of texts in the order given.

    gzip looks back 32 KB, so the order matters: it must be unrelated to the properties of the
    texts.
    """

    texts: tuple[bytes, ...]
    n_threads: int = 1
    max_draws: int = 1
    max_blocks: int = 20

    names = ("compression",)

    @property
    def max_permutations(self) -> int:
        return _BUDGET_BYTES // max(1, sum(map(len, self.texts)))

    def narrowed(self, kept: NDArray[np.int64]) -> Compression:
        return replace(self, texts=tuple(self.texts[k] for k in kept))

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Float64, shape (n_subsets, 1)."""

        def one(row: NDArray[np.uint8]) -> float:
            return compression_ratio([self.texts[k] for k in np.flatnonzero(row)])

        with ThreadPoolExecutor(self.n_threads) as pool:
            return np.array([*pool.map(one, members)], np.float64).reshape(-1, 1)
