"""The sentences of a text by novelty and surprisal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.measures.groups import GroupNumbers
from fabula.presentation.review_pictures import Band, Dot, bands_of, scatter
from fabula.review import TextReview
from fabula.review.comparing import SENTENCE_ITEM
from fabula.text import TextSettings

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


def fluency_view(text: TextReview, groups: Sequence[GroupNumbers]) -> FluencyView:
    """What the page shows of a text that a model has scored."""
    fluency, originality = text.fluency, text.originality
    assert fluency is not None
    # If originality is missing, nothing is known to be new.
    is_known = originality is not None and originality.missing_reason is None
    places, is_covered = _covered_words(text)
    dots = []
    for sentence in fluency.sentences:
        if sentence.bits_per_word is None:
            continue
        first, last = np.searchsorted(places, (sentence.start, sentence.end))
        novelty = 1 - float(is_covered[first:last].mean()) if last > first else 1.0
        words = " ".join(text.document.text[sentence.start : sentence.end].split())
        dots.append(Dot(novelty, sentence.bits_per_word, words[:_LABEL_CHARS]))
    return FluencyView(
        bits=fluency.bits_per_word,
        missing=_WHY_MISSING.get(fluency.missing_reason or "", fluency.missing_reason or ""),
        bands=bands_of(groups, "bits_per_word", fluency.bits_per_word),
        picture=scatter(dots, groups, SENTENCE_ITEM) if is_known else None,
    )


_WHY_MISSING = {
    "no_words": "no words in the text",
    "too_short": "no text before its only word",
    "not_finite": "the model gave no finite number",
}


def _covered_words(text: TextReview) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each word of a text begins, and whether it lies in a borrowed run."""
    places = _WORDS.locate(text.document.text).starts.astype(np.int64)
    is_covered = np.zeros(len(places), np.bool_)
    for one in text.originality.borrowed if text.originality else ():
        first, last = np.searchsorted(places, (one.span.start, one.span.end))
        is_covered[first:last] = True
    return places, is_covered
