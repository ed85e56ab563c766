"""Passages: a number of sentences of a story, and the one that follows them in the book.

Roemmele, Gordon and Swanson 2017, section 2: 20 sentences are the context, the 21st is the gold
continuation. Here a book is cut into consecutive passages, none of which crosses a chapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from fabula.core.types import Document
from fabula.text import check_documents
from fabula.text.chapters import is_heading
from fabula.text.clusters import Components
from fabula.text.pipeline import SENTENCES, load_pipeline
from fabula.text.readers import cbt_books, detokenise
from fabula.text.sentences import paragraphs_of, sentences_of
from fabula.text.words import word_set

_SMALL = word_set("a an and at by for from in into of on or the to with s 's")
_UNITS = word_set("chapter part book volume stave canto letter")
_OPENING = frozenset({"``", "`", '"'})
_MIN_TITLE_WORDS = 3
_MAX_SOURCE_TOKENS = 3
_MIN_SHARED_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Chapter:
    """The sentences of a chapter, in order."""

    book: str
    number: int
    title: str
    sentences: tuple[str, ...]
    id: str = ""
    """Prefix of the passages' ids, if it is not the book."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A context and the sentence that follows it."""

    id: str
    book: str
    chapter: int
    context: tuple[str, ...]
    gold: str


def passages_of(
    chapters: Iterable[Chapter], n_sentences: int = 20, stride: int | None = None
) -> Iterator[Passage]:
    """Yield the passages of each chapter, each starting `stride` sentences after the previous one.

    By default they do not overlap; the remaining sentences of a chapter are left out.
    """
    for chapter in chapters:
        starts = range(0, len(chapter.sentences) - n_sentences, stride or n_sentences + 1)
        for k, start in enumerate(starts, 1):
            part = chapter.sentences[start : start + n_sentences + 1]
            id_ = f"{chapter.id or chapter.book}/{chapter.number}/{k}"
            yield Passage(id_, chapter.book, chapter.number, part[:-1], part[-1])


def book_chapters(documents: Iterable[Document]) -> Iterator[Chapter]:
    """Yield the chapters of texts and of Children's Book Test files, according to each document.

    A row with a list of `sentences`, and lines after `_BOOK_TITLE_ :`, hold Penn Treebank tokens;
    every other text is prose. An item of the test is a chapter: its 20 sentences and the 21st.
    Items come last, overlapping ones as one book, since released items do not say which book they
    are from.
    """
    nlp, items = load_pipeline(SENTENCES), list[Document]()
    for document in check_documents(documents):
        tokens = document.meta.get("sentences")
        if isinstance(tokens, list) and "cbt_item" in document.meta:
            items.append(document)
        elif isinstance(tokens, list):
            yield from treebank_chapters(document.id, map(str, tokens))
        elif document.text.lstrip().startswith("_BOOK_TITLE_"):
            for title, lines in cbt_books(document.text):
                yield from treebank_chapters(title, lines)
        else:
            yield from text_chapters(document, nlp)
    for document, book in zip(items, _books_of_items(items), strict=True):
        sentences = tuple(detokenise(str(line).split()) for line in document.meta["sentences"])
        title = str(document.meta.get("title", ""))
        yield Chapter(book, 1, title, sentences, document.id)


def _books_of_items(items: Sequence[Document]) -> list[str]:
    """For each item, the first of those it overlaps, directly or through others.

    Items overlap if they share two consecutive sentences with at least `_MIN_SHARED_TOKENS` tokens
    in total: answers such as "Yes." recur in any book.
    """
    joined = Components(len(items))
    holder: dict[tuple[str, str], int] = {}
    for k, item in enumerate(items):
        for pair in pairwise(map(str, item.meta["sentences"])):
            if sum(len(line.split()) for line in pair) >= _MIN_SHARED_TOKENS:
                first, other = sorted(map(joined.root, (holder.setdefault(pair, k), k)))
                joined.join(other, first)
    return [items[joined.root(k)].id for k in range(len(items))]


def treebank_chapters(book: str, sentences: Iterable[str]) -> Iterator[Chapter]:
    """Chapters of tokenised sentences, with headings at the start of a chapter's first sentence.

    The end of a heading cannot always be found, so a sentence with one is left out; it separates
    the chapters. A name of three words at the start of a sentence is taken for a heading too. Worst
    case: an extra chapter, never a passage spanning two.
    """
    number, title, kept = 1, "", list[str]()
    # Rows of stars end a sentence: what follows them is often a heading.
    runs = (groupby(line.split(), lambda token: not token.strip("*")) for line in sentences)
    parts = (list(part) for run in runs for is_star, part in run if not is_star)
    for tokens in parts:
        heading = _heading_tokens(tokens)
        if heading:
            if kept:
                yield Chapter(book, number, title, tuple(kept))
                number += 1
            title, kept = detokenise(tokens[:heading]), []
        elif tokens and (kept or not title or len(tokens) > _MAX_SOURCE_TOKENS):
            # Otherwise the rest of a source that followed the heading: "Grimm ."
            kept.append(detokenise(tokens))
    if kept:
        yield Chapter(book, number, title, tuple(kept))


def _heading_tokens(tokens: Sequence[str]) -> int:
    """The number of tokens of the heading that a sentence begins with; 0 without one."""
    shouted = 0
    while shouted < len(tokens) and tokens[shouted].isupper() and tokens[shouted] not in ("I", "A"):
        shouted += 1
    if sum(len(token) > 1 for token in tokens[:shouted]) >= 2:
        return shouted
    if tokens and tokens[0].lower() in _UNITS and is_heading(" ".join(tokens[:2])):
        return 2
    titled = n_capitals = 0
    for token in tokens:
        if token[:1].isupper():
            n_capitals += 1
        elif not (titled and token.lower() in _SMALL):
            break
        titled += 1
    follows_quote = titled < len(tokens) and tokens[titled] in _OPENING
    return titled if n_capitals + follows_quote > _MIN_TITLE_WORDS else 0


def text_chapters(document: Document, nlp: Any) -> Iterator[Chapter]:
    """Chapters of a text in paragraphs, split at lines that are headings.

    A heading is a short paragraph of one line that says chapter, part or the like, is a number, or
    is all in capitals, and does not end like a sentence (`fabula.text.chapters`).
    """
    number, title, kept = 1, str(document.meta.get("title") or ""), list[str]()
    paragraphs = paragraphs_of(document.text)
    headings = [is_heading(paragraph) for paragraph in paragraphs]
    prose = (p for p, is_title in zip(paragraphs, headings, strict=True) if not is_title)
    sentences = sentences_of(prose, nlp)
    for paragraph, is_title in zip(paragraphs, headings, strict=True):
        if not is_title:
            kept += next(sentences)
            continue
        if kept:
            yield Chapter(document.id, number, title, tuple(kept))
            number += 1
        title, kept = paragraph.strip(), []
    if kept:
        yield Chapter(document.id, number, title, tuple(kept))
