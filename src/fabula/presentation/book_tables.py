"""Books as tables: a row per chapter, who appears where, and repetitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fabula.measures.book import Book
from fabula.measures.talk import Talk
from fabula.presentation.sheet import Block, Column, Sheet, known
from fabula.reasons import explain
from fabula.types import Document
from fabula.web import visible

_MAX_CHARS = 40
_MAX_RUN = 70
_MAX_REPEATED = 10
_MAX_FINDINGS = 5
_LIMITS = "People are counted by name; pronouns and nicknames are not resolved."


def book_tables(
    documents: Sequence[Document], books: Sequence[Book | None], n_people: int, signature: str
) -> list[Block]:
    """For each book its chapters, its people and its repetitions."""
    parts: list[Block] = []
    for document, book in zip(documents, books, strict=True):
        title = visible(document.title)
        if book is None:
            parts += [f"{title}: not measured, {explain('no_words')}", ""]
            continue
        n = len(book.chapters)
        of = f"{n} {book.unit}{'s' if n != 1 else ''}"
        parts += [f"{title}: {book.n_words:,} words, {of}", ""]
        parts += [_chapters(document, book), ""]
        if book.missing_reason:
            parts += [f"no sentences and people: {explain(book.missing_reason)}", ""]
        parts += [said for _, said in book.findings[:_MAX_FINDINGS]]
        if book.findings:
            parts.append("")
        if book.characters:
            parts += [_people(document, book, n_people), _LIMITS]
            if book.n_spoken:
                share = sum(one.n_words for one in book.talk.values()) / book.n_spoken
                parts.append(
                    "Speech is attributed to the person named beside it with a verb of saying: "
                    f"{share:.0%} of its {book.n_spoken:,} words; the speakers of the others are "
                    "unknown."
                )
            parts.append("")
        if book.repeated:
            columns = [
                Column("repeated words", name="words", of=lambda one: _cut(one.words, _MAX_RUN)),
                Column("times", "d", name="n", of=lambda one: len(one.places)),
                Column(f"{book.unit}s", name="chapters", of=lambda one: _ranges(one.chapters)),
            ]
            shown = book.repeated[:_MAX_REPEATED]
            parts += [Sheet.of("repeated", shown, columns, about=("id", document.id)), ""]
    return [*parts, signature]


def _chapters(document: Document, book: Book) -> Sheet:
    columns = [
        Column("no.", "d", name="number"),
        Column(book.unit, name="title", of=lambda one: _cut(one.title, _MAX_CHARS)),
        Column("words", ",d", of="n_words"),
        Column("scenes", "d", of="n_scenes"),
        Column("words a sentence", ".1f", of=lambda one: known(one.sentence_words)),
        Column("speech", ".0%", of=lambda one: known(one.dialogue)),
        Column("pace", "+.1f", of=lambda one: known(one.pace)),
        Column("repeated", ".1%", of=lambda one: known(one.repeated)),
    ]
    return Sheet.of("chapters", book.chapters, columns, about=("id", document.id))


def _people(document: Document, book: Book, n_people: int) -> Sheet:
    shown = book.characters[: n_people or None]
    talk = defaultdict(lambda: Talk(0, 0), book.talk)
    columns = [
        Column("person", name="name", of=lambda one: visible(one.name)),
        Column("times", ",d", name="n", of=lambda one: len(one.places)),
        Column("speeches", ",d", name="n_speeches", of=lambda one: talk[one.name].n_speeches),
        Column("words spoken", ",d", name="n_words", of=lambda one: talk[one.name].n_words),
        Column(
            f"{book.unit}s",
            name="chapters",
            of=lambda one: _ranges([c.number for c in book.chapters if one.name in c.characters]),
        ),
        Column("also called", name="forms", of=lambda one: visible(", ".join(one.forms[1:4]))),
    ]
    return Sheet.of("people", shown, columns, about=("id", document.id))


def _ranges(numbers: Sequence[int]) -> str:
    """`1-4, 7`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def _cut(text: str, n_chars: int) -> str:
    text = visible(text)
    return text if len(text) <= n_chars else text[: n_chars - 2].rstrip() + " …"
