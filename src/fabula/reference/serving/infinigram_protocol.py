"""Infini-gram's protocol over the reference: what its clients ask, and the answers they expect.

The requests and answers are those of api/api_server.py and docs/source/api.rst in
liujch1998/infini-gram. Here a query is words of the reference, not tokens of a language model, so
there are no token ids, and words are not operators.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fabula.kernels.match import find_interval
from fabula.kernels.packed import read_packed
from fabula.reference.serving.messages import ErrorAnswer
from fabula.reference.serving.states import State
from fabula.text import TextWords
from fabula.types import Document

__all__ = ["InfiniGramAnswer", "InfiniGramAsked", "NotAnswered", "answer_infinigram"]

_MAX_CHARS, _MAX_WORDS = 1000, 500
"""The limits of the published server; its clients keep to them."""
_MAX_SHOWN = 10_000
_Natural = Annotated[int, Field(ge=0, le=2**53)]


class InfiniGramAsked(BaseModel):
    """A question in infini-gram's protocol."""

    # Its clients send further fields, such as an engine's name.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    index: str = Field(description="The reference's name.")
    query_type: str = Field(description="count, find or get_doc_by_rank.")
    query: str | None = None
    query_ids: Any = Field(None, description="Token ids are not known here: an error.")
    s: _Natural = Field(0, description="get_doc_by_rank: the shard.")
    rank: _Natural = Field(0, description="get_doc_by_rank: a place of its suffix array.")
    max_disp_len: _Natural = Field(1000, description="get_doc_by_rank: words to show.")


class CountAnswer(BaseModel):
    count: int
    approx: bool
    latency: float


class FindAnswer(BaseModel):
    cnt: int
    segment_by_shard: list[list[int]]
    latency: float


class RankAnswer(BaseModel):
    doc_ix: int
    doc_len: int
    disp_len: int
    needle_offset: int
    metadata: str
    spans: list[list[str | None]]
    blocked: bool
    latency: float


InfiniGramAnswer = CountAnswer | FindAnswer | RankAnswer | ErrorAnswer


class NotAnswered(Exception):  # noqa: N818 (a reply, not an error)
    """What the protocol's `error` says."""


def answer_infinigram(state: State, asked: InfiniGramAsked) -> tuple[InfiniGramAnswer, int]:
    """The answer, and how many words were looked up for it. Raises `NotAnswered`."""
    began = time.perf_counter()
    if asked.index != state.reference.name:
        raise NotAnswered(f"Invalid index: {asked.index}")
    if asked.query_ids is not None:
        raise NotAnswered("query_ids: this index is of words and has no token ids; send query")
    if asked.query is None:
        raise NotAnswered("query: is missing")
    if len(asked.query) > _MAX_CHARS:
        raise NotAnswered(f"Please limit your input to <= {_MAX_CHARS} characters!")
    if " AND " in asked.query or " OR " in asked.query:
        raise NotAnswered("the operators AND and OR are not known here")
    words = state.reference.settings.words(asked.query)
    if len(words) > _MAX_WORDS:
        raise NotAnswered(f"Please limit your input to <= {_MAX_WORDS} tokens!")
    if asked.query_type not in ("count", "find", "get_doc_by_rank"):
        raise NotAnswered(f"Invalid query_type: {asked.query_type}")
    segments = _segments(state, words)
    count = sum(high - low for low, high in segments)
    if asked.query_type == "count":
        took = time.perf_counter() - began
        return CountAnswer(count=count, approx=False, latency=took), len(words)
    if asked.query_type == "find":
        took = time.perf_counter() - began
        return FindAnswer(cnt=count, segment_by_shard=segments, latency=took), len(words)
    return _ranked(state, asked, segments, len(words), began), len(words)


def _segments(state: State, words: list[str]) -> list[list[int]]:
    """By shard, the half-open ranks of the n-gram in its suffix array.

    Of no words these are all words, as in infini-gram: every part of what occurs does so too.
    """
    segments = []
    for k, shard in enumerate(state.shards):
        suffixes = state.suffixes(k)
        if not words:
            # The ends of documents are sorted before all words.
            segments.append([state.n_ends(k), suffixes.n_values])
            continue
        query = shard.vocabulary.find(words)
        low, high = find_interval(shard.tokens, suffixes, query) if query.all() else (0, 0)
        segments.append([low, high])
    return segments


def _ranked(
    state: State, asked: InfiniGramAsked, segments: list[list[int]], n_words: int, began: float
) -> RankAnswer:
    """The document at a rank, shown around the n-gram."""
    if asked.s >= len(segments):
        raise NotAnswered(f"s: there are {len(segments)} shards")
    low, high = segments[asked.s]
    if not low <= asked.rank < high:
        raise NotAnswered("rank: the query does not stand there; ask find again")
    shard = state.shards[asked.s]
    place = int(read_packed(state.suffixes(asked.s), asked.rank, asked.rank + 1)[0])
    number = int(np.searchsorted(shard.starts, place, side="right")) - 1
    document = shard.document(number)
    located = state.reference.locate(document.text)
    first = place - int(shard.starts[number])
    n_around = max(0, min(asked.max_disp_len, _MAX_SHOWN) - n_words) // 2
    begin = max(0, first - n_around)
    end = min(len(located.words), first + n_words + n_around)
    return RankAnswer(
        doc_ix=int(state.reference.local.first_numbers[asked.s]) + number,
        doc_len=len(located.words),
        disp_len=end - begin,
        needle_offset=first - begin,
        metadata=document.id,
        spans=_spans(document, located, (begin, end), (first, n_words)),
        blocked=False,
        latency=time.perf_counter() - began,
    )


def _spans(
    document: Document, located: TextWords, shown: tuple[int, int], needle: tuple[int, int]
) -> list[list[str | None]]:
    """The text that is shown, in order: before the n-gram, the n-gram, after it."""
    (begin, end), (first, n_words) = shown, needle
    if begin == end:
        return [["", None]]
    starts, ends = located.starts, located.ends
    edges = [int(starts[begin]), int(starts[first]), int(ends[first + n_words - 1]),
             int(ends[end - 1])]  # fmt: skip
    if not n_words:
        return [[document.text[edges[0] : edges[3]], None]]
    parts = zip(edges, edges[1:], (None, "0", None), strict=False)
    return [[document.text[a:b], label] for a, b, label in parts if b > a]
