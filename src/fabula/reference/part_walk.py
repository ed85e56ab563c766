"""Stretches of a text that occur in a part of a reference in other words, local or remote.

The score of a stretch depends only on its own words, and on their rarity in the whole reference; so
several machines find the same as one disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.packed import fixed
from fabula.kernels.walk import align, chain, find_anchors, note_blocks
from fabula.reference.layout import Shard

_MOST_BITS, _MOST_STEPS = 1 << 20, 1 << 10
"""What a walk from elsewhere may contain."""
Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ShardWords:
    """The words of a shard."""

    words: list[str]
    """By token id, starting at 1."""
    counts: NDArray[np.int64]
    """int64 (n_words,): the number of occurrences of each."""


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
        fits |= {
            name: 0 <= value <= most.get(name, _MOST_BITS)
            for name, value in asdict(self.terms).items()
        }
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


def walk_shard(shard: Shard, walk: Walk, excluded: NDArray[np.bool_] | None) -> Stretches:
    """Stretches of the text in documents of the shard that are not excluded."""
    tokens, suffixes, terms = shard.tokens, shard.suffixes, walk.terms
    costs = np.full(shard.info.n_vocabulary + 1, terms.content_cost, np.int32)
    costs[walk.functions] = terms.function_cost
    costs[0] = 0
    costs_here = np.where(walk.is_content, terms.content_cost, terms.function_cost)
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
        terms.enough,
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
        costs,
        gains,
        blocks,
        walk.units,
        walk.is_content,
        costs_here.astype(np.int32),
        terms.width,
        terms.drop,
        terms.exchange,
        terms.reach,
        terms.company,
        terms.least,
    )
    # Sorted by place in the reference; many anchors lead to the same alignment.
    pieces = np.unique(pieces[:, [2, 3, 0, 1, 4]], axis=0)[:, [2, 3, 0, 1, 4]]
    documents = np.searchsorted(shard.starts, pieces[:, 2], side="right") - 1
    found = chain(np.ascontiguousarray(pieces), documents, terms.gap, terms.join, terms.need)
    begins = shard.starts[found[:, 5]]
    return Stretches(
        found[:, 0],
        found[:, 1],
        found[:, 5],
        found[:, 2] - begins,
        found[:, 3] - begins,
        found[:, 4],
    )


def _within(numbers: NDArray[Any], low: int, high: int) -> bool:
    return not len(numbers) or bool(low <= numbers.min() and numbers.max() <= high)


def ask_together(asked: Sequence[Q], ask: Callable[[int, Q], R]) -> list[R]:
    """The result for each item, with its index; all run concurrently, as some are remote."""
    if len(asked) < 2:
        return [ask(k, one) for k, one in enumerate(asked)]
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(ask, range(len(asked)), asked))
