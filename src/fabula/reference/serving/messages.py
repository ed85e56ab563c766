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
    Field(description="Numbers of documents that do not count.", default_factory=list),
]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Answer(BaseModel):
    # A later server may send fields that this client does not know.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Limits(_Answer):
    """What one client, and all together, may ask for."""

    max_body_bytes: int = Field(32 << 20, ge=1024, description="Bytes of a request's body.")
    max_words: int = Field(500_000, ge=1, description="Words of a request.")
    max_grams: int = Field(2_000, ge=1, description="n-grams of a request.")
    max_places: int = Field(
        100_000,
        ge=0,
        description="Places of an n-gram in a shard at which documents are looked up.",
    )
    max_named: int = Field(
        200_000,
        ge=1,
        description="Documents that an answer names, as n-grams times `limit`; one n-gram may "
        "always ask for all of its own.",
    )
    max_documents: int = Field(64, ge=1, description="Documents that a request fetches.")
    max_excluded: int = Field(
        100_000, ge=0, description="Numbers that a request excludes, or ids that it looks up."
    )
    n_per_s: int = Field(500, ge=0, description="Requests a second by each token; 0: any.")
    n_at_once: int = Field(0, ge=0, description="Requests searched at a time; 0: one a CPU.")
    n_waiting: int = Field(64, ge=0, description="Requests that wait for their turn.")


class ErrorAnswer(_Answer):
    """Why a request was not answered."""

    error: str


class About(_Answer):
    """What is served. The words of requests are in the normal form that these settings give."""

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
    n_numbers: Natural = Field(description="Numbers of documents, removed ones included.")
    removed: list[Natural] = Field(description="Numbers whose documents were removed, ascending.")
    written_by: list[str]
    oldest: int | None = Field(None, description="The earliest year that a document says.")
    youngest: int | None = Field(
        None, description="The last year in which a document can have been written, if known."
    )
    limits: Limits


class Health(_Answer):
    """Whether requests are answered, and from which documents."""

    is_ready: bool
    name: str
    fingerprint: str
    state: str
    n_reloads: Natural
    problem: str | None = Field(
        description="Why what lies on the disk now cannot be served; the state before still is."
    )


class HeldOutAnswer(_Answer):
    """How documents of the reference score against the rest, as `reference measure` wrote it."""

    groups: list[dict[str, object]] = Field(
        description="A distribution for each way to measure; none if it was not measured."
    )


class MatchAsked(_Message):
    """How long are the longest n-grams that begin at these places?"""

    state: State
    words: list[str] = Field(description="Different words, in normal form.")
    places: list[Natural] = Field(
        description="The text: by place the number of its word in `words`, counted from 1; 0 is a "
        "gap over which no n-gram goes."
    )
    exclude: Excluded


class MatchAnswer(_Answer):
    state: State
    lengths: list[Natural] = Field(description="By place, words of the longest n-gram; 0: none.")


class FindAsked(_Message):
    """Where does each n-gram stand?"""

    state: State
    grams: list[Annotated[list[str], Field(min_length=1)]] = Field(
        description="n-grams of words in normal form."
    )
    limit: Natural = Field(description="Documents to name of each n-gram.")
    max_places: Natural = Field(description="Places to look at in each shard.")
    exclude: Excluded


class FoundAnswer(_Answer):
    """Where an n-gram stands."""

    count: Natural
    n_places: Natural = Field(description="Its places that were looked at.")
    n_documents: Natural = Field(description="Different documents at those places.")
    numbers: list[Natural] = Field(description="The first of these documents, ascending.")
    places: list[Natural] = Field(description="The first word of its first place in each, from 0.")


class FindAnswer(_Answer):
    state: State
    found: list[FoundAnswer]


class DocumentsAsked(_Message):
    """What are the documents of these numbers?"""

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
    """Which numbers have the documents with these ids?"""

    state: State
    ids: list[str]


class IdsAnswer(_Answer):
    state: State
    numbers: list[list[Natural]] = Field(description="By id, ascending; none where it is unknown.")


Kind = Annotated[
    str,
    Field(
        max_length=200,
        description="How documents are cut into passages: words of each, words that two share, and "
        "the list of stop words.",
    ),
]


class PassagesAsked(_Message):
    """Are there passages of this kind, to search near matches in?"""

    state: State
    key: Kind


class PassagesAnswer(_Answer):
    state: State
    n_passages: Natural
    n_vocabularies: list[Natural] = Field(description="By shard, its different words.")


class HoldersAsked(_Message):
    """How many passages hold each of these words?"""

    state: State
    key: Kind
    terms: list[str]


class HoldersAnswer(_Answer):
    state: State
    n_with: list[Natural]


class BestAsked(_Message):
    """Which passages are most like each of these texts, by BM25?"""

    state: State
    key: Kind
    terms: list[str] = Field(description="The different content words of all texts, sorted.")
    weights: list[float] = Field(description="How much each counts.")
    texts: list[list[Natural]] = Field(description="By text, which of `terms` it holds, from 0.")
    n_passages: Natural
    exclude: Excluded


class BestFound(_Answer):
    """The best passages for a text, in the order of the reference."""

    shards: list[Natural]
    passages: list[Natural] = Field(description="Which passage of its shard.")
    scores: list[float]


class BestAnswer(_Answer):
    state: State
    found: list[BestFound]


class ReadAsked(_Message):
    """What do these passages of a shard say?"""

    state: State
    key: Kind
    shard: Natural
    passages: Annotated[list[Natural], Field(min_length=1)]


class ReadAnswer(_Answer):
    state: State
    numbers: list[Natural] = Field(description="By passage, its document.")
    first_words: list[Natural] = Field(description="Which word of the document it begins with.")
    lengths: list[Natural] = Field(description="In words.")
    tokens: list[Natural] = Field(description="Word ids, one passage after the other.")


class WordsAsked(_Message):
    """Which words do these ids of a shard stand for?"""

    state: State
    key: Kind
    shard: Natural
    ids: list[Annotated[int, Field(ge=1, le=_MOST)]]


class WordsAnswer(_Answer):
    state: State
    words: list[str]


class BatchAsked(_Message):
    """How much of these plain texts stands in the reference?"""

    texts: list[str]
    exclude: Excluded
    state: State | None = None


class BatchText(_Answer):
    """The words of a text: where each begins and ends, in characters (code points, half-open), and
    how many words from it on stand in the reference in a row."""

    starts: list[Natural]
    ends: list[Natural]
    lengths: list[Natural]


class BatchAnswer(_Answer):
    name: str
    fingerprint: str
    state: State
    texts: list[BatchText]
