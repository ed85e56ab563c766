"""Documents read by the nodes of a cluster, from addresses that all nodes can reach.

Each file is read by a task, in pieces that stay where they were read. Only the documents' lengths
are sent here, which are all that determines where a batch ends; so batches are the same as in one
process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.cluster import Cluster
from fabula.text import FileSource, read_documents
from fabula.types import Document

__all__ = ["FarDocuments", "Pieces", "are_far"]

_N_AHEAD = 6
"""Number of pieces of each file that may queue up before reading pauses."""


def are_far(files: Sequence[FileSource]) -> bool:
    """Whether all have an address, not a path that may mean something else on another machine."""
    return all("://" in file.name for file in files)


@dataclass(frozen=True, slots=True)
class Pieces:
    """A run of documents: `first` to `stop` (half-open) of those in the pieces together."""

    pieces: list[Any]
    first: int
    stop: int


class FarDocuments:
    """The documents of files, in order, read by the nodes.

    Iteration fetches one piece after the other; `batches` leaves pieces in place. `how` is as in
    `read_documents`; `meter` receives the number of bytes read.
    """

    def __init__(
        self,
        cluster: Cluster,
        files: Sequence[FileSource],
        how: dict[str, Any],
        meter: Callable[[int], None] = lambda n_bytes: None,
        *,
        piece_chars: int = 1 << 20,
    ) -> None:
        self._cluster = cluster
        self._meter = meter
        self._coming = self._read(files, how, piece_chars)
        self._piece: Any = None
        self._lengths: list[int] = []
        self._at = 0
        self._here: list[Document] | None = None

    def __iter__(self) -> Iterator[Document]:
        return self

    def __next__(self) -> Document:
        while self._at == len(self._lengths):
            self._advance(*next(self._coming))
        if self._here is None:
            self._here = self._cluster.get(self._piece)
        self._at += 1
        return self._here[self._at - 1]

    def put_back(self) -> None:
        """Make the next call return the last document again."""
        self._at -= 1

    def batches(self, n_chars: int) -> Iterator[Pieces]:
        """The remaining documents, divided as by `in_batches`."""
        pieces: list[Any] = []
        first, n_documents, total = self._at, 0, 0
        while True:
            if self._at < len(self._lengths):
                if not pieces or pieces[-1] is not self._piece:
                    pieces.append(self._piece)
                total += self._lengths[self._at] + 1
                self._at += 1
                n_documents += 1
                if total >= n_chars:
                    yield Pieces(pieces, first, first + n_documents)
                    pieces, first, n_documents, total = [], self._at, 0, 0
            elif (following := next(self._coming, None)) is not None:
                self._advance(*following)
                first = first if pieces else 0
            else:
                break
        if n_documents:
            yield Pieces(pieces, first, first + n_documents)

    def _advance(self, piece: Any, lengths: list[int], n_bytes: int) -> None:
        self._piece, self._lengths, self._at, self._here = piece, lengths, 0, None
        self._meter(n_bytes)

    def _read(
        self, files: Sequence[FileSource], how: dict[str, Any], piece_chars: int
    ) -> Iterator[tuple[Any, list[int], int]]:
        """References to each piece, with its documents' lengths and its number of bytes."""
        # A reader mostly waits; it must not occupy a processor that workers need.
        read = self._cluster.task(
            _read,
            num_cpus=0,
            num_returns="streaming",
            scheduling_strategy="SPREAD",
            _generator_backpressure_num_objects=2 * _N_AHEAD,
        )
        left = deque(files)
        reading: deque[Any] = deque()
        while left or reading:
            while left and len(reading) <= len(self._cluster.nodes()):
                reading.append(read(left.popleft(), how, piece_chars))
            pieces = reading.popleft()
            for piece in pieces:
                # If a task fails, its error takes the place of a piece, and nothing follows.
                lengths, n_bytes = self._cluster.get(next(pieces, piece))
                yield piece, lengths, n_bytes


def _read(file: FileSource, how: dict[str, Any], piece_chars: int) -> Iterator[Any]:
    """The documents of a file in pieces, each followed by its lengths and number of bytes."""
    n_bytes = 0

    def note(n: int) -> None:
        nonlocal n_bytes
        n_bytes += n

    piece: list[Document] = []
    n_told, n_chars = 0, 0
    for document in read_documents([file], meter=note, **how):
        piece.append(document)
        n_chars += len(document.text)
        if n_chars >= piece_chars:
            yield piece
            yield [len(one.text) for one in piece], n_bytes - n_told
            piece, n_chars, n_told = [], 0, n_bytes
    yield piece
    yield [len(one.text) for one in piece], n_bytes - n_told
