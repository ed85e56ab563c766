"""A reference whose shards are spread over the nodes of a cluster, held by one actor per node.

Each node holds a contiguous run of shards; processes on it read those from the local disk and query
other nodes for the rest. Together they are the parts of one reference, with the same results.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fabula.cluster import Cluster
from fabula.reference.info import About
from fabula.reference.layout import Manifest, ShardInfo, open_shards
from fabula.reference.local_copies import copy_passages, copy_shards
from fabula.reference.part_walk import LocalWalks, ShardWords, Stretches, Walk, WalkPart
from fabula.reference.parts import Found, JoinedParts, LocalPart, Part
from fabula.reference.passage_parts import (
    LocalPassages,
    PassagePart,
    PassageTokens,
    Queries,
    Ranked,
)
from fabula.reference.search import Reference
from fabula.types import Document

__all__ = ["Holders", "Share", "divide"]

_N_QUESTIONS = 4
"""Number of concurrent requests per actor; the kernels run in parallel."""


@dataclass(frozen=True, slots=True)
class Share:
    """The shards of one node: those from `first` to `stop` (half-open), over all corpora."""

    node: str
    first: int
    stop: int


def divide(n_tokens: Sequence[int], nodes: Sequence[str]) -> list[Share]:
    """A run of shards for each node, about equal in tokens; no more shares than shards."""
    ends = np.cumsum(np.array(n_tokens, np.int64))
    n_shares = min(len(nodes), len(n_tokens))
    shares, first = [], 0
    for k in range(n_shares):
        fair = ends[-1] * (k + 1) / n_shares
        stop = int(np.searchsorted(ends, fair - 0.5 * n_tokens[min(first, len(ends) - 1)])) + 1
        # Leave at least one for each of the remaining nodes.
        stop = max(first + 1, min(stop, len(n_tokens) - (n_shares - 1 - k)))
        stop = len(n_tokens) if k == n_shares - 1 else stop
        shares.append(Share(nodes[k], first, stop))
        first = stop
    return shares


class Holders:
    """One actor on each node with a share; picklable, so that every node can query every other."""

    def __init__(self, cluster: Cluster, paths: Sequence[str], shares: Sequence[Share]) -> None:
        self.paths = list(paths)
        self.shares = list(shares)
        self.actors = [
            cluster.actor(_Holder, share.node, num_cpus=0, max_concurrency=_N_QUESTIONS)(
                self.paths, share
            )
            for share in shares
        ]

    @classmethod
    def over(cls, cluster: Cluster, paths: Sequence[str], nodes: Sequence[str]) -> Self:
        """Divide the shards of these corpora among these nodes."""
        sizes = [info.n_tokens for _, info in _shards_of(paths)]
        return cls(cluster, paths, divide(sizes, nodes))

    def open(self, node: str | None = None) -> Reference:
        """The whole reference as seen from a node: its own share is read from disk."""
        about, shards = About.of(self.paths, _manifests_of(self.paths)), _shards_of(self.paths)
        parts: list[Part] = []
        for share, actor in zip(self.shares, self.actors, strict=True):
            if share.node == node:
                parts.append(_local(about, shards, share))
            else:
                held = shards[share.first : share.stop]
                parts.append(_FarPart(actor, sum(info.n_documents for _, info in held)))
        return Reference(about, JoinedParts(parts))


def _manifests_of(paths: Sequence[str]) -> list[Manifest]:
    return [Manifest.read(path) for path in paths]


def _shards_of(paths: Sequence[str]) -> list[tuple[str, ShardInfo]]:
    """The shards of all corpora, each with the location of its corpus."""
    return [
        (path, info)
        for path, manifest in zip(paths, _manifests_of(paths), strict=True)
        for info in manifest.shards
    ]


def _local(about: About, shards: Sequence[tuple[str, ShardInfo]], share: Share) -> LocalPart:
    """A share on this node's disk; shards in an object store are copied here."""
    sizes = [info.n_documents for _, info in shards]
    begin, end = sum(sizes[: share.first]), sum(sizes[: share.stop])
    opened = []
    for path, held in groupby(shards[share.first : share.stop], lambda shard: shard[0]):
        infos = [info for _, info in held]
        folder = copy_shards(path, [info.name for info in infos])
        opened += open_shards([(folder, info) for info in infos])
    return LocalPart(opened, about.removed[begin:end])


