"""What to look at first, and the notes on lines, as pages and tables show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fabula.measures.line_notes import LineReview
from fabula.measures.line_read import LINE_KINDS, LineNote, line_of
from fabula.presentation.marked_text import Listed, Note
from fabula.presentation.sheet import Block, Column, Sheet
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
from fabula.types import Document
from fabula.web import visible

_QUOTE_CHARS = 110
_CELL_CHARS = 60
_AROUND_CHARS = 40
_MAX_ALONE = 2
_COLOURS = {"passage": "of-source", "near": "of-source", "point": "of-model"}
"""CSS classes of findings; those of others are `of-line`."""


def noted_places(number: int, text: TextReview) -> list[Listed]:
    """The notes as marks in the text, each linked to its row."""
    return [
        Listed(note.start, note.end, 0, visible(note.why), f"n{number}-{k}", f"l{number}-{k}")
        for k, note in enumerate(marked_notes(text), 1)
    ]


def lines_view(number: int, text: TextReview) -> dict[str, Any] | None:
    """The notes on the lines of a text, by kind; None if they were not read."""
    if text.lines is None:
        return None
    whole = text.document.text
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in LINE_KINDS}
    notes = marked_notes(text)
    for k, note in enumerate(notes, 1):
        rows[note.kind].append(
            {
                "id": f"n{number}-{k}",
                "href": f"l{number}-{k}",
                "line": line_of(whole, note.start),
                "quote": quoted(whole, note.start, note.end),
                "why": visible(note.why),
            }
        )
    missing = text.lines.missing_reason
    return {
        "kinds": [
            {"title": kind.title, "right": kind.shown, "notes": rows[kind.id]}
            for kind in LINE_KINDS.values()
            if rows[kind.id]
        ],
        "n_more": len(text.lines.notes) - len(notes),
        "missing": "" if missing is None else visible(explain(missing)),
        "per_thousand": NOTES_PER_1000,
    }


def line_tables(
    documents: Sequence[Document], reviews: Sequence[LineReview], per_thousand: int
) -> list[Block]:
    """For each draft its first notes in text order, and the number of each kind."""
    parts: list[Block] = []
    for document, review in zip(documents, reviews, strict=True):
        title = visible(document.title)
        if review.missing_reason is not None:
            parts += [f"{title}: not read, {explain(review.missing_reason)}", ""]
            continue
        counts = Counter(note.kind for note in review.notes)
        named = ", ".join(f"{counts[kind]} {kind}" for kind in LINE_KINDS if counts[kind])
        parts += [f"{title}: {review.n_words:,} words; {named or 'nothing to note'}", ""]
        shown = review.first(per_thousand)
        if shown:
            parts += [_notes(document, shown), ""]
        if n_left := len(review.notes) - len(shown):
            parts += [f"{n_left:,} more; `per_thousand` 0 shows all", ""]
    return [*parts, *dict.fromkeys(review.signature for review in reviews)]


def _notes(document: Document, notes: Sequence[LineNote]) -> Sheet:
    columns = [
        Column("line", "d", of=lambda note: line_of(document.text, note.start)),
        Column("kind", of=lambda note: LINE_KINDS[note.kind].title.lower()),
        *place_columns(document.text),
    ]
    return Sheet.of("notes", notes, columns, about=("id", document.id))


def place_columns(text: str) -> list[Column]:
    """How often such a note is right, its place in the text, and why it is one."""
    return [
        Column("right", ".0%", of=lambda one: precision_of(one.kind)),
        Column("place", of=lambda one: quoted(text, one.start, one.end, _CELL_CHARS)),
        Column("why", of=lambda one: visible(one.why)),
    ]


def precision_of(kind: str) -> float | None:
    """How often a note of this kind is right; None for other findings."""
    return LINE_KINDS[kind].precision if kind in LINE_KINDS else None


def findings_view(
    number: int, text: TextReview, review: Review, notes: Sequence[Note], n_marked: int
) -> dict[str, Any]:
    """The first screen: sentences, places in order, and an overview along the page's edge.

    n_marked: how many borrowed passages are marked in the text.
    """

    def place_of(one: Finding) -> str:
        """Where it is on the page; empty if nothing is marked for it."""
        if one.kind in ("passage", "near"):
            return f"m{number}-{one.number}" if one.number <= n_marked else ""
        if one.kind == "point":
            return f"p{number}-{notes[one.number - 1].name}"
        return f"l{number}-{one.number}"

    def section(about: str) -> str:
        return about if len(review.texts) == 1 else f"{about}-{number}"

    details = [one.details.get("book") for one in text.others.get("book", ())]
    book = next((one for one in details if isinstance(one, dict)), None)
    chapters = book["chapters"] if book and book["unit"] == "chapter" else []

    def where(one: Finding) -> str:
        """The chapter of a finding in a book that has them; else its line."""
        inside = (c["number"] for c in chapters if c["start"] <= one.start < c["end"])
        chapter = next(inside, None)
        return f"line {one.line}" if chapter is None else f"chapter {chapter}"

    whole = text.document.text
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
                "quote": quoted(whole, one.start, one.end),
                "around": _around(whole, one.start, one.end),
                "why": visible(one.why),
                "right": right_of(one.kind),
                "href": place_of(one),
                "kind": _COLOURS.get(one.kind, "of-line"),
                "at": f"{100 * one.start / max(1, len(whole)):.2f}",
            }
            for one in findings_of(text)
        ],
        "n_all": len(marked_findings(text)),
    }


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


def right_of(kind: str) -> str:
    """How often a note of this kind is right; empty if that is not known."""
    return LINE_KINDS[kind].shown if kind in LINE_KINDS else ""


def quoted(text: str, start: int, end: int, n_chars: int = _QUOTE_CHARS) -> str:
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
                "precision": precision_of(one.kind),
            }
            for one in findings_of(text)
        ],
    }
