"""Distance between texts as vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabula.models.encoder import Encoder

__all__ = ["Embeddings", "embed_texts"]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """`embeddings`: the mean cosine distance of two different texts.

    vectors: float64, shape (n_texts, n_dimensions), of length 1.
    """

    vectors: NDArray[np.float64]
    max_draws: int = 1 << 30
    max_blocks: int = 100
    max_permutations: int = 1 << 30

    names = ("embeddings",)

    def narrowed(self, kept: NDArray[np.int64]) -> Embeddings:
        return replace(self, vectors=self.vectors[kept])

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Float64, shape (n_subsets, 1); NaN for fewer than two texts."""
        sums = members.astype(np.float64) @ self.vectors
        n = members.sum(axis=1, dtype=np.float64)
        # The square of a sum of unit vectors contains each pair twice, and each vector with itself.
        with np.errstate(invalid="ignore", divide="ignore"):
            distances: NDArray[np.float64] = 1 - ((sums**2).sum(axis=1) - n) / (n * (n - 1))
        return distances[:, None]


def embed_texts(
    texts: Sequence[str], encoder: Encoder, advance: Callable[[int], None]
) -> NDArray[np.float64]:
    """A vector of length 1 for each text: the mean of those of its parts, each read whole."""
    found = []
    for text in texts:
        mean = encoder.encode(encoder.parts(text)).astype(np.float64).mean(axis=0)
        found.append(mean / max(1e-12, float(np.linalg.norm(mean))))
        advance(1)
    return np.stack(found)
