"""What to look at first, and the notes on lines, as the page of a report shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.measures.line_read import LINE_KINDS, LineNote, line_of
from fabula.presentation.marked_text import Listed, Note
from fabula.reasons import explain
from fabula.review import Review, TextReview
from fabula.review.findings import (
    NOTES_PER_1000,
    Finding,
    findings_of,
    marked_findings,
    marked_notes,
    said_of,
)
from fabula.web import visible

_QUOTE_CHARS = 110
_AROUND_CHARS = 40
_MAX_ALONE = 2


@dataclass(frozen=True, slots=True)
class LinesView:
    """The notes on the lines of a text, by kind."""

    kinds: list[dict[str, Any]]
    n_more: int
    """Notes that are not shown."""
    missing: str
    per_thousand: int = NOTES_PER_1000


def noted_places(number: int, text: TextReview) -> list[Listed]:
    """The notes as marks in the text, each linked to its row."""
    return [
        Listed(note.start, note.end, 0, visible(note.why), f"n{number}-{k}", f"l{number}-{k}")
        for k, note in enumerate(marked_notes(text), 1)
    ]


def lines_view(number: int, text: TextReview) -> LinesView | None:
    """The section on lines; None if they were not read."""
    if text.lines is None:
        return None
    notes = list(enumerate(marked_notes(text), 1))
    kinds = [
        {
            "title": kind.title,
            "right": kind.shown,
            "notes": [_row(number, k, note, text) for k, note in notes if note.kind == kind.id],
        }
        for kind in LINE_KINDS.values()
    ]
    missing = text.lines.missing_reason
    return LinesView(
        kinds=[kind for kind in kinds if kind["notes"]],
        n_more=len(text.lines.notes) - len(notes),
        missing="" if missing is None else visible(explain(missing)),
    )


def _row(number: int, k: int, note: LineNote, text: TextReview) -> dict[str, Any]:
    return {
        "id": f"n{number}-{k}",
        "href": f"l{number}-{k}",
        "line": line_of(text.document.text, note.start),
        "quote": _quote(text, note.start, note.end),
        "why": visible(note.why),
    }


def findings_view(
    number: int, text: TextReview, review: Review, notes: Sequence[Note], n_marked: int
) -> dict[str, Any]:
    """The first screen: sentences, places in order, and an overview along the page's edge.

    n_marked: how many borrowed passages are marked in the text.
    """
    place_of = _places(number, notes, n_marked)

    def section(about: str) -> str:
        return about if len(review.texts) == 1 else f"{about}-{number}"

    found = findings_of(text)
    n_chars = max(1, len(text.document.text))
    where = _where(text)
    return {
        "said": [
            {
                "sentence": visible(one.sentence),
                "href": place_of(one.first) if one.first else section(one.about),
            }
            for one in said_of(text)
        ],
        "first": [
            {
                "title": one.title,
                "where": where(one),
                "quote": _quote(text, one.start, one.end),
                "around": _around(text.document.text, one.start, one.end),
                "why": visible(one.why),
                "right": right_of(one.kind),
                "href": place_of(one),
                "kind": _colour(one.kind),
                "at": f"{100 * one.start / n_chars:.2f}",
            }
            for one in found
        ],
        "n_all": len(marked_findings(text)),
    }


def _where(text: TextReview) -> Callable[[Finding], str]:
    """The chapter of a finding in a book that has them; else its line."""
    details = [one.details.get("book") for one in text.others.get("book", ())]
    book = next((one for one in details if isinstance(one, dict)), None)
    chapters = book["chapters"] if book and book["unit"] == "chapter" else []

    def where(one: Finding) -> str:
        inside = (c["number"] for c in chapters if c["start"] <= one.start < c["end"])
        number = next(inside, None)
        return f"line {one.line}" if number is None else f"chapter {number}"

    return where


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """The text before and after a place of one or two words, up to the paragraph's ends.

    Longer places are quoted without context.
    """
    if len(text[start:end].split()) > _MAX_ALONE:
        return "", ""
    before = text[max(0, start - _AROUND_CHARS) : start].rpartition("\n\n")[2]
    after = text[end : end + _AROUND_CHARS].partition("\n\n")[0]
    if start > _AROUND_CHARS and len(before) == _AROUND_CHARS:
        before = "… " + before.partition(" ")[2]
    if len(after) == _AROUND_CHARS and end + _AROUND_CHARS < len(text):
        after = after.rpartition(" ")[0] + " …"
    return visible(before), visible(after)


def _places(number: int, notes: Sequence[Note], n_marked: int) -> Callable[[Finding], str]:
    """Where a finding is on the page; empty if nothing is marked for it."""

    def place_of(one: Finding) -> str:
        if one.kind in ("passage", "near"):
            return f"m{number}-{one.number}" if one.number <= n_marked else ""
        if one.kind == "point":
            return f"p{number}-{notes[one.number - 1].name}"
        return f"l{number}-{one.number}"

    return place_of


def right_of(kind: str) -> str:
    """How often a note of this kind is right; empty if that is not known."""
    return LINE_KINDS[kind].shown if kind in LINE_KINDS else ""


def _colour(kind: str) -> str:
    """Its CSS class on the page."""
    return {"passage": "of-source", "near": "of-source", "point": "of-model"}.get(kind, "of-line")


def _quote(text: TextReview, start: int, end: int) -> str:
    return quoted(text.document.text, start, end, _QUOTE_CHARS)


def quoted(text: str, start: int, end: int, n_chars: int) -> str:
    """The words of a place on one line, truncated between words if too long."""
    words = visible(" ".join(text[start:end].split()))
    if len(words) <= n_chars:
        return words
    return (words[:n_chars].rpartition(" ")[0] or words[:n_chars]) + " …"


def first_lines(text: TextReview) -> dict[str, Any]:
    """The first screen as plain values."""
    return {
        "said": [one.sentence for one in said_of(text)],
        "first": [
            {
                "kind": one.kind,
                "line": one.line,
                "start": one.start,
                "end": one.end,
                "text": text.document.text[one.start : one.end],
                "why": one.why,
                "precision": LINE_KINDS[one.kind].precision if one.kind in LINE_KINDS else None,
            }
            for one in findings_of(text)
        ],
    }
