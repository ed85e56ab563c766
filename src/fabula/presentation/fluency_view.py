"""The sentences of a text by novelty and surprisal: fresh, stale, or garbled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.measures.fluency import Fluency
from fabula.measures.groups import GroupNumbers
from fabula.presentation.marked_text import Odd
from fabula.presentation.review_pictures import Band, Dot, bands_of, scatter
from fabula.review import TextReview
from fabula.review.findings import surprising
from fabula.review.group_figures import SENTENCE_ITEM
from fabula.text import TextSettings
from fabula.web import visible

__all__ = ["FluencyView", "fluency_view", "odd_sentences"]

_STALE = 0.5
_MAX_LISTED = 8
_LABEL_CHARS = 160
_WORDS = TextSettings()


@dataclass(frozen=True, slots=True)
class FluencyView:
    """A text's fluency as the page shows it."""

    bits: float | None
    missing: str
    bands: list[Band]
    picture: dict[str, Any] | None
    """The two axes; None without a reference, since novelty is then undefined."""
    odd: list[dict[str, Any]]
    n_odd: int
    stale: list[dict[str, Any]]
    has_limit: bool
    """Whether the usual surprisal of people's sentences is known."""


def fluency_view(
    text: TextReview, groups: Sequence[GroupNumbers], limit: float | None
) -> FluencyView:
    """What the page shows of a text that a model has scored."""
    fluency, originality = text.fluency, text.originality
    assert fluency is not None
    # If originality is missing, nothing is known to be new.
    is_known = originality is not None and originality.missing_reason is None
    places, is_covered = _covered_words(text)
    dots = []
    strange_ones = surprising(fluency, limit)
    for sentence in fluency.sentences:
        if sentence.bits_per_word is None:
            continue
        first, last = np.searchsorted(places, (sentence.start, sentence.end))
        novelty = 1 - float(is_covered[first:last].mean()) if last > first else 1.0
        words = " ".join(text.document.text[sentence.start : sentence.end].split())
        kind = "stale" if novelty <= 1 - _STALE else ""
        kind = "odd" if sentence in strange_ones else kind
        dots.append(Dot(novelty, sentence.bits_per_word, words[:_LABEL_CHARS], kind))
    strange = sorted((dot for dot in dots if dot.kind == "odd"), key=lambda dot: -dot.bits_per_word)
    stale = sorted((dot for dot in dots if dot.novelty <= 1 - _STALE), key=lambda dot: dot.novelty)
    return FluencyView(
        bits=fluency.bits_per_word,
        missing=_WHY_MISSING.get(fluency.missing_reason or "", fluency.missing_reason or ""),
        bands=bands_of(groups, "bits_per_word", fluency.bits_per_word),
        picture=scatter(dots, groups, SENTENCE_ITEM, limit) if is_known else None,
        odd=[
            {"bits": dot.bits_per_word, "words": visible(dot.label)}
            for dot in strange[:_MAX_LISTED]
        ],
        n_odd=len(strange),
        stale=[
            {"share": 1 - dot.novelty, "words": visible(dot.label)} for dot in stale[:_MAX_LISTED]
        ],
        has_limit=limit is not None,
    )


_WHY_MISSING = {
    "no_words": "no words in the text",
    "too_short": "no text before its only word",
    "not_finite": "the model gave no finite number",
}


def odd_sentences(fluency: Fluency, limit: float | None) -> list[Odd]:
    """The sentences that are marked in the text."""
    return [Odd(s.start, s.end, s.bits_per_word or 0.0) for s in surprising(fluency, limit)]


def _covered_words(text: TextReview) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each word of a text begins, and whether it lies in a borrowed run."""
    places = _WORDS.locate(text.document.text).starts.astype(np.int64)
    is_covered = np.zeros(len(places), np.bool_)
    for one in text.originality.borrowed if text.originality else ():
        first, last = np.searchsorted(places, (one.span.start, one.span.end))
        is_covered[first:last] = True
    return places, is_covered