class _Holder:
    """The actor: the part stored on its node."""

    def __init__(self, paths: Sequence[str], share: Share) -> None:
        self._paths = paths
        self._share = share
        self._part: LocalPart | None = None
        self._passages: dict[str, LocalPassages] = {}
        self._walks: LocalWalks | None = None
        self._lock = threading.Lock()

    def ask(self, method: str, *given: Any, **options: Any) -> Any:
        with self._lock:
            part = self._open()
        return getattr(part, method)(*given, **options)

    def ask_passages(self, key: str, method: str, *given: Any, **options: Any) -> Any:
        return getattr(self._passages_of(key), method)(*given, **options)

    def vocabularies(self) -> list[ShardWords]:
        return self._walked().vocabularies

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        return self._walked().walk(walks, exclude=exclude)

    def sizes_of_passages(self, key: str) -> tuple[int, list[int]]:
        passages = self._passages_of(key)
        return passages.n_passages, passages.n_vocabularies

    def _open(self) -> LocalPart:
        if self._part is None:
            about = About.of(self._paths, _manifests_of(self._paths))
            self._part = _local(about, _shards_of(self._paths), self._share)
        return self._part

    def _walked(self) -> LocalWalks:
        with self._lock:
            if self._walks is None:
                self._walks = self._open().walks()
            return self._walks

    def _passages_of(self, key: str) -> LocalPassages:
        with self._lock:
            if key not in self._passages:
                for path, info in _shards_of(self._paths)[self._share.first : self._share.stop]:
                    copy_passages(path, key, [info.name])
                self._passages[key] = self._open().passages(key)
            return self._passages[key]


class _FarPart:
    """A part on another node."""

    def __init__(self, actor: Any, n_documents: int) -> None:
        self._actor = actor
        self.n_documents = n_documents

    def match(
        self,
        words: Sequence[str],
        places: NDArray[np.int32],
        *,
        exclude: Sequence[int] = (),
        n_threads: int = 1,
    ) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self._ask(
            "match", words, places, exclude=exclude, n_threads=n_threads
        )
        return found

    def find(
        self,
        grams: Sequence[Sequence[str]],
        *,
        limit: int,
        max_places: int,
        exclude: Sequence[int] = (),
    ) -> list[Found]:
        found: list[Found] = self._ask(
            "find", grams, limit=limit, max_places=max_places, exclude=exclude
        )
        return found

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        found: list[Document] = self._ask("documents", numbers)
        return found

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self._ask("numbers_of", ids)
        return found

    def passages(self, key: str) -> PassagePart:
        return _FarPassages(self._actor, key)

    def walks(self) -> WalkPart:
        return _FarWalks(self._actor)

    def close(self) -> None:
        """Nothing to close: the actor ends with the job."""

    def _ask(self, method: str, *given: Any, **options: Any) -> Any:
        return _get(self._actor.ask.remote(method, *given, **options))


class _FarWalks:
    """Shards on another node, which walks them."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self.vocabularies: list[ShardWords] = _get(actor.vocabularies.remote())

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        found: list[Stretches] = _get(self._actor.walk.remote(walks, exclude=exclude))
        return found


class _FarPassages:
    """Passages on another node."""

    def __init__(self, actor: Any, key: str) -> None:
        self._actor = actor
        self._key = key
        self.n_passages: int
        self.n_vocabularies: list[int]
        self.n_passages, self.n_vocabularies = _get(actor.sizes_of_passages.remote(key))

    def n_with(self, terms: Sequence[str]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self._ask("n_with", terms)
        return found

    def best(
        self, queries: Queries, n_passages: int, *, exclude: Sequence[int] = ()
    ) -> list[Ranked]:
        found: list[Ranked] = self._ask("best", queries, n_passages, exclude=exclude)
        return found

    def read(self, wanted: Mapping[int, NDArray[np.int64]]) -> dict[int, PassageTokens]:
        found: dict[int, PassageTokens] = self._ask("read", wanted)
        return found

    def words(self, wanted: Mapping[int, NDArray[np.uint32]]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = self._ask("words", wanted)
        return found

    def _ask(self, method: str, *given: Any, **options: Any) -> Any:
        return _get(self._actor.ask_passages.remote(self._key, method, *given, **options))


def _get(awaited: Any) -> Any:
    import ray

    return ray.get(awaited)
