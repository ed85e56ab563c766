"""Building a reference on a cluster: batches become words anywhere, a shard is a task.

The documents are read here, in order. Where a batch or a shard ends is decided here too, from what
the batches say of themselves, as `build` decides it on one machine; so every byte is the same,
however many nodes there are and whichever of them are lost. Words travel from node to node and not
through here.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabula.cluster import Cluster
from fabula.errors import CorpusError
from fabula.reference.batches import TokenBatch, tokenise_batch
from fabula.reference.build import ShardPlan, WriteShards
from fabula.reference.layout import ShardInfo
from fabula.reference.shards import ShardBatches, kept_shard, write_shard
from fabula.text import TextSettings, in_batches
from fabula.types import Document

__all__ = ["on_cluster"]


@dataclass(frozen=True, slots=True)
class _Summary:
    """What decides where a shard ends, and what it is to be."""

    n_tokens: int
    n_documents: int
    n_read: int
    content: int
    words: list[str]


@dataclass(slots=True)
class _Filling:
    """A shard that is being filled, as references to its batches."""

    batches: list[Any] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    n_tokens: int = 0
    n_documents: int = 0
    n_read: int = 0
    content: int = 0

    def add(self, batch: Any, summary: _Summary) -> None:
        self.batches.append(batch)
        self.known.update(summary.words)
        self.n_tokens += summary.n_tokens
        self.n_documents += summary.n_documents
        self.n_read += summary.n_read
        self.content += summary.content


def on_cluster(cluster: Cluster) -> WriteShards:
    """For `build_reference`: write the shards on the nodes of this cluster.

    Each node writes to the folder by its own name, so it must be one that all of them share.
    """

    def write(stream: Iterator[Document], plan: ShardPlan) -> Iterator[ShardInfo]:
        build = cluster.task(_write, num_cpus=1)
        n_threads = max(cluster.n_cpus(node) for node in cluster.nodes())
        writing: deque[tuple[Path, Any]] = deque()
        for k, shard in enumerate(_fill(cluster, stream, plan)):
            folder = plan.place(k)
            plan.report(f"sorting shard {int(folder.name) + 1}: {shard.n_tokens:,} words")
            asked = str(folder.resolve()), shard.n_read, shard.content, n_threads
            # Batches are arguments, not asked for by the task: it begins when they are there, and
            # those that were lost with a node are made again before.
            writing.append((folder, build(*asked, *shard.batches)))
            if len(writing) > cluster.n_cpus():
                yield _written(cluster, *writing.popleft())
        while writing:
            plan.report(f"sorting: {len(writing)} shards left")
            yield _written(cluster, *writing.popleft())

    return write


def _fill(cluster: Cluster, stream: Iterator[Document], plan: ShardPlan) -> Iterator[_Filling]:
    shard = _Filling()
    for batch, summary in _tokenised(cluster, stream, plan):
        shard.add(batch, summary)
        plan.report(f"reading: {shard.n_tokens - shard.n_documents:,} words of this shard")
        if plan.parameters.is_full(shard.n_tokens, len(shard.known)):
            yield shard
            shard = _Filling()
    if shard.n_documents:
        yield shard


def _tokenised(
    cluster: Cluster, stream: Iterator[Document], plan: ShardPlan
) -> Iterator[tuple[Any, _Summary]]:
    """Each batch as words, where it lies, and what it says of itself; in order."""
    tokenise = cluster.task(_tokenise, num_returns=2, num_cpus=1)
    pending: deque[tuple[Any, Any]] = deque()

    def first() -> tuple[Any, _Summary]:
        batch, summary = pending.popleft()
        return batch, cluster.get(summary)

    for documents in in_batches(stream, plan.parameters.batch_chars):
        pending.append(tokenise(documents, plan.settings))
        if len(pending) > 2 * cluster.n_cpus():
            yield first()
    while pending:
        yield first()


def _tokenise(documents: list[Document], settings: TextSettings) -> tuple[TokenBatch, _Summary]:
    batch = tokenise_batch(documents, settings)
    summary = _Summary(len(batch.tokens), len(batch.ids), batch.n_read, batch.content, batch.words)
    return batch, summary


def _write(
    folder: str, n_read: int, content: int, n_threads: int, *batches: TokenBatch
) -> ShardInfo:
    place = Path(folder)
    # An attempt on a node that was lost may have come to its end.
    if (kept := kept_shard(place, n_read, content)) is not None:
        return kept
    shard = ShardBatches()
    for batch in batches:
        shard.add(batch)
    try:
        return write_shard(place, shard, n_threads, lambda _: None, attempt=uuid.uuid4().hex)
    except OSError:
        kept = kept_shard(place, n_read, content)
        if kept is None:
            raise
        return kept


def _written(cluster: Cluster, folder: Path, task: Any) -> ShardInfo:
    info: ShardInfo = cluster.get(task)
    if not folder.exists():
        raise CorpusError(
            f"{folder}: a node of the cluster wrote this shard, and it is not here; build in a "
            f"folder that all nodes share"
        )
    return info
