"""How close a continuation is to its context, in words and in meaning.

Roemmele, Gordon and Swanson 2017, section 4.2, "Lexical Cohesion" (metrics 10 to 12).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fabula.models.encoder import Encoder

__all__ = ["cosine", "encode_texts", "jaccard", "mean_cosine"]


def jaccard(a: Iterable[Hashable], b: Iterable[Hashable]) -> float | None:
    """The Jaccard similarity of two sets; None if both are empty.

    0 if only one is empty: there is something, and nothing of it is shared.
    """
    first, second = frozenset(a), frozenset(b)
    union = len(first | second)
    return len(first & second) / union if union else None


def mean_cosine(
    sum_a: NDArray[np.float64], n_a: int, sum_b: NDArray[np.float64], n_b: int
) -> float | None:
    """The mean cosine over all pairs of one vector of A and one of B; None if there is no pair.

    Takes the sums of their unit vectors: the mean over the pairs is the product of the means.
    """
    return float(sum_a @ sum_b) / (n_a * n_b) if n_a and n_b else None


def encode_texts(texts: Sequence[str], encoder: Encoder) -> list[NDArray[np.float64]]:
    """The vector of each text, float64, shape (n_dimensions,).

    For a text longer than the encoder reads, the mean of the vectors of its parts.
    """
    parts = [encoder.parts(text) for text in texts]
    vectors = encoder.encode([part for windows in parts for part in windows])
    ends = np.cumsum([len(windows) for windows in parts])
    return [
        vectors[end - len(windows) : end].mean(axis=0, dtype=np.float64)
        for windows, end in zip(parts, ends, strict=True)
    ]


def cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The cosine of two vectors; 0 if one has zero length."""
    return float(a @ b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12)
