"""A part of a reference: some of its shards, on disk, behind a server, or several parts as one.

A part numbers its documents from 0. The longest match in a reference is the longest in any part,
counts add up, and each document is in one part only; so a reference in parts, on several machines
or behind a server, gives the same results as on one disk. The score of a stretch that says the same
in other words depends only on its own words, and on their rarity in the whole reference.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import CorpusError
from fabula.core.types import Document
from fabula.core.workers import memory_bytes
from fabula.kernels.grams import bound_ends
from fabula.kernels.match import count_allowed, find_interval, longest_matches, run_ends
from fabula.kernels.packed import fixed, read_packed
from fabula.kernels.walk import align, chain, find_anchors, note_blocks
from fabula.reference.backend import Age
from fabula.reference.files import Manifest, Report, Shard, check_files, fetch_corpus
from fabula.text import TextSettings

Ints = NDArray[np.int32]
Words = Sequence[str]
Numbers = Sequence[int]
Grams = Sequence[Words]
Hits = list["Found"]
Excluded = NDArray[np.bool_]
R = TypeVar("R")

_BLOCK_WORDS = 4096
"""Number of positions that a thread searches at a time."""
_MOST_BITS, _MOST_STEPS = 1 << 20, 1 << 10
"""What a walk from elsewhere may contain."""


@dataclass(frozen=True, slots=True)
class About:
    """The corpora of a reference, combined."""

    name: str
    fingerprint: str
    settings: TextSettings
    n_documents: int
    n_words: int
    written_by: tuple[str, ...]
    removed: NDArray[np.bool_]
    """bool (n_numbers,): which numbers belong to removed documents."""
    age: Age
    chance_factor: float = 1.0
    """How many times as many passages as usual its authors share by chance."""

    @classmethod
    def of(cls, folder: Path, manifest: Manifest) -> Self:
        """The corpus in a folder, by its manifest."""
        removed = np.zeros(sum(info.n_documents for info in manifest.shards), np.bool_)
        removed[manifest.read_removed(folder)] = True
        return cls(
            name=folder.resolve().name,
            fingerprint=manifest.fingerprint,
            settings=manifest.settings,
            n_documents=manifest.n_documents,
            n_words=manifest.n_words,
            written_by=manifest.written_by,
            removed=removed,
            age=manifest.age,
            chance_factor=manifest.chance_factor or 1.0,
        )

    @classmethod
    def joined(cls, places: Sequence[str], abouts: Sequence[Self]) -> Self:
        """References at these places as one. Raises `CorpusError` if their settings differ."""
        settings = abouts[0].settings
        for place, about in zip(places, abouts, strict=True):
            if about.settings != settings:
                raise CorpusError(
                    f"{place}: built with {about.settings}, but {places[0]} with {settings}; only "
                    "references with the same settings can be searched together"
                )
        oldest = [about.age.oldest for about in abouts if about.age.oldest is not None]
        newest = [about.age.youngest for about in abouts if about.age.youngest is not None]
        return cls(
            name="+".join(about.name for about in abouts),
            fingerprint="+".join(about.fingerprint for about in abouts),
            settings=settings,
            n_documents=sum(about.n_documents for about in abouts),
            n_words=sum(about.n_words for about in abouts),
            written_by=tuple(dict.fromkeys(name for about in abouts for name in about.written_by)),
            removed=np.concatenate([about.removed for about in abouts]),
            # What is of unknown age may be younger than all others.
            age=Age(min(oldest, default=None), max(newest) if len(newest) == len(abouts) else None),
            chance_factor=max(about.chance_factor for about in abouts),
        )


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


@dataclass(frozen=True, slots=True)
class ShardWords:
    """The words of a shard."""

    words: list[str]
    """By token id, starting at 1."""
    counts: NDArray[np.int64]
    """int64 (n_words,): the number of occurrences of each."""

    @classmethod
    def of(cls, shard: Shard) -> Self:
        words = [shard.vocabulary[k] for k in range(len(shard.vocabulary))]
        return cls(words, shard.token_counts[1:])


@dataclass(frozen=True, slots=True)
class WalkTerms:
    """What decides how far an alignment goes, as in the kernels; bits in 1 / `PARTS`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}
    content_cost: int
    function_cost: int
    """The costs of skipping a content word, and any other."""
    enough: int
    """Minimum bits of an anchor."""
    width: int
    drop: int
    exchange: int
    reach: int
    company: int
    least: int
    gap: int
    join: int
    need: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A text to compare with a shard. Bits are in units of 1 / `kernels.walk.PARTS`."""

    units: NDArray[np.int32]
    """int32 (n_words,): the text's words as indices of its distinct words."""
    is_content: NDArray[np.bool_]
    """bool (n_units,)"""
    starts: NDArray[np.int64]
    """int64 (n_units + 1,): where the matching token ids of each begin in `ids`."""
    n_anchors: NDArray[np.int64]
    """int64 (n_units,): how many of these, from the first, may be in an anchor."""
    ids: NDArray[np.int64]
    """int64 (n_alike,): token ids of the shard."""
    rarities: NDArray[np.int32]
    """int32 (n_alike,): the bits of each in the reference."""
    gains: NDArray[np.int32]
    """int32 (n_alike,): the gain of each when aligned with the text's word."""
    functions: NDArray[np.int64]
    """int64: the token ids of the shard that are not content words."""
    terms: WalkTerms

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(array := getattr(self, field.name), np.ndarray):
                fixed(array)

    def misfit(self, n_vocabulary: int) -> str | None:
        """The field that a shard with so many words cannot have: kernels do not check bounds."""
        n_units, n_alike, counts = len(self.is_content), len(self.ids), np.diff(self.starts)
        most = dict.fromkeys(("width", "reach", "gap"), _MOST_STEPS)
        fits = {
            "units": len(self.units) and _within(self.units, 0, n_units - 1),
            "starts": len(self.starts) == n_units + 1
            and (self.starts[0], self.starts[-1]) == (0, n_alike)
            and (counts >= 0).all(),
            "n_anchors": len(self.n_anchors) == len(counts)
            and ((self.n_anchors >= 0) & (self.n_anchors <= counts)).all(),
            "ids": _within(self.ids, 1, n_vocabulary),
            "functions": _within(self.functions, 1, n_vocabulary),
            "rarities": len(self.rarities) == n_alike and _within(self.rarities, 0, _MOST_BITS),
            "gains": len(self.gains) == n_alike and _within(self.gains, 0, _MOST_BITS),
        }
        fits |= {k: 0 <= v <= most.get(k, _MOST_BITS) for k, v in asdict(self.terms).items()}
        return next((name for name, is_right in fits.items() if not is_right), None)


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of a text aligned with stretches of documents."""

    firsts: NDArray[np.int64]
    ends: NDArray[np.int64]
    """int64 (n,): words of the text, half-open."""
    numbers: NDArray[np.int64]
    """int64 (n,): documents."""
    first_words: NDArray[np.int64]
    end_words: NDArray[np.int64]
    """int64 (n,): words of the document, half-open."""
    scores: NDArray[np.int64]
    """int64 (n,)"""


class Part(Protocol):
    """Some shards of a reference. Words are passed in the reference's normal form."""

    about: About
    n_shards: int

    def match(self, words: Words, places: Ints, *, exclude: Numbers, n_threads: int = 1) -> Ints:
        """Length of the longest n-gram that starts at each place and occurs in a document.

        places: int32 (n,), counted from 1 in `words`; 0 where no n-gram continues. int32 (n,).
        """

    def find(self, grams: Grams, *, limit: int, max_places: int, exclude: Numbers = ()) -> Hits:
        """Where each n-gram occurs: up to `limit` documents, from `max_places` places per shard."""

    def documents(self, numbers: Numbers) -> list[Document]:
        """The documents with these numbers, as they were read when the corpus was built."""

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        """For each id, the numbers of the documents that have it and are not removed."""

    def vocabularies(self) -> list[ShardWords]:
        """The words of each shard."""

    def walk(self, walks: Sequence[Walk], *, exclude: Numbers = ()) -> list[Stretches]:
        """Matches of a text in other words; `walks` and the results are by shard."""

    def close(self) -> None:
        """Release open resources."""


