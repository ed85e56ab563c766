"""A review's numbers as those of a reference group."""

from __future__ import annotations

from collections.abc import Iterator

from fabula.measures.groups import GroupKind, GroupNumbers, measure_group
from fabula.review.found import Review
from fabula.types import Measurement

__all__ = ["MIN_SENTENCE_WORDS", "SENTENCE_ITEM", "group_numbers"]

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
