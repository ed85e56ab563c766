"""A book on the page and in tables: its chapters, who appears where, and repetitions."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabula.core.errors import explain
from fabula.core.types import Document
from fabula.linguistic.cast import Talk
from fabula.show.page import Paragraph
from fabula.show.sheet import Block, Column, Sheet, known
from fabula.style.book import BOOK_WORDS, Book
from fabula.text import count_words
from fabula.text.chapters import Chapter, chapters_of
from fabula.web import visible

_MAX_PEOPLE = 14
_MAX_TALKERS = 5
_MAX_REPEATED = 10
_MAX_FINDINGS = 5
_PANEL_WIDTH, _PANEL_HEIGHT = 320, 96
_LEFT, _TOP, _BOTTOM = 34, 10, 78
_CELL_HEIGHT, _NAME_WIDTH, _HEAT_WIDTH = 20, 140, 900
_PANELS = [
    line.split(" | ")
    for line in """\
n_words | Words | {:,.0f} | how long each chapter is
sentence_words | Words per sentence | {:.1f} | the mean
dialogue | Speech | {:.0%} | the share of words in quotation marks
pace | Pace | {:+.1f} | higher: shorter sentences and paragraphs, more speech than elsewhere
repeated | Repeated | {:.1%} | the share of words in runs of six that also occur in other chapters
borrowed | Borrowed | {:.1%} | the share of words in passages found in the reference
surprise | Surprise | {:.1f} | how improbable a small language model finds the words, in bits a word
""".splitlines()
]
"""Field, title, form and explanation of each small chart."""


@dataclass(slots=True)
class Fold:
    """A chapter of a text as the page folds it."""

    id: str
    n_words: int
    is_open: bool = False
    """It precedes the first chapter, and is not folded."""
    heading: list[Paragraph] = field(default_factory=list)
    paragraphs: list[Paragraph] = field(default_factory=list)

    @property
    def marked(self) -> str:
        """Counts of what is marked in it."""
        pieces = [piece for paragraph in self.paragraphs for piece in paragraph]
        n_borrowed = sum(
            piece.is_first and piece.borrowed is not None and not piece.borrowed.is_common
            for piece in pieces
        )
        n_notes = sum(len(piece.first_notes) for piece in pieces)
        n_listed = len({piece.listed.row for piece in pieces if piece.listed is not None})
        counts = ((n_borrowed, "passage"), (n_notes, "point"), (n_listed, "note"))
        return ", ".join(f"{n} {what}{'s' if n > 1 else ''}" for n, what in counts if n)


def chapters_to_fold(document: Document) -> list[Chapter]:
    """The chapters of a text of ten thousand words or more; none for a shorter one."""
    if len(document.text) < 2 * BOOK_WORDS:
        return []
    chapters = chapters_of(document)
    return chapters if chapters and count_words(document.text) >= BOOK_WORDS else []


def folds_of(
    document: Document, number: int, chapters: Sequence[Chapter], paragraphs: Sequence[Paragraph]
) -> list[Fold]:
    """The paragraphs of a text by chapter; text before the first is not folded."""
    if not chapters:
        return []
    starts = [chapter.start for chapter in chapters]
    folds = [Fold("", 0, is_open=True)]
    folds += [
        Fold(f"ch{number}-{c.number}", count_words(document.text[c.body : c.end])) for c in chapters
    ]
    for paragraph in paragraphs:
        k = bisect_right(starts, paragraph.start)
        is_heading = k > 0 and paragraph.start < chapters[k - 1].body
        (folds[k].heading if is_heading else folds[k].paragraphs).append(paragraph)
    return folds


def book_view(
    document: Document,
    number: int,
    book: Mapping[str, Any],
    more: Sequence[Mapping[str, float | None]],
) -> dict[str, Any]:
    """What the template shows of a book, whose row is `book`; `number` is that of its text.

    `more` has other instruments' results for each chapter (`fabula.review.parts`).
    """
    chapters = [{**row, **extra} for row, extra in zip(book["chapters"], more, strict=True)]
    panels = [panel for panel in _PANELS if any(c[panel[0]] is not None for c in chapters)]
    is_folded = book["unit"] == "chapter" and book["n_words"] >= BOOK_WORDS
    targets = {c["number"]: f"#ch{number}-{c['number']}" if is_folded else "" for c in chapters}
    return {
        "unit": book["unit"],
        "missing": explain(book["missing_reason"]) if book["missing_reason"] else "",
        "findings": [
            {"text": finding["text"], "target": targets[finding["chapter"]]}
            for finding in book["findings"][:_MAX_FINDINGS]
        ],
        # A chart of nothing but zeros is uninformative; the table has them.
        "panels": [_panel(chapters, targets, p) for p in panels if any(c[p[0]] for c in chapters)],
        "heat": _heat(book, targets),
        "repeated": [
            {
                "words": run["words"],
                "n": len(run["places"]),
                "chapters": [(k, targets[k]) for k in run["chapters"]],
            }
            for run in book["repeated"][:_MAX_REPEATED]
        ],
        "titles": [title for _, title, _, _ in panels],
        "rows": [
            {
                "number": row["number"],
                "title": row["title"],
                "target": targets[row["number"]],
                "n_scenes": row["n_scenes"],
                "cells": [
                    "missing" if row[name] is None else form.format(row[name])
                    for name, _, form, _ in panels
                ],
            }
            for row in chapters
        ],
    }


def _panel(
    chapters: Sequence[Mapping[str, Any]], targets: Mapping[int, str], panel: Sequence[str]
) -> dict[str, Any]:
    """A bar for each chapter that has the number; negative ones hang down."""
    name, title, form, explained = panel
    shown = [c[name] for c in chapters if c[name] is not None]
    low, high = min(0.0, *shown), max(0.0, *shown)
    span = (high - low) or 1.0
    step = (_PANEL_WIDTH - _LEFT - 4) / len(chapters)

    def y(value: float) -> float:
        place: float = _BOTTOM - (_BOTTOM - _TOP) * (value - low) / span
        return round(place, 1)

    bars = [
        {
            "x": round(_LEFT + step * k, 1),
            "y": min(y(0.0), y(chapter[name])),
            "width": round(max(1.0, step - min(2.0, step / 4)), 1),
            "height": max(1.0, round(abs(y(chapter[name]) - y(0.0)), 1)),
            "label": f"{chapter['number']}. {chapter['title']}: {form.format(chapter[name])}",
            "target": targets[chapter["number"]],
        }
        for k, chapter in enumerate(chapters)
        if chapter[name] is not None
    ]
    return {
        "title": title,
        "explained": explained,
        "bars": bars,
        "zero": y(0.0),
        "scale": [(y(end), form.format(end)) for end in dict.fromkeys((high, low))],
        "ticks": _ticks(chapters, _LEFT, step, 18),
        "label": f"{title} by chapter, from {form.format(min(shown))} to {form.format(max(shown))}",
        "width": _PANEL_WIDTH,
        "height": _PANEL_HEIGHT,
        "left": _LEFT,
        "bottom": _BOTTOM,
    }


def _ticks(
    chapters: Sequence[Mapping[str, Any]], left: float, step: float, room: float
) -> list[tuple[float, int]]:
    """Labels of columns: the first, and as many as have `room`."""
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 10**6) if n * step >= room)
    return [
        (round(left + step * (k + 0.5), 1), chapter["number"])
        for k, chapter in enumerate(chapters)
        if k == 0 or chapter["number"] % every == 0
    ]


def _heat(book: Mapping[str, Any], targets: Mapping[int, str]) -> dict[str, Any] | None:
    """A row per person and a column per chapter, darker where the name occurs more often."""
    people, chapters = book["characters"][:_MAX_PEOPLE], book["chapters"]
    if not people:
        return None
    width = min((_HEAT_WIDTH - _NAME_WIDTH) / len(chapters), 44.0)
    rows: list[dict[str, Any]] = []
    for number, person in enumerate(people):
        name = person["name"]
        rates = [
            1000 * c["characters"].get(name, 0) / c["n_words"] if c["n_words"] else 0.0
            for c in chapters
        ]
        most = max(rates) or 1.0
        cells = [
            {
                "x": round(_NAME_WIDTH + width * j, 1),
                "shade": round((rate / most) ** 0.5, 2),
                "label": f"{name}, {book['unit']} {c['number']}: {c['characters'][name]}",
                "target": targets[c["number"]],
            }
            for j, (c, rate) in enumerate(zip(chapters, rates, strict=True))
            if rate
        ]
        also = ", ".join(person["forms"][1:5])
        rows.append(
            {
                "name": (name if len(name) <= 20 else name[:19] + "…"),
                "title": (
                    f"{name}: {person['n']:,} times, {person['n_speeches']:,} speeches of "
                    f"{person['n_words']:,} words" + (f"; {also}" if also else "")
                ),
                "said": f"{name} in {len(cells)} of {len(chapters)}",
                "y": 22 + _CELL_HEIGHT * number,
                "cells": cells,
            }
        )
    talkers = sorted(book["characters"], key=lambda person: -person["n_words"])
    shares = [
        f"{person['name']} {person['n_words'] / book['n_spoken']:.0%}"
        for person in talkers[:_MAX_TALKERS]
        if person["n_words"]
    ]
    talk = ""
    if shares:
        share = sum(person["n_words"] for person in talkers) / book["n_spoken"]
        talk = (
            f"Of the words spoken, {share:.0%} have a name beside them with a verb of saying: "
            f"{', '.join(shares)}. The speakers of the others are not identified."
        )
    return {
        "rows": rows,
        "n_more": len(book["characters"]) - len(people),
        "talk": talk,
        "width": round(_NAME_WIDTH + width * len(chapters) + 4),
        "height": 26 + _CELL_HEIGHT * len(people),
        "left": _NAME_WIDTH,
        "cell": round(width - 1, 1),
        "ticks": _ticks(chapters, _NAME_WIDTH, width, 20),
        "label": "People by chapter: " + "; ".join(str(row["said"]) for row in rows),
    }


_MAX_CHARS = 40
_MAX_RUN = 70
_LIMITS = "People are counted by name; pronouns and nicknames are not resolved."
_CHAPTERS = (
    Column("no.", "d", name="number"),
    Column("words", ",d", of="n_words"),
    Column("scenes", "d", of="n_scenes"),
    Column("words a sentence", ".1f", of=lambda chapter: known(chapter.sentence_words)),
    Column("speech", ".0%", of=lambda chapter: known(chapter.dialogue)),
    Column("pace", "+.1f", of=lambda chapter: known(chapter.pace)),
    Column("repeated", ".1%", of=lambda chapter: known(chapter.repeated)),
)
"""The columns of chapters, but for their titles, which come second."""


def book_tables(
    documents: Sequence[Document], books: Sequence[Book | None], n_people: int, signature: str
) -> list[Block]:
    """For each book its chapters, its people and its repetitions."""
    parts: list[Block] = []
    for document, book in zip(documents, books, strict=True):
        title = document.title
        if book is None:
            parts += [f"{title}: not measured, {explain('no_words')}", ""]
            continue
        n = len(book.chapters)
        of = f"{n} {book.unit}{'s' if n != 1 else ''}"
        parts += [f"{title}: {book.n_words:,} words, {of}", ""]
        about = ("id", document.id)
        titles = Column(book.unit, name="title", of=lambda c: _cut(c.title, _MAX_CHARS))
        columns = [_CHAPTERS[0], titles, *_CHAPTERS[1:]]
        parts += [Sheet.of("chapters", book.chapters, columns, about=about), ""]
        if book.missing_reason:
            parts += [f"no sentences and people: {explain(book.missing_reason)}", ""]
        parts += [sentence for _, sentence in book.findings[:_MAX_FINDINGS]]
        if book.findings:
            parts.append("")
        if book.characters:
            parts += [_people(document, book, n_people), _LIMITS]
            if book.n_spoken:
                share = sum(talk.n_words for talk in book.talk.values()) / book.n_spoken
                parts.append(
                    "Speech is attributed to the person named beside it with a verb of saying: "
                    f"{share:.0%} of its {book.n_spoken:,} words; the speakers of the others are "
                    "unknown."
                )
            parts.append("")
        if book.repeated:
            columns = [
                Column("repeated words", name="words", of=lambda run: _cut(run.words, _MAX_RUN)),
                Column("times", "d", name="n", of=lambda run: len(run.places)),
                Column(f"{book.unit}s", name="chapters", of=lambda run: _ranges(run.chapters)),
            ]
            parts += [Sheet.of("repeated", book.repeated[:_MAX_REPEATED], columns, about=about), ""]
    return [*parts, signature]


def _people(document: Document, book: Book, n_people: int) -> Sheet:
    talk = defaultdict(lambda: Talk(0, 0), book.talk)
    columns = [
        Column("person", name="name", of=lambda person: visible(person.name)),
        Column("times", ",d", name="n", of=lambda person: len(person.places)),
        Column("speeches", ",d", name="n_speeches", of=lambda person: talk[person.name].n_speeches),
        Column("words spoken", ",d", name="n_words", of=lambda person: talk[person.name].n_words),
        Column(
            f"{book.unit}s",
            name="chapters",
            of=lambda p: _ranges([c.number for c in book.chapters if p.name in c.characters]),
        ),
        Column("also called", name="forms", of=lambda p: visible(", ".join(p.forms[1:4]))),
    ]
    shown = book.characters[: n_people or None]
    return Sheet.of("people", shown, columns, about=("id", document.id))


def _ranges(numbers: Sequence[int]) -> str:
    """`1-4, 7`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _cut(text: str, n_chars: int) -> str:
    text = visible(text)
    return text if len(text) <= n_chars else text[: n_chars - 2].rstrip() + " …"