class LocalPart:
    """Shards on this machine's disk, the documents of `about` in order."""

    def __init__(self, about: About, shards: Sequence[Shard]) -> None:
        self.about = about
        self.shards = list(shards)
        self.n_shards = len(self.shards)
        sizes = [shard.info.n_documents for shard in self.shards]
        self.first_numbers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if sum(shard.search_bytes for shard in self.shards) > memory_bytes() // 2:
            for shard in self.shards:
                shard.expect_random()

    @classmethod
    def open(cls, places: Iterable[str | Path], report: Report = lambda stage: None) -> Self:
        """Open corpora as one; one found twice counts once.

        Raises `CorpusError` if there is none, a damaged one, or one with other settings.
        """
        corpora: dict[str, tuple[Path, Manifest]] = {}
        for place in dict.fromkeys(places):
            folder = fetch_corpus(place, report)
            manifest = Manifest.read(folder)
            corpora.setdefault(manifest.fingerprint, (folder, manifest))
        abouts, shards = [], []
        for folder, manifest in corpora.values():
            abouts.append(About.of(folder, manifest))
            shards += [(folder / "shards" / info.name, info) for info in manifest.shards]
        about = About.joined([str(folder) for folder, _ in corpora.values()], abouts)
        check_files([(folder, info.files) for folder, info in shards], report)
        return cls(about, [Shard(folder, info) for folder, info in shards])

    def match(self, words: Words, places: Ints, *, exclude: Numbers, n_threads: int = 1) -> Ints:
        longest = np.zeros(len(places), np.int32)
        for shard, out in zip(self.shards, self.excluded(exclude), strict=True):
            ids = np.zeros(len(words) + 1, np.uint32)
            ids[1:] = shard.vocabulary.find(list(words))
            query = ids[places]
            ends = bound_ends(shard.grams, query, run_ends(query))
            search = partial(_search_block, shard, query, ends, longest, out)
            blocks = range(0, len(query), _BLOCK_WORDS)
            if n_threads == 1 or len(blocks) <= 1:
                lengths = list(map(search, blocks))
            else:
                with ThreadPoolExecutor(n_threads) as pool:
                    lengths = list(pool.map(search, blocks))
            np.maximum(longest, np.concatenate([longest[:0], *lengths]), out=longest)
        return longest

    def find(self, grams: Grams, *, limit: int, max_places: int, exclude: Numbers = ()) -> Hits:
        excluded, founds = self.excluded(exclude), []
        for gram in grams:
            total = 0
            all_numbers, all_places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            for first, shard, out in zip(self.first_numbers, self.shards, excluded, strict=False):
                query = shard.vocabulary.find(list(gram))
                if not query.all():
                    continue
                low, high = find_interval(*shard.tokens, *shard.suffixes, query)
                packed = read_packed(shard.suffixes, low, min(high, low + max_places))
                places = np.sort(packed).astype(np.int64)
                numbers = np.searchsorted(shard.starts, places, side="right") - 1
                if len(out):
                    total += count_allowed(*shard.suffixes[:2], shard.starts, out, low, high)
                    places, numbers = places[~out[numbers]], numbers[~out[numbers]]
                else:
                    total += high - low
                all_numbers.append(numbers + first)
                all_places.append(places - shard.starts[numbers])
            numbers, places = np.concatenate(all_numbers), np.concatenate(all_places)
            named, begins = np.unique(numbers, return_index=True)
            firsts = begins[:limit]
            founds.append(Found(total, len(numbers), len(named), named[:limit], places[firsts]))
        return founds

    def documents(self, numbers: Numbers) -> list[Document]:
        places = [(self.shard_of(number), number) for number in numbers]
        return [self.shards[k].document(n - int(self.first_numbers[k])) for k, n in places]

    def shard_of(self, number: int) -> int:
        """The index of the shard that contains the document with that number."""
        return int(np.searchsorted(self.first_numbers, number, side="right")) - 1

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        numbers: dict[str, list[int]] = {id_: [] for id_ in ids}
        for number, id_ in self.ids():
            if id_ in numbers:
                numbers[id_].append(number)
        return [numbers[id_] for id_ in ids]

    def ids(self) -> Iterator[tuple[int, str]]:
        """The number and the id of each document not removed, in order."""
        for first, shard in zip(self.first_numbers.tolist(), self.shards, strict=False):
            for k in range(len(shard.ids)):
                if not self.about.removed[first + k]:
                    yield first + k, shard.ids[k]

    def vocabularies(self) -> list[ShardWords]:
        return list(map(ShardWords.of, self.shards))

    def walk(self, walks: Sequence[Walk], *, exclude: Numbers = ()) -> list[Stretches]:
        shards = zip(self.shards, walks, self.excluded(exclude), strict=True)
        numbered = zip(self.first_numbers, shards, strict=False)
        return [walk_shard(shard, walk, out, int(first)) for first, (shard, walk, out) in numbered]

    def excluded(self, exclude: Iterable[int]) -> list[Excluded]:
        """For each shard, bool (n_documents,): removed or in `exclude`; empty if there are none."""
        out, numbers = self.about.removed, list(exclude)
        if numbers:
            out = out.copy()
            out[numbers] = True
        parts = [out[a:b] for a, b in pairwise(self.first_numbers)]
        return [part if part.any() else np.empty(0, np.bool_) for part in parts]

    def close(self) -> None:
        """Nothing to close: files are mapped, and closed with the last array."""


