"""A book by its chapters: length, pace, speech, repetitions, and who appears where.

Pace compares the chapters of one book with each other, in three ways that a reader notices: shorter
sentences, shorter paragraphs and more speech read faster. Each is standardized over the chapters,
and pace is their mean, so 0 is the book's own average. It is a heuristic of this module, not a
measure of how gripping a chapter is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import fsum
from statistics import fmean, median, pstdev
from typing import Any

import numpy as np

from fabula.core.instruments import Figure
from fabula.core.types import Document, Measurement, Signature
from fabula.linguistic.cast import (
    CAST_RULES,
    TALK_RULES,
    Person,
    Talk,
    cast_of,
    speakers_of,
    talk_of,
)
from fabula.text import TextSettings, TextWords
from fabula.text.chapters import CHAPTER_RULES, Chapter, sections_of
from fabula.text.language import not_english
from fabula.text.pipeline import SENTENCES, load_pipeline, pipeline_parts
from fabula.text.reading import Reading
from fabula.text.speech import READER, flags_within

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
        row = BookChapter(
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
        rows.append(row)
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


_FIGURES = f"""\
n_chapters | Chapters | .0f | by their headings
n_scenes | Scenes | .0f | separated by * * * or by extra space
chapter_words | Words in a chapter | .0f | the median
unevenness | Unevenness of chapters | .2f | variation of their lengths: standard deviation over mean
repeated | Repeated across chapters | .1% | words in runs of {_RUN} or more that also occur in \
another chapter
n_characters | People named | .0f | at least five times
"""


class BookInstrument:
    """A long text by chapter, for pages and files; short texts have none."""

    id, title, citation = "book", "The book, chapter by chapter", ""
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
