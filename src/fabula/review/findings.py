"""What to look at first in a text: places from all instruments in one order, and a short summary.

The order mixes kinds, so that one kind of finding never fills the list: the first findings of each
kind come before most of the second ones. It is a reading order, not a grade.

And what became of the findings of one draft in the next: gone, new, or still there. Two findings
are the same if they say the same about the same place. A place is tracked from draft to draft by
comparing the texts, paragraph by paragraph and then word by word; text that was moved is found by
its words. All findings are compared, not only those that are marked: one that was crowded out by
others is not gone.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from fabula.core.errors import ModelError
from fabula.core.instruments import own_parts
from fabula.feedback.points import SAME
from fabula.feedback.written_faults import moved_places
from fabula.show.parts import (
    Finding,
    FindingKey,
    Review,
    Said,
    TextReview,
    part_of_finding,
    parts_of,
)

_N_FIRST = 10
_AGAIN = 0.55
"""The weight of each further finding of a kind, relative to the one before it."""
_N_NEAR = 60
"""The number of changed paragraphs before and after that are searched for a rewritten one."""
_MAX_PARAGRAPH_CHARS = 20_000
"""Longer ones are not compared word by word: it would be slow."""
_MIN_SHARED = 0.4
"""The share of the shorter one's words from which two paragraphs are the same, rewritten."""
BY_WORDS = frozenset(("spelling", "grammar", "confused", "echo", "name", "renamed", "doubled"))
"""Findings about particular words: if these change, it is another finding."""
_ALIKE = 0.25
PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*")
_word = re.compile(r"\w{3,}")
Place = tuple[int, int]


def findings_of(text: TextReview) -> list[Finding]:
    """The first places to look at, most important first: at most ten."""
    weighed: list[tuple[float, Finding]] = []
    for part in own_parts():
        for kind in part.weighed(text):
            for k, (weight, finding) in enumerate(kind):
                weighed.append((weight * part.fading.get(finding.kind, _AGAIN) ** k, finding))
    weighed.sort(key=lambda pair: (-pair[0], pair[1].start))
    first: list[Finding] = []
    for _, finding in weighed:
        # One place is one finding, whichever instrument reports it.
        is_known = any((finding.start, finding.end) == (other.start, other.end) for other in first)
        if len(first) < _N_FIRST and not is_known:
            first.append(finding)
    return first


def marked_findings(text: TextReview) -> list[Finding]:
    """All places to look at, in the order of the text."""
    kinds = (kind for part in own_parts() for kind in part.weighed(text))
    findings = [finding for kind in kinds for _, finding in kind]
    return sorted(findings, key=lambda finding: (finding.start, finding.end, finding.kind))


def said_of(text: TextReview, review: Review) -> list[Said]:
    """Summarise the findings in sentences: `Three passages to check. Two repetitions.`"""
    return [sentence for part in parts_of(review) for sentence in part.said(text)]


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the findings of a draft; each list in the order of its text."""

    gone: tuple[Finding, ...] = ()
    new: tuple[Finding, ...] = ()
    still: tuple[Finding, ...] = ()
    """As they are in the later draft."""
    not_compared: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Instruments that cannot be compared, and why."""