class JoinedParts:
    """Several parts as one; documents are numbered consecutively over the parts."""

    def __init__(self, parts: Sequence[Part], about: About) -> None:
        self.about = about
        self.n_shards = sum(part.n_shards for part in parts)
        self._parts = list(parts)
        self._firsts: list[int] = np.cumsum([0, *(len(p.about.removed) for p in parts)]).tolist()

    def match(self, words: Words, places: Ints, *, exclude: Numbers, n_threads: int = 1) -> Ints:
        by_part = self._ask(
            lambda part, out: part.match(words, places, exclude=out, n_threads=n_threads), exclude
        )
        longest: Ints = np.maximum.reduce(by_part)
        return longest

    def find(self, grams: Grams, *, limit: int, max_places: int, exclude: Numbers = ()) -> Hits:
        by_part = self._ask(
            lambda part, out: part.find(grams, limit=limit, max_places=max_places, exclude=out),
            exclude,
        )
        founds = []
        for of_gram in zip(*by_part, strict=True):
            numbers = [f.numbers + first for f, first in zip(of_gram, self._firsts, strict=False)]
            found = Found(
                count=sum(hit.count for hit in of_gram),
                n_places=sum(hit.n_places for hit in of_gram),
                n_documents=sum(hit.n_documents for hit in of_gram),
                numbers=np.concatenate(numbers)[:limit],
                places=np.concatenate([hit.places for hit in of_gram])[:limit],
            )
            founds.append(found)
        return founds

    def documents(self, numbers: Numbers) -> list[Document]:
        documents: dict[int, Document] = {}
        for (part, local), first in zip(self._with(numbers), self._firsts, strict=False):
            if local:
                read = part.documents(local)
                documents |= {first + n: document for n, document in zip(local, read, strict=True)}
        return [documents[number] for number in numbers]

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        by_part = [
            [[first + number for number in numbers] for numbers in part.numbers_of(ids)]
            for part, first in zip(self._parts, self._firsts, strict=False)
        ]
        return [[n for numbers in of_id for n in numbers] for of_id in zip(*by_part, strict=True)]

    def vocabularies(self) -> list[ShardWords]:
        by_part = self._ask(lambda part, _: part.vocabularies(), ())
        return [words for of_part in by_part for words in of_part]

    def walk(self, walks: Sequence[Walk], *, exclude: Numbers = ()) -> list[Stretches]:
        left = iter(walks)
        walks_of = {part: list(islice(left, part.n_shards)) for part in self._parts}
        by_part = self._ask(lambda part, out: part.walk(walks_of[part], exclude=out), exclude)
        return [
            replace(stretches, numbers=stretches.numbers + first)
            for of_part, first in zip(by_part, self._firsts, strict=False)
            for stretches in of_part
        ]

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def _ask(self, ask: Callable[[Part, list[int]], R], exclude: Numbers) -> list[R]:
        """The result from each part; all are asked concurrently, as some are remote."""
        with ThreadPoolExecutor(len(self._parts)) as pool:
            return list(pool.map(lambda pair: ask(*pair), self._with(exclude)))

    def _with(self, numbers: Numbers) -> Iterator[tuple[Part, list[int]]]:
        """Each part with those of the numbers that are in it, as numbered there."""
        for part, (first, end) in zip(self._parts, pairwise(self._firsts), strict=True):
            yield part, [number - first for number in numbers if first <= number < end]


