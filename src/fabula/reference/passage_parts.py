"""The passages of a part of a reference, local or remote, and how the best are found.

The score of a passage is computed within its shard alone, with weights determined over all shards.
So the best passages of a reference are the best of its parts' best, and shards on several machines
rank passages exactly as on one disk, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.movers import score_terms
from fabula.reference.layout import Shard
from fabula.reference.passage_shards import open_passages

__all__ = [
    "JoinedPassages",
    "LocalPassages",
    "PassagePart",
    "PassageTokens",
    "Queries",
    "Ranked",
    "ask_together",
]

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Queries:
    """Several texts to rank passages by."""

    terms: list[str]
    """The distinct content words of all of them, sorted."""
    weights: NDArray[np.float32]
    """float32 (n_terms,): the weight of each."""
    places: list[NDArray[np.int64]]
    """For each text, the indices of the terms it contains, ascending."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best passages for one text, in the order of the part."""

    shards: NDArray[np.int64]
    passages: NDArray[np.int64]
    """int64 (n_found,): the index of the passage in its shard."""
    scores: NDArray[np.float32]

    @classmethod
    def best(cls, found: Sequence[Ranked], n_passages: int) -> Self:
        """The best of several consecutive parts; ties go to the first."""
        scores = np.concatenate([one.scores for one in found])
        chosen = _largest(scores, n_passages)
        return cls(
            np.concatenate([one.shards for one in found])[chosen],
            np.concatenate([one.passages for one in found])[chosen],
            scores[chosen],
        )


@dataclass(frozen=True, slots=True)
class PassageTokens:
    """Passages of one shard with their words, as arrays for the kernels."""

    passages: NDArray[np.int64]
    """int64 (n_passages,): their indices in the shard, ascending."""
    numbers: NDArray[np.int64]
    """int64 (n_passages,): the document of each."""
    first_words: NDArray[np.int64]
    """int64 (n_passages,): the index of its first word in the document."""
    tokens: NDArray[np.uint32]
    """Word ids of the shard, one passage after the other."""
    begins: NDArray[np.int64]
    """int64 (n_passages,): the first place of each in `tokens`."""
    lengths: NDArray[np.int32]
    """int32 (n_passages,), in words."""


