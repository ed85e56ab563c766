"""A report's results for a whole text, split by chapter: borrowed passages and surprise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fabula.measures.originality_measure import Originality
from fabula.review.found import TextReview
from fabula.text import TextSettings

if TYPE_CHECKING:
    from fabula.measures.fluency import Fluency


def by_chapter(
    text: TextReview, chapters: Sequence[Mapping[str, Any]]
) -> list[dict[str, float | None]]:
    """Return the numbers of each chapter, given as a row of a book.

    These are its number, the share of its words in borrowed passages, and its surprise in bits per
    word. What was not measured, or is missing, is None.
    """
    places = [(int(one["start"]), int(one["end"])) for one in chapters]
    rows = zip(_borrowed(text.originality, places), _surprise(text.fluency, places), strict=True)
    return [
        {"chapter": one["number"], "borrowed": share, "surprise": bits}
        for one, (share, bits) in zip(chapters, rows, strict=True)
    ]


def _borrowed(found: Originality | None, places: Sequence[tuple[int, int]]) -> list[float | None]:
    if found is None or found.ranked is None:
        return [None] * len(places)
    starts = TextSettings().locate(found.document.text).starts
    is_borrowed = np.zeros(len(starts), bool)
    for passage in found.ranked.passages:
        for run in passage.runs:
            is_borrowed[slice(*np.searchsorted(starts, (run.span.start, run.span.end)))] = True
    parts = [is_borrowed[slice(*np.searchsorted(starts, place))] for place in places]
    return [float(part.mean()) if len(part) else None for part in parts]


def _surprise(found: Fluency | None, places: Sequence[tuple[int, int]]) -> list[float | None]:
    if found is None:
        return [None] * len(places)
    return [span.bits_per_word for span in found.of_spans(places)]
