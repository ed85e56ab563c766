"""A text's numbers beside those of groups that were measured in the same way; and by chapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fabula.measures.groups import Distribution, GroupKind, GroupNumbers, measure_group
from fabula.measures.originality_measure import Originality
from fabula.review.found import Review, TextReview
from fabula.review.report_parts import Number, Values, parts_of
from fabula.text import TextSettings
from fabula.types import Measurement

Shares = Mapping[str, float]


def numbers_of_review(review: Review) -> tuple[list[Number], list[Values]]:
    """The numbers that at least one text has, and each text's values, including judges' scores.

    What was requested and is missing is None.
    """
    parts = sorted(parts_of(review), key=lambda one: one.asks_model)
    rows = [
        {key: value for part in parts for key, value in part.values(text, review).items()}
        for text in review.texts
    ]
    known = {key for row in rows for key in row}
    return [n for part in parts for n in part.numbers(review) if n.key in known], rows


_BY_LENGTH = frozenset(("type_token_ratio", "unique_trigram_ratio", "repeated_share"))
"""Numbers that depend on length so much that only texts of similar length are comparable."""
_LIKE = 2
"""Range of similar length: from half of a group's first decile to twice its last."""


def comparable(
    groups: Iterable[GroupNumbers], item: str, n_words: float | None
) -> tuple[GroupNumbers, ...]:
    """The groups that a number of a text with `n_words` words can be compared with."""
    return tuple(
        group
        for group in groups
        if item not in _BY_LENGTH or _is_like(group.items.get("n_words"), n_words)
    )


def _is_like(lengths: Distribution | None, n_words: float | None) -> bool:
    if lengths is None or n_words is None:
        return False
    return lengths.quantile(0.1) / _LIKE <= n_words <= lengths.quantile(0.9) * _LIKE


def share_below(review: Review, text: TextReview, part: str, item: str, value: float) -> Shares:
    """For each comparable group, the share that is below a text's value."""
    n_words = None if text.profile is None else text.profile.values["n_words"]
    found = review.groups.find(review.signatures[part]).groups
    return {
        group.group: group.items[item].share_below(value)
        for group in comparable(found, item, n_words)
        if item in group.items
    }


SENTENCE_ITEM = "sentence_bits_per_word"
"""The surprisal of every sentence of the group; other items have one value per text."""
MIN_SENTENCE_WORDS = 3
"""Minimum length in words: one or two say little, as a cry surprises more than a strange sentence.
"""


def group_numbers(review: Review, group: str, kind: GroupKind, title: str) -> list[GroupNumbers]:
    """The distribution of every number over the texts, one entry per instrument."""
    return measure_group(group, kind, title, [*review.measurements(), *_of_sentences(review)])


def _of_sentences(review: Review) -> Iterator[Measurement]:
    for text in review.texts:
        if text.fluency is None:
            continue
        for sentence in text.fluency.sentences:
            if sentence.n_words < MIN_SENTENCE_WORDS:
                continue
            yield Measurement(
                document_id=text.document.id,
                rubric="fluency",
                item=SENTENCE_ITEM,
                rater="fabula",
                value=sentence.bits_per_word,
                missing_reason=sentence.missing_reason,
                evidence=(),
                rationale=None,
                signature=str(text.fluency.signature),
            )


def by_chapter(
    text: TextReview, chapters: Sequence[Mapping[str, Any]]
) -> list[dict[str, float | None]]:
    """Return the numbers of each chapter, given as a row of a book.

    These are its number, the share of its words in borrowed passages, and its surprise in bits per
    word. What was not measured, or is missing, is None.
    """
    places = [(int(one["start"]), int(one["end"])) for one in chapters]
    bits: list[float | None] = [None] * len(places)
    if text.fluency is not None:
        bits = [span.bits_per_word for span in text.fluency.of_spans(places)]
    return [
        {"chapter": one["number"], "borrowed": share, "surprise": surprise}
        for one, share, surprise in zip(
            chapters, _borrowed(text.originality, places), bits, strict=True
        )
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
