"""Paragraphs and sentences of prose."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from fabula.text.memo import Memo
from fabula.text.words import TextSettings

__all__ = [
    "encodable",
    "paragraph_docs",
    "paragraph_spans",
    "paragraphs_of",
    "sentence_spans",
    "sentences_of",
    "spans_of_docs",
]

_BATCH = 64
_REMEMBERED_CHARS = 1 << 21
"""Three drafts of a novel, whose sentences take 10 MB."""
_MAX_CHARS = 50_000
"""No paragraph of prose is longer; the pipeline refuses a million."""
_PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_SPACE = re.compile(r"\s")
_ENDS_SENTENCE = re.compile(r"[.!?…][\"'”’»“‘«›)\]*_]*\Z")
_LINES_ENDING = 0.5
"""A share of line breaks after whole sentences that lines cut to a width do not reach: at most 0.41
of them in 60 parts of novels wrapped at 40 to 100 columns, and under 0.6 in all but 6 of 633 poems;
but 0.65 and more in all but 4 of 335 parts of novels with a paragraph a line."""
_WIDE = 120
"""Nobody cuts lines to such a width: a text whose middle line is longer has a paragraph a line."""
_WIDTHS = range(45, 101)


def paragraphs_of(text: str) -> list[str]:
    """The paragraphs of a text, as `paragraph_spans` has them."""
    text = text.strip()
    return [text[start:end] for start, end in paragraph_spans(text)]


def paragraph_spans(text: str) -> list[tuple[int, int]]:
    """Where the paragraphs of a text stand, half-open in characters: between blank lines.

    Where half of all line breaks follow the end of a sentence, or lines are long, each line is a
    paragraph, except one that ends in the middle of a sentence. Other line breaks, of lines cut to
    a width or of verse, part no paragraphs.
    """
    borders = [(m.start(), m.end()) for m in _PARAGRAPH.finditer(text)]
    starts, ends = [0, *(end for _, end in borders)], [*(start for start, _ in borders), len(text)]
    blocks = list(zip(starts, ends, strict=True))
    if not any("\n" in text[start:end] for start, end in blocks):
        return blocks
    lines = [_line_spans(text, start, end) for start, end in blocks]
    if not _has_paragraph_lines([[text[a:b].strip() for a, b in block] for block in lines]):
        return blocks
    return [span for block in lines for span in _whole_sentences(text, block)]


def _line_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    breaks = [m.start() for m in re.finditer("\n", text[start:end])]
    edges = [start, *(start + place + 1 for place in breaks)]
    spans = zip(edges, [*(edge - 1 for edge in edges[1:]), end], strict=True)
    return [(a, b) for a, b in spans if text[a:b].strip()] or [(start, end)]


def _has_paragraph_lines(blocks: Sequence[Sequence[str]]) -> bool:
    """Whether each line of a text is a paragraph, by where its lines end."""
    lengths = sorted(len(line) for block in blocks for line in block if line)
    if not lengths:
        return False
    if lengths[len(lengths) // 2] > _WIDE:
        return True
    width = lengths[(len(lengths) * 9) // 10]
    pairs = [pair for block in blocks for pair in itertools.pairwise(block)]
    # A line that its next word would make too long ends there for its length.
    n_ends = sum(
        _ENDS_SENTENCE.search(line) is not None
        and not (width in _WIDTHS and len(line) + 1 + len(follows.split()[0]) > width)
        for line, follows in pairs
    )
    return bool(pairs) and n_ends >= _LINES_ENDING * len(pairs)


def _whole_sentences(text: str, lines: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lines, joined where one ends with a comma or the next begins in small letters."""
    found = [lines[0]]
    for start, end in lines[1:]:
        is_inner = text[found[-1][0] : found[-1][1]].rstrip()[-1:] in (",", ";")
        if is_inner or text[start:end].lstrip()[:1].islower():
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


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
    with the sentence before. Paragraphs that this pipeline parted before are not read again.
    """
    paragraphs = list(_plain_paragraphs(text))
    memo = _SPANS.setdefault(nlp, Memo(_REMEMBERED_CHARS))
    found = memo.each((plain for _, plain in paragraphs), lambda new: _spans_each(new, nlp), _BATCH)
    return [
        (begin + start, begin + end)
        for (begin, _), spans in zip(paragraphs, found, strict=True)
        for start, end in spans
    ]


_SPANS: WeakKeyDictionary[Any, Memo[list[tuple[int, int]]]] = WeakKeyDictionary()
"""By pipeline, the sentences of paragraphs."""


def _spans_each(paragraphs: Sequence[str], nlp: Any) -> Iterator[list[tuple[int, int]]]:
    docs = nlp.pipe(paragraphs, batch_size=_BATCH)
    return (spans_of_docs([(0, doc)]) for doc in docs)


def paragraph_docs(text: str, nlp: Any) -> list[tuple[int, Any]]:
    """spaCy's reading of each paragraph, and where it begins: offsets of both add up."""
    paragraphs = list(_plain_paragraphs(text))
    docs = nlp.pipe((plain for _, plain in paragraphs), batch_size=_BATCH)
    return [(begin, doc) for (begin, _), doc in zip(paragraphs, docs, strict=True)]


def _plain_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Where each paragraph begins, and its characters as the pipeline reads them.

    Line breaks within a paragraph are spaces to the pipeline; lengths stay the same.
    """
    for first, last in paragraph_spans(text):
        for begin, end in _bounded(text, first, last):
            yield begin, encodable(_SPACE.sub(" ", text[begin:end]))


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
