"""Feedback: a part of the report, lines for the terminal, a page with the points in its margin."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.core.errors import explain
from fabula.core.store import measurement_row
from fabula.core.types import Document, Measurement
from fabula.show.page import Note, cut_text, write_page_file
from fabula.show.parts import (
    Finding,
    FindingKey,
    Marks,
    ReportPart,
    Review,
    Said,
    TextReview,
    counted,
    finding_at,
    joined,
    name_of,
    papers,
)
from fabula.show.sheet import Block, terminal_width
from fabula.web import visible

if TYPE_CHECKING:
    from fabula.feedback.advising import Advice, Earlier
    from fabula.feedback.points import Point

FATES = {"resolved": "resolved", "stands": "still stands", "unknown": "cannot be decided"}
"""What became of an earlier point, in readable form."""

_MAX_QUOTED = 90
_WEIGHT = 1.15


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
    if "dismissed" in advice.dropped:
        return "No points are left: you dismissed them."
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
        "model": name_of(advice.model),
        "advice": advice,
        "notes": notes,
        "nothing": nothing_left(advice),
        "paragraphs": cut_text(advice.document.text, notes=notes),
        "remarks": advice_notes(advice),
        "fates": [(FATES[e.fate], e.fate, e.quotation, e.text) for e in fates],
    }
    write_page_file(path, "feedback/page.html.j2", page)


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
            by=name_of(advice.model),
            is_new=point in new,
        )
        for number, point in enumerate(advice.points, 1)
    ]


class FeedbackPart(ReportPart):
    """What models would change."""

    id, title, order, page_order = "feedback", "Feedback", 60, 10
    template, style = "feedback/part.html.j2", None
    has_groups = False
    asks_model = True
    findings = ("point",)
    colour = "of-model"

    def measurements(self, result: Any, document: Document) -> Sequence[Measurement]:
        return [m for advice in result for m in advice.measurements()]

    def content(self, text: TextReview) -> Mapping[str, Any]:
        points = self.measurements(self._advice(text), text.document)
        return {"points": [measurement_row(point) for point in points]}

    def blocks(self, review: Review) -> Sequence[Block]:
        return [
            f"{len(advice.points)} points to revise, by {name_of(advice.model)}"
            for text in review.texts
            if len(review.texts) == 1
            for advice in self._advice(text)
        ]

    def weighed(self, text: TextReview) -> Iterable[list[tuple[float, Finding]]]:
        points = [(advice, point) for advice in self._advice(text) for point in advice.points]
        about = text, "point", "Feedback"
        yield [
            (_WEIGHT * advice.share(point), finding_at(*about, point.places[0], point.text, number))
            for number, (advice, point) in enumerate(points, 1)
            if point.places
        ]

    def without(self, text: TextReview, hidden: Collection[FindingKey]) -> TextReview:
        def is_shown(point: Point) -> bool:
            return not point.places or ("point", *point.places[0]) not in hidden

        advices = []
        for advice in self._advice(text):
            points = tuple(filter(is_shown, advice.points))
            if n_lost := len(advice.points) - len(points):
                dropped = {**advice.dropped, "dismissed": n_lost}
                advice = replace(advice, points=points, dropped=dropped)
            advices.append(advice)
        return text.having(self.id, tuple(advices)) if advices else text

    def said(self, text: TextReview) -> Iterable[Said]:
        if n_points := sum(len(advice.points) for advice in self._advice(text)):
            yield Said(f"{counted(n_points, 'point')} to revise, by a model.", self.id)

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        advices = self._advice(text)
        return advices and {
            "number": number,
            "notes": [
                note
                for k, advice in enumerate(advices)
                for note in notes_of(advice, before="abcdefgh"[k % 8] if len(advices) > 1 else "")
            ],
            "remarks": [line for advice in advices for line in advice_notes(advice)],
            "nothing": [nothing_left(advice) for advice in advices if not advice.points],
        }

    def marks(self, view: Any) -> Marks:
        return Marks(notes=view["notes"])

    def anchor(self, number: int, finding: Finding, view: Any) -> str:
        return f"p{number}-{view['notes'][finding.number - 1].name}"

    def models(self, review: Review) -> Sequence[str]:
        return [advice.model for text in review.texts for advice in self._advice(text)]

    def methods_of(self, review: Review) -> str:
        names = joined(list(dict.fromkeys(map(name_of, self.models(review)))))
        times = self.decided(review).get("times", "several")
        return (
            f"Feedback was requested from {names}, {times} times for each text, after the task of "
            "Rashkin et al. (2025); points about the same place with the same meaning were "
            "joined, and points that quote words not in the text were dropped."
        )

    def references_of(self, review: Review) -> Sequence[str]:
        return papers("rashkin2025help")

    def _advice(self, text: TextReview) -> tuple[Advice, ...]:
        advice: tuple[Advice, ...] = text.results.get(self.id, ())
        return advice


PARTS = (FeedbackPart(),)