def _search_block(
    shard: Shard, query: NDArray[np.uint32], ends: Any, known: Ints, excluded: Excluded, begin: int
) -> Ints:
    """Longest matches in one shard, where they exceed the known ones of other shards.

    query: uint32 (n,), 0 for unknown words and gaps; known: int32 (n,), matches found elsewhere.
    Returns int32, for a block from `begin`: any number up to the longest where that is known.
    """
    block = slice(begin, begin + _BLOCK_WORDS)
    n_before = _blocks_read() if shard.is_on_disk else 0
    lengths: Ints = longest_matches(
        shard.tokens, shard.suffixes, shard.pairs, shard.keys, query[begin:], ends[block] - begin,
        known[block], shard.starts, excluded, from_disk=shard.is_on_disk, ahead=shard.asks_ahead,
    )  # fmt: skip
    if shard.is_on_disk:
        # Prefetching pages that are in memory takes several times as long as the search.
        shard.asks_ahead = _blocks_read() > n_before
    return lengths


def _blocks_read() -> int:
    """Number of blocks that this thread has read from disks so far."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_inblock


def walk_shard(shard: Shard, walk: Walk, excluded: Excluded, first_number: int = 0) -> Stretches:
    """Stretches in documents of the shard that are not excluded, numbered from `first_number`."""
    index = *shard.tokens, shard.suffixes.words, shard.suffixes.n_bits
    text, terms = (walk.units, walk.is_content), walk.terms
    costs = np.full(shard.info.n_vocabulary + 1, terms.content_cost, np.int32)
    costs[walk.functions] = terms.function_cost
    costs[0] = 0
    costs_here = np.where(walk.is_content, terms.content_cost, terms.function_cost)
    ends = walk.starts[:-1] + walk.n_anchors
    anchors = find_anchors(
        *index, shard.first_suffixes, *text, walk.starts[:-1], ends, walk.ids, walk.rarities,
        terms.enough,
    )  # fmt: skip
    distinct, of = np.unique(walk.ids, return_inverse=True)
    rows = np.zeros(shard.info.n_vocabulary + 1, np.int32)
    rows[distinct] = np.arange(1, len(distinct) + 1)
    gains = np.zeros((len(distinct) + 1, len(walk.starts) - 1), np.int32)
    units = np.repeat(np.arange(len(walk.starts) - 1), np.diff(walk.starts))
    gains[of + 1, units] = walk.gains
    blocks = np.zeros(len(distinct) + 1, np.uint64)
    note_blocks(*text, walk.starts, of + 1, blocks)
    pieces = align(
        *index, shard.starts, excluded, anchors, rows, costs, gains, blocks, *text,
        costs_here.astype(np.int32), terms.width, terms.drop, terms.exchange, terms.reach,
        terms.company, terms.least,
    )  # fmt: skip
    # Sorted by place in the reference; many anchors lead to the same alignment.
    pieces = np.unique(pieces[:, [2, 3, 0, 1, 4]], axis=0)[:, [2, 3, 0, 1, 4]]
    documents = np.searchsorted(shard.starts, pieces[:, 2], side="right") - 1
    chained = chain(np.ascontiguousarray(pieces), documents, terms.gap, terms.join, terms.need)
    firsts, ends, first_tokens, end_tokens, scores, numbers = chained.T
    begins = shard.starts[numbers]
    return Stretches(
        firsts, ends, numbers + first_number, first_tokens - begins, end_tokens - begins, scores
    )


def _within(numbers: NDArray[Any], low: int, high: int) -> bool:
    return not len(numbers) or bool(low <= numbers.min() and numbers.max() <= high)
