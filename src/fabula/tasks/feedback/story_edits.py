"""What exactly was changed in a text, so that it can be shown, undone, and followed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

_EXCERPT_WORDS = 7
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of the original, half-open in characters, and its replacement."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Edits that give a story a fault, and a one-sentence description of the fault for raters."""

    edits: tuple[Edit, ...]
    what: str
    details: Mapping[str, Any]
    """What the fault consists of, for the record: names, or the planted thing."""


def apply_edits(original: str, edits: Sequence[Edit]) -> tuple[str, list[dict[str, Any]]]:
    """Apply edits that are in order and do not overlap; return the text and the record of them.

    A record holds the spans in both versions and the words on both sides; `undo` needs no more.
    """
    parts, rows = [], []
    at, n = 0, 0
    for edit in edits:
        if not at <= edit.start <= edit.end <= len(original):
            raise ValueError("edits ascend and do not overlap")
        n += edit.start - at
        parts += [original[at : edit.start], edit.text]
        row = {
            "original": [edit.start, edit.end],
            "text": [n, n + len(edit.text)],
            "was": original[edit.start : edit.end],
            "is": edit.text,
        }
        rows.append(row)
        n += len(edit.text)
        at = edit.end
    parts.append(original[at:])
    return "".join(parts), rows


def undo(text: str, record: Sequence[Mapping[str, Any]]) -> str:
    """Restore the original from the changed text and the record of its edits."""
    for row in reversed(record):
        start, end = row["text"]
        if text[start:end] != row["is"]:
            raise ValueError("the record belongs to another text")
        text = text[:start] + row["was"] + text[end:]
    return text


def edits_between(original: str, changed: str) -> list[Edit]:
    """The edits that turn one text into another, in whole words and the spaces between."""
    mine, theirs = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (original, changed))
    ends = [0]
    for token in mine:
        ends.append(ends[-1] + len(token))
    steps = SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
    changes = (places for kind, *places in steps if kind != "equal")
    return [Edit(ends[a], ends[b], "".join(theirs[c:d])) for a, b, c, d in changes]


def excerpt(text: str, span: tuple[int, int], edits: Sequence[Edit] = ()) -> str:
    """A sentence's first words as they are after the edits, where a reader will look for them."""
    start, end = span
    inside = [edit for edit in edits if start <= edit.start and edit.end <= end]
    changed, _ = apply_edits(text[:end], inside)
    words = changed[start:].split()
    return " ".join(words[:_EXCERPT_WORDS]) + ("..." if len(words) > _EXCERPT_WORDS else "")


def moved_places(
    places: Sequence[tuple[int, int]], before: str, after: str
) -> list[tuple[int, int] | None]:
    """Map places of one text to the next version; None where all of the place's text is gone.

    They are compared word by word: a replacement takes the place of the words it replaces. Passages
    that were moved are not tracked.
    """
    old, new = ([(m.span(), m[0].casefold()) for m in _TOKEN.finditer(t)] for t in (before, after))
    before_words, after_words = ([word for _, word in version] for version in (old, new))
    steps = SequenceMatcher(None, before_words, after_words, autojunk=False).get_opcodes()
    found: list[tuple[int, int] | None] = []
    for place in places:
        mine = [k for k, ((a, b), _) in enumerate(old) if a < place[1] and place[0] < b]
        first, last = (mine[0], mine[-1] + 1) if mine else (0, 0)
        there: list[int] = []
        for kind, a, b, c, d in steps:
            if a < last and first < b and d > c:
                whole = kind != "equal"
                there += [c, d] if whole else [c + max(first, a) - a, d - (b - min(last, b))]
        is_there = mine and there
        found.append((new[min(there)][0][0], new[max(there) - 1][0][1]) if is_there else None)
    return found
