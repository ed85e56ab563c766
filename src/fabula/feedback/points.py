"""From an editor's answers to actionable points, each at a place in the draft.

A remark that several answers make is one point, and ranks above one that a single answer makes with
equal severity: an editor, human or not, who says a thing once in five readings may not say it
again. A point whose quotation is not in the draft is about another text, and is dropped.

Two remarks are one point only if they are at one place and say the same about it. Two remarks of
one answer are always separate points.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fabula.feedback.answer_lines import (
    Entry,
    QuotableText,
    answer_lines,
    answer_records,
    quotations_in,
    quoted_parts,
)
from fabula.models.encoder import Encoder
from fabula.text import TextSettings

DROPPED = {
    "not_in_text": "quoted words that are not in the draft",
    "one_word": "quoted one word, which stands in several places or is too short",
    "no_quotation": "quoted nothing of the draft",
    "no_point": "quoted the draft and said nothing of it",
    "beyond": "came after as many points as were asked for",
    "cut": "were cut at the limit of tokens",
    "broken": "were not whole (damaged JSON)",
    "praise": "asked for no change",
    "dismissed": "you dismissed",
}
"""Why a remark is not a point, for display."""

SEVERITIES = {3: "harms the whole draft", 2: "weakens a scene", 1: "is a detail"}
"""How much a point matters, as asked of editors."""
_SEVERITY = re.compile(
    r"(?i)\s*(?:\*\*|__)?\[\s*(?:severity|importance|weight)?\s*[:=]?\s*([123])(?:\s*/\s*3)?\s*\]"
    r"(?:\*\*|__)?\s*[:–—-]?\s*"
)
SAME = 0.4
"""Minimum cosine at which two remarks at one place say the same.

On tests/golden/same_point.json (14 places, each with two faults, one of them worded three times) 62
% of the pairs on one fault are above it and 10 % of those on two; at 0.3 it is 80 % and 19 %.
Listing a point twice does less harm than merging two points.
"""
_MIN_WORDS = 3
_TOUCH_CHARS = 2
"""A gap of up to this many characters holds no word with spaces around it."""
_PLACES = {
    0: "first 1st opening start beginning", 1: "second 2nd", 2: "third 3rd", 3: "fourth 4th",
    4: "fifth", -1: "last final closing end close",
}  # fmt: skip
_ORDINALS = {word: place for place, words in _PLACES.items() for word in words.split()}
_ORDER = "|".join(_ORDINALS)
_WHICH = re.compile(
    rf"(?i)\b(?:({_ORDER})\s(?:time|occurrence|instance|mention|use|appearance|one)"
    r"|(?:at|near|towards?) the (?:very )?(end|close|start|beginning))\b"
)
_WHERE = re.compile(rf"(?i)\b(?:({_ORDER})\s(paragraph|line)|(paragraph|line)\s#?(\d{{1,3}}))\b")
_LEADING = " *_:,.;-–—\"”“„‘’'`»«›‹)]"
_GOES_ON = re.compile(r"[\s\"”’']*(?:&|and|or|versus|vs\.?)\s*[\"“„«‘'`]", re.IGNORECASE)
_BACKTICKS = re.compile(r"`([^`]+)`")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark of one answer, with the place that it quotes: half-open, in characters."""

    answer: int
    rank: int
    """Its position in the answer: 0 is first."""
    text: str
    start: int
    end: int
    also: tuple[Place, ...] = ()
    """Other places with the same words, if nothing says which is meant."""
    severity: int | None = None
    """Its severity in this answer: 3, 2 or 1 (`SEVERITIES`); None if the answer does not say."""

    @property
    def places(self) -> tuple[Place, ...]:
        """All places that it may be about, in order."""
        return tuple(sorted(((self.start, self.end), *self.also)))


