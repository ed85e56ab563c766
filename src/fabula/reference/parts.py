"""A part of a reference: some of its shards, local or remote.

A part numbers its documents from 0. The longest match in a reference is the longest in any part,
counts add up, and each document is in one part only; so a reference in parts, on several machines
or behind a server, gives the same results as on one disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import bound_ends
from fabula.kernels.match import count_allowed, find_interval, longest_matches, run_ends
from fabula.kernels.packed import read_packed
from fabula.reference.layout import Shard
from fabula.reference.part_walk import ShardWords, Stretches, Walk, ask_together, walk_shard
from fabula.types import Document
from fabula.workers import memory_bytes

Ints = NDArray[np.int32]
Grams = Sequence[Sequence[str]]
Excluded = NDArray[np.bool_] | None
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Found:
    """Where an n-gram occurs in a part."""

    count: int
    n_places: int
    """The number of places considered: all, or the maximum requested for each shard."""
    n_documents: int
    """The number of distinct documents at those places."""
    numbers: NDArray[np.int64]
    """The first of these documents, ascending."""
    places: NDArray[np.int64]
    """The first word of the n-gram's first place in each of them, counted from 0."""


class Part(Protocol):
    """Some shards of a reference. Words are passed in the reference's normal form."""

    n_shards: int

    @property
    def n_documents(self) -> int:
        """The number of documents numbered here, including removed ones."""

    def match(
        self, words: Sequence[str], places: Ints, *, exclude: Sequence[int], n_threads: int = 1
    ) -> Ints:
        """Length of the longest n-gram that starts at each place and occurs in a document.

        places: int32 (n,), counted from 1 in `words`; 0 where no n-gram continues. int32 (n,).
        """

    def find(
        self, grams: Grams, *, limit: int, max_places: int, exclude: Sequence[int] = ()
    ) -> list[Found]:
        """Where each n-gram occurs: up to `limit` documents, from `max_places` places per shard."""

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        """The documents with these numbers, as they were read when the corpus was built."""

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        """For each id, the numbers of the documents that have it and are not removed."""

    def vocabularies(self) -> list[ShardWords]:
        """The words of each shard."""

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        """Matches of a text in other words; `walks` and the results are by shard."""

    def close(self) -> None:
        """Release open resources."""


_BLOCK_WORDS = 4096
"""Number of positions that a thread searches at a time."""


def _match_shard(
    shard: Shard, query: NDArray[np.uint32], known: Ints, excluded: Excluded, n_threads: int
) -> Ints:
    """Longest matches in one shard, where they exceed the known ones of other shards.

    query: uint32 (n,), 0 for unknown words and gaps; known: int32 (n,), matches found elsewhere.
    Returns int32 (n,): where they are not longer, any number up to the shard's longest match.
    """
    ends = bound_ends(shard.grams, query, run_ends(query))
    if excluded is None:
        excluded = np.empty(0, np.bool_)

    def search(begin: int) -> Ints:
        here = slice(begin, begin + _BLOCK_WORDS)
        n_before = _blocks_read() if shard.is_on_disk else 0
        lengths = longest_matches(
            shard.tokens,
            shard.suffixes,
            shard.pairs,
            shard.keys,
            query[begin:],
            ends[here] - begin,
            known[here],
            shard.starts,
            excluded,
            from_disk=shard.is_on_disk,
            ahead=shard.asks_ahead,
        )
        if shard.is_on_disk:
            # Prefetching pages that are in memory takes several times as long as the search.
            shard.asks_ahead = _blocks_read() > n_before
        return lengths

    blocks = range(0, len(query), _BLOCK_WORDS)
    if n_threads == 1 or len(blocks) <= 1:
        found = [search(begin) for begin in blocks]
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            found = list(pool.map(search, blocks))
    return np.concatenate([np.empty(0, np.int32), *found])


def _blocks_read() -> int:
    """Number of blocks that this thread has read from disks so far."""
    import resource

    whose = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return resource.getrusage(whose).ru_inblock


