"""The marks of Markdown in a text: emphasis and headings, as pages show them.

They stay in the text, so that offsets are those of the file and a writer's marks are kept; words do
not contain them, so no number depends on them. After CommonMark 0.31, simplified: emphasis begins
and ends at the edges of words, in one paragraph; one mark or three are italics, two are not shown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

Place = tuple[int, int]
_RUN = re.compile(r"(?P<blank>\n\s*\n)|(?<!\\)(?:\*+|_+)")
HEADING = re.compile(r"^(#{1,6}[ \t]+)\S[^\n]*?([ \t]+#+)?[ \t]*$", re.MULTILINE)


@lru_cache(8)
def emphasis_of(text: str) -> tuple[list[Place], list[Place]]:
    """The marks in a text, and what is in italics: half-open in characters, in order."""
    marks = {match.span(k) for match in HEADING.finditer(text) for k in (1, 2)} - {(-1, -1)}
    italics, opened = [], dict[str, int]()
    for run in _RUN.finditer(text):
        (start, end), mark = run.span(), run[0]
        before, after = text[max(0, start - 1) : start], text[end : end + 1]
        if run["blank"]:
            opened.clear()
        elif mark in opened and before.strip() and not after.isalnum():
            begin = opened.pop(mark)
            marks |= {(begin - len(mark), begin), (start, end)}
            if len(mark) != 2:
                italics.append((begin, start))
        elif len(mark) <= 3 and after.strip() and not before.isalnum():
            opened[mark] = end
    return sorted(marks), sorted(italics)


def unmarked(text: str, start: int, end: int) -> str:
    """A part of a text without marks."""
    marks, shown = emphasis_of(text)[0], []
    for k in range(bisect_left(marks, start, key=lambda mark: mark[1]), len(marks)):
        low, high = marks[k]
        if low >= end:
            break
        shown.append(text[start : max(start, low)])
        start = max(start, high)
    return "".join(shown) + text[start : max(start, end)]
