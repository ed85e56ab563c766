"""A story parsed by spaCy: sentences, words with their offsets, and what is in quotation marks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fabula.tasks.feedback.story_edits import Edit, apply_edits
from fabula.text.sentences import paragraph_docs, spans_of_docs
from fabula.text.speech import Quotation, quotations_of

NARRATION_PARTS = ("tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer", "ner")
"""The components of the English pipeline that finding characters needs; the rest needs a parser."""

_EXCERPT_WORDS = 7


@dataclass(frozen=True)
class Narration:
    """A parsed story. All places are character offsets in `text`."""

    text: str
    docs: tuple[tuple[int, Any], ...]
    sentences: tuple[tuple[int, int], ...]

    def words(self) -> Iterator[tuple[int, Any]]:
        """Yield every spaCy token with its start."""
        for begin, doc in self.docs:
            for token in doc:
                yield begin + token.idx, token

    def sentence_of(self, place: int) -> int:
        """The number of the sentence that contains a character, or of the last one before it."""
        return max(bisect_right(self._starts, place) - 1, 0)

    def is_quoted(self, start: int, end: int) -> bool:
        """Whether any part of a span is, or may be, in quotation marks."""
        return any(a < end and start < b for a, b in self.quoted)

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self.sentences]

    @cached_property
    def quotations(self) -> list[Quotation]:
        """All quotations, in order."""
        return quotations_of(self.text)

    @cached_property
    def quoted(self) -> list[tuple[int, int]]:
        """The quoted spans; the whole paragraph where one mark of a pair is missing."""
        begins = [begin for begin, _ in self.docs]
        spans = []
        for one in self.quotations:
            start, end = one.start, one.end
            if not one.is_closed:
                start, doc = self.docs[max(bisect_right(begins, one.start) - 1, 0)]
                end = start + len(doc.text)
            spans.append((start, end))
        return spans


def read_narration(text: str, nlp: Any) -> Narration:
    """Parse a story; `nlp` has a parser, and for characters all of `NARRATION_PARTS`."""
    docs = tuple(paragraph_docs(text, nlp))
    return Narration(text, docs, tuple(spans_of_docs(docs)))


def excerpt(text: str, span: tuple[int, int], edits: Sequence[Edit] = ()) -> str:
    """A sentence's first words as they are after the edits, where a reader will look for them."""
    start, end = span
    inside = [edit for edit in edits if start <= edit.start and edit.end <= end]
    changed, _ = apply_edits(text[:end], inside)
    words = changed[start:].split()
    return " ".join(words[:_EXCERPT_WORDS]) + ("..." if len(words) > _EXCERPT_WORDS else "")