def noted_of_rows(rows: Any) -> list[Finding]:
    """Read stored findings; those that cannot be parsed, or of kinds that are gone, are skipped."""
    known = {kind for part in own_parts() for kind in part.findings}
    kinds = {"start": int, "end": int, "line": int}
    names = [f.name for f in fields(Finding) if f.compare]
    return [
        Finding(
            **{name: row[name] for name in names},
            where=str(row.get("where", "")),
            around=_around(row),
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
        and all(isinstance(row.get(name), kinds.get(name, str)) for name in names)
        and row["kind"] in known
    ]


def _around(row: Mapping[str, Any]) -> tuple[str, str]:
    match row.get("around"):
        case [str(before), str(after)]:
            return before, after
    return "", ""


def compare_noted(
    before: tuple[str, Sequence[Finding], Mapping[str, str]],
    after: tuple[str, Sequence[Finding], Mapping[str, str]],
    says_same: Callable[[str, str], bool] | None = None,
) -> Changes:
    """Compare two drafts, each given by its text, findings, and signatures by part.

    Instruments that did not run on both, or not in the same way, are not compared. `says_same`
    decides whether two points of feedback at one place say the same; without it, shared words
    decide.
    """
    signed, later = before[2], after[2]
    apart = {
        name: "measured differently"
        if name in signed and name in later
        else "measured in only one of the two"
        for name in sorted({*signed, *later} & {part.id for part in own_parts() if part.findings})
        if signed.get(name) != later.get(name)
    }
    old = [finding for finding in before[1] if part_of_finding(finding.kind).id not in apart]
    new = [finding for finding in after[1] if part_of_finding(finding.kind).id not in apart]
    moved = followed([(finding.start, finding.end) for finding in old], before[0], after[0])
    same = says_same or _share_words
    taken: set[int] = set()
    gone, still = [], []
    for finding, place in zip(old, moved, strict=True):
        left = ((k, other) for k, other in enumerate(new) if k not in taken)
        match = next((k for k, other in left if _is_same(finding, place, other, same)), None)
        if match is None:
            gone.append(finding)
        else:
            taken.add(match)
            still.append(new[match])
    fresh = [finding for k, finding in enumerate(new) if k not in taken]
    still.sort(key=lambda finding: (finding.start, finding.end, finding.kind))
    return Changes(tuple(gone), tuple(fresh), tuple(still), MappingProxyType(apart))


def _family(kind: str) -> str:
    return "originality" if part_of_finding(kind).id == "originality" else kind


def _is_same(
    finding: Finding, place: Place | None, other: Finding, says_same: Callable[[str, str], bool]
) -> bool:
    if _family(finding.kind) != _family(other.kind):
        return False
    is_worded_so = finding.words.casefold() == other.words.casefold()
    if place is None:
        # Its words are gone from there: possibly moved.
        return is_worded_so and (finding.kind != "point" or says_same(finding.why, other.why))
    if not (place[0] < other.end and other.start < place[1]):
        return False
    if finding.kind == "point":
        return says_same(finding.why, other.why)
    return is_worded_so or finding.kind not in BY_WORDS


def is_again(finding: Finding, place: Place | None, other: Finding) -> bool:
    """Whether a finding of a later draft is this one, whose place is `place` there, in the same
    words; a point of feedback that says the same."""
    if place is None or not (place[0] < other.end and other.start < place[1]):
        return False
    if not _is_same(finding, place, other, _share_words):
        return False
    return finding.kind == "point" or finding.words.casefold() == other.words.casefold()


def without_findings(review: Review, hidden: Collection[FindingKey]) -> Review:
    """The review without these findings of its texts; the numbers stay."""
    texts = list(review.texts)
    for part in own_parts() if hidden else ():
        texts = [part.without(text, hidden) for text in texts]
    return replace(review, texts=tuple(texts))


@functools.cache
def says_same() -> Callable[[str, str], bool]:
    """Return a function that decides whether two points of feedback say the same.

    It uses the encoder that groups them or, without the encoder's packages, their shared words.
    """
    from fabula.models.encoder import Encoder

    try:
        encoder = Encoder()
    except ModelError:
        return _share_words

    def is_same(first: str, second: str) -> bool:
        a, b = encoder.encode([first, second])
        return float(a @ b) >= SAME

    return is_same


def _share_words(first: str, second: str) -> bool:
    a, b = _words_of(first), _words_of(second)
    return len(a & b) >= _ALIKE * max(1, len(a | b))


def followed(places: Sequence[Place], before: str, after: str) -> list[Place | None]:
    """Map places of a text to the next, half-open; None if the text there is gone.

    Unchanged paragraphs are tracked wherever they moved; in others, places are tracked word by
    word, into the paragraph that has most of their words.
    """
    old, new = ([(m.start(), m.end()) for m in PARAGRAPH.finditer(t)] for t in (before, after))
    starts = [a for a, _ in old]
    # The parts of each place in its first and last paragraph: one part if they are the same.
    parts: list[list[Place]] = []
    for start, end in places:
        first, last = max(0, bisect_right(starts, start) - 1), bisect_left(starts, end)
        inside = [(max(start, a), min(end, b)) for a, b in old[first:last]]
        inside = [(a, b) for a, b in inside if a < b]
        parts.append([inside[0], inside[-1]] if inside else [])
    wanted: dict[int, list[Place]] = defaultdict(list)
    for part in dict.fromkeys(part for ends in parts for part in ends):
        wanted[bisect_right(starts, part[0]) - 1].append(part)
    # The new number of each unchanged paragraph; equal ones in order.
    numbers: dict[str, deque[int]] = defaultdict(deque)
    for k, (a, b) in enumerate(new):
        numbers[after[a:b]].append(k)
    same = {k: numbers[t].popleft() for k, (a, b) in enumerate(old) if numbers[t := before[a:b]]}
    untaken = sorted(set(range(len(new))) - set(same.values()))
    words = [_words_of(after[slice(*new[k])]) for k in untaken]
    targets: dict[Place, Place] = {}
    for number, pieces in wanted.items():
        a, b = old[number]
        if number in same:
            shift = new[same[number]][0] - a
            targets |= {(c, d): (c + shift, d + shift) for c, d in pieces}
            continue
        mine, near, missing = _words_of(before[a:b]), bisect_left(untaken, number), list(pieces)
        shared = [
            (len(mine & words[k]) / max(1, min(len(mine), len(words[k]))), -abs(k - near), k)
            for k in range(max(0, near - _N_NEAR), min(len(untaken), near + _N_NEAR))
        ]
        for share, _, k in sorted(shared, reverse=True):
            c, d = new[untaken[k]]
            if share < _MIN_SHARED or not missing or max(b - a, d - c) > _MAX_PARAGRAPH_CHARS:
                break
            moved = moved_places([(x - a, y - a) for x, y in missing], before[a:b], after[c:d])
            pairs = list(zip(missing, moved, strict=True))
            targets |= {place: (now[0] + c, now[1] + c) for place, now in pairs if now is not None}
            missing = [place for place, now in pairs if now is None]
    mapped: list[Place | None] = []
    for (start, end), ends in zip(places, parts, strict=True):
        placed = [targets[part] for part in ends if part in targets]
        # If its paragraphs were moved apart, its beginning counts.
        is_one = len(placed) == 2 and 0 <= placed[1][0] - placed[0][0] <= 2 * (end - start)
        mapped.append((placed[0][0], placed[1][1]) if is_one else placed[0] if placed else None)
    return mapped


def _words_of(paragraph: str) -> set[str]:
    return set(_word.findall(paragraph.casefold()))
