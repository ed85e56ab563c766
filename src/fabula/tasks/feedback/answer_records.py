"""Answers that are JSON: the points or notes that a model was asked for as records.

A model that is held to a schema answers so; others sometimes do so by themselves.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fabula.models.base import RecordField, Records
from fabula.text import TextSettings

_QUOTATION = RecordField(
    "quotation", "the words of the draft, copied exactly, without quotation marks", n_chars=200
)
_POINTS, _NOTES = "points", "notes"
_BEGIN = re.compile(rf'\{{\s*"(?:{_POINTS}|{_NOTES})"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_END = re.compile(r"\]\s*\}?")
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*")
_SEVERITIES = (1, 2, 3)


def point_form(n_points: int) -> Records:
    """Points, each with the words that it is about and how much it matters."""
    severity = RecordField("severity", "how much it matters", numbers=_SEVERITIES[::-1])
    remark = RecordField("remark", "what is wrong there and what could be done about it")
    return Records(_POINTS, (_QUOTATION, severity, remark), n_points)


def note_form(n_notes: int) -> Records:
    """Facts, each with the words that state it."""
    return Records(_NOTES, (_QUOTATION, RecordField("remark", "the fact", n_chars=200)), n_notes)


@dataclass(frozen=True, slots=True)
class Record:
    """A point or a note as the model gave it."""

    quotation: str
    remark: str
    severity: int | None


@dataclass(frozen=True, slots=True)
class AnswerRecords:
    """A whole answer: each of its parts is a record, or is counted."""

    records: list[Record]
    n_broken: int
    """Entries without a quotation or a remark, and one that the answer breaks off in."""
    others: Counter[str] = field(default_factory=Counter)
    """Lines around the object, by `preamble` and `closing`."""

    @property
    def is_empty(self) -> bool:
        """Whether the model says that there is nothing to say."""
        return not (self.records or self.n_broken)


def answer_records(answer: str) -> AnswerRecords | None:
    """The records of an answer; None if it has no such list."""
    begin = _BEGIN.search(answer)
    if begin is None:
        return None
    read, at = json.JSONDecoder(strict=False).raw_decode, begin.end()
    records: list[Record] = []
    n_broken = 0
    while True:
        gap = _BETWEEN.match(answer, at)
        at = gap.end() if gap else at
        if (end := _END.match(answer, at)) is not None:
            at = end.end()
            break
        try:
            value, at = read(answer, at)
        except (ValueError, RecursionError):
            # It breaks off, or goes on in another language.
            n_broken, at = n_broken + 1, len(answer)
            break
        record = _record(value)
        if record is None:
            n_broken += 1
        else:
            records.append(record)
    others = Counter({"preamble": _n_lines(answer[: begin.start()])})
    others["closing"] = _n_lines(answer[at:])
    return AnswerRecords(records, n_broken, +others)


def _record(value: Any) -> Record | None:
    if not isinstance(value, dict):
        return None
    quotation, remark = value.get("quotation"), value.get("remark")
    if not (isinstance(quotation, str) and isinstance(remark, str)):
        return None
    told = str(value.get("severity", ""))
    severity = int(told) if told in map(str, _SEVERITIES) else None
    return Record(" ".join(quotation.split()), " ".join(remark.split()), severity)


def _n_lines(text: str) -> int:
    has_words = TextSettings().has_words
    return sum(has_words(line) and not _FENCE.fullmatch(line) for line in text.splitlines())
