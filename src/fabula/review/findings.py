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
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from fabula.core.errors import ModelError
from fabula.feedback.points import SAME
from fabula.feedback.written_faults import moved_places
from fabula.novelty.passages import BorrowedPassage
from fabula.review.parts import NOTES_PER_1000, OWN_PARTS, TextReview, part_of_finding
from fabula.style.lines import LINE_KINDS, LineNote, line_of
from fabula.text.words import UNITS

_N_FIRST = 10
_AGAIN = 0.55
"""The weight of each further finding of a kind, relative to the one before it."""
_AGAIN_BORROWED = {"passage": 0.8, "near": 0.7}
"""The same for borrowed passages, since a second one matters more than any point of style."""
_WEIGHTS = {
    "passage": 1.1, "near": 1.05, "name": 1.0, "renamed": 0.97, "sentence": 0.95, "spelling": 0.9,
    "grammar": 0.85, "echo": 0.75, "tag": 0.7, "stock": 0.65, "beginning": 0.6, "long": 0.4,
}  # fmt: skip
"""Weights of the first finding of each kind. A point of feedback is weighted by its share of
answers.
"""
_POINT = 1.15
_REPETITIONS = ("sentence", "beginning", "echo")
_ERRORS = ("spelling", "grammar")
_STYLE = ("tag", "stock", "long")
_NUMBERS = ("No", *(unit.capitalize() for unit in UNITS))
_MAX_WORDS_CHARS = 300
_N_NEAR = 60
"""The number of changed paragraphs before and after that are searched for a rewritten one."""
_MAX_PARAGRAPH_CHARS = 20_000
"""Longer ones are not compared word by word: it would be slow."""
_MIN_SHARED = 0.4
"""The share of the shorter one's words from which two paragraphs are the same, rewritten."""
_BY_WORDS = frozenset(("spelling", "grammar", "echo", "name", "stock", "tag"))
"""Findings about particular words: if these change, it is another finding."""
_ALIKE = 0.25
PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*")
_word = re.compile(r"\w{3,}")
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """A place to look at, half-open in characters, and why."""

    kind: str
    """`passage`, `near`, `point`, or a kind of note on lines."""
    title: str
    start: int
    end: int
    line: int
    why: str
    words: str
    """The text at its place, truncated if it is long."""
    is_marked: bool = True
    """Whether the page shows it; the others are used in comparisons with the next draft only."""
    number: int = field(default=0, compare=False)
    """Its number among those of its instrument, from 1, as shown on the page; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence on the first screen, and the part of the report that it is about."""

    sentence: str
    about: str
    first: Finding | None = None
    """The first of the findings that it counts."""


def marked_notes(text: TextReview) -> list[LineNote]:
    """The notes on lines that the page marks."""
    return [] if text.lines is None else text.lines.first(NOTES_PER_1000)


def findings_of(text: TextReview) -> list[Finding]:
    """The first places to look at, most important first: at most ten."""
    weighed: list[tuple[float, Finding]] = []
    for kind in _all_findings(text):
        for k, (weight, finding) in enumerate(kind):
            weighed.append((weight * _AGAIN_BORROWED.get(finding.kind, _AGAIN) ** k, finding))
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
    findings = [finding for kind in _all_findings(text) for _, finding in kind]
    return sorted(findings, key=lambda finding: (finding.start, finding.end, finding.kind))


def _all_findings(text: TextReview) -> Iterator[list[tuple[float, Finding]]]:
    """The findings of each kind in order, with their weights."""
    passages = _passages(text)
    for kind in ("passage", "near"):
        yield [(_WEIGHTS[kind], passage) for passage in passages if passage.kind == kind]
    notes = list(enumerate(marked_notes(text), 1))
    for kind in LINE_KINDS:
        pairs = [pair for pair in notes if pair[1].kind == kind]
        pairs.sort(key=lambda pair: (-pair[1].strength, pair[1].start))
        yield [(_WEIGHTS[kind], _noted(text, number, note)) for number, note in pairs]
    points = [(advice, point) for advice in text.advice for point in advice.points]
    about = text, "point", "Feedback"
    yield [
        (_POINT * advice.share(point), _finding(*about, point.places[0], point.text, number))
        for number, (advice, point) in enumerate(points, 1)
        if point.places
    ]


def _passages(text: TextReview) -> list[Finding]:
    ranked = None if text.originality is None else text.originality.ranked
    findings = []
    for number, passage in enumerate(() if ranked is None else ranked.passages, 1):
        kind, title = "near", "Reworded"
        if 2 * passage.n_verbatim >= passage.n_words:
            kind = "passage"
            title = "Word for word" if _is_whole(passage) else "Nearly word for word"
        words = f"{passage.n_words} words"
        if passage.n_verbatim == passage.n_words:
            words += ", word for word"
            words += f" in {len(passage.runs)} runs" if len(passage.runs) > 1 else ""
        elif passage.n_verbatim:
            words += f", {passage.n_verbatim} of them word for word"
        why = f"{words}, found {passage.count:,} time{'s' if passage.count != 1 else ''} elsewhere."
        if passage.sources:
            document = passage.sources[0].document
            by = f", {document.author}" if document.author else ""
            more = max(0, (passage.n_documents or passage.count) - 1)
            others = f" and {more:,} more" if more else ""
            sources = f"{document.meta.get('title') or document.id}{by}{others}"
            why = f"{words}; also found in {sources}{'' if sources.endswith('.') else '.'}"
        place = passage.span.start, passage.span.end
        findings.append(_finding(text, kind, title, place, why, number))
    return findings


