"""Paragraphs and sentences of prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fabula.text.words import TextSettings

__all__ = [
    "encodable",
    "paragraph_docs",
    "paragraphs_of",
    "sentence_spans",
    "sentences_of",
    "spans_of_docs",
]

_BATCH = 64
_MAX_CHARS = 50_000
"""No paragraph of prose is longer; the pipeline refuses a million."""
_PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")


def paragraphs_of(text: str) -> list[str]:
    """The paragraphs of a text: what stands between blank lines."""
    return _PARAGRAPH.split(text.strip())


def _between_blank_lines(text: str) -> list[tuple[int, int]]:
    borders = [(m.start(), m.end()) for m in _PARAGRAPH.finditer(text)]
    starts, ends = [0, *(end for _, end in borders)], [*(start for start, _ in borders), len(text)]
    return list(zip(starts, ends, strict=True))


def encodable(text: str) -> str:
    """The text with halves of characters, which no encoding knows, replaced."""
    return text.encode(errors="replace").decode()


def sentences_of(paragraphs: Iterable[str], nlp: Any) -> Iterator[list[str]]:
    """The sentences of each paragraph. One that begins in small letters goes on with the last one.

    `nlp` is spaCy's pipeline with sentence boundaries; it parts `"Run!" cried the Cat.` after the
    quotation.
    """
    lines = (
        encodable(line[start:end])
        for line in (" ".join(paragraph.split()) for paragraph in paragraphs)
        for start, end in _bounded(line, 0, len(line))
    )
    for doc in nlp.pipe(lines, batch_size=_BATCH):
        yield _joined(span.text.strip() for span in doc.sents)


def _joined(parts: Iterable[str]) -> list[str]:
    words = TextSettings()
    found: list[str] = []
    for text in filter(None, parts):
        first = next((character for character in text if character.isalnum()), "")
        if found and (first.islower() or not words.has_words(text)):
            found[-1] = f"{found[-1]} {text}"
        elif words.has_words(text):
            found.append(text)
    return found


def sentence_spans(text: str, nlp: Any) -> list[tuple[int, int]]:
    """Where each sentence of a text stands, half-open in characters; the text stays as it is.

    Parted as by `sentences_of`: never across a blank line, and what begins in small letters goes on
    with the sentence before.
    """
    return spans_of_docs(paragraph_docs(text, nlp))


def paragraph_docs(text: str, nlp: Any) -> list[tuple[int, Any]]:
    """spaCy's reading of each paragraph, and where it begins: offsets of both add up."""
    # Line breaks within a paragraph are spaces to the pipeline; lengths stay the same.
    return [
        (begin, nlp(encodable("".join(" " if c.isspace() else c for c in text[begin:end]))))
        for first, last in _between_blank_lines(text)
        for begin, end in _bounded(text, first, last)
    ]


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretch in parts that the pipeline's memory is enough for, cut between words."""
    while end - start > _MAX_CHARS:
        space = text.rfind(" ", start + _MAX_CHARS // 2, start + _MAX_CHARS)
        cut = start + _MAX_CHARS if space < 0 else space
        yield start, cut
        start = cut
    yield start, end


def spans_of_docs(docs: Iterable[tuple[int, Any]]) -> list[tuple[int, int]]:
    """`sentence_spans`, of what `paragraph_docs` read."""
    words = TextSettings()
    spans: list[tuple[int, int]] = []
    for begin, doc in docs:
        is_first = True
        for found in doc.sents:
            part = found.text
            start = begin + found.start_char + len(part) - len(part.lstrip())
            stop = start + len(part.strip())
            if start >= stop:
                continue
            first = next((c for c in part if c.isalnum()), "")
            if not is_first and (first.islower() or not words.has_words(part)):
                spans[-1] = spans[-1][0], stop
            elif words.has_words(part):
                spans.append((start, stop))
                is_first = False
    return spans
