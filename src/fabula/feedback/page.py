"""Feedback on a draft: as lines for the terminal, and as a page with the points in its margin."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.core.errors import explain
from fabula.show.page import Note, cut_text, write_page_file
from fabula.show.sheet import terminal_width
from fabula.web import visible

if TYPE_CHECKING:
    from fabula.feedback.advising import Advice, Earlier
    from fabula.feedback.points import Point

FATES = {"resolved": "resolved", "stands": "still stands", "unknown": "cannot be decided"}
"""What became of an earlier point, in readable form."""

_MAX_QUOTED = 90


def said(point: Point, advice: Advice) -> str:
    """`made in 4 of 5 readings`, and how important the point is, by how many of these.

    If its place is ambiguous, how many places it occurs in.
    """
    from fabula.feedback.points import SEVERITIES

    parts = ["continuity"] if point.is_continuity else []
    if counts := point.severities:
        level, n = max(counts.items(), key=lambda pair: (pair[1], pair[0]))
        agreed = "" if counts.total() == 1 else f" ({n} of {counts.total()} say so)"
        parts.append(f"{SEVERITIES[level]}{agreed}")
    parts.append(f"made in {point.n_said} of {advice.n_asked(point)} readings")
    if point.n_ambiguous:
        parts.append(f"occurs in {point.n_ambiguous} places")
    return ", ".join(parts)


def advice_notes(advice: Advice) -> list[str]:
    """What was omitted, and why, one sentence each."""
    from fabula.feedback.points import DROPPED

    notes = []
    if advice.n_perfect:
        notes += [f"{advice.n_perfect} of {advice.n_answers} readings would not change anything."]
    if advice.n_pointless:
        notes.append(
            f"{advice.n_pointless} of {advice.n_answers} readings make no point about words of the "
            "draft."
        )
    silent = sum(remark.severity is None for point in advice.points for remark in point.remarks)
    if silent and any(point.severities for point in advice.points):
        they = "remarks do not say how much they matter"
        they = they if silent > 1 else "remark does not say how much it matters"
        notes.append(f"{silent} {they}.")
    for reason, n in sorted(advice.missing.items()):
        notes.append(f"{n} of the answers are not used: {explain(reason)}.")
    if n := sum(advice.other_lines.values()):
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(advice.other_lines.items()))
        notes.append(f"not remarks: {n} line{'s' if n > 1 else ''} of the answers ({kinds}).")
    for reason, n in sorted(advice.dropped.items()):
        notes.append(f"dropped: {n} remark{'s' if n > 1 else ''} that {DROPPED[reason]}.")
    return notes


def advice_text(advice: Advice, fates: Sequence[Earlier], new: Sequence[Point]) -> str:
    """The points, then the status of earlier ones, then what was omitted."""
    width = terminal_width()
    lines: list[str] = []
    for number, point in enumerate(advice.points, 1):
        lines += [f"{number}. {said(point, advice)}{', new' if fates and point in new else ''}"]
        lines += [f"   “{words}”" for words in quotations(point, advice)]
        lines += (f"   {line}" for line in textwrap.wrap(visible(point.text), width - 3))
        lines.append("")
    if not advice.points:
        lines += [nothing_left(advice), ""]
    if fates:
        lines.append("Points on the earlier draft")
        for earlier in fates:
            text = visible(f"{FATES[earlier.fate]}: “{_short(earlier.quotation)}” {earlier.text}")
            lines += textwrap.wrap(text, width, initial_indent=" " * 3, subsequent_indent=" " * 6)
        lines.append("")
    lines += [*advice_notes(advice), advice.signature]
    return "\n".join(lines) + "\n"


def quotations(point: Point, advice: Advice) -> list[str]:
    """The words that a point is about, at most three distinct ones."""
    text = advice.document.text
    return list(dict.fromkeys(_short(text[start:end]) for start, end in point.places))[:3]


def _short(text: str) -> str:
    plain = " ".join(visible(text).split())
    return plain if len(plain) <= _MAX_QUOTED else plain[: _MAX_QUOTED - 1] + "…"


def nothing_left(advice: Advice) -> str:
    """Why there are no points."""
    if advice.n_answers and advice.n_perfect == advice.n_answers:
        return f"{advice.model} would not change anything."
    if set(advice.dropped) == {"praise"}:
        return "No points are left: nothing in the answers asks for a change."
    return (
        "No points are left: nothing in the answers refers to a place in the draft and asks "
        "for a change."
    )


def write_advice_page(
    path: Path, advice: Advice, fates: Sequence[Earlier], new: Sequence[Point]
) -> None:
    """Write the page; the same advice gives the same bytes."""
    notes = notes_of(advice, new=new if fates else ())
    fates = sorted(fates, key=lambda earlier: list(FATES).index(earlier.fate))
    page = {
        "title": advice.document.title,
        "model": advice.model.partition("@")[0],
        "advice": advice,
        "notes": notes,
        "nothing": nothing_left(advice),
        "paragraphs": cut_text(advice.document.text, notes=notes),
        "remarks": advice_notes(advice),
        "fates": [(FATES[e.fate], e.fate, e.quotation, e.text) for e in fates],
    }
    write_page_file(path, "advice.html.j2", page)


def notes_of(advice: Advice, *, new: Sequence[Point] = (), before: str = "") -> list[Note]:
    """The points as a page shows them, numbered; `before` precedes each number."""
    return [
        Note(
            name=f"{before}{number}",
            text=point.text,
            said=said(point, advice),
            share=advice.share(point),
            quoted=quotations(point, advice),
            places=tuple(point.places),
            by=advice.model.partition("@")[0],
            is_new=point in new,
        )
        for number, point in enumerate(advice.points, 1)
    ]
