"""Requests to a served reference, and its answers. Both sides check every message."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from fabula.reference.info import Age
from fabula.text import TextSettings
from fabula.types import Document

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
State = Annotated[str, Field(max_length=200, description="The documents as /v1/about told them.")]


class _Message(BaseModel):
    # A later server may send fields that this client does not know.
    model_config = ConfigDict(strict=True, frozen=True)


class Answer(_Message):
    state: State


class Limits(_Message):
    """Limits per request, per client, and for the whole service."""

    max_body_bytes: int = Field(32 << 20, ge=1024, description="Bytes per request body.")
    max_words: int = Field(2_000_000, ge=1, description="Words per request.")
    max_documents: int = Field(64, ge=1, description="Documents per request.")
    n_per_s: int = Field(500, ge=0, description="Requests per second and token; 0: unlimited.")
    n_at_once: int = Field(0, ge=0, description="Requests searched in parallel; 0: one per CPU.")
    n_waiting: int = Field(64, ge=0, description="Requests that wait in the queue.")


class ErrorAnswer(_Message):
    """Why a request was not answered."""

    error: str


class About(_Message):
    """What is served. Words in requests must be in the normal form defined by these settings."""

    service: Literal["fabula-reference"]
    protocol: Literal[3]
    version: str
    name: str = Field(max_length=1000)
    fingerprint: str = Field(max_length=1000)
    state: State
    tokeniser: str
    settings: TextSettings
    n_documents: Natural
    n_words: Natural
    removed: Numbers = Field(description="Numbers whose documents were removed, ascending.")
    vocabularies: Numbers = Field(description="The distinct words of each shard.")
    written_by: Words
    age: Age
    held_out: list[dict[str, object]] = Field(
        description="How documents of the reference score against the rest, for each way of "
        "measuring; empty if `reference measure` was not run."
    )
    limits: Limits


class Health(_Message):
    """Whether the service is ready, and which documents it serves."""

    name: str
    fingerprint: str
    state: str
    n_reloads: Natural
    problem: str | None = Field(
        description="Why the corpus on disk cannot be served; the previous state still is."
    )


class MatchAnswer(Answer):
    lengths: Numbers = Field(description="In words; 0 where nothing begins.")


class FoundAnswer(_Message):
    """Where an n-gram occurs."""

    count: Natural
    n_places: Natural = Field(description="The number of its places that were checked.")
    n_documents: Natural = Field(description="Distinct documents at those places.")
    numbers: Numbers = Field(description="The first of these documents, ascending.")
    places: Numbers = Field(description="The first word of its first place in each, from 0.")


class FindAnswer(Answer):
    found: list[FoundAnswer]


class DocumentsAnswer(Answer):
    documents: list[Document]


class IdsAnswer(Answer):
    numbers: Annotated[list[Numbers], FailFast()] = Field(description="By id, ascending.")


class WordsAnswer(Answer):
    words: Words = Field(description="By token id.")
    counts: Numbers = Field(description="The number of occurrences of each.")


class NearAnswer(Answer):
    """Stretches by column: words of the text and of a document (half-open), and their score."""

    firsts: Numbers
    ends: Numbers
    numbers: Numbers
    first_words: Numbers
    end_words: Numbers
    scores: Numbers


ANSWERS: dict[str, type[Answer]] = {
    "match": MatchAnswer, "find": FindAnswer, "documents": DocumentsAnswer, "ids": IdsAnswer,
    "words": WordsAnswer, "near": NearAnswer,
}  # fmt: skip
"""By the last part of the path; `answers` says what is asked there."""


def first_fault(error: ValidationError) -> str:
    """Where a message is wrong first, and how."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'][:3])) or 'body'}: {first['msg']}"[:300]
