"""A text read once: its chapters, paragraphs, sentences and words, and what is spoken."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fabula.core.types import Document
from fabula.text.chapters import Chapter, chapters_of
from fabula.text.grammar import Checker, Fault, is_misspelt_in, parsed_and_checked, share_correct
from fabula.text.parsing import Parsed, Parser, Token
from fabula.text.sentences import (
    Spans,
    encodable,
    overlaps,
    paragraph_docs,
    paragraph_spans,
    sentence_spans,
)
from fabula.text.speech import Quotation, flags_within, quotations_of

_SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """A sentence of a text: half-open in characters."""

    start: int
    end: int
    parsed: Parsed
    """Its places are those in the sentence, plus `start`; those of `faults` too."""
    faults: tuple[Fault, ...]
    is_spoken: tuple[bool, ...]
    """For each token, whether it is in quoted speech."""

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.parsed.tokens

    @property
    def words(self) -> list[Token]:
        return [token for token in self.parsed.tokens if token.is_word]

    @property
    def spoken(self) -> list[Token]:
        """The words in quoted speech."""
        pairs = zip(self.parsed.tokens, self.is_spoken, strict=True)
        return [token for token, is_spoken in pairs if is_spoken and token.is_word]

    @property
    def share_correct(self) -> float:
        """The share of its words without an error; it has words."""
        return share_correct([t.place for t in self.words], [fault.place for fault in self.faults])

    @property
    def is_narration(self) -> bool:
        return not any(self.is_spoken)

    def at(self, token: Token) -> tuple[int, int]:
        """The place of a token in the text."""
        start, end = token.place
        return self.start + start, self.start + end


class Reading:
    """A text, and what is found in it when first asked for. Places are half-open, in characters.

    nlp: the pipeline that splits sentences. Paragraphs and sentences read before are cached.
    parser, checker: of the words of each sentence, and of their grammar and spelling.
    """

    def __init__(
        self,
        source: Document | str,
        nlp: Any = None,
        parser: Parser | None = None,
        checker: Checker | None = None,
    ) -> None:
        self.document = Document("", source) if isinstance(source, str) else source
        self.text, self._nlp = self.document.text, nlp
        self._parser, self._checker = parser, checker

    @cached_property
    def chapters(self) -> list[Chapter]:
        """None if there are fewer than two headings."""
        return chapters_of(self.document)

    @cached_property
    def paragraphs(self) -> Spans:
        """The spans of all paragraphs, in order."""
        return paragraph_spans(self.text)

    def paragraph_of(self, place: int) -> tuple[int, int]:
        """The span of the paragraph that contains a character, or of the last one before it."""
        at = bisect_right(self.paragraphs, place, key=lambda span: span[0]) - 1
        return self.paragraphs[max(at, 0)]

    @cached_property
    def sentences(self) -> Spans:
        """The spans of all sentences, in order."""
        return sentence_spans(self.text, self._nlp)

    def sentence_of(self, place: int) -> int:
        """The number of the sentence that contains a character, or of the last one before it."""
        return max(bisect_right(self.sentences, place, key=lambda span: span[0]) - 1, 0)

    @cached_property
    def parsed(self) -> list[ReadSentence]:
        """All sentences with their tokens, errors and speech; no errors without a checker."""
        assert self._parser is not None
        plain = encodable(_SPACE.sub(" ", self.text))
        stream = self._parser.parse(plain[start:end] for start, end in self.sentences)
        both = parsed_and_checked(stream, self._checker)
        return [
            ReadSentence(start, end, part, faults, tuple(flags_within(places, self.speech)))
            for (start, end), part, faults in zip(self.sentences, *both, strict=True)
            for places in [[start + token.start for token in part.tokens]]
        ]

    def is_accepted(self, word: str, *, as_name: bool = False) -> bool:
        """Whether the checker knows a word in lower case, where it knows no names, or as a name."""
        if self._checker is None:
            return False
        text = f"He saw {word} there." if as_name else f"the {word.lower()}"
        return not is_misspelt_in(self._checker, text)

    @cached_property
    def docs(self) -> list[tuple[int, Any]]:
        """Each paragraph as spaCy's `Doc`, with its start: the offsets add up."""
        return paragraph_docs(self.text, self._nlp)

    def words(self) -> Iterator[tuple[int, Any]]:
        """Every token of `docs` with its start."""
        for begin, doc in self.docs:
            for token in doc:
                yield begin + token.idx, token

    @cached_property
    def quotations(self) -> list[Quotation]:
        """All quotations, in order."""
        return quotations_of(self.text)

    @cached_property
    def speech(self) -> Spans:
        """The spans of speech, marks included: in order and disjoint."""
        return [(quote.start, quote.end) for quote in self.quotations if quote.is_speech]

    @cached_property
    def quoted(self) -> Spans:
        """The quoted spans; the whole paragraph where one mark of a pair is missing."""
        return [
            (quote.start, quote.end) if quote.is_closed else self.paragraph_of(quote.start)
            for quote in self.quotations
        ]

    def is_quoted(self, start: int, end: int) -> bool:
        """Whether any part of a span is, or may be, in quotation marks."""
        return overlaps((start, end), self.quoted)
