"""The page of feedback on a draft: the draft as a book page, the points in its margin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.presentation.advice_tables import FATES, advice_notes, nothing_left, quotations, said
from fabula.presentation.marked_text import Note, cut_text
from fabula.presentation.page_file import write_page_file
from fabula.web import visible

if TYPE_CHECKING:
    from fabula.tasks.feedback.advising import Advice, Earlier
    from fabula.tasks.feedback.points import Point


def write_advice_page(
    path: Path, advice: Advice, fates: Sequence[Earlier], new: Sequence[Point]
) -> None:
    """Write the page; the same advice gives the same bytes."""
    notes = notes_of(advice, new=new if fates else ())
    page = {
        "title": visible(advice.document.title),
        "model": advice.model.partition("@")[0],
        "advice": advice,
        "notes": notes,
        "nothing": visible(nothing_left(advice)),
        "paragraphs": cut_text(advice.document.text, notes=notes),
        "remarks": advice_notes(advice),
        "fates": [
            (FATES[one.fate], one.fate, visible(one.quotation), visible(one.text))
            for one in sorted(fates, key=lambda one: list(FATES).index(one.fate))
        ],
    }
    write_page_file(path, "advice.html.j2", page)


def notes_of(advice: Advice, *, new: Sequence[Point] = (), before: str = "") -> list[Note]:
    """The points as a page shows them, numbered; `before` precedes each number."""
    return [
        Note(
            name=f"{before}{number}",
            text=visible(point.text),
            said=said(point, advice),
            share=advice.share(point),
            quoted=quotations(point, advice),
            places=tuple(point.places),
            by=advice.model.partition("@")[0],
            is_new=point in new,
        )
        for number, point in enumerate(advice.points, 1)
    ]
