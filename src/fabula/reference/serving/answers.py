"""Answers to requests about a state. Nothing here depends on HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from fabula import __version__
from fabula.reference.part_walk import Walk, WalkTerms, walk_shard
from fabula.reference.search import MAX_PLACES
from fabula.reference.serving import messages
from fabula.reference.serving.messages import MAX_EXCLUDED, MAX_GRAMS, MAX_NAMED, Limits
from fabula.reference.serving.served import Served, State
from fabula.text import TOKENISER

_MOST_PAIRS = 1 << 26
"""Words of a text times words of a shard: a walk holds a number for each."""

Asked = (
    messages.MatchAsked
    | messages.FindAsked
    | messages.DocumentsAsked
    | messages.IdsAsked
    | messages.WordsAsked
    | messages.NearAsked
)
Answer = dict[str, Any]
"""As in `messages`: valid by construction, since checking 100,000 numbers takes longer."""


class TooLarge(Exception):  # noqa: N818 (a reply, not an error)
    """A request exceeds a limit; the message says which."""


class Unfit(Exception):  # noqa: N818 (as above)
    """The parts of a request are inconsistent."""


class NotHere(Exception):  # noqa: N818 (as above)
    """There is no such document or shard."""


def tell_about(served: Served, limits: Limits) -> messages.About:
    """What is served, and the limits of requests."""
    state = served.now
    about = state.reference.about
    return messages.About(
        service="fabula-reference",
        protocol=2,
        version=__version__,
        name=about.name,
        fingerprint=about.fingerprint,
        state=state.key,
        tokeniser=TOKENISER,
        case=about.settings.case,
        punct=about.settings.punct,
        n_documents=about.n_documents,
        n_words=about.n_words,
        n_numbers=len(about.removed),
        removed=np.flatnonzero(about.removed).tolist(),
        vocabularies=[len(shard.vocabulary) for shard in state.reference.local.shards],
        written_by=list(about.written_by),
        oldest=about.age.oldest,
        youngest=about.age.youngest,
        held_out=served.held_out(),
        limits=limits,
    )


def answer(state: State, asked: Asked, limits: Limits) -> tuple[Answer, int]:
    """The answer, and the number of words looked up for it.

    Raises `TooLarge`, `Unfit`, `NotHere`.
    """
    match asked:
        case messages.MatchAsked():
            return _match(state, asked, limits), len(asked.places)
        case messages.FindAsked():
            return _find(state, asked, limits), sum(map(len, asked.grams))
        case messages.DocumentsAsked():
            return _documents(state, asked, limits), 0
        case messages.IdsAsked():
            _hold("ids", len(asked.ids), MAX_EXCLUDED)
            numbers = state.reference.local.numbers_of(asked.ids)
            return {"state": state.key, "numbers": numbers}, 0
        case messages.WordsAsked():
            return _words(state, asked, limits), 0
        case messages.NearAsked():
            return _near(state, asked, limits), len(asked.units)


def _match(state: State, asked: messages.MatchAsked, limits: Limits) -> Answer:
    _hold("words", max(len(asked.places), len(asked.words)), limits.max_words)
    if max(asked.places, default=0) > len(asked.words):
        raise Unfit("places: one is beyond the given words")
    lengths = state.reference.local.match(
        asked.words, np.array(asked.places, np.int32), exclude=_excluded(state, asked.exclude)
    )
    return {"state": state.key, "lengths": lengths.tolist()}


def _find(state: State, asked: messages.FindAsked, limits: Limits) -> Answer:
    grams = asked.grams
    _hold("n-grams", len(grams), MAX_GRAMS)
    _hold("words", sum(map(len, grams)), limits.max_words)
    _hold("places of an n-gram", asked.max_places, MAX_PLACES)
    if len(grams) > 1:
        _hold("documents named", len(grams) * asked.limit, MAX_NAMED)
    found = state.reference.local.find(
        grams,
        limit=asked.limit,
        max_places=asked.max_places,
        exclude=_excluded(state, asked.exclude),
    )
    plain = [
        {**asdict(one), "numbers": one.numbers.tolist(), "places": one.places.tolist()}
        for one in found
    ]
    return {"state": state.key, "found": plain}


def _documents(state: State, asked: messages.DocumentsAsked, limits: Limits) -> Answer:
    _hold("documents", len(asked.numbers), limits.max_documents)
    about = state.reference.about
    for number in asked.numbers:
        if number >= len(about.removed) or about.removed[number]:
            raise NotHere(f"no document has the number {number}, or it was removed")
    documents = state.reference.local.documents(asked.numbers)
    names = ("id", "text", "author", "prompt_id")
    plain = [
        {**{name: getattr(one, name) for name in names}, "meta": dict(one.meta)}
        for one in documents
    ]
    return {"state": state.key, "documents": plain}


def _words(state: State, asked: messages.WordsAsked, limits: Limits) -> Answer:
    shards = state.reference.local.shards
    if asked.shard >= len(shards) or not asked.first:
        raise NotHere(f"no words of the shard {asked.shard} from {asked.first}")
    shard, first = shards[asked.shard], asked.first
    stop = min(first + limits.max_words, len(shard.vocabulary) + 1)
    return {
        "state": state.key,
        "words": [shard.vocabulary[k - 1] for k in range(first, stop)],
        "counts": shard.token_counts[first:stop].tolist(),
    }


def _near(state: State, asked: messages.NearAsked, limits: Limits) -> Answer:
    part = state.reference.local
    if asked.shard >= len(part.shards):
        raise NotHere(f"no shard has the number {asked.shard}")
    shard = part.shards[asked.shard]
    _hold("words", max(len(asked.units), len(asked.functions)), limits.max_words)
    _hold("pairs of words", len(asked.is_content) * len(asked.ids), _MOST_PAIRS)
    out = part.excluded(_excluded(state, asked.exclude))[asked.shard]
    try:
        walk = walk_of(asked.model_dump(exclude={"state", "shard", "exclude"}))
    except (OverflowError, TypeError) as error:
        raise Unfit(f"not a text to compare: {error}") from error
    if (wrong := walk.misfit(len(shard.vocabulary))) is not None:
        raise Unfit(f"{wrong}: a number is out of its range")
    found = walk_shard(shard, walk, out)
    columns = {field.name: getattr(found, field.name).tolist() for field in fields(found)}
    first = int(part.first_numbers[asked.shard])
    return {
        "state": state.key,
        **columns,
        "numbers": [number + first for number in columns["numbers"]],
    }


def walk_of(row: dict[str, Any]) -> Walk:
    """The walk with these fields. Raises `OverflowError`, `TypeError`."""
    kinds = {"is_content": np.bool_, "units": np.int32, "rarities": np.int32, "gains": np.int32}
    arrays: dict[str, Any] = {
        name: np.array(row[name], kinds.get(name, np.int64)) for name in row if name != "terms"
    }
    return Walk(**arrays, terms=WalkTerms(**row["terms"]))


def _excluded(state: State, numbers: Sequence[int]) -> Sequence[int]:
    _hold("documents excluded", len(numbers), MAX_EXCLUDED)
    if max(numbers, default=-1) >= len(state.reference.about.removed):
        raise Unfit("exclude: one is beyond the document numbers")
    return numbers


def _hold(what: str, n: int, most: int) -> None:
    """Raise `TooLarge` if `n` exceeds the limit."""
    if n > most:
        raise TooLarge(f"{n:,} {what}; the limit per request is {most:,}")
