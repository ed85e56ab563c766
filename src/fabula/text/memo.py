"""A cache of results by piece of text: most pieces recur in the next draft."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

__all__ = ["Memo"]

T = TypeVar("T")


class Memo(Generic[T]):
    """Cached results by piece of text.

    A result must depend on its piece alone. Beyond `max_chars` characters of pieces, the least
    recently used are evicted.
    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._known: dict[str, T] = {}
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
            found = {one: self._known[one] for one in wanted if one in self._known}
            new = [one for one in wanted if one not in found]
            found.update(zip(new, make(new), strict=True))
            self._remember(found)
            yield from (found[one] for one in batch)

    def _remember(self, found: dict[str, T]) -> None:
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
