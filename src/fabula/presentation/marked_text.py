"""A text as a book page, split where its marks begin and end.

Four things are marked: borrowed text, the subjects of feedback, listed phrases, and notes on lines.
They may overlap; no text is lost or duplicated.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from fabula.web import visible

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
    """A borrowed span as the page shows it."""

    number: int
    start: int
    end: int
    n_words: int
    shade: float
    frequency: str
    n_more: int
    sources: list[dict[str, Any]]
    is_near: bool = False
    similarity: float | None = None
    glosses: tuple[Gloss, ...] = ()
    """A near span's words, each with the most similar word of the source."""
    is_common: bool = False
    """Whether it is hidden until requested."""


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


class Paragraph(list[Piece]):
    """The pieces of a paragraph, and where it begins in the text."""

    def __init__(self, start: int, pieces: Iterable[Piece]) -> None:
        super().__init__(pieces)
        self.start = start


def cut_text(
    text: str,
    borrowed: Sequence[Borrowed] = (),
    notes: Sequence[Note] = (),
    listed: Sequence[Listed] = (),
    breaks: Sequence[int] = (),
) -> list[Paragraph]:
    """The paragraphs of a text in pieces.

    breaks: additional paragraph starts, such as below a heading.
    """
    cutter = _Cutter(text, borrowed, notes, listed)
    borders = [match.span() for match in _PARAGRAPH.finditer(text)]
    after = {end for _, end in borders}
    # Existing breaks, and places outside the text, split nothing.
    borders += [(k, k) for k in {*breaks} - after if 0 < k < len(text)]
    borders.sort()
    found = [
        Paragraph(start, cutter.paragraph(start, end))
        for (_, start), (end, _) in pairwise([(0, 0), *borders, (len(text), len(text))])
    ]
    return [pieces for pieces in found if any(piece.text.strip() for piece in pieces)]


class _Cutter:
    """Splits a text from beginning to end."""

    def __init__(
        self,
        text: str,
        borrowed: Sequence[Borrowed],
        notes: Sequence[Note],
        listed: Sequence[Listed],
    ) -> None:
        self._text = text
        self._segments = segments_of(borrowed)
        self._listed = segments_of(_outermost(listed))
        self._anchors: dict[int, list[str]] = {}
        for one in listed:
            if one.anchor:
                self._anchors.setdefault(one.start, []).append(one.anchor)
        self._marked = sorted((a, b, k) for k, note in enumerate(notes) for a, b in note.places)
        self._notes = notes
        edges = {edge for a, b, _ in (*self._segments, *self._marked) for edge in (a, b)}
        edges |= {edge for a, b, _ in self._listed for edge in (a, b)} | self._anchors.keys()
        self._edges = sorted(edges)
        self._segment_starts = [a for a, _, _ in self._segments]
        self._listed_starts = [a for a, _, _ in self._listed]
        self._spans_shown: set[int] = set()
        self._notes_shown: set[int] = set()

    def paragraph(self, start: int, end: int) -> list[Piece]:
        first = bisect.bisect_right(self._edges, start)
        last = bisect.bisect_left(self._edges, end)
        cuts = [start, *self._edges[first:last], end]
        pieces: list[Piece] = []
        for a, b in pairwise(cuts):
            pieces += self._lines(a, b)
        return pieces

    def _lines(self, a: int, b: int) -> list[Piece]:
        segment = _segment_at(a, self._segments, self._segment_starts)
        phrase = _segment_at(a, self._listed, self._listed_starts)
        span = segment[2] if segment else None
        here = dict.fromkeys(k for start, end, k in self._marked if start <= a < end)
        pieces: list[Piece] = []
        lines = self._text[a:b].split("\n")
        for number, line in enumerate(lines):
            if number:
                pieces.append(Piece(is_break=True))
            if not line:
                continue
            is_first = span is not None and span.number not in self._spans_shown
            if span is not None:
                self._spans_shown.add(span.number)
            new = [k for k in here if k not in self._notes_shown]
            self._notes_shown.update(new)
            is_end = number == len(lines) - 1
            # HTML would collapse the indent of a line of verse.
            n_spaces = len(line) - len(line.lstrip(" ")) if number else 0
            indented = "\u00a0" * n_spaces + line[n_spaces:]
            pieces.append(
                Piece(
                    visible(indented),
                    span,
                    is_first,
                    is_last=is_end and segment is not None and b == segment[1],
                    notes=tuple(self._notes[k] for k in here),
                    first_notes=tuple(self._notes[k] for k in new),
                    listed=phrase[2] if phrase else None,
                    anchors=tuple(self._anchors.pop(a, ())),
                )
            )
        return pieces


S = TypeVar("S", Borrowed, Listed)


def _segment_at(
    place: int, segments: Sequence[tuple[int, int, S]], starts: Sequence[int]
) -> tuple[int, int, S] | None:
    k = bisect.bisect_right(starts, place) - 1
    return segments[k] if k >= 0 and place < segments[k][1] else None


def _outermost(listed: Iterable[Listed]) -> list[Listed]:
    """Those not within another, in order; of two on the same words the first."""
    found: list[Listed] = []
    for one in sorted(listed, key=lambda one: (one.start, -one.end)):
        if not found or one.end > found[-1].end:
            found.append(one)
    return found


def segments_of(borrowed: Iterable[S]) -> list[tuple[int, int, S]]:
    """Stretches of text, each assigned to the longest span that covers it (then the first).

    Both the starts and the ends of maximal spans ascend, so a sweep over their edges is enough.
    """
    spans = list(borrowed)
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    segments: list[tuple[int, int, S]] = []
    first = 0
    for a, b in pairwise(edges):
        while first < len(spans) and spans[first].end <= a:
            first += 1
        k, best = first, None
        while k < len(spans) and spans[k].start <= a:
            if best is None or spans[k].n_words > best.n_words:
                best = spans[k]
            k += 1
        if best is None:
            continue
        if segments and segments[-1][1] == a and segments[-1][2] is best:
            segments[-1] = (segments[-1][0], b, best)
        else:
            segments.append((a, b, best))
    return segments
