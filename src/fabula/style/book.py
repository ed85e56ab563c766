"""A book by its chapters: length, pace, speech, repetitions, and who appears where.

Pace compares the chapters of one book with each other, in three ways that a reader notices: shorter
sentences, shorter paragraphs and more speech read faster. Each is standardized over the chapters,
and pace is their mean, so 0 is the book's own average. It is a heuristic of this module, not a
measure of how gripping a chapter is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import fsum
from statistics import fmean, median, pstdev
from typing import Any

import numpy as np

from fabula.core.errors import explain
from fabula.core.instruments import Figure
from fabula.core.types import Document, Measurement, Signature, Span
from fabula.linguistic.cast import (
    CAST_RULES,
    TALK_RULES,
    Person,
    Talk,
    cast_of,
    speakers_of,
    talk_of,
)
from fabula.show.page import Paragraph
from fabula.show.parts import MeasuredPart, Review, TextReview
from fabula.show.sheet import Block, Column, Sheet, known
from fabula.text import TextSettings, TextWords, count_words
from fabula.text.chapters import CHAPTER_RULES, Chapter, chapters_of, sections_of
from fabula.text.pipeline import SENTENCES, load_pipeline, pipeline_parts
from fabula.text.reading import Reading
from fabula.text.sentences import not_english
from fabula.text.speech import READER, flags_within
from fabula.web import visible

BOOK_RULES = "1"
"""Version: changes with any rule or threshold below."""
BOOK_WORDS = 10_000
"""From this many words on, a text is a book, whatever its headings."""
_MIN_CHAPTERS = 3
_SECTION_CHARS = 18_000
_RUN = 6
"""A run of this many words that occurs in two chapters is a repetition."""
_MIN_COMPARED = 4
"""Minimum number of chapters for a pace."""
_MIN_CHAPTER_WORDS = 200
"""A shorter chapter has no pace: one long sentence would decide it."""
_FAR = 1.0
"""A pace this far from the mean is reported in a sentence."""
_MAX_REPEATED = 20
_N_FIRST = 2
"""Number of sentences on the first screen of a report."""

_PACED = {
    "sentence_words": "{:.0f} words a sentence (elsewhere {:.0f})",
    "paragraph_words": "{:.0f} words a paragraph (elsewhere {:.0f})",
    "dialogue": "{:.0%} of its words spoken (elsewhere {:.0%})",
}
"""The components of pace, and how each is described."""

_MAX_PEOPLE = 14
_MAX_TALKERS = 5
_N_REPEATED = 10
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

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BookChapter:
    """A chapter and its numbers; None if missing. Offsets are half-open, in characters."""

    number: int
    title: str
    part: str
    start: int
    end: int
    n_words: int
    n_scenes: int
    n_sentences: int | None
    sentence_words: float | None
    paragraph_words: float | None
    dialogue: float | None
    """The share of its words that is quoted speech."""
    repeated: float | None
    """The share of its words in runs of six or more that also occur in another chapter."""
    pace: float | None = None
    characters: Mapping[str, int] = field(default_factory=dict)
    """How often each of the book's people is named in it."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A run of words that occurs in two or more chapters."""

    words: str
    n_words: int
    chapters: tuple[int, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Book:
    """A text by chapter."""

    unit: str
    """`chapter`, or `section` for a long text without headings."""
    n_words: int
    chapters: tuple[BookChapter, ...]
    characters: tuple[Person, ...]
    repeated: tuple[Repeated, ...]
    talk: Mapping[str, Talk] = field(default_factory=dict)
    """What the people say, by name; for those who are named as speakers."""
    n_spoken: int = 0
    """Words in quoted speech."""
    missing_reason: str | None = None
    """Why there are no sentences and no people: the text is not in English."""

    @property
    def findings(self) -> list[tuple[int, str]]:
        """Chapters whose pace is far from the mean, the furthest first, each with its number.

        How far a chapter is from the others is said by its two largest differences. It is called
        `Chapter 4`; where the text has no headings, `Section 4 (words 9,001 to 12,000)`.
        """
        paces = {c.number: c.pace for c in self.chapters if c.pace is not None}
        far = sorted((k for k in paces if abs(paces[k]) >= _FAR), key=lambda k: -abs(paces[k]))
        sentences = []
        for chapter in (self.chapters[number - 1] for number in far):
            name = f"{self.unit.capitalize()} {chapter.number}"
            if self.unit != "chapter":
                before = sum(other.n_words for other in self.chapters[: chapter.number - 1])
                name += f" (words {before + 1:,} to {before + chapter.n_words:,})"
            others = [c for c in self.chapters if c.number in paces and c != chapter]
            differences = []
            for component, form in _PACED.items():
                value = getattr(chapter, component)
                elsewhere = [getattr(other, component) for other in others]
                apart = abs(value - fmean(elsewhere)) / (pstdev(elsewhere) or 1.0)
                differences.append((apart, form.format(value, fmean(elsewhere))))
            first, second = (text for _, text in sorted(differences, reverse=True)[:2])
            way = "slower" if paces[chapter.number] < 0 else "faster"
            sentences.append((chapter.number, f"{name} is {way} than the rest: {first}, {second}."))
        return sentences

    def value(self, item: str) -> float | None:
        """A metric of the instrument; None if it is missing."""
        words = [c.n_words for c in self.chapters]
        n_words = sum(c.n_words for c in self.chapters)
        repeated = fsum((c.repeated or 0.0) * c.n_words for c in self.chapters)
        return {
            "n_chapters": float(len(words)) if self.unit == "chapter" else None,
            "n_scenes": float(sum(c.n_scenes for c in self.chapters)),
            "chapter_words": float(median(words)) if words else None,
            "unevenness": pstdev(words) / fmean(words) if any(words) else None,
            "repeated": repeated / n_words if n_words else None,
            "n_characters": None if self.missing_reason else float(len(self.characters)),
        }[item]

    def to_row(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "n_words": self.n_words,
            "chapters": [asdict(chapter) for chapter in self.chapters],
            "characters": [
                {
                    "name": person.name,
                    "forms": list(person.forms),
                    "n": len(person.places),
                    **asdict(self.talk.get(person.name, Talk(0, 0))),
                }
                for person in self.characters
            ],
            "n_spoken": self.n_spoken,
            "repeated": [asdict(run) for run in self.repeated],
            "findings": [{"chapter": number, "text": text} for number, text in self.findings],
            "missing_reason": self.missing_reason,
        }


def measure_book(document: Document, *, always: bool = False) -> Book | None:
    """A text by chapter; None if it is short and has fewer than three chapters.

    always: whether short texts are measured too. Raises `ModelError` if spaCy or the pipeline is
    not installed.
    """
    read, settings = Reading(document), TextSettings()
    text, chapters = read.text, read.chapters
    is_wanted = always or len(chapters) >= _MIN_CHAPTERS
    # Short texts are not read further.
    if not is_wanted and len(text) < 3 * BOOK_WORDS:
        return None
    located = settings.locate(text)
    n_words = len(located.words)
    if not (is_wanted or n_words >= BOOK_WORDS) or not n_words:
        return None
    unit = "chapter" if chapters else "section"
    chapters = chapters or sections_of(text, _SECTION_CHARS)
    edges = np.searchsorted(located.starts, [(c.body, c.end) for c in chapters])
    ranges = [(first, last) for first, last in edges.tolist()]
    foreign = not_english(text)
    people = [] if foreign else cast_of(read)
    repeated, flags = _repetition(text, located, chapters, ranges)
    spoken = np.array(flags_within(located.starts.tolist(), read.speech), bool)
    n_said = [int(np.diff(np.searchsorted(located.starts, place))[0]) for place in read.speech]
    rows = []
    for chapter, (first, last) in zip(chapters, ranges, strict=True):
        part = Reading(text[chapter.body : chapter.end], load_pipeline(SENTENCES))
        n_here = last - first
        n_paragraphs = sum(settings.has_words(part.text[a:b]) for a, b in part.paragraphs)
        n_sentences = None if foreign else len(part.sentences)
        rows.append(
            BookChapter(
                number=chapter.number,
                title=" ".join(chapter.name.split()),
                part=" ".join(chapter.part.split()),
                start=chapter.start,
                end=chapter.end,
                n_words=n_here,
                n_scenes=len(chapter.scenes),
                n_sentences=n_sentences,
                sentence_words=n_here / n_sentences if n_sentences else None,
                paragraph_words=n_here / n_paragraphs if n_paragraphs else None,
                dialogue=float(spoken[first:last].mean()) if n_here else None,
                repeated=float(flags[first:last].mean()) if n_here else None,
                characters={
                    person.name: n
                    for person in people
                    if (n := sum(chapter.body <= start < chapter.end for start, _ in person.places))
                },
            )
        )
    compared = [row for row in rows if row.n_words >= _MIN_CHAPTER_WORDS and row.sentence_words]
    if len(compared) >= _MIN_COMPARED:
        scores: dict[int, list[float]] = defaultdict(list)
        for name, sign in (("sentence_words", -1), ("paragraph_words", -1), ("dialogue", 1)):
            values = [getattr(row, name) for row in compared]
            middle, spread = fmean(values), pstdev(values)
            for row, value in zip(compared, values, strict=True):
                scores[row.number].append(sign * (value - middle) / spread if spread else 0.0)
        paces = {number: fmean(of_chapter) for number, of_chapter in scores.items()}
        rows = [replace(row, pace=paces.get(row.number)) for row in rows]
    parts = tuple(rows), tuple(people), tuple(repeated)
    talk = talk_of(people, speakers_of(read, people), n_said)
    return Book(unit, n_words, *parts, talk, int(spoken.sum()), foreign)


def _repetition(
    text: str, located: TextWords, chapters: Sequence[Chapter], ranges: Sequence[Place]
) -> tuple[list[Repeated], Any]:
    """Runs of words shared by two chapters, the longest and most frequent first, and a flag for
    each word of the text: bool, shape (n_words,)."""
    words = located.words
    grams = list(zip(*(words[k:] for k in range(_RUN)), strict=False))
    # The runs of `_RUN` words that occur in two or more of the ranges of words.
    home: dict[tuple[str, ...], int] = {}
    shared = {
        gram
        for k, (first, last) in enumerate(ranges)
        for gram in grams[first : max(first, last - _RUN + 1)]
        if home.setdefault(gram, k) != k
    }
    flags = np.zeros(len(words), bool)
    runs: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for k, (first, last) in enumerate(ranges):
        i = first
        while i <= last - _RUN:
            if grams[i] not in shared:
                i += 1
                continue
            j = i
            while j + 1 <= last - _RUN and grams[j + 1] in shared:
                j += 1
            end = j + _RUN
            flags[i:end] = True
            runs[tuple(words[i:end])].append((k, i))
            i = end
    repeated = []
    for run, places in runs.items():
        inside = tuple(sorted({chapters[k].number for k, _ in places}))
        if len(inside) < 2:
            continue
        spots = tuple(
            (int(located.starts[i]), int(located.ends[i + len(run) - 1])) for _, i in places
        )
        phrase = " ".join(text[slice(*spots[0])].split())
        repeated.append(Repeated(phrase, len(run), inside, spots))
    repeated.sort(key=lambda run: (-run.n_words * (len(run.places) - 1), run.places))
    return repeated[:_MAX_REPEATED], flags


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
    number: int, book: Mapping[str, Any], more: Sequence[Mapping[str, float | None]]
) -> dict[str, Any]:
    """What the template shows of a book, whose row is `book`; `number` is that of its text.

    `more` has other instruments' results for each chapter, as `by_chapter` returns them.
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
        "panels": [_panel(chapters, p) for p in panels if any(c[p[0]] for c in chapters)],
        "heat": _heat(book),
        "repeated": [
            {
                "words": run["words"],
                "n": len(run["places"]),
                "chapters": [(k, targets[k]) for k in run["chapters"]],
            }
            for run in book["repeated"][:_N_REPEATED]
        ],
        "titles": [title for _, title, _, _ in panels],
        "rows": [
            {
                **row,
                "target": targets[row["number"]],
                "cells": [
                    "missing" if row[name] is None else form.format(row[name])
                    for name, _, form, _ in panels
                ],
            }
            for row in chapters
        ],
    }


def _panel(chapters: Sequence[Mapping[str, Any]], panel: Sequence[str]) -> dict[str, Any]:
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


def _heat(book: Mapping[str, Any]) -> dict[str, Any] | None:
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
            parts += [Sheet.of("repeated", book.repeated[:_N_REPEATED], columns, about=about), ""]
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


def shares_within(text: str, spans: Iterable[Span], places: Iterable[Place]) -> list[float | None]:
    """The share of the words of each place that begin in one of the spans; None without words."""
    starts = TextSettings().locate(text).starts
    is_inside = np.zeros(len(starts), bool)
    for span in spans:
        is_inside[slice(*np.searchsorted(starts, (span.start, span.end)))] = True
    parts = [is_inside[slice(*np.searchsorted(starts, place))] for place in places]
    return [float(part.mean()) if len(part) else None for part in parts]


def by_chapter(
    text: TextReview, chapters: Sequence[Mapping[str, Any]]
) -> list[dict[str, float | None]]:
    """Return the numbers of each chapter, given as a row of a book.

    These are its number, the share of its words in borrowed passages, and its surprise in bits per
    word. What was not measured, or is missing, is None.
    """
    places = [(int(chapter["start"]), int(chapter["end"])) for chapter in chapters]
    bits: list[float | None] = [None] * len(places)
    if "fluency" in text.results:
        bits = [span.bits_per_word for span in text.results["fluency"].of_spans(places)]
    shares: list[float | None] = [None] * len(places)
    originality = text.results.get("originality")
    if originality is not None and originality.ranked is not None:
        runs = [run.span for passage in originality.ranked.passages for run in passage.runs]
        shares = shares_within(originality.document.text, runs, places)
    return [
        {"chapter": chapter["number"], "borrowed": share, "surprise": surprise}
        for chapter, share, surprise in zip(chapters, shares, bits, strict=True)
    ]


_FIGURES = f"""\
n_chapters | Chapters | .0f | by their headings
n_scenes | Scenes | .0f | separated by * * * or by extra space
chapter_words | Words in a chapter | .0f | the median
unevenness | Unevenness of chapters | .2f | variation of their lengths: standard deviation over mean
repeated | Repeated across chapters | .1% | words in runs of {_RUN} or more that also occur in \
another chapter
n_characters | People named | .0f | at least five times
"""


class BookInstrument(MeasuredPart):
    """A long text by chapter, for pages and files; short texts have none."""

    id, title, order = "book", "The book, chapter by chapter", 80
    template, style = "style/book.html.j2", "style/book.css.j2"
    figures = tuple(Figure(*line.split(" | ")) for line in _FIGURES.splitlines())
    methods = (
        "Chapters and scenes were identified by headings, separators and the space between "
        "paragraphs. For each chapter we measured mean words per sentence and per paragraph and "
        "the share of words in quoted speech; pace is the mean of the three (the first two "
        "negated) in standard deviations over the chapters. Runs of "
        f"{_RUN} or more words that occur in two chapters count as repetition across the book. "
        "People were counted by their names, whose forms were merged by rules; pronouns were not "
        "counted. Speech was attributed to the person named beside it with a verb of saying."
    )

    @property
    def signature(self) -> Signature:
        return Signature.of(
            "book",
            rules=BOOK_RULES,
            chapters=CHAPTER_RULES,
            names=CAST_RULES,
            talk=TALK_RULES,
            run=str(_RUN),
            speech=READER,
            **TextSettings().signature_parts(),
            **pipeline_parts(load_pipeline(SENTENCES)),
        )

    def measure(self, documents: Sequence[Document]) -> Iterator[Sequence[Measurement]]:
        """None for a text that is short and has fewer than three chapters."""
        for document in documents:
            book = measure_book(document)
            if book is None:
                yield ()
                continue
            missing = {"n_chapters": "no_headings", "n_characters": book.missing_reason}
            # The first screen says that a chapter is slower; the numbers are with the chapters.
            first = [t.partition(":")[0].rstrip(".") + "." for _, t in book.findings[:_N_FIRST]]
            details = {"book": book.to_row(), "findings": first}
            rows = []
            for item in (figure.item for figure in self.figures):
                value = book.value(item)
                reason = missing.get(item, "no_words") if value is None else None
                about = document.id, self.id, item, "fabula"
                more = details if item == "n_chapters" else {}
                rows.append(Measurement(*about, value, reason, (), None, str(self.signature), more))
            yield rows

    def content(self, text: TextReview) -> Mapping[str, Any]:
        row = self._row(text)
        return {} if row is None else {"by_chapter": by_chapter(text, row["chapters"])}

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        row = self._row(text)
        if row is None:
            return None
        book = book_view(number, row, by_chapter(text, row["chapters"]))
        return super().view(number, text, review) | {"book": book}

    def _row(self, text: TextReview) -> dict[str, Any] | None:
        measured = text.results.get(self.id, ())
        return next((m.details["book"] for m in measured if "book" in m.details), None)
