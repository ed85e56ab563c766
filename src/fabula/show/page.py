"""Write a page: one self-contained file that never overwrites files of other origin.

A text as a book page, split where its marks begin and end.

Four things are marked: borrowed text, the subjects of feedback, listed phrases, and notes on lines.
They may overlap; no text is lost or duplicated.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment

from fabula.core.errors import InputError
from fabula.core.store import write_whole
from fabula.text.emphasis import HEADING, emphasis_of, unmarked
from fabula.web import page_environment, visible

TEMPLATES = Path(__file__).parent / "templates"

_GENERATOR = b'<meta name="generator" content="Fabula">'


def write_page_file(path: Path, template: str, page: Mapping[str, Any]) -> None:
    """Write `page` using one of the templates next to this module."""
    check_page_path(path)
    text = page_templates().get_template(template).render(page=page)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode(errors="replace"))


@functools.cache
def page_templates() -> Environment:
    """The templates, which take longer to compile than a page takes to fill: opened once."""
    return page_environment(TEMPLATES)


def check_page_path(path: Path) -> None:
    """Raise `InputError` if `path` is something other than a page written by Fabula."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file for the page")
    if path.exists() and _GENERATOR not in path.read_bytes()[:2048]:
        raise InputError(f"{path}: was not written by Fabula; choose another name")


_PARAGRAPH = re.compile(r"[^\S\n]*\n(?:[^\S\n]*\n)+[^\S\n]*")


@dataclass(frozen=True, slots=True)
class Gloss:
    """A stretch of a near span, with what the source has in its place."""

    text: str
    source: str = ""
    similarity: float | None = None
    is_same: bool = False


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A borrowed passage, or a stretch of one, as the page shows it in the text and in lists."""

    number: int
    """Its rank, 0 for a commonplace."""
    start: int
    end: int
    n_words: int
    reason: str = ""
    """Why it has its rank: words, bits, places."""
    sources: Sequence[dict[str, Any]] = ()
    n_more: int = 0
    """Documents that contain it and are not named."""
    quote: str = ""
    is_near: bool = False
    is_marked: bool = False
    is_common: bool = False
    """Whether it is hidden until requested."""
    similarity: float | None = None
    glosses: tuple[Gloss, ...] = ()
    """A near span's words, each with the most similar word of the source."""

    @property
    def shade(self) -> float:
        """The darkness of its mark."""
        return 0.3 if self.is_near else 0.7


@dataclass(frozen=True, slots=True)
class Note:
    """A point of feedback as the page shows it."""

    name: str
    """Shown at its place and in the margin."""
    text: str
    said: str
    share: float
    quoted: list[str]
    places: tuple[tuple[int, int], ...]
    by: str = ""
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A phrase of a list, or a note on lines, as the page shows it."""

    start: int
    end: int
    n_words: int
    said: str
    """How often groups use it, or why it is noted."""
    row: str
    """Where the page has more about it."""
    anchor: str = ""
    """The anchor for links to a note."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a paragraph with uniform marks, or a line break."""

    text: str = ""
    borrowed: Borrowed | None = None
    is_first: bool = False
    is_last: bool = False
    """A borrowed span begins, or ends, here."""
    is_break: bool = False
    notes: tuple[Note, ...] = ()
    """The points that are about it."""
    first_notes: tuple[Note, ...] = ()
    """Those of them that were not shown before."""
    listed: Listed | None = None
    anchors: tuple[str, ...] = ()
    """For the notes that begin here, including those that another mark covers."""
    is_italic: bool = False


class Paragraph(list[Piece]):
    """The pieces of a paragraph, where it begins in the text, and whether it is a heading."""

    def __init__(self, start: int, pieces: Iterable[Piece], *, is_heading: bool = False) -> None:
        super().__init__(pieces)
        self.start, self.is_heading = start, is_heading