@dataclass(frozen=True, slots=True)
class Point:
    """What one or more answers said. `remarks` has the most typical first."""

    remarks: tuple[Remark, ...]
    n_answers: int | None = None
    """The number of answers that could have made it; None: all of them."""
    is_continuity: bool = False
    """It is about a contradiction between two chapters of a book."""

    @property
    def text(self) -> str:
        return self.remarks[0].text

    @property
    def places(self) -> list[Place]:
        """Every place quoted, without repeats, those of the most typical remark first.

        Words that occur in several places keep them all, unless another remark says which.
        """
        certain = [remark for remark in self.remarks if not remark.also]
        quoted = [
            place
            for remark in self.remarks
            for place in remark.places
            if not remark.also or not certain or any(touches(place, *c.places) for c in certain)
        ]
        return list(dict.fromkeys(quoted))

    @property
    def n_ambiguous(self) -> int:
        """The number of places of the quoted words if it is ambiguous which is meant; else 0."""
        if any(not remark.also for remark in self.remarks):
            return 0
        return min(len(remark.places) for remark in self.remarks)

    @property
    def n_said(self) -> int:
        """The number of answers that made it."""
        return len({remark.answer for remark in self.remarks})

    @property
    def severities(self) -> Counter[int]:
        """Its severities, with the number of answers for each; answers without one do not count."""
        by_answer: dict[int, int] = {}
        for remark in self.remarks:
            if remark.severity is not None:
                by_answer[remark.answer] = max(remark.severity, by_answer.get(remark.answer, 0))
        return Counter(by_answer.values())

    @property
    def severity(self) -> float | None:
        """The mean over the answers that give a severity; None if none does."""
        counts = self.severities
        return math.fsum(k * n for k, n in counts.items()) / counts.total() if counts else None

    @property
    def rank(self) -> float:
        """Mean position among the points of the answers that made it."""
        first: dict[int, int] = {}
        for remark in self.remarks:
            first[remark.answer] = min(remark.rank, first.get(remark.answer, remark.rank))
        return math.fsum(first.values()) / len(first)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A fully parsed answer: each of its lines belongs to a remark, or is counted."""

    other_lines: Counter[str]
    """Lines that are not remarks, by kind: preamble, heading, closing."""
    is_empty: bool
    """The answer is a list of points, and there is none in it."""
    remarks: list[Remark] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    """Remarks that are not points, by reason (`DROPPED`)."""


def read_answer(
    answer: str,
    number: int,
    draft: QuotableText,
    *,
    is_cut: bool = False,
    n_most: int | None = None,
) -> ReadAnswer:
    """The remarks of an answer, at most `n_most` of them, and the kinds of its other lines.

    An answer is a list of records as JSON, or lines.
    """
    lines, words = answer_records(answer) or answer_lines(answer, draft), TextSettings()
    is_empty = lines.is_json and not (lines.items or lines.n_broken)
    reading = ReadAnswer(Counter(lines.others), is_empty)
    items = list(lines.items)
    if is_cut and not lines.is_json and items and items[-1].text[-1:] not in tuple(".!?\"”')"):
        items.pop()
        reading.dropped["cut"] += 1
    for entry in items:
        severity, item = entry.severity, entry
        is_record = entry.quotation is not None
        if not is_record and (match := _SEVERITY.search(entry.text)) is not None:
            rest = f"{entry.text[: match.start()]} {entry.text[match.end() :]}".strip()
            severity, item = int(match[1]), replace(entry, text=rest)
        quoting = _find_quoted(item, draft)
        if quoting is None and item is not entry:
            # The brackets may belong to the draft.
            severity, item, quoting = None, entry, _find_quoted(entry, draft)
        reason = None
        if is_record and not words.has_words(entry.quotation or ""):
            reason = "no_quotation"
        elif quoting is not None:
            reason = "no_point" if len(words.words(quoting[0])) < _MIN_WORDS else None
        elif item.has_children:
            reason = "heading"
        else:
            whole = f"“{item.quotation}”: {item.text}" if is_record else item.text
            quoted = [QuotableText.of(whole[a:b]).folded.strip() for a, b in quoted_parts(whole)]
            is_known = any(f" {part} " in f" {draft.folded} " for part in quoted)
            reason = "one_word" if is_known else "not_in_text" if quoted else "no_quotation"
        if reason == "heading":
            reading.other_lines["heading"] += 1
        elif reason is not None or quoting is None:
            reading.dropped[str(reason)] += 1
        elif n_most is not None and len(reading.remarks) >= n_most:
            reading.dropped["beyond"] += 1
        else:
            says, ((start, end), *also) = quoting
            rank = len(reading.remarks)
            reading.remarks.append(Remark(number, rank, says, start, end, tuple(also), severity))
    if lines.n_broken:
        reading.dropped["broken"] += lines.n_broken
    return reading


def _find_quoted(item: Entry, draft: QuotableText) -> tuple[str, list[Place]] | None:
    """What an entry says, and the places that it may be about, in order; None if it has no
    quotation that occurs in the draft.

    The first such quotation counts. Words that occur in several places keep them all, unless the
    entry says which: by number ("the second time"), by paragraph or line, or by other words that it
    quotes from one paragraph.
    """
    says, rest = item.text, item.text
    quoted = quotations_in(item.text, item.emphasised, draft)
    if item.quotation is not None:
        # It is given apart from what is said about it.
        places = draft.find(item.quotation)
    else:
        start, end, places = quoted.pop(0) if quoted else (0, 0, [])
        rest = item.text[:start] + " " + item.text[end:]
        before = item.text[: max(0, start - 1)].strip(" *_:-–—\"“„«‹‘‚`'(")
        is_alone = not before and not _GOES_ON.match(item.text[end:])
        says = item.text[end:].lstrip(_LEADING) if is_alone else item.text
        says = _BACKTICKS.sub(r"“\1”", says).replace("`", "").strip()
    if not places:
        return None
    if len(places) > 1:
        others = [where[0] for _, _, where in quoted if len(where) == 1]
        places = _meant(places, rest, others, draft.text)
    return says[:1].upper() + says[1:], places


def _meant(places: list[Place], rest: str, others: list[Place], text: str) -> list[Place]:
    """The intended ones of several places; all of them if nothing says which."""
    if (which := _WHICH.search(rest)) is not None:
        place = _ORDINALS[(which[1] or which[2]).casefold()]
        return [places[place]] if -len(places) <= place < len(places) else places
    if (where := _WHERE.search(rest)) is not None:
        number = _ORDINALS[where[1].casefold()] if where[1] else int(where[4]) - 1
        has_gaps = (where[2] or where[3]).casefold() == "paragraph" and re.search(r"\n\s*\n", text)
        part = r"(?:[^\n]+\n?)+" if has_gaps else r"[^\n]+"
        parts = [match.span() for match in re.finditer(part, text) if match[0].strip()]
        a, b = parts[number] if -len(parts) <= number < len(parts) else (0, 0)
        if inside := [place for place in places if a <= place[0] < b]:
            return inside
    for other in others:
        near = [p for p in places if "\n" not in text[min(p[1], other[1]) : max(p[0], other[0])]]
        if len(near) == 1:
            return near
    return places


def group_remarks(remarks: Sequence[Remark], encoder: Encoder) -> list[Point]:
    """Group remarks that say the same into one point each, sorted by importance, then by rank.

    Importance is the mean severity times the number of answers: one of five answers that calls
    something the worst does not outweigh five that see another. A point without a severity gets the
    average one. A point has at most one remark from each answer.
    """
    if not remarks:
        return []
    vectors = encoder.encode([remark.text for remark in remarks])
    groups: list[list[int]] = []
    for k in range(len(remarks)):
        remark = remarks[k]
        # The mean cosine with a group's; -1 if it cannot belong to that point.
        scores = [
            -1.0
            if any(remarks[j].answer == remark.answer for j in group)
            or not any(touches(place, *remarks[j].places) for place in remark.places for j in group)
            else math.fsum(float(vectors[k] @ vectors[j]) for j in group) / len(group)
            for group in groups
        ]
        if scores and max(scores) >= SAME:
            groups[int(np.argmax(scores))].append(k)
        else:
            groups.append([k])
    points = []
    for group in groups:
        chosen = vectors[group]
        typical = group[int(np.argmax(np.round(chosen @ chosen.mean(axis=0), 5)))]
        # The most typical one first; the others in their order.
        ordered = [typical, *(k for k in group if k != typical)]
        points.append(Point(tuple(remarks[k] for k in ordered)))
    known = [point.severity for point in points if point.severity is not None]
    usual = math.fsum(known) / len(known) if known else 1.0
    return sorted(
        points, key=lambda p: (-p.n_said * (usual if p.severity is None else p.severity), p.rank)
    )


def touches(place: Place, *others: Place) -> bool:
    """Whether a place overlaps one of the others, or no word is between them."""
    start, end = place
    return any(start <= b + _TOUCH_CHARS and a <= end + _TOUCH_CHARS for a, b in others)
