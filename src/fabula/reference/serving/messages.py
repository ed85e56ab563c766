"""Requests to a served reference, and its answers. Both sides check every message."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "About",
    "BatchAnswer",
    "BatchAsked",
    "BatchText",
    "BestAnswer",
    "BestAsked",
    "BestFound",
    "DocumentAnswer",
    "DocumentsAnswer",
    "DocumentsAsked",
    "ErrorAnswer",
    "FindAnswer",
    "FindAsked",
    "FoundAnswer",
    "Health",
    "HeldOutAnswer",
    "HoldersAnswer",
    "HoldersAsked",
    "IdsAnswer",
    "IdsAsked",
    "Limits",
    "MatchAnswer",
    "MatchAsked",
    "PassagesAnswer",
    "PassagesAsked",
    "ReadAnswer",
    "ReadAsked",
    "WordsAnswer",
    "WordsAsked",
]

_MOST = 2**53
"""The largest integer that every JSON parser represents exactly."""

Natural = Annotated[int, Field(ge=0, le=_MOST)]
State = Annotated[
    str,
    Field(
        max_length=200,
        description="`state` of /v1/about: the documents as they were when the client began.",
    ),
]
Excluded = Annotated[
    list[Natural],
    Field(description="Numbers of documents to ignore.", default_factory=list),
]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Answer(BaseModel):
    # A later server may send fields that this client does not know.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Limits(_Answer):
    """Limits per request, per client, and for the whole service."""

    max_body_bytes: int = Field(32 << 20, ge=1024, description="Bytes per request body.")
    max_words: int = Field(500_000, ge=1, description="Words per request.")
    max_grams: int = Field(2_000, ge=1, description="n-grams per request.")
    max_places: int = Field(
        100_000,
        ge=0,
        description="Places per n-gram and shard at which documents are looked up.",
    )
    max_named: int = Field(
        200_000,
        ge=1,
        description="Documents that an answer lists, as n-grams times `limit`; a single n-gram "
        "may always request all of its own.",
    )
    max_documents: int = Field(64, ge=1, description="Documents per request.")
    max_excluded: int = Field(
        100_000, ge=0, description="Numbers that a request excludes, or ids that it looks up."
    )
    n_per_s: int = Field(500, ge=0, description="Requests per second and token; 0: unlimited.")
    n_at_once: int = Field(0, ge=0, description="Requests searched in parallel; 0: one per CPU.")
    n_waiting: int = Field(64, ge=0, description="Requests that wait in the queue.")


class ErrorAnswer(_Answer):
    """Why a request was not answered."""

    error: str


class About(_Answer):
    """What is served. Words in requests must be in the normal form defined by these settings."""

    service: Literal["fabula-reference"]
    protocol: Literal[1]
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
    removed: list[Natural] = Field(description="Numbers whose documents were removed, ascending.")
    written_by: list[str]
    oldest: int | None = Field(None, description="The earliest year given by a document.")
    youngest: int | None = Field(
        None, description="The last year in which a document can have been written, if known."
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
        description=(
            "Why the current state of the corpus on disk cannot be served; the previous state "
            "still is."
        )
    )


class HeldOutAnswer(_Answer):
    """How documents of the reference score against the rest, as `reference measure` wrote it."""

    groups: list[dict[str, object]] = Field(
        description="A distribution for each way of measuring; empty if it was not measured."
    )


class MatchAsked(_Message):
    """Ask for the length of the longest n-gram that begins at each of these places."""

    state: State
    words: list[str] = Field(description="Distinct words, in normal form.")
    places: list[Natural] = Field(
        description="The text: for each position, the number of its word in `words`, counted from "
        "1; 0 is a gap that no n-gram crosses."
    )
    exclude: Excluded


class MatchAnswer(_Answer):
    state: State
    lengths: list[Natural] = Field(
        description="For each position, the length of the longest n-gram in words; 0: none."
    )


class FindAsked(_Message):
    """Ask where each n-gram occurs."""

    state: State
    grams: list[Annotated[list[str], Field(min_length=1)]] = Field(
        description="n-grams of words in normal form."
    )
    limit: Natural = Field(description="Documents to list per n-gram.")
    max_places: Natural = Field(description="Places to check in each shard.")
    exclude: Excluded


class FoundAnswer(_Answer):
    """Where an n-gram occurs."""

    count: Natural
    n_places: Natural = Field(description="The number of its places that were checked.")
    n_documents: Natural = Field(description="Distinct documents at those places.")
    numbers: list[Natural] = Field(description="The first of these documents, ascending.")
    places: list[Natural] = Field(description="The first word of its first place in each, from 0.")


class FindAnswer(_Answer):
    state: State
    found: list[FoundAnswer]


class DocumentsAsked(_Message):
    """Ask for the documents with these numbers."""

    state: State
    numbers: list[Natural]


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
    ids: list[str]


class IdsAnswer(_Answer):
    state: State
    numbers: list[list[Natural]] = Field(description="By id, ascending; null where it is unknown.")


Kind = Annotated[
    str,
    Field(
        max_length=200,
        description="How documents are split into passages: words in each, words that two share, "
        "and the list of stop words.",
    ),
]


class PassagesAsked(_Message):
    """Ask whether there are passages of this kind, for near matches."""

    state: State
    key: Kind


class PassagesAnswer(_Answer):
    state: State
    n_passages: Natural
    n_vocabularies: list[Natural] = Field(description="The distinct words of each shard.")


class HoldersAsked(_Message):
    """Ask how many passages contain each of these words."""

    state: State
    key: Kind
    terms: list[str]


class HoldersAnswer(_Answer):
    state: State
    n_with: list[Natural]


class BestAsked(_Message):
    """Ask for the passages most similar to each of these texts, by BM25."""

    state: State
    key: Kind
    terms: list[str] = Field(description="The distinct content words of all texts, sorted.")
    weights: list[float] = Field(description="The weight of each term.")
    texts: list[list[Natural]] = Field(
        description="For each text, which of `terms` it contains, from 0."
    )
    n_passages: Natural
    exclude: Excluded


class BestFound(_Answer):
    """The best passages for a text, in the order of the reference."""

    shards: list[Natural]
    passages: list[Natural] = Field(description="The index of the passage in its shard.")
    scores: list[float]


class BestAnswer(_Answer):
    state: State
    found: list[BestFound]


class ReadAsked(_Message):
    """Ask for the text of these passages of a shard."""

    state: State
    key: Kind
    shard: Natural
    passages: Annotated[list[Natural], Field(min_length=1)]


class ReadAnswer(_Answer):
    state: State
    numbers: list[Natural] = Field(description="The document of each passage.")
    first_words: list[Natural] = Field(description="The index of its first word in the document.")
    lengths: list[Natural] = Field(description="In words.")
    tokens: list[Natural] = Field(description="Word ids, all passages concatenated.")


class WordsAsked(_Message):
    """Ask for the words of these ids of a shard."""

    state: State
    key: Kind
    shard: Natural
    ids: list[Annotated[int, Field(ge=1, le=_MOST)]]


class WordsAnswer(_Answer):
    state: State
    words: list[str]


class BatchAsked(_Message):
    """Ask how much of these plain texts occurs in the reference."""

    texts: list[str]
    exclude: Excluded
    state: State | None = None


class BatchText(_Answer):
    """The words of a text: where each begins and ends, in characters (code points, half-open), and
    how many consecutive words from there occur in the reference."""

    starts: list[Natural]
    ends: list[Natural]
    lengths: list[Natural]


class BatchAnswer(_Answer):
    name: str
    fingerprint: str
    state: State
    texts: list[BatchText]
