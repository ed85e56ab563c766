"""A text as a book page, cut where what is marked in it begins and ends.

Three things are marked: what is borrowed, what a point of feedback is about, and sentences that are
unusually surprising. They may overlap; nothing of the text is lost or doubled.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fabula.presentation.near_parts import Gloss
from fabula.web import visible

__all__ = ["Borrowed", "Note", "Odd", "Piece", "cut_text", "segments_of"]

_PARAGRAPH = re.compile(r"[^\S\n]*\n(?:[^\S\n]*\n)+[^\S\n]*")


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
    """A near span's words, each with the word of the source that is most like it."""


@dataclass(frozen=True, slots=True)
class Note:
    """A point of feedback as the page shows it."""

    name: str
    """What stands at its place and in the margin."""
    text: str
    said: str
    share: float
    quoted: list[str]
    places: tuple[tuple[int, int], ...]
    by: str = ""
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Odd:
    """A sentence that surprises more than nearly all by people."""

    start: int
    end: int
    bits_per_word: float


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a paragraph, alike in all that is marked, or a line break."""

    text: str = ""
    borrowed: Borrowed | None = None
    is_first: bool = False
    is_last: bool = False
    """It begins, or ends, what is borrowed."""
    is_break: bool = False
    notes: tuple[Note, ...] = ()
    """The points that are about it."""
    first_notes: tuple[Note, ...] = ()
    """Those of them that were not shown before."""
    odd: Odd | None = None
    is_odd_end: bool = False


def cut_text(
    text: str,
    borrowed: Sequence[Borrowed] = (),
    notes: Sequence[Note] = (),
    odd: Sequence[Odd] = (),
) -> list[list[Piece]]:
    """The paragraphs of a text in pieces. `odd` ascends and does not overlap."""
    cutter = _Cutter(text, borrowed, notes, odd)
    starts, ends = [0], []
    for border in _PARAGRAPH.finditer(text):
        ends.append(border.start())
        starts.append(border.end())
    ends.append(len(text))
    found = [cutter.paragraph(*ends_) for ends_ in zip(starts, ends, strict=True)]
    return [pieces for pieces in found if any(piece.text.strip() for piece in pieces)]


class _Cutter:
    """Cuts a text from its beginning to its end."""

    def __init__(
        self, text: str, borrowed: Sequence[Borrowed], notes: Sequence[Note], odd: Sequence[Odd]
    ) -> None:
        self._text, self._odd = text, odd
        self._segments = segments_of(borrowed)
        self._marked = sorted((a, b, k) for k, note in enumerate(notes) for a, b in note.places)
        self._notes = notes
        edges = {edge for a, b, _ in (*self._segments, *self._marked) for edge in (a, b)}
        edges |= {edge for one in odd for edge in (one.start, one.end)}
        self._edges = sorted(edges)
        self._segment_starts = [a for a, _, _ in self._segments]
        self._odd_starts = [one.start for one in odd]
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
        segment, odd = self._segment_at(a), self._odd_at(a)
        span = segment[2] if segment else None
        here = [k for start, end, k in self._marked if start <= a < end]
        here = list(dict.fromkeys(here))
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
            pieces.append(
                Piece(
                    visible(_indented(line) if number else line),
                    span,
                    is_first,
                    is_last=is_end and segment is not None and b == segment[1],
                    notes=tuple(self._notes[k] for k in here),
                    first_notes=tuple(self._notes[k] for k in new),
                    odd=odd,
                    is_odd_end=is_end and odd is not None and b == odd.end,
                )
            )
        return pieces

    def _segment_at(self, place: int) -> tuple[int, int, Borrowed] | None:
        k = bisect.bisect_right(self._segment_starts, place) - 1
        return self._segments[k] if k >= 0 and place < self._segments[k][1] else None

    def _odd_at(self, place: int) -> Odd | None:
        k = bisect.bisect_right(self._odd_starts, place) - 1
        return self._odd[k] if k >= 0 and place < self._odd[k].end else None


def _indented(line: str) -> str:
    """With the indent of a line of verse; HTML would drop spaces."""
    n_spaces = len(line) - len(line.lstrip(" "))
    return "\u00a0" * n_spaces + line[n_spaces:]


def segments_of(borrowed: Iterable[Borrowed]) -> list[tuple[int, int, Borrowed]]:
    """Stretches of text, each given to the longest borrowed span that covers it (then the first).

    Both the starts and the ends of maximal spans ascend, so a sweep over their edges is enough.
    """
    spans = list(borrowed)
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    segments: list[tuple[int, int, Borrowed]] = []
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
