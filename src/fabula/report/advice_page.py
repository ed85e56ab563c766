"""The page of feedback on a draft: the draft as a book page, the points in its margin."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabula.report.advice_tables import FATES, advice_notes, nothing_left, quoted, said
from fabula.report.page_file import write_page_file
from fabula.tasks.feedback.advising import Advice, Earlier
from fabula.tasks.feedback.points import Point
from fabula.text.sentences import paragraph_spans
from fabula.web import visible

__all__ = ["write_advice_page"]


@dataclass(frozen=True, slots=True)
class Note:
    """A point as the page shows it."""

    number: int
    text: str
    said: str
    share: float
    quoted: list[str]
    is_new: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the draft; `numbers` are the points that quote it."""

    text: str
    numbers: tuple[int, ...]
    notes: tuple[Note, ...]
    """The points that begin here."""


def write_advice_page(
    path: Path, advice: Advice, fates: Sequence[Earlier], new: Sequence[Point]
) -> None:
    """Write the page; the same advice gives the same bytes."""
    notes = [
        Note(
            number=number,
            text=visible(point.text),
            said=said(point, advice),
            share=point.n_said / advice.n_answers,
            quoted=[quoted(advice, place) for place in point.places[:3]],
            is_new=bool(fates) and point in new,
        )
        for number, point in enumerate(advice.points, 1)
    ]
    page = {
        "title": visible(str(advice.document.meta.get("title") or advice.document.id)),
        "model": advice.model.partition("@")[0],
        "advice": advice,
        "notes": notes,
        "nothing": visible(nothing_left(advice)),
        "paragraphs": list(_paragraphs(advice, notes)),
        "remarks": advice_notes(advice),
        "fates": [
            (FATES[one.fate], one.fate, visible(one.quotation), visible(one.text))
            for one in sorted(fates, key=lambda one: list(FATES).index(one.fate))
        ],
    }
    write_page_file(path, "advice.html.j2", page)


def _paragraphs(advice: Advice, notes: Sequence[Note]) -> list[list[Piece]]:
    """The draft's paragraphs, cut where a quotation begins or ends."""
    text = advice.document.text
    marked = [
        (start, end, note)
        for note, point in zip(notes, advice.points, strict=True)
        for start, end in point.places
    ]
    shown: set[int] = set()
    found = []
    for begin, finish in paragraph_spans(text):
        edges = {begin, finish}
        for start, end, _ in marked:
            edges |= {edge for edge in (start, end) if begin < edge < finish}
        cuts = sorted(edges)
        pieces = []
        for a, b in itertools.pairwise(cuts):
            here = [note for start, end, note in marked if start < b and a < end]
            first = [note for note in here if note.number not in shown]
            shown.update(note.number for note in first)
            pieces.append(
                Piece(
                    visible(text[a:b]),
                    tuple(dict.fromkeys(note.number for note in here)),
                    tuple({note.number: note for note in first}.values()),
                )
            )
        found.append(pieces)
    return found
