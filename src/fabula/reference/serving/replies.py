"""Answers to requests about a state. Nothing here depends on HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from fabula import __version__
from fabula.reference.backend import LocatedText
from fabula.reference.serving import messages
from fabula.reference.serving.answering_passages import (
    PassagesAnswered,
    PassagesAsked,
    answer_passages,
)
from fabula.reference.serving.limiting import NotHere, Unfit, excluded, hold
from fabula.reference.serving.messages import Limits
from fabula.reference.serving.snapshots import State
from fabula.text import TOKENISER

__all__ = ["answer", "check_match", "match_together", "tell_about"]


Asked = (
    messages.MatchAsked
    | messages.FindAsked
    | messages.DocumentsAsked
    | messages.IdsAsked
    | messages.BatchAsked
    | PassagesAsked
)
Answered = (
    messages.MatchAnswer
    | messages.FindAnswer
    | messages.DocumentsAnswer
    | messages.IdsAnswer
    | messages.BatchAnswer
    | PassagesAnswered
)


def tell_about(state: State, limits: Limits) -> messages.About:
    """What the state contains, and the limits of requests."""
    about = state.reference.about
    return messages.About(
        service="fabula-reference",
        protocol=1,
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
        written_by=list(about.written_by),
        oldest=about.age.oldest,
        youngest=about.age.youngest,
        limits=limits,
    )


def answer(state: State, asked: Asked, limits: Limits) -> tuple[Answered, int]:
    """The answer, and the number of words looked up for it.

    Raises `TooLarge`, `Unfit`, `NotHere`.
    """
    match asked:
        case messages.MatchAsked():
            check_match(state, asked, limits)
            return match_together(state, [asked])[0], len(asked.places)
        case messages.FindAsked():
            return _find(state, asked, limits), sum(map(len, asked.grams))
        case messages.DocumentsAsked():
            return _documents(state, asked, limits), 0
        case messages.IdsAsked():
            hold("ids", len(asked.ids), limits.max_excluded)
            numbers = state.reference.local.numbers_of(asked.ids)
            return messages.IdsAnswer(state=state.key, numbers=numbers), 0
        case messages.BatchAsked():
            found = _batch(state, asked, limits)
            return found, sum(len(text.lengths) for text in found.texts)
        case _:
            return answer_passages(state, asked, limits), 0


def check_match(state: State, asked: messages.MatchAsked, limits: Limits) -> None:
    """Raises `TooLarge`, `Unfit`."""
    hold("words", max(len(asked.places), len(asked.words)), limits.max_words)
    if max(asked.places, default=0) > len(asked.words):
        raise Unfit("places: one is beyond the given words")
    excluded(state, asked.exclude, limits)


def match_together(
    state: State, asked: Sequence[messages.MatchAsked]
) -> list[messages.MatchAnswer]:
    """The answers to checked requests that exclude the same documents, by one search."""
    all_words = list(chain.from_iterable(one.words for one in asked))
    distinct = dict.fromkeys(all_words)
    numbers = dict(zip(distinct, range(1, len(distinct) + 1), strict=True))
    # For each text a gap, and then the numbers of its words: what its places refer to.
    firsts = np.cumsum([0, *(len(one.words) for one in asked)])
    known = np.fromiter(map(numbers.__getitem__, all_words), np.int32, len(all_words))
    known = np.insert(known, firsts[:-1], 0)
    # The gap at the end of each keeps texts apart.
    places = list(chain.from_iterable((*one.places, 0) for one in asked))
    ends = np.cumsum([len(one.places) + 1 for one in asked])
    shifts = np.repeat(firsts[:-1] + np.arange(len(asked)), np.diff(ends, prepend=0))
    lengths = state.reference.local.match(
        list(distinct), known[np.array(places, np.int64) + shifts], exclude=asked[0].exclude
    ).tolist()
    # The numbers are valid by construction: checking 100,000 of them takes longer.
    return [
        messages.MatchAnswer.model_construct(state=state.key, lengths=lengths[begin : end - 1])
        for begin, end in pairwise([0, *ends.tolist()])
    ]


def _find(state: State, asked: messages.FindAsked, limits: Limits) -> messages.FindAnswer:
    grams = asked.grams
    hold("n-grams", len(grams), limits.max_grams)
    hold("words", sum(map(len, grams)), limits.max_words)
    hold("places of an n-gram", asked.max_places, limits.max_places)
    if len(grams) > 1:
        hold("documents named", len(grams) * asked.limit, limits.max_named)
    exclude = excluded(state, asked.exclude, limits)
    found = state.reference.local.find(
        grams, limit=asked.limit, max_places=asked.max_places, exclude=exclude
    )
    return messages.FindAnswer(
        state=state.key,
        found=[
            messages.FoundAnswer.model_construct(
                count=one.count,
                n_places=one.n_places,
                n_documents=one.n_documents,
                numbers=one.numbers.tolist(),
                places=one.places.tolist(),
            )
            for one in found
        ],
    )


def _documents(
    state: State, asked: messages.DocumentsAsked, limits: Limits
) -> messages.DocumentsAnswer:
    hold("documents", len(asked.numbers), limits.max_documents)
    for number in asked.numbers:
        if number >= state.n_numbers or state.reference.is_removed(number):
            raise NotHere(f"no document has the number {number}, or it was removed")
    return messages.DocumentsAnswer.model_construct(
        state=state.key,
        documents=[
            messages.DocumentAnswer.model_construct(
                id=document.id,
                text=document.text,
                author=document.author,
                prompt_id=document.prompt_id,
                meta=dict(document.meta),
            )
            for document in state.reference.local.documents(asked.numbers)
        ],
    )


def _batch(state: State, asked: messages.BatchAsked, limits: Limits) -> messages.BatchAnswer:
    exclude = excluded(state, asked.exclude, limits)
    hold("texts", len(asked.texts), limits.max_words)
    located = []
    n_words = 0
    for text in asked.texts:
        located.append(LocatedText(text, state.reference.locate(text)))
        n_words += len(located[-1])
        hold("words", n_words, limits.max_words)
    all_lengths = state.reference.longest_matches_many(
        [text.words.words for text in located], exclude=exclude
    )
    return messages.BatchAnswer(
        name=state.reference.name,
        fingerprint=state.reference.fingerprint,
        state=state.key,
        texts=[
            messages.BatchText.model_construct(
                starts=text.words.starts.tolist(),
                ends=text.words.ends.tolist(),
                lengths=lengths.tolist(),
            )
            for text, lengths in zip(located, all_lengths, strict=True)
        ],
    )
