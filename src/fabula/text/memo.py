"""A cache of results by piece of text: most pieces recur in the next draft."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from fabula import __version__
from fabula.cached_results import CachedResults
from fabula.errors import DAMAGE

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """How results are kept for other processes, as JSON in the user's cache folder.

    `name` is all that determines a result besides its piece: what it is, its tool with its version,
    and the number of this form of it.
    """

    name: str
    to_json: Callable[[T], Any]
    from_json: Callable[[str, Any], T]
    """Given the piece, and what `to_json` returned."""

    def find(self, pieces: Sequence[str]) -> dict[str, T]:
        """The results of those pieces that have been kept."""
        found = {}
        held = CachedResults().find([self._key(piece) for piece in pieces])
        for piece, data in zip(pieces, held, strict=True):
            if data is not None:
                try:
                    found[piece] = self.from_json(piece, json.loads(data))
                except DAMAGE:
                    # Made again, and replaced.
                    continue
        return found

    def keep(self, results: Mapping[str, T]) -> None:
        """Keep these results."""
        CachedResults().keep(
            {
                self._key(piece): json.dumps(self.to_json(result), separators=(",", ":")).encode()
                for piece, result in results.items()
            }
        )

    def _key(self, piece: str) -> bytes:
        return f"{__version__}|{self.name}\n{piece}".encode(errors="surrogatepass")


class Memo(Generic[T]):
    """Cached results by piece of text.

    A result must depend on its piece alone; threads may share the cache. Beyond `max_chars`
    characters of pieces, the least recently used are evicted. With `kept`, results outlive the
    process.
    """

    def __init__(self, max_chars: int, kept: Kept[T] | None = None) -> None:
        self._max_chars = max_chars
        self._kept = kept
        self._known: dict[str, T] = {}
        self._lock = threading.Lock()
        self._n_chars = 0

    def each(
        self, pieces: Iterable[str], make: Callable[[list[str]], Iterable[T]], n_batch: int
    ) -> Iterator[T]:
        """Yield the result of each piece, in order.

        `make` computes the results of new pieces, up to `n_batch` at a time.
        """
        stream = iter(pieces)
        while batch := list(islice(stream, n_batch)):
            wanted = dict.fromkeys(batch)
            found = self.known(wanted)
            if new := [one for one in wanted if one not in found]:
                made = dict(zip(new, make(new), strict=True))
                if self._kept is not None:
                    self._kept.keep(made)
                found |= made
            self._remember(found)
            yield from (found[one] for one in batch)

    def known(self, pieces: Iterable[str]) -> dict[str, T]:
        """The results of those pieces that have one."""
        wanted = list(pieces)
        with self._lock:
            found = {one: self._known[one] for one in wanted if one in self._known}
        new = [one for one in wanted if one not in found]
        return found | self._kept.find(new) if new and self._kept is not None else found

    def _remember(self, found: dict[str, T]) -> None:
        with self._lock:
            for piece, result in found.items():
                if piece in self._known:
                    # The most recently used piece is last.
                    del self._known[piece]
                else:
                    self._n_chars += len(piece)
                self._known[piece] = result
            while self._n_chars > self._max_chars:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._n_chars -= len(oldest)
