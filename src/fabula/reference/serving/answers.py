"""Answering to requests: a method's parameters are what a request of its name must hold.

Results are valid by construction: checking 100,000 numbers takes longer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Annotated, Any

import numpy as np
from fastapi import HTTPException
from pydantic import ConfigDict, FailFast, Field, TypeAdapter

from fabula.reference.layout import Shard, document_line
from fabula.reference.part_walk import Walk, WalkTerms, walk_shard
from fabula.reference.parts import LocalPart
from fabula.reference.search import MAX_PLACES
from fabula.reference.serving.messages import (
    MAX_EXCLUDED,
    MAX_GRAMS,
    MAX_NAMED,
    Limits,
    Natural,
    Numbers,
    State,
    Words,
)  # fmt: skip
from fabula.reference.serving.served import Served

_MOST_PAIRS = 1 << 26
"""Words of a text times words of a shard: a walk holds a number for each."""

Answer = dict[str, Any]
Grams = Annotated[list[Annotated[Words, Field(min_length=1)]], FailFast()]
Smalls = Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], FailFast()]
Excluded = Annotated[
    Numbers, Field(description="Numbers of documents to ignore.", default_factory=list)
]
_KINDS: dict[str, Any] = {
    "units": np.int32, "is_content": np.bool_, "starts": np.int64, "n_anchors": np.int64,
    "ids": np.int64, "rarities": np.int32, "gains": np.int32, "functions": np.int64,
}  # fmt: skip
"""Of the arrays of a walk."""


class Answering:
    """`count` is told the number of words looked up. Methods raise `HTTPException`."""

    def __init__(self, served: Served, limits: Limits, count: Callable[[int], object]) -> None:
        self._served, self._limits, self._count = served, limits, count

    def reader(self, name: str) -> TypeAdapter[Any]:
        """Reads a request of that name, and answers it."""
        return TypeAdapter(getattr(self, name), config=ConfigDict(strict=True))

    def match(self, *, state: State, words: Words, places: Smalls, exclude: Excluded) -> Answer:
        """The length of the longest n-gram that begins at each place of a text.

        `words` are distinct, and in normal form. `places` is the text: for each position, the
        number of its word, counted from 1; 0 is a gap that no n-gram crosses.
        """
        part = self._part(state, exclude)
        _hold("words", max(len(places), len(words)), self._limits.max_words)
        if max(places, default=0) > len(words):
            raise HTTPException(422, "places: one is beyond the given words")
        lengths = part.match(words, np.array(places, np.int32), exclude=exclude)
        self._count(len(places))
        return {"state": state, "lengths": lengths.tolist()}

    def find(
        self, *, state: State, grams: Grams, limit: Natural, max_places: Natural, exclude: Excluded
    ) -> Answer:
        """Where n-grams occur: counts, and the first documents that contain each.

        `limit` is the number of documents to name for each n-gram, and `max_places` of its places
        in each shard to look up documents at.
        """
        part, n_words = self._part(state, exclude), sum(map(len, grams))
        _hold("n-grams", len(grams), MAX_GRAMS)
        _hold("words", n_words, self._limits.max_words)
        _hold("places of an n-gram", max_places, MAX_PLACES)
        if len(grams) > 1:
            _hold("documents named", len(grams) * limit, MAX_NAMED)
        found = part.find(grams, limit=limit, max_places=max_places, exclude=exclude)
        self._count(n_words)
        lists = ({"numbers": one.numbers.tolist(), "places": one.places.tolist()} for one in found)
        rows = [asdict(one) | more for one, more in zip(found, lists, strict=True)]
        return {"state": state, "found": rows}

    def documents(self, *, state: State, numbers: Numbers) -> Answer:
        """The documents with these numbers, as they were read when the corpus was built."""
        part = self._part(state)
        _hold("documents", len(numbers), self._limits.max_documents)
        for number in numbers:
            if number >= part.n_documents or part.removed[number]:
                raise HTTPException(404, f"no document has the number {number}, or it was removed")
        rows = [json.loads(document_line(one)) for one in part.documents(numbers)]
        return {"state": state, "documents": rows}

    def ids(self, *, state: State, ids: Words) -> Answer:
        """The numbers of the documents with each of these ids."""
        _hold("ids", len(ids), MAX_EXCLUDED)
        return {"state": state, "numbers": self._part(state).numbers_of(ids)}

    def words(self, *, state: State, shard: Natural) -> Answer:
        """The words of a shard by token id, and how often each occurs."""
        there = _shard(self._part(state), shard)
        words = [there.vocabulary[k] for k in range(len(there.vocabulary))]
        return {"state": state, "words": words, "counts": there.token_counts[1:].tolist()}

    def near(
        self, *, state: State, shard: Natural, units: Smalls,
        is_content: Annotated[list[bool], FailFast()], starts: Numbers, n_anchors: Numbers,
        ids: Numbers, rarities: Smalls, gains: Smalls, functions: Numbers, terms: WalkTerms,
        exclude: Excluded,
    ) -> Answer:  # fmt: skip
        """The stretches of a shard that say what a text says in other words.

        The fields are those of `reference.part_walk.Walk`; bits are in units of 1 /
        `kernels.walk.PARTS`.
        """
        part = self._part(state, exclude)
        there = _shard(part, shard)
        _hold("words", max(len(units), len(functions)), self._limits.max_words)
        _hold("pairs of words", len(is_content) * len(ids), _MOST_PAIRS)
        lists = units, is_content, starts, n_anchors, ids, rarities, gains, functions
        arrays = map(np.array, lists, _KINDS.values())
        walk = Walk(**dict(zip(_KINDS, arrays, strict=True)), terms=terms)
        if (wrong := walk.misfit(len(there.vocabulary))) is not None:
            raise HTTPException(422, f"{wrong}: a number is out of its range")
        found = walk_shard(there, walk, part.excluded(exclude)[shard])
        self._count(len(units))
        columns = {field.name: getattr(found, field.name) for field in fields(found)}
        columns["numbers"] = columns["numbers"] + part.first_numbers[shard]
        return {"state": state} | {name: column.tolist() for name, column in columns.items()}

    def _part(self, state: str, exclude: Sequence[int] = ()) -> LocalPart:
        """What is served, if it is what a client began with and has these documents."""
        now = self._served.now
        if state != now.key:
            raise HTTPException(409, "the reference changed during the run; run the command again")
        _hold("documents excluded", len(exclude), MAX_EXCLUDED)
        if max(exclude, default=-1) >= now.reference.local.n_documents:
            raise HTTPException(422, "exclude: one is beyond the document numbers")
        return now.reference.local


def _shard(part: LocalPart, k: int) -> Shard:
    if k >= len(part.shards):
        raise HTTPException(404, f"no shard has the number {k}")
    return part.shards[k]


def _hold(what: str, n: int, most: int) -> None:
    if n > most:
        raise HTTPException(413, f"{n:,} {what}; the limit per request is {most:,}")
