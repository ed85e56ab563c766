"""Requests to a served reference, and its answers. Both sides check every message."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

TOKEN = "FABULA_REFERENCE_TOKEN"
"""The environment variable for a token, read by the service and its clients."""
_MOST = 2**53
"""The largest integer that every JSON parser represents exactly."""

MAX_GRAMS, MAX_NAMED, MAX_EXCLUDED = 2_000, 200_000, 100_000
"""The most n-grams of a request; documents that an answer names, as n-grams times `limit` (a single
n-gram may request all of its own); numbers that a request excludes, or ids that it looks up."""

Natural = Annotated[int, Field(ge=0, le=_MOST)]
# The first fault ends a list: a body of wrong items would give an error for each.
Numbers = Annotated[list[Natural], FailFast()]
Words = Annotated[list[str], FailFast()]
State = Annotated[
    str,
    Field(
        max_length=200,
        description="`state` of /v1/about: the documents as they were when the client began.",
    ),
]
Excluded = Annotated[
    Numbers, Field(description="Numbers of documents to ignore.", default_factory=list)
]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Answer(BaseModel):
    # A later server may send fields that this client does not know.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Limits(_Answer):
    """Limits per request, per client, and for the whole service."""

    max_body_bytes: int = Field(32 << 20, ge=1024, description="Bytes per request body.")
    max_words: int = Field(500_000, ge=1, description="Words per request or answer.")
    max_documents: int = Field(64, ge=1, description="Documents per request.")
    n_per_s: int = Field(500, ge=0, description="Requests per second and token; 0: unlimited.")
    n_at_once: int = Field(0, ge=0, description="Requests searched in parallel; 0: one per CPU.")
    n_waiting: int = Field(64, ge=0, description="Requests that wait in the queue.")


class ErrorAnswer(_Answer):
    """Why a request was not answered."""

    error: str


class About(_Answer):
    """What is served. Words in requests must be in the normal form defined by these settings."""

    service: Literal["fabula-reference"]
    protocol: Literal[2]
    version: str
    name: str = Field(max_length=1000)
    fingerprint: str = Field(max_length=1000)
    state: State
    tokeniser: str
    case: Literal["fold", "keep"]
    punct: Literal["drop", "keep"]
    n_documents: Natural
    n_words: Natural
    n_numbers: Natural = Field(description="Numbers of documents, including removed ones.")
    removed: Numbers = Field(description="Numbers whose documents were removed, ascending.")
    vocabularies: Numbers = Field(description="The distinct words of each shard.")
    written_by: Words
    oldest: int | None = Field(None, description="The earliest year given by a document.")
    youngest: int | None = Field(
        None, description="The last year in which a document can have been written, if known."
    )
    held_out: list[dict[str, object]] = Field(
        description="How documents of the reference score against the rest, for each way of "
        "measuring; empty if `reference measure` was not run."
    )
    limits: Limits


class Health(_Answer):
    """Whether the service is ready, and which documents it serves."""

    is_ready: bool
    name: str
    fingerprint: str
    state: str
    n_reloads: Natural
    problem: str | None = Field(
        description="Why the corpus on disk cannot be served; the previous state still is."
    )


class MatchAsked(_Message):
    """Ask for the length of the longest n-gram that begins at each of these places."""

    state: State
    words: Words = Field(description="Distinct words, in normal form.")
    places: Numbers = Field(
        description="The text: for each position, the number of its word in `words`, counted from "
        "1; 0 is a gap that no n-gram crosses."
    )
    exclude: Excluded


class MatchAnswer(_Answer):
    state: State
    lengths: Numbers = Field(description="In words; 0 where nothing begins.")


class FindAsked(_Message):
    """Ask where n-grams occur: counts, and the first documents that contain each."""

    state: State
    grams: Annotated[list[Annotated[Words, Field(min_length=1)]], FailFast()]
    limit: Natural = Field(description="Documents to name for each n-gram.")
    max_places: Natural = Field(description="Places per n-gram and shard to look up documents at.")
    exclude: Excluded


class FoundAnswer(_Answer):
    """Where an n-gram occurs."""

    count: Natural
    n_places: Natural = Field(description="The number of its places that were checked.")
    n_documents: Natural = Field(description="Distinct documents at those places.")
    numbers: Numbers = Field(description="The first of these documents, ascending.")
    places: Numbers = Field(description="The first word of its first place in each, from 0.")


class FindAnswer(_Answer):
    state: State
    found: list[FoundAnswer]


class DocumentsAsked(_Message):
    """Ask for the documents with these numbers."""

    state: State
    numbers: Numbers


class DocumentAnswer(_Answer):
    """A document as it was read when the corpus was built."""

    id: str
    text: str
    author: str | None = None
    prompt_id: str | None = None
    meta: dict[str, object] = Field(default_factory=dict)


class DocumentsAnswer(_Answer):
    state: State
    documents: list[DocumentAnswer]


class IdsAsked(_Message):
    """Ask for the numbers of the documents with these ids."""

    state: State
    ids: Words


class IdsAnswer(_Answer):
    state: State
    numbers: Annotated[list[Numbers], FailFast()] = Field(
        description="By id, ascending; null where it is unknown."
    )


class WordsAsked(_Message):
    """Ask for words of a shard, which near matches are found with."""

    state: State
    shard: Natural
    first: Natural = Field(description="The first token id, counted from 1.")


class WordsAnswer(_Answer):
    state: State
    words: Words = Field(description="By token id, up to `max_words` of them.")
    counts: Numbers = Field(description="The number of occurrences of each.")


class NearAsked(_Message):
    """Ask for the stretches of a shard that say what a text says in other words.

    Fields are those of `reference.part_walk.Walk`; bits are in units of 1 / `kernels.walk.PARTS`.
    """

    state: State
    shard: Natural
    units: Numbers
    is_content: Annotated[list[bool], FailFast()]
    starts: Numbers
    n_anchors: Numbers
    ids: Numbers
    rarities: Numbers
    gains: Numbers
    functions: Numbers
    terms: dict[str, Natural]
    exclude: Excluded


class NearAnswer(_Answer):
    """Stretches by column: words of the text and of a document (half-open), and their score."""

    state: State
    firsts: Numbers
    ends: Numbers
    numbers: Numbers
    first_words: Numbers
    end_words: Numbers
    scores: Numbers