class PassagePart(Protocol):
    """The passages of some shards; shards are numbered from 0, as documents are."""

    @property
    def n_passages(self) -> int: ...

    @property
    def n_vocabularies(self) -> Sequence[int]:
        """The number of distinct words of each shard."""

    def n_with(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """The number of passages that contain each term: int64 (n_terms,)."""

    def best(
        self, queries: Queries, n_passages: int, *, exclude: Sequence[int] = ()
    ) -> list[Ranked]:
        """For each text, the passages with the highest scores above 0, up to `n_passages`."""

    def read(self, wanted: Mapping[int, NDArray[np.int64]]) -> dict[int, PassageTokens]:
        """The passages with these ascending numbers, by shard."""

    def words(self, wanted: Mapping[int, NDArray[np.uint32]]) -> dict[int, list[str]]:
        """The words with these ids, by shard."""


class LocalPassages:
    """The passages of shards on this machine's disk.

    key: names their settings. excluded: for each shard, which documents are excluded, as in
    `LocalPart.excluded`. Raises `CorpusError` if they were not built or do not fit.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        key: str,
        excluded: Callable[[Iterable[int]], Sequence[NDArray[np.bool_] | None]],
    ) -> None:
        self._shards = open_passages(shards, key)
        self._excluded = excluded
        sizes = [shard.info.n_documents for shard in shards]
        self._firsts: list[int] = np.cumsum([0, *sizes]).tolist()
        self.n_passages = sum(len(shard.begins) for shard in self._shards)
        self.n_vocabularies = [shard.info.n_vocabulary for shard in shards]

    def lengths(self, shard: int) -> NDArray[np.int32]:
        """The number of words of each passage of a shard: int32 (n_passages,)."""
        return self._shards[shard].lengths

    def n_with(self, terms: Sequence[str]) -> NDArray[np.int64]:
        total = np.zeros(len(terms), np.int64)
        for shard in self._shards:
            ids = shard.ids_of(terms)
            total += shard.indptr[ids + 1] - shard.indptr[ids]
        return total

    def best(
        self, queries: Queries, n_passages: int, *, exclude: Sequence[int] = ()
    ) -> list[Ranked]:
        found: list[list[Ranked]] = [[] for _ in queries.places]
        for k, (shard, out) in enumerate(zip(self._shards, self._excluded(exclude), strict=True)):
            ids = shard.ids_of(queries.terms)
            is_held = shard.indptr[ids + 1] > shard.indptr[ids]
            is_out = None if out is None else out[shard.documents]
            for there, places in zip(found, queries.places, strict=True):
                here = places[is_held[places]]
                scores = np.zeros(len(shard.begins), np.float32)
                score_terms(
                    shard.data,
                    shard.indices,
                    shard.indptr,
                    ids[here],
                    queries.weights[here],
                    scores,
                )
                if is_out is not None:
                    scores[is_out] = 0
                passages = np.flatnonzero(scores > 0)
                passages = passages[_largest(scores[passages], n_passages)]
                there.append(Ranked(np.full(len(passages), k), passages, scores[passages]))
        return [Ranked.best(there, n_passages) for there in found]

    def read(self, wanted: Mapping[int, NDArray[np.int64]]) -> dict[int, PassageTokens]:
        found = {}
        for k, passages in wanted.items():
            shard = self._shards[k]
            documents, begins = shard.documents[passages], shard.begins[passages]
            lengths = shard.lengths[passages]
            parts = [
                shard.shard.read_tokens(begin, begin + n)
                for begin, n in zip(begins.tolist(), lengths.tolist(), strict=True)
            ]
            found[k] = PassageTokens(
                passages,
                numbers=documents + self._firsts[k],
                first_words=begins - shard.shard.starts[documents],
                tokens=np.concatenate(parts),
                begins=np.cumsum(lengths, dtype=np.int64) - lengths,
                lengths=lengths,
            )
        return found

    def words(self, wanted: Mapping[int, NDArray[np.uint32]]) -> dict[int, list[str]]:
        return {
            k: [self._shards[k].shard.vocabulary[i - 1] for i in ids.tolist()]
            for k, ids in wanted.items()
        }


class JoinedPassages:
    """The passages of several parts as one; `n_documents` is how many numbers each part has."""

    def __init__(self, parts: Sequence[PassagePart], n_documents: Sequence[int]) -> None:
        self._parts = list(parts)
        self._firsts: list[int] = np.cumsum([0, *n_documents]).tolist()
        sizes = [len(part.n_vocabularies) for part in parts]
        self._shards: list[int] = np.cumsum([0, *sizes]).tolist()
        self.n_passages = sum(part.n_passages for part in parts)
        self.n_vocabularies = [n for part in parts for n in part.n_vocabularies]

    def n_with(self, terms: Sequence[str]) -> NDArray[np.int64]:
        found = ask_together(self._parts, lambda _, part: part.n_with(terms))
        total: NDArray[np.int64] = np.sum(found, axis=0)
        return total

    def best(
        self, queries: Queries, n_passages: int, *, exclude: Sequence[int] = ()
    ) -> list[Ranked]:
        def ask(k: int, part: PassagePart) -> list[Ranked]:
            first, end = self._firsts[k : k + 2]
            out = [number - first for number in exclude if first <= number < end]
            found = part.best(queries, n_passages, exclude=out)
            return [replace(one, shards=one.shards + self._shards[k]) for one in found]

        found = ask_together(self._parts, ask)
        return [Ranked.best(one, n_passages) for one in zip(*found, strict=True)]

    def read(self, wanted: Mapping[int, NDArray[np.int64]]) -> dict[int, PassageTokens]:
        found = self._ask_holders(wanted, lambda part, here: part.read(here))
        return {
            shard: replace(tokens, numbers=tokens.numbers + self._firsts[k])
            for shard, (k, tokens) in found.items()
        }

    def words(self, wanted: Mapping[int, NDArray[np.uint32]]) -> dict[int, list[str]]:
        found = self._ask_holders(wanted, lambda part, here: part.words(here))
        return {shard: words for shard, (_, words) in found.items()}

    def _ask_holders(
        self,
        wanted: Mapping[int, NDArray[Any]],
        ask: Callable[[PassagePart, dict[int, NDArray[Any]]], dict[int, R]],
    ) -> dict[int, tuple[int, R]]:
        """For each shard, the part that holds it and its result; other parts are not queried."""
        asked = {}
        for k, (first, end) in enumerate(pairwise(self._shards)):
            if here := {shard - first: of for shard, of in wanted.items() if first <= shard < end}:
                asked[k] = here
        found = ask_together(list(asked.items()), lambda _, one: ask(self._parts[one[0]], one[1]))
        return {
            self._shards[k] + shard: (k, there)
            for k, answer in zip(asked, found, strict=True)
            for shard, there in answer.items()
        }


def ask_together(asked: Sequence[Q], ask: Callable[[int, Q], R]) -> list[R]:
    """The result for each item, with its index; all run concurrently, as some are remote."""
    if len(asked) < 2:
        return [ask(k, one) for k, one in enumerate(asked)]
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(ask, range(len(asked)), asked))


def _largest(values: NDArray[np.float32], n: int) -> NDArray[np.int64]:
    """The indices of the n largest values, ascending; ties go to the first."""
    if len(values) <= n:
        return np.arange(len(values))
    least = np.partition(values, len(values) - n)[len(values) - n]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: n - len(above)]
    return np.sort(np.concatenate([above, equal]))
