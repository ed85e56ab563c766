"""Surprisals that were computed before, in the user's cache folder.

A result per window of a text, found by this version, the model, its runtime and the window's
tokens. A report that is made again reads nothing; that of the next draft of a long text reads from
the first window that changed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.cached_results import CachedResults

__all__ = ["SurprisalStore"]

_FORM = b"surprisal 2\n"


class SurprisalStore:
    """The windows of `CachedResults(path)`. Whatever goes wrong, a window is read again."""

    def __init__(self, path: Path | None = None) -> None:
        self._results = CachedResults(path)

    def find(self, key: bytes, n_tokens: int) -> NDArray[np.float32] | None:
        """float32, shape (n_tokens,); None if it is not there, or damaged."""
        (numbers,) = self._results.find([_FORM + key])
        if numbers is None or len(numbers) != 4 * n_tokens:
            return None
        return np.frombuffer(numbers, "<f4").astype(np.float32)

    def keep(self, key: bytes, nats: NDArray[np.float32]) -> None:
        """Store the figures of a window."""
        self._results.keep({_FORM + key: nats.astype("<f4").tobytes()})
