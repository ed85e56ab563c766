"""Surprisals that were computed before, in the user's cache folder.

A file per window of a text, under the SHA-256 of this version, the model, its runtime and the
window's tokens. It holds numbers only, no text. A report that is made again reads nothing; that of
the next draft of a long text reads from the first window that changed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.store import cache_folder, write_whole

__all__ = ["SurprisalStore"]

_VERSION = 1
_MAX_FILES, _KEPT_FILES = 4000, 3000
"""A file has 16 KB at most: four bytes per token of a window."""
_CHECK_BYTES = 8


class SurprisalStore:
    """Files in `folder`. Whatever goes wrong with one, the window is read again."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / f"surprisal-{_VERSION}"

    def find(self, key: bytes, n_tokens: int) -> NDArray[np.float32] | None:
        """float32, shape (n_tokens,); None if it is not there, or damaged."""
        path = self._path(key)
        try:
            data = path.read_bytes()
            path.touch()
        except OSError:
            return None
        check, numbers = data[:_CHECK_BYTES], data[_CHECK_BYTES:]
        if _check(numbers) != check or len(numbers) != 4 * n_tokens:
            return None
        return np.frombuffer(numbers, "<f4").astype(np.float32)

    def keep(self, key: bytes, nats: NDArray[np.float32]) -> None:
        """Store the figures of a window; of very many, those not used for longest are removed."""
        numbers = nats.astype("<f4").tobytes()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path(key), _check(numbers) + numbers, is_private=True)
            self._prune()
        except OSError:
            # A full disk or a folder that cannot be written costs time only.
            return

    def _path(self, key: bytes) -> Path:
        return self._folder / f"{hashlib.sha256(key).hexdigest()[:32]}.f4"

    def _prune(self) -> None:
        files = list(self._folder.glob("*.f4"))
        if len(files) <= _MAX_FILES:
            return
        files.sort(key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-_KEPT_FILES]:
            path.unlink(missing_ok=True)


def _check(numbers: bytes) -> bytes:
    return hashlib.sha256(numbers).digest()[:_CHECK_BYTES]
