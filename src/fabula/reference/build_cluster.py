"""Building a reference on a cluster: any node tokenises batches, each shard is one task.

Documents are read here, or by the nodes if they have an address. Where a batch or a shard ends is
decided here, from the batches' summaries, by the same rules as in `build` on one machine; so every
byte is the same, whatever the number of nodes and whichever of them are lost. Words travel from
node to node, not through this process.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from fabula.cluster import Cluster
from fabula.errors import CorpusError
from fabula.reference.batches import TokenBatch, tokenise_batch
from fabula.reference.build import BuildParameters, ShardPlan, WriteShards
from fabula.reference.layout import ShardInfo, read_shard_info
from fabula.reference.reading_cluster import FarDocuments, Pieces
from fabula.reference.shards import ShardBatches, kept_shard, write_shard
from fabula.reference.storage import Home
from fabula.text import TextSettings, in_batches
from fabula.types import Document

__all__ = ["on_cluster"]


@dataclass(frozen=True, slots=True)
class _Summary:
    """What determines where a shard ends, and what it contains."""

    n_tokens: int
    n_vocabulary: int
    n_documents: int
    n_read: int
    content: int


@dataclass(slots=True)
class _Filling:
    """A shard being filled, as references to its batches."""

    batches: list[Any] = field(default_factory=list)
    words: list[Any] = field(default_factory=list)
    """The vocabularies of the last batches, as references."""
    known: set[str] = field(default_factory=set)
    """The words of the batches before those."""
    n_more: int = 0
    """Words of the last batches, counted once for each batch that contains them."""
    n_tokens: int = 0
    n_documents: int = 0
    n_read: int = 0
    content: int = 0

    def add(self, batch: Any, words: Any, summary: _Summary) -> None:
        self.batches.append(batch)
        self.words.append(words)
        self.n_more += summary.n_vocabulary
        self.n_tokens += summary.n_tokens
        self.n_documents += summary.n_documents
        self.n_read += summary.n_read
        self.content += summary.content

    def is_full(self, cluster: Cluster, parameters: BuildParameters) -> bool:
        """As in `build`. The words are fetched only if their number may decide it."""
        if not parameters.is_full(self.n_tokens, len(self.known) + self.n_more):
            return False
        if not parameters.is_full(self.n_tokens, 0):
            for words in cluster.get(self.words):
                self.known.update(words)
            self.words.clear()
            self.n_more = 0
        return parameters.is_full(self.n_tokens, len(self.known))


def on_cluster(cluster: Cluster) -> WriteShards:
    """A `write` for `build_reference`: the nodes of this cluster write the shards.

    Each node writes to the corpus under the same name, so it must be in an object store, or in a
    folder that all nodes share.
    """

    def write(stream: Iterator[Document], plan: ShardPlan) -> Iterator[ShardInfo]:
        build = cluster.task(_write, num_cpus=1)
        home = plan.home.everywhere()
        n_threads = max(cluster.n_cpus(node) for node in cluster.nodes())
        writing: deque[tuple[str, Any]] = deque()
        for k, shard in enumerate(_fill(cluster, stream, plan)):
            name = plan.name_of(k)
            plan.report(f"sorting shard {int(name) + 1}: {shard.n_tokens:,} words")
            asked = home, name, shard.n_read, shard.content, n_threads
            # Batches are passed as arguments, not fetched by the task: it starts when they are
            # ready, and those lost with a node are recomputed first.
            writing.append((name, build(*asked, *shard.batches)))
            if len(writing) > cluster.n_cpus():
                yield _written(cluster, plan.home, *writing.popleft())
        while writing:
            plan.report(f"sorting: {len(writing)} shards left")
            yield _written(cluster, plan.home, *writing.popleft())

    return write


def _fill(cluster: Cluster, stream: Iterator[Document], plan: ShardPlan) -> Iterator[_Filling]:
    shard = _Filling()
    for batch, words, summary in _tokenised(cluster, stream, plan):
        shard.add(batch, words, summary)
        plan.report(f"reading: {shard.n_tokens - shard.n_documents:,} words of this shard")
        if shard.is_full(cluster, plan.parameters):
            yield shard
            shard = _Filling()
    if shard.n_documents:
        yield shard


def _tokenised(
    cluster: Cluster, stream: Iterator[Document], plan: ShardPlan
) -> Iterator[tuple[Any, Any, _Summary]]:
    """References to each batch and its vocabulary, and the batch's summary; in order."""
    tokenise = cluster.task(_tokenise, num_returns=3, num_cpus=1)
    pending: deque[tuple[Any, Any, Any]] = deque()

    def first() -> tuple[Any, Any, _Summary]:
        batch, words, summary = pending.popleft()
        return batch, words, cluster.get(summary)

    for batch in _batches(stream, plan.parameters.batch_chars):
        # The pieces are arguments, so the task starts on the node that has most of them.
        pending.append(tokenise(plan.settings, batch.first, batch.stop, *batch.pieces))
        if len(pending) > 2 * cluster.n_cpus():
            yield first()
    while pending:
        yield first()


def _batches(stream: Iterator[Document], n_chars: int) -> Iterator[Pieces]:
    if isinstance(stream, FarDocuments):
        yield from stream.batches(n_chars)
    else:
        for documents in in_batches(stream, n_chars):
            yield Pieces([documents], 0, len(documents))


def _tokenise(
    settings: TextSettings, first: int, stop: int, *pieces: list[Document]
) -> tuple[TokenBatch, list[str], _Summary]:
    batch = tokenise_batch(list(islice(chain(*pieces), first, stop)), settings)
    n_tokens, n_documents = len(batch.tokens), len(batch.ids)
    summary = _Summary(n_tokens, len(batch.words), n_documents, batch.n_read, batch.content)
    return batch, batch.words, summary


def _write(
    home: Home, name: str, n_read: int, content: int, n_threads: int, *batches: TokenBatch
) -> ShardInfo:
    # An attempt on a node that was lost may have finished.
    if (kept := kept_shard(home, name, n_read, content)) is not None:
        return kept
    shard = ShardBatches()
    for batch in batches:
        shard.add(batch)
    try:
        return write_shard(home, name, shard, n_threads, _say_nothing, attempt=uuid.uuid4().hex)
    except OSError:
        kept = kept_shard(home, name, n_read, content)
        if kept is None:
            raise
        return kept


def _say_nothing(_: str) -> None:
    """No progress messages: the process that submitted the work shows them."""


def _written(cluster: Cluster, home: Home, name: str, task: Any) -> ShardInfo:
    info: ShardInfo = cluster.get(task)
    if read_shard_info(home, name) is None:
        raise CorpusError(
            f"{home.spec}/shards/{name}: this shard was written by a node of the cluster and is "
            "not visible here; build in an object store, or in a folder that all nodes share"
        )
    return info
