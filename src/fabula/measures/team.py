"""Distributed measuring: documents go out in batches, rows come back in order.

Each processor has a worker that keeps the measure open; each node has a share of the shards. A lost
worker takes its node's share with it, so everything is reopened on the remaining nodes, and what
was not yet returned is measured again: the rows are the same.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fabula.cluster import Cluster
from fabula.errors import FabulaError, WorkersEnded
from fabula.measures.originality_measure import Originality, OriginalityMeasure
from fabula.reference import Reference
from fabula.reference.distributed import Holders
from fabula.text import check_documents, in_batches
from fabula.types import Document, Signature

__all__ = ["OpenMeasure", "TeamMeasure", "TeamRow", "row_of"]

OpenMeasure = Callable[[Reference | None], AbstractContextManager[OriginalityMeasure]]
"""Opens the measure over the given reference, or over its own if none is given. Picklable."""

_BATCH_CHARS = 1 << 18
_NEAR_BATCH_CHARS = 1 << 15
_N_AHEAD = 2
"""Batches queued for each worker."""
_N_LOSSES = 20
"""How often in a row the workers may be lost without progress."""
_WAIT_S = 3.0


@dataclass(frozen=True, slots=True)
class TeamRow:
    """The measurement of a document, as a row."""

    document: Document
    row: dict[str, Any]


def row_of(scored: TeamRow) -> dict[str, Any]:
    """For `ScoreRun`: the row, as made on the node that measured the document."""
    return scored.row


class TeamMeasure:
    """An originality measure that runs on a cluster.

    `measure` is the same measure opened locally: it defines how a text is measured. `open_measure`
    opens it on the nodes; `row_of` makes a row of each result there. `paths` are the corpora's.
    """

    def __init__(
        self,
        cluster: Cluster,
        measure: OriginalityMeasure,
        open_measure: OpenMeasure,
        row_of: Callable[[Originality], dict[str, Any]],
        paths: Sequence[str],
    ) -> None:
        self._cluster = cluster
        self._measure = measure
        self._open = open_measure
        self._row_of = row_of
        self._paths = list(paths)

    @property
    def signature(self) -> Signature:
        return self._measure.signature

    def asked(self, document: Document) -> dict[str, Any]:
        """What else determines the document's row."""
        return self._measure.asked(document)

    def measure(self, documents: Iterable[Document]) -> Iterator[TeamRow]:
        """Measure documents as they come, in order.

        If reading fails, the documents read before are measured first. Raises `WorkersEnded` if the
        workers are lost repeatedly.
        """
        n_chars = _NEAR_BATCH_CHARS if self._measure.near else _BATCH_CHARS
        failures: list[FabulaError] = []
        batches = in_batches(_until_error(check_documents(documents), failures), n_chars)
        waiting: deque[list[Document]] = deque()
        team: _Team | None = None
        n_losses = 0
        try:
            while True:
                if team is None:
                    team = self._gather(waiting)
                for batch in islice(batches, max(0, team.n_most - len(waiting))):
                    waiting.append(batch)
                    team.submit(batch)
                if not waiting:
                    break
                try:
                    rows = team.next_rows()
                except WorkersEnded:
                    n_losses += 1
                    if n_losses > _N_LOSSES:
                        raise
                    team.close()
                    team = None
                    # A lost node counts as present until it has been silent for a while.
                    time.sleep(_WAIT_S)
                else:
                    n_losses = 0
                    yield from map(TeamRow, waiting.popleft(), rows)
        finally:
            if team is not None:
                team.close()
        if failures:
            raise failures[0]

    def _gather(self, waiting: Iterable[list[Document]]) -> _Team:
        """Workers on the available nodes, with their queues."""
        for n_left in reversed(range(_N_LOSSES)):
            try:
                team = _Team(self._cluster, self._open, self._row_of, self._paths)
            except WorkersEnded:
                if not n_left:
                    raise
                time.sleep(_WAIT_S)
            else:
                break
        for batch in waiting:
            team.submit(batch)
        return team


class _Team:
    """The workers on the nodes available now."""

    def __init__(
        self,
        cluster: Cluster,
        open_measure: OpenMeasure,
        row_of: Callable[[Originality], dict[str, Any]],
        paths: Sequence[str],
    ) -> None:
        self._cluster = cluster
        nodes = cluster.nodes()
        if not nodes:
            raise WorkersEnded(
                "no node of the cluster has a free processor; start one with `ray start`, and run "
                "the same command again"
            )
        self._holders = None
        if paths and len(nodes) > 1:
            self._holders = Holders.over(cluster, paths, nodes)
        self._workers = [
            cluster.actor(_Worker, node, num_cpus=1)(open_measure, row_of, self._holders, node)
            for node in nodes
            for _ in range(cluster.n_cpus(node))
        ]
        self._pending: deque[Any] = deque()
        self._n_submitted = 0

    @property
    def n_most(self) -> int:
        """Batches that may be in flight."""
        return _N_AHEAD * len(self._workers)

    def submit(self, batch: list[Document]) -> None:
        worker = self._workers[self._n_submitted % len(self._workers)]
        self._n_submitted += 1
        self._pending.append(worker.rows.remote(batch))

    def next_rows(self) -> list[dict[str, Any]]:
        """The rows of the batch that was submitted first."""
        rows: list[dict[str, Any]] = self._cluster.get(self._pending[0])
        self._pending.popleft()
        return rows

    def close(self) -> None:
        self._cluster.end(self._workers)
        if self._holders is not None:
            self._cluster.end(self._holders.actors)


class _Worker:
    """The actor: the measure, open on its node."""

    def __init__(
        self,
        open_measure: OpenMeasure,
        row_of: Callable[[Originality], dict[str, Any]],
        holders: Holders | None,
        node: str,
    ) -> None:
        self._open = open_measure
        self._row_of = row_of
        self._holders = holders
        self._node = node
        self._stack = ExitStack()
        self._measure: OriginalityMeasure | None = None

    def rows(self, documents: list[Document]) -> list[dict[str, Any]]:
        if self._measure is None:
            # Not in the actor's constructor: errors here are reported unchanged.
            reference = self._holders.open(self._node) if self._holders is not None else None
            self._measure = self._stack.enter_context(self._open(reference))
        return [self._row_of(result) for result in self._measure.measure(documents)]


def _until_error(documents: Iterable[Document], failures: list[FabulaError]) -> Iterator[Document]:
    """The documents that can be read; the exception that ended them is recorded."""
    try:
        yield from documents
    except FabulaError as error:
        failures.append(error)
