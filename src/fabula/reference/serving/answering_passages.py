"""Answers to requests about a state's passages. Nothing here depends on HTTP."""

from __future__ import annotations

from pathlib import PurePath

import numpy as np

from fabula.errors import CorpusError
from fabula.reference.passage_parts import LocalPassages, Queries
from fabula.reference.serving import messages
from fabula.reference.serving.limiting import NotHere, Unfit, excluded, hold
from fabula.reference.serving.messages import Limits
from fabula.reference.serving.snapshots import State

__all__ = ["PassagesAnswered", "PassagesAsked", "answer_passages"]

PassagesAsked = (
    messages.PassagesAsked
    | messages.HoldersAsked
    | messages.BestAsked
    | messages.ReadAsked
    | messages.WordsAsked
)
PassagesAnswered = (
    messages.PassagesAnswer
    | messages.HoldersAnswer
    | messages.BestAnswer
    | messages.ReadAnswer
    | messages.WordsAnswer
)


def answer_passages(state: State, asked: PassagesAsked, limits: Limits) -> PassagesAnswered:
    """The answer. Raises `TooLarge`, `Unfit`, `NotHere`."""
    passages = _opened(state, asked.key)
    match asked:
        case messages.PassagesAsked():
            return messages.PassagesAnswer(
                state=state.key,
                n_passages=passages.n_passages,
                n_vocabularies=passages.n_vocabularies,
            )
        case messages.HoldersAsked():
            hold("words", len(asked.terms), limits.max_words)
            n_with = passages.n_with(asked.terms)
            return messages.HoldersAnswer.model_construct(state=state.key, n_with=n_with.tolist())
        case messages.BestAsked():
            return _best(state, passages, asked, limits)
        case messages.ReadAsked():
            return _read(state, passages, asked, limits)
        case messages.WordsAsked():
            hold("words", len(asked.ids), limits.max_words)
            if max(asked.ids, default=0) > _vocabulary(passages, asked.shard):
                raise Unfit("ids: one is beyond the words of the shard")
            ids = np.array(asked.ids, np.uint32)
            words = passages.words({asked.shard: ids})[asked.shard]
            return messages.WordsAnswer.model_construct(state=state.key, words=words)


def _opened(state: State, key: str) -> LocalPassages:
    # The key names a folder beside the shards, and nothing else.
    if PurePath(key).name == key and "\0" not in key and key not in (".", ".."):
        try:
            return state.passages(key)
        except CorpusError:
            pass
    raise NotHere(
        "near matches are not set up on this service; its operator must build the passages with "
        "`fabula reference passages` and the same settings for words and stop words"
    )


def _best(
    state: State, passages: LocalPassages, asked: messages.BestAsked, limits: Limits
) -> messages.BestAnswer:
    n_terms = len(asked.terms)
    hold("words", max(n_terms, sum(map(len, asked.texts))), limits.max_words)
    if len(asked.texts) > 1:
        hold("passages named", len(asked.texts) * asked.n_passages, limits.max_named)
    if len(asked.weights) != n_terms:
        raise Unfit("weights: must have one for each term")
    if any(max(places, default=0) >= max(1, n_terms) for places in asked.texts) or (
        not n_terms and any(asked.texts)
    ):
        raise Unfit("texts: one is beyond the given terms")
    queries = Queries(
        asked.terms,
        np.array(asked.weights, np.float32),
        [np.array(places, np.int64) for places in asked.texts],
    )
    exclude = excluded(state, asked.exclude, limits)
    found = passages.best(queries, min(asked.n_passages, passages.n_passages), exclude=exclude)
    return messages.BestAnswer.model_construct(
        state=state.key,
        found=[
            messages.BestFound.model_construct(
                shards=one.shards.tolist(),
                passages=one.passages.tolist(),
                scores=one.scores.tolist(),
            )
            for one in found
        ],
    )


def _read(
    state: State, passages: LocalPassages, asked: messages.ReadAsked, limits: Limits
) -> messages.ReadAnswer:
    _vocabulary(passages, asked.shard)
    lengths = passages.lengths(asked.shard)
    if max(asked.passages, default=0) >= len(lengths):
        raise Unfit("passages: one is beyond those of the shard")
    wanted = np.array(asked.passages, np.int64)
    if len(wanted) > 1:
        hold("words of passages", int(lengths[wanted].sum()), limits.max_words)
    (one,) = passages.read({asked.shard: wanted}).values()
    return messages.ReadAnswer.model_construct(
        state=state.key,
        numbers=one.numbers.tolist(),
        first_words=one.first_words.tolist(),
        lengths=one.lengths.tolist(),
        tokens=one.tokens.tolist(),
    )


def _vocabulary(passages: LocalPassages, shard: int) -> int:
    """The number of words of a shard. Raises `Unfit` if no shard has this number."""
    if shard >= len(passages.n_vocabularies):
        raise Unfit("shard: no shard has this number")
    return passages.n_vocabularies[shard]