def _is_whole(passage: BorrowedPassage) -> bool:
    """Whether it is one run in the same words; between runs there may be other words."""
    return passage.n_verbatim == passage.n_words and len(passage.runs) == 1


def _noted(text: TextReview, number: int, note: LineNote) -> Finding:
    title = LINE_KINDS[note.kind].title
    return _finding(text, note.kind, title, (note.start, note.end), note.why, number)


def _finding(
    text: TextReview, kind: str, title: str, place: tuple[int, int], why: str, number: int
) -> Finding:
    whole, (start, end) = text.document.text, place
    words = " ".join(whole[start:end][:_MAX_WORDS_CHARS].split())
    return Finding(kind, title, start, end, line_of(whole, start), why, words, number=number)


def said_of(text: TextReview) -> list[Said]:
    """Summarise the findings in sentences: `Three passages to check. Two repetitions.`"""
    summary: list[Said] = []
    if text.originality is not None and text.originality.ranked is not None:
        ranked, passages = text.originality.ranked, _passages(text)
        n_exact = sum(finding.kind == "passage" for finding in passages)
        both = zip(passages, ranked.passages, strict=True)
        is_whole = all(_is_whole(passage) for f, passage in both if f.kind == "passage")
        exactly = "word for word" if is_whole else "word for word or nearly so"
        exact = f", {_number(n_exact).lower()} of them {exactly}" if n_exact else ""
        exact = f", {exactly}" if n_exact == len(passages) else exact
        sentence = f"{_count(len(passages), 'passage')} to check{exact}."
        if not passages:
            sentence = "No passage was found in the reference."
        summary.append(Said(sentence, "originality", next(iter(passages), None)))
        if n_common := len(ranked.commonplaces):
            summary.append(Said(f"{_count(n_common, 'common phrase')}, hidden.", "originality"))
    notes = [_noted(text, k, note) for k, note in enumerate(marked_notes(text), 1)]
    counts = Counter(note.kind for note in notes)
    styles = ", ".join(
        f"{counts[kind]:,} {_plural(LINE_KINDS[kind].title.lower(), counts[kind])}"
        for kind in _STYLE
        if counts[kind]
    )
    for kinds, what, more in (
        (("name",), "name", " in two spellings"),
        (("renamed",), "possible change of name", ""),
        (_REPETITIONS, "repetition", ""),
        (_ERRORS, "possible error of spelling or grammar", ""),
        (_STYLE, "matter", f" of style ({styles})"),
    ):
        alike = [note for note in notes if note.kind in kinds]
        if alike:
            summary.append(Said(f"{_count(len(alike), what)}{more}.", "lines", alike[0]))
    if text.lines is not None and text.lines.missing_reason is None and not notes:
        summary.append(Said("No notes on lines.", "lines"))
    n_points = sum(len(advice.points) for advice in text.advice)
    if n_points:
        summary.append(Said(f"{_count(n_points, 'point')} to revise, by a model.", "feedback"))
    # The sentences of registered instruments.
    for name, measured in text.others.items():
        for measurement in measured:
            listed = measurement.details.get("findings")
            sentences = listed if isinstance(listed, list | tuple) else ()
            summary += [Said(str(sentence), name) for sentence in sentences]
    return summary


def _count(n: int, what: str) -> str:
    """`Three passages`."""
    return f"{_number(n)} {_plural(what, n)}"


def _number(n: int) -> str:
    """`Three`: in words up to twelve."""
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"


def _plural(what: str, n: int) -> str:
    """`points of style`, unless it is one."""
    noun, of, rest = what.partition(" of ")
    return what if n == 1 else f"{noun}s{of}{rest}"


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the findings of a draft; each list in the order of its text."""

    gone: tuple[Finding, ...] = ()
    new: tuple[Finding, ...] = ()
    still: tuple[Finding, ...] = ()
    """As they are in the later draft."""
    not_compared: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Instruments that cannot be compared, and why."""


def noted_of(text: TextReview) -> list[Finding]:
    """All findings of a text, in its order: those that are marked, and the other notes on lines."""
    findings = marked_findings(text)
    marked = {(finding.kind, finding.start, finding.end) for finding in findings}
    for note in () if text.lines is None else text.lines.notes:
        if (note.kind, note.start, note.end) not in marked:
            findings.append(replace(_noted(text, 0, note), is_marked=False))
    return sorted(findings, key=lambda finding: (finding.start, finding.end, finding.kind))


def noted_of_rows(rows: Any) -> list[Finding]:
    """Read stored findings; those that cannot be parsed are skipped."""
    kinds = {"start": int, "end": int, "line": int, "is_marked": bool}
    names = [f.name for f in fields(Finding) if f.compare]
    return [
        Finding(**{name: row[name] for name in names})
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
        and all(isinstance(row.get(name), kinds.get(name, str)) for name in names)
    ]


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
        for name in sorted({*signed, *later} & {part.id for part in OWN_PARTS if part.findings})
        if signed.get(name) != later.get(name)
    }
    old = [finding for finding in before[1] if part_of_finding(finding.kind) not in apart]
    new = [finding for finding in after[1] if part_of_finding(finding.kind) not in apart]
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
            # Unchanged, even if it was crowded out of the marks or into them.
            still.append(replace(new[match], is_marked=finding.is_marked or new[match].is_marked))
    fresh = [finding for k, finding in enumerate(new) if k not in taken]
    still.sort(key=lambda finding: (finding.start, finding.end, finding.kind))
    return Changes(_marked(gone), _marked(fresh), _marked(still), MappingProxyType(apart))


def _marked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.is_marked)


def _family(kind: str) -> str:
    return "originality" if part_of_finding(kind) == "originality" else kind


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
    return is_worded_so or finding.kind not in _BY_WORDS


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
