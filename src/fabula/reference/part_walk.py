"""Stretches of a text that occur in a part of a reference in other words, local or remote.

The score of a stretch depends only on its own words, and on their rarity in the whole reference; so
several machines find the same as one disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.packed import fixed
from fabula.kernels.walk import align, chain, find_anchors, note_blocks
from fabula.reference.layout import Shard
from fabula.reference.passage_parts import ask_together

__all__ = ["JoinedWalks", "LocalWalks", "ShardWords", "Stretches", "Walk", "WalkPart", "walk_shard"]


@dataclass(frozen=True, slots=True)
class ShardWords:
    """The words of a shard."""

    words: list[str]
    """By token id, starting at 1."""
    counts: NDArray[np.int64]
    """int64 (n_words,): the number of occurrences of each."""


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
    costs_here: NDArray[np.int32]
    """int32 (n_units,): the cost of skipping a word of the text."""
    costs_there: NDArray[np.int32]
    """int32 (n_vocabulary + 1,): the cost of skipping a word of the shard."""
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
    """As in the kernels."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(array := getattr(self, field.name), np.ndarray):
                fixed(array)


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


class WalkPart(Protocol):
    """Some shards; their documents are numbered from 0."""

    @property
    def vocabularies(self) -> Sequence[ShardWords]:
        """By shard."""

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        """Matches of each text there; `walks` and the results are by shard."""


class LocalWalks:
    """Shards on this machine's disk. `excluded` is as in `LocalPart.excluded`."""

    def __init__(
        self,
        shards: Sequence[Shard],
        excluded: Callable[[Iterable[int]], Sequence[NDArray[np.bool_] | None]],
    ) -> None:
        self._shards = list(shards)
        self._excluded = excluded
        self.vocabularies = [
            ShardWords(
                [shard.vocabulary[k] for k in range(len(shard.vocabulary))], shard.token_counts[1:]
            )
            for shard in shards
        ]

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        found, first = [], 0
        for shard, walk, out in zip(self._shards, walks, self._excluded(exclude), strict=True):
            one = walk_shard(shard, walk, out)
            found.append(replace(one, numbers=one.numbers + first))
            first += shard.info.n_documents
        return found


class JoinedWalks:
    """Several parts as one; `n_documents` is how many numbers each part has."""

    def __init__(self, parts: Sequence[WalkPart], n_documents: Sequence[int]) -> None:
        self._parts = list(parts)
        self._firsts: list[int] = np.cumsum([0, *n_documents]).tolist()
        self._shards: list[int] = np.cumsum([0, *(len(p.vocabularies) for p in parts)]).tolist()
        self.vocabularies = [one for part in parts for one in part.vocabularies]

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        def ask(k: int, part: WalkPart) -> list[Stretches]:
            first, end = self._firsts[k : k + 2]
            out = [number - first for number in exclude if first <= number < end]
            found = part.walk(walks[self._shards[k] : self._shards[k + 1]], exclude=out)
            return [replace(one, numbers=one.numbers + first) for one in found]

        return [one for some in ask_together(self._parts, ask) for one in some]


def walk_shard(shard: Shard, walk: Walk, excluded: NDArray[np.bool_] | None) -> Stretches:
    """Stretches of the text in documents of the shard that are not excluded."""
    tokens, suffixes = shard.tokens, shard.suffixes
    ends = walk.starts[:-1] + walk.n_anchors
    anchors = find_anchors(
        *tokens,
        suffixes.words,
        suffixes.n_bits,
        shard.first_suffixes,
        walk.units,
        walk.is_content,
        walk.starts[:-1],
        ends,
        walk.ids,
        walk.rarities,
        walk.enough,
    )
    distinct, of = np.unique(walk.ids, return_inverse=True)
    rows = np.zeros(shard.info.n_vocabulary + 1, np.int32)
    rows[distinct] = np.arange(1, len(distinct) + 1)
    gains = np.zeros((len(distinct) + 1, len(walk.starts) - 1), np.int32)
    units = np.repeat(np.arange(len(walk.starts) - 1), np.diff(walk.starts))
    gains[of + 1, units] = walk.gains
    blocks = np.zeros(len(distinct) + 1, np.uint64)
    note_blocks(walk.units, walk.is_content, walk.starts, of + 1, blocks)
    out = np.empty(0, np.bool_) if excluded is None else excluded
    pieces = align(
        *tokens,
        suffixes.words,
        suffixes.n_bits,
        shard.starts,
        out,
        anchors,
        rows,
        walk.costs_there,
        gains,
        blocks,
        walk.units,
        walk.is_content,
        walk.costs_here,
        walk.width,
        walk.drop,
        walk.exchange,
        walk.reach,
        walk.company,
        walk.least,
    )
    # Sorted by place in the reference; many anchors lead to the same alignment.
    pieces = np.unique(pieces[:, [2, 3, 0, 1, 4]], axis=0)[:, [2, 3, 0, 1, 4]]
    documents = np.searchsorted(shard.starts, pieces[:, 2], side="right") - 1
    found = chain(np.ascontiguousarray(pieces), documents, walk.gap, walk.join, walk.need)
    begins = shard.starts[found[:, 5]]
    return Stretches(
        found[:, 0],
        found[:, 1],
        found[:, 5],
        found[:, 2] - begins,
        found[:, 3] - begins,
        found[:, 4],
    )
