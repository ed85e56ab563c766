"""Check text as it is written: only changed paragraphs are measured, and no model is called."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

from fabula.errors import InputError
from fabula.measures.line_read import line_of
from fabula.review import Review
from fabula.review.finding_changes import Changes, Noted, compare_noted, followed, noted_of
from fabula.review.report_parts import part_of_finding
from fabula.types import Document

PARTS = ("originality", "lines")
"""The instruments that are fast enough to run in a typing pause."""
WHOLE = ("name", "sentence")
"""Notes that need the whole text: they stay as long as their words do."""
_MAX_CHARS = 30_000
_MAX_COMPARED = 1_000_000
"""Maximum number of paragraph pairs to compare; beyond it, everything between has changed."""
_paragraph = re.compile(r"[^\n]*\S[^\n]*")
Measure = Callable[[Document], Review | None]
"""Measures `PARTS` of a text, without the notes that need the whole text (`WHOLE`)."""


@dataclass(frozen=True, slots=True)
class Look:
    """A text, and its known findings."""

    text: str
    noted: tuple[Noted, ...]


def look_again(before: Look, text: str, measure: Measure) -> Look | None:
    """The findings in the next state of a text; None if nothing can be measured now.

    Raises `InputError` if too much has changed for a typing pause.
    """
    spans = [(m.start(), m.end()) for m in _paragraph.finditer(text)]
    changed = _changed(_paragraph.findall(before.text), [text[a:b] for a, b in spans])
    asked = [
        (
            spans[c][0],
            spans[d - 1][1],
            spans[max(0, c - 1)][0],
            spans[min(len(spans), d + 1) - 1][1],
        )
        for c, d in changed
    ]
    if sum(len(text[c:d]) for _, _, c, d in asked) > _MAX_CHARS:
        raise InputError("Much has changed since the last measurement: measure this version.")
    found = _carried(before, text, [(a, b) for a, b, _, _ in asked])
    for start, end, first, last in asked:
        # Include the neighbouring paragraphs: repetition crosses their boundaries.
        review = measure(Document("changed", text[first:last]))
        if review is None:
            return None
        for one in noted_of(review.texts[0]):
            a, b = one.start + first, one.end + first
            if a < end and start < b:
                found.append(replace(one, start=a, end=b, line=line_of(text, a)))
    found.sort(key=lambda one: (one.start, one.end, one.kind))
    return Look(text, tuple(dict.fromkeys(found)))


def since(before: Look, after: Look) -> Changes:
    """The status of the findings, as far as a live check can tell."""
    signed = dict.fromkeys(PARTS, "")
    old, new = (
        [one for one in look.noted if part_of_finding(one.kind) in signed]
        for look in (before, after)
    )
    return compare_noted((before.text, old, signed), (after.text, new, signed))


def _changed(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The ranges of new paragraphs that differ, by index."""
    least = min(len(old), len(new))
    first = next((k for k in range(least) if old[k] != new[k]), least)
    last = next((k for k in range(least - first) if old[-1 - k] != new[-1 - k]), least - first)
    a, b = old[first : len(old) - last], new[first : len(new) - last]
    if len(a) * len(b) > _MAX_COMPARED:
        return [(first, len(new) - last)]
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    steps = matcher.get_opcodes()
    return [(first + c, first + d) for kind, _, _, c, d in steps if kind != "equal" and d > c]


def _carried(before: Look, text: str, changed: list[tuple[int, int]]) -> list[Noted]:
    """The findings in unchanged paragraphs, at their current places."""
    places = followed([(one.start, one.end) for one in before.noted], before.text, text)
    found = []
    for one, place in zip(before.noted, places, strict=True):
        if place is None:
            continue
        is_changed = any(place[0] < b and a < place[1] for a, b in changed)
        stands = text[place[0] : place[1]] == before.text[one.start : one.end]
        if not is_changed or (stands and one.kind in WHOLE):
            line = line_of(text, place[0])
            found.append(replace(one, start=place[0], end=place[1], line=line))
    return found


def utf16_places(text: str) -> Callable[[int], int]:
    """Convert places from characters to UTF-16 code units, as browsers count them."""
    wide = [k for k, character in enumerate(text) if character > "\uffff"]
    return lambda place: place + bisect_left(wide, place)