class LocalPart:
    """Shards on this machine's disk.

    removed: bool (n_documents,), the documents that no search considers.
    """

    def __init__(self, shards: Sequence[Shard], removed: NDArray[np.bool_]) -> None:
        self.shards = list(shards)
        self.n_shards = len(self.shards)
        self.removed = removed
        sizes = [shard.info.n_documents for shard in self.shards]
        self.first_numbers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if sum(shard.search_bytes for shard in self.shards) > memory_bytes() // 2:
            for shard in self.shards:
                shard.expect_random()

    @property
    def n_documents(self) -> int:
        return int(self.first_numbers[-1])

    def match(
        self, words: Sequence[str], places: Ints, *, exclude: Sequence[int], n_threads: int = 1
    ) -> Ints:
        longest = np.zeros(len(places), np.int32)
        for shard, out in zip(self.shards, self.excluded(exclude), strict=True):
            ids = np.zeros(len(words) + 1, np.uint32)
            ids[1:] = shard.vocabulary.find(list(words))
            found = _match_shard(shard, ids[places], longest, out, n_threads)
            np.maximum(longest, found, out=longest)
        return longest

    def find(
        self, grams: Grams, *, limit: int, max_places: int, exclude: Sequence[int] = ()
    ) -> list[Found]:
        excluded = self.excluded(exclude)
        return [self._find(gram, limit, max_places, excluded) for gram in grams]

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        places = [(self.shard_of(number), number) for number in numbers]
        return [self.shards[k].document(n - int(self.first_numbers[k])) for k, n in places]

    def shard_of(self, number: int) -> int:
        """The index of the shard that contains the document with that number."""
        return int(np.searchsorted(self.first_numbers, number, side="right")) - 1

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        found: dict[str, list[int]] = {id_: [] for id_ in ids}
        for number, id_ in self.ids():
            if id_ in found:
                found[id_].append(number)
        return [found[id_] for id_ in ids]

    def vocabularies(self) -> list[ShardWords]:
        words = ([one.vocabulary[k] for k in range(len(one.vocabulary))] for one in self.shards)
        counts = (shard.token_counts[1:] for shard in self.shards)
        return list(map(ShardWords, words, counts))

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        shards = zip(self.shards, walks, self.excluded(exclude), strict=True)
        found = [walk_shard(shard, walk, out) for shard, walk, out in shards]
        return [replace(one, numbers=one.numbers + first)
                for one, first in zip(found, self.first_numbers, strict=False)]  # fmt: skip

    def close(self) -> None:
        """Nothing to close: files are mapped, and closed with the last array."""

    def ids(self) -> Iterator[tuple[int, str]]:
        """The number and the id of each document not removed, in order."""
        for first, shard in zip(self.first_numbers.tolist(), self.shards, strict=False):
            for k in range(len(shard.ids)):
                if not self.removed[first + k]:
                    yield first + k, shard.ids[k]

    def excluded(self, exclude: Iterable[int]) -> list[Excluded]:
        """For each shard, which documents are excluded: removed, or in `exclude`.

        bool, shape (n_documents,); None if there are none.
        """
        out = self.removed
        numbers = list(exclude)
        if numbers:
            out = out.copy()
            out[numbers] = True
        parts = [out[a:b] for a, b in pairwise(self.first_numbers)]
        return [part if part.any() else None for part in parts]

    def _find(
        self, gram: Sequence[str], limit: int, max_places: int, excluded: Sequence[Excluded]
    ) -> Found:
        total = 0
        all_numbers, all_places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first, shard, out in zip(self.first_numbers, self.shards, excluded, strict=False):
            query = shard.vocabulary.find(list(gram))
            if not query.all():
                continue
            low, high = find_interval(shard.tokens, shard.suffixes, query)
            packed = read_packed(shard.suffixes, low, min(high, low + max_places))
            places = np.sort(packed).astype(np.int64)
            numbers = np.searchsorted(shard.starts, places, side="right") - 1
            if out is None:
                total += high - low
            else:
                total += count_allowed(shard.suffixes, shard.starts, out, low, high)
                places, numbers = places[~out[numbers]], numbers[~out[numbers]]
            all_numbers.append(numbers + first)
            all_places.append(places - shard.starts[numbers])
        numbers, places = np.concatenate(all_numbers), np.concatenate(all_places)
        distinct, begins = np.unique(numbers, return_index=True)
        return Found(total, len(numbers), len(distinct), distinct[:limit], places[begins[:limit]])


class JoinedParts:
    """Several parts as one; documents are numbered consecutively over the parts."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = list(parts)
        sizes = [part.n_documents for part in self._parts]
        self._firsts: list[int] = np.cumsum([0, *sizes]).tolist()
        counts = [part.n_shards for part in self._parts]
        self._first_shards: list[int] = np.cumsum([0, *counts]).tolist()
        self.n_shards = self._first_shards[-1]

    @property
    def n_documents(self) -> int:
        return self._firsts[-1]

    def match(
        self, words: Sequence[str], places: Ints, *, exclude: Sequence[int], n_threads: int = 1
    ) -> Ints:
        def ask(part: Part, out: list[int]) -> Ints:
            return part.match(words, places, exclude=out, n_threads=n_threads)

        longest: Ints = np.maximum.reduce(self._ask(ask, exclude))
        return longest

    def find(
        self, grams: Grams, *, limit: int, max_places: int, exclude: Sequence[int] = ()
    ) -> list[Found]:
        def ask(part: Part, out: list[int]) -> list[Found]:
            return part.find(grams, limit=limit, max_places=max_places, exclude=out)

        return [
            Found(
                count=sum(one.count for one in found),
                n_places=sum(one.n_places for one in found),
                n_documents=sum(one.n_documents for one in found),
                numbers=np.concatenate(
                    [one.numbers + first for one, first in zip(found, self._firsts, strict=False)]
                )[:limit],
                places=np.concatenate([one.places for one in found])[:limit],
            )
            for found in zip(*self._ask(ask, exclude), strict=True)
        ]

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        found: dict[int, Document] = {}
        for (part, here), first in zip(self._with(numbers), self._firsts, strict=False):
            if here:
                there = part.documents(here)
                found |= {first + n: document for n, document in zip(here, there, strict=True)}
        return [found[number] for number in numbers]

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in ids]
        for part, first in zip(self._parts, self._firsts, strict=False):
            for numbers, here in zip(found, part.numbers_of(ids), strict=True):
                numbers += [first + number for number in here]
        return found

    def vocabularies(self) -> list[ShardWords]:
        return list(chain(*ask_together(self._parts, lambda _, part: part.vocabularies())))

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        def ask(k: int, one: tuple[Part, list[int]]) -> list[Stretches]:
            part, out = one
            first, end = self._first_shards[k : k + 2]
            found = part.walk(walks[first:end], exclude=out)
            return [replace(one, numbers=one.numbers + self._firsts[k]) for one in found]

        return list(chain(*ask_together(list(self._with(exclude)), ask)))

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def _ask(self, ask: Callable[[Part, list[int]], R], exclude: Sequence[int]) -> list[R]:
        """The result from each part."""
        return ask_together(list(self._with(exclude)), lambda _, pair: ask(*pair))

    def _with(self, numbers: Sequence[int]) -> Iterator[tuple[Part, list[int]]]:
        """Each part with those of the numbers that are in it, as numbered there."""
        for part, (first, end) in zip(self._parts, pairwise(self._firsts), strict=True):
            yield part, [number - first for number in numbers if first <= number < end]