def cut_text(
    text: str,
    borrowed: Sequence[Borrowed] = (),
    notes: Sequence[Note] = (),
    listed: Sequence[Listed] = (),
    breaks: Sequence[int] = (),
    italics: Sequence[tuple[int, int]] = (),
    titles: Iterable[str] = (),
) -> list[Paragraph]:
    """The paragraphs of a text in pieces, without the marks of Markdown.

    breaks: additional paragraph starts, such as below a heading. italics, titles: the places of
    italics and the words of headings, besides those that marks show.
    """
    titles = {*titles, *(match[0].strip() for match in HEADING.finditer(text))}
    slanted = sorted([*italics, *emphasis_of(text)[1]])
    segments = segments_of(borrowed)
    outermost: list[Listed] = []
    for mark in sorted(listed, key=lambda mark: (mark.start, -mark.end)):
        # Of two on the same words the first.
        if not outermost or mark.end > outermost[-1].end:
            outermost.append(mark)
    phrases = segments_of(outermost)
    anchors: dict[int, list[str]] = {}
    for mark in listed:
        if mark.anchor:
            anchors.setdefault(mark.start, []).append(mark.anchor)
    marked = sorted((a, b, k) for k, note in enumerate(notes) for a, b in note.places)
    bounds = {k for a, b, _ in (*segments, *marked, *phrases) for k in (a, b)}
    edges = sorted(bounds | {k for place in slanted for k in place} | anchors.keys())
    spans_shown: set[int] = set()
    notes_shown: set[int] = set()

    def pieces(start: int, end: int) -> Iterator[Piece]:
        waiting: list[str] = []  # anchors of a piece that is a mark alone
        inside = edges[bisect.bisect_right(edges, start) : bisect.bisect_left(edges, end)]
        for a, b in pairwise([start, *inside, end]):
            segment, phrase = _segment_at(a, segments), _segment_at(a, phrases)
            span = segment[2] if segment else None
            noted = dict.fromkeys(k for begin, stop, k in marked if begin <= a < stop)
            waiting += anchors.pop(a, ())
            k_slanted = bisect.bisect_right(slanted, a, key=lambda place: place[0]) - 1
            is_italic = k_slanted >= 0 and a < slanted[k_slanted][1]
            lines = unmarked(text, a, b).split("\n")
            for number, line in enumerate(lines):
                if number:
                    yield Piece(is_break=True)
                if not line:
                    continue
                is_first = span is not None and span.number not in spans_shown
                if span is not None:
                    spans_shown.add(span.number)
                new = [k for k in noted if k not in notes_shown]
                notes_shown.update(new)
                is_end = number == len(lines) - 1
                # HTML would collapse the indent of a line of verse.
                n_spaces = len(line) - len(line.lstrip(" ")) if number else 0
                yield Piece(
                    visible("\u00a0" * n_spaces + line[n_spaces:]),
                    span,
                    is_first,
                    is_last=is_end and segment is not None and b == segment[1],
                    notes=tuple(notes[k] for k in noted),
                    first_notes=tuple(notes[k] for k in new),
                    listed=phrase[2] if phrase else None,
                    anchors=tuple(waiting),
                    is_italic=is_italic,
                )
                waiting.clear()

    borders = [match.span() for match in _PARAGRAPH.finditer(text)]
    after = {end for _, end in borders}
    # Existing breaks, and places outside the text, split nothing.
    borders += [(k, k) for k in {*breaks} - after if 0 < k < len(text)]
    borders = [(0, 0), *sorted(borders), (len(text), len(text))]
    cut = [
        Paragraph(start, pieces(start, end), is_heading=text[start:end].strip() in titles)
        for (_, start), (end, _) in pairwise(borders)
    ]
    return [paragraph for paragraph in cut if any(piece.text.strip() for piece in paragraph)]


S = TypeVar("S", Borrowed, Listed)


def _segment_at(place: int, segments: Sequence[tuple[int, int, S]]) -> tuple[int, int, S] | None:
    k = bisect.bisect_right(segments, place, key=lambda segment: segment[0]) - 1
    return segments[k] if k >= 0 and place < segments[k][1] else None


def segments_of(borrowed: Iterable[S]) -> list[tuple[int, int, S]]:
    """Stretches of text, each assigned to the longest span that covers it (then the first).

    Both the starts and the ends of maximal spans ascend, so a sweep over their edges is enough.
    """
    spans = list(borrowed)
    segments: list[tuple[int, int, S]] = []
    first = 0
    for start, end in pairwise(sorted({edge for span in spans for edge in (span.start, span.end)})):
        while first < len(spans) and spans[first].end <= start:
            first += 1
        k, best = first, None
        while k < len(spans) and spans[k].start <= start:
            if best is None or spans[k].n_words > best.n_words:
                best = spans[k]
            k += 1
        if best is None:
            continue
        if segments and segments[-1][1] == start and segments[-1][2] is best:
            segments[-1] = (segments[-1][0], end, best)
        else:
            segments.append((start, end, best))
    return segments
