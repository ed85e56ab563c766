"""Infini-gram's protocol over the reference: its requests and answers.

The requests and answers are those of api/api_server.py and docs/source/api.rst in
liujch1998/infini-gram. Here a token is a word of the reference: its id is its place in the
concatenated vocabularies of the shards, and the first shard that has it counts; unknown words have
the next id. AND and OR, which infini-gram parses as operators in a query, are rejected; as token
ids they are ordinary words.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fabula.kernels.match import find_interval
from fabula.kernels.packed import read_packed
from fabula.reference.serving.messages import ErrorAnswer
from fabula.reference.serving.snapshots import State
from fabula.text import TextWords
from fabula.types import Document

__all__ = ["InfiniGramAnswer", "InfiniGramAsked", "NotAnswered", "answer_infinigram"]

_MAX_CHARS, _MAX_WORDS = 1000, 500
"""The limits of the published server, which its clients observe."""
_MAX_SHOWN = 10_000
_UNKNOWN = "\ufffd"
"""Replaces words that the reference does not contain; no word is equal to it."""
_Natural = Annotated[int, Field(ge=0, le=2**53)]


class InfiniGramAsked(BaseModel):
    """A request in infini-gram's protocol."""

    # Its clients send additional fields, such as an engine's name.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    index: str = Field("", description="The reference's name.")
    corpus: str = Field("", description="The same under its former name, which takes precedence.")
    query_type: str = Field(description="count, find or get_doc_by_rank.")
    query: str | None = None
    query_ids: Any = Field(
        None, description="In place of query: token ids, as returned in answers."
    )
    s: _Natural = Field(0, description="get_doc_by_rank: the shard.")
    rank: _Natural = Field(0, description="get_doc_by_rank: a position in its suffix array.")
    max_disp_len: _Natural = Field(1000, description="get_doc_by_rank: words to show.")


class Answered(BaseModel):
    """Fields of every answer."""

    latency: float
    """In milliseconds."""
    token_ids: list[int]
    tokens: list[str]


class CountAnswer(Answered):
    count: int
    approx: bool


class FindAnswer(Answered):
    cnt: int
    segment_by_shard: list[list[int]]


class RankAnswer(Answered):
    doc_ix: int
    doc_len: int
    disp_len: int
    needle_offset: int
    metadata: str
    spans: list[list[str | None]]
    blocked: bool


InfiniGramAnswer = CountAnswer | FindAnswer | RankAnswer | ErrorAnswer


class NotAnswered(Exception):  # noqa: N818 (a reply, not an error)
    """The content of the protocol's `error`."""


def answer_infinigram(state: State, asked: InfiniGramAsked) -> tuple[InfiniGramAnswer, int]:
    """The answer, and the number of words looked up for it. Raises `NotAnswered`."""
    began = time.perf_counter()
    index = asked.corpus or asked.index
    if index != state.reference.name:
        raise NotAnswered(f"Invalid index: {index}")
    words = _asked_words(state, asked)
    if len(words) > _MAX_WORDS:
        raise NotAnswered(f"Please limit your input to <= {_MAX_WORDS} tokens!")
    if asked.query_type not in ("count", "find", "get_doc_by_rank"):
        raise NotAnswered(f"Invalid query_type: {asked.query_type}")
    segments = _segments(state, words)
    ids = _ids(state, words)
    answer: dict[str, Any] = {"token_ids": ids, "tokens": _words_of_ids(state, ids)}
    kind: type[CountAnswer | FindAnswer | RankAnswer]
    if asked.query_type == "get_doc_by_rank":
        kind, found = RankAnswer, _ranked(state, asked, segments, len(words))
    else:
        count = sum(high - low for low, high in segments)
        if asked.query_type == "count":
            kind, found = CountAnswer, {"count": count, "approx": False}
        else:
            kind, found = FindAnswer, {"cnt": count, "segment_by_shard": segments}
    took_ms = 1000 * (time.perf_counter() - began)
    return kind(**answer, **found, latency=took_ms), len(words)


def _asked_words(state: State, asked: InfiniGramAsked) -> list[str]:
    """The words of a query, or of its token ids. Raises `NotAnswered`."""
    if asked.query_ids is not None:
        if asked.query is not None:
            raise NotAnswered("Exactly one of query and query_ids must be present!")
        return _words_of_ids(state, asked.query_ids)
    if asked.query is None:
        raise NotAnswered("query: is missing")
    if len(asked.query) > _MAX_CHARS:
        raise NotAnswered(f"Please limit your input to <= {_MAX_CHARS} characters!")
    if " AND " in asked.query or " OR " in asked.query:
        raise NotAnswered(
            "the operators AND and OR are not supported; send query_ids if they are words"
        )
    return state.reference.settings.words(asked.query)


def _ids(state: State, words: list[str]) -> list[int]:
    """The token id of each word: its place in the first vocabulary that has it."""
    ids = np.full(len(words), sum(len(shard.vocabulary) for shard in state.shards), np.int64)
    before = len(ids) and int(ids[0])
    for shard in reversed(state.shards):
        before -= len(shard.vocabulary)
        found = shard.vocabulary.find(words).astype(np.int64)
        ids = np.where(found > 0, before + found - 1, ids)
    return [int(k) for k in ids]


def _words_of_ids(state: State, ids: Any) -> list[str]:
    """The words of token ids. Raises `NotAnswered` if they are not valid."""
    n_words = [len(shard.vocabulary) for shard in state.shards]
    starts = np.cumsum([0, *n_words])
    if not isinstance(ids, list) or not all(type(k) is int for k in ids):
        raise NotAnswered("query_ids must be a list of integers!")
    if any(not 0 <= k <= starts[-1] for k in ids):
        raise NotAnswered("Some item(s) in your query_ids are out-of-range!")
    words = []
    for k in ids:
        shard = int(np.searchsorted(starts, k, side="right")) - 1
        unknown = shard == len(n_words)
        words.append(
            _UNKNOWN if unknown else state.shards[shard].vocabulary[k - int(starts[shard])]
        )
    return words


def _segments(state: State, words: list[str]) -> list[list[int]]:
    """By shard, the half-open ranks of the n-gram in its suffix array.

    For an empty query, those of all words, as in infini-gram: every part of a match matches.
    """
    segments = []
    for k, shard in enumerate(state.shards):
        suffixes = state.suffixes(k)
        if not words:
            # The ends of documents sort before all words.
            segments.append([state.n_ends(k), suffixes.n_values])
            continue
        query = shard.vocabulary.find(words)
        low, high = find_interval(shard.tokens, suffixes, query) if query.all() else (0, 0)
        segments.append([low, high])
    return segments


def _ranked(
    state: State, asked: InfiniGramAsked, segments: list[list[int]], n_words: int
) -> dict[str, Any]:
    """The document at a rank, shown around the n-gram."""
    if asked.s >= len(segments):
        raise NotAnswered(f"s: there are {len(segments)} shards")
    low, high = segments[asked.s]
    if not low <= asked.rank < high:
        raise NotAnswered("rank: the query does not occur there; call find again")
    shard = state.shards[asked.s]
    place = int(read_packed(state.suffixes(asked.s), asked.rank, asked.rank + 1)[0])
    number = int(np.searchsorted(shard.starts, place, side="right")) - 1
    document = shard.document(number)
    located = state.reference.locate(document.text)
    first = place - int(shard.starts[number])
    n_around = max(0, min(asked.max_disp_len, _MAX_SHOWN) - n_words) // 2
    begin = max(0, first - n_around)
    end = min(len(located.words), first + n_words + n_around)
    return {
        "doc_ix": int(state.reference.local.first_numbers[asked.s]) + number,
        "doc_len": len(located.words),
        "disp_len": end - begin,
        "needle_offset": first - begin,
        "metadata": document.id,
        "spans": _spans(document, located, (begin, end), (first, n_words)),
        "blocked": False,
    }


def _spans(
    document: Document, located: TextWords, shown: tuple[int, int], needle: tuple[int, int]
) -> list[list[str | None]]:
    """The text to show, in order: before the n-gram, the n-gram, after it."""
    (begin, end), (first, n_words) = shown, needle
    if begin == end:
        return [["", None]]
    starts, ends = located.starts, located.ends
    edges = [
        int(starts[begin]),
        int(starts[first]),
        int(ends[first + n_words - 1]),
        int(ends[end - 1]),
    ]
    if not n_words:
        return [[document.text[edges[0] : edges[3]], None]]
    parts = zip(edges, edges[1:], (None, "0", None), strict=False)
    return [[document.text[a:b], label] for a, b, label in parts if b > a]
