"""What to look at first in a text: places from all instruments in one order, and a short summary.

The order mixes kinds, so that one kind of finding never fills the list: the first findings of each
kind come before most of the second ones. It is a reading order, not a grade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fabula.measures.borrowed_passages import BorrowedPassage
from fabula.measures.line_read import LINE_KINDS, LineNote, line_of
from fabula.review.found import TextReview

NOTES_PER_1000 = 10
"""Marked notes on lines per 1,000 words."""
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
_NUMBERS = (
    "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven",
    "Twelve",
)  # fmt: skip


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
    number: int
    """Its number among those of its instrument, from 1, as shown on the page."""


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
            again = _AGAIN_BORROWED.get(finding.kind, _AGAIN)
            weighed.append((weight * again**k, finding))
    weighed.sort(key=lambda pair: (-pair[0], pair[1].start))
    found: list[Finding] = []
    for _, one in weighed:
        # One place is one finding, whichever instrument reports it.
        is_known = any((one.start, one.end) == (other.start, other.end) for other in found)
        if len(found) < _N_FIRST and not is_known:
            found.append(one)
    return found


def marked_findings(text: TextReview) -> list[Finding]:
    """All places to look at, in the order of the text."""
    found = [one for kind in _all_findings(text) for _, one in kind]
    return sorted(found, key=lambda one: (one.start, one.end, one.kind))


def _all_findings(text: TextReview) -> Iterator[list[tuple[float, Finding]]]:
    """The findings of each kind in order, with their weights."""
    passages = _passages(text)
    for kind in ("passage", "near"):
        yield [(_WEIGHTS[kind], one) for one in passages if one.kind == kind]
    notes = list(enumerate(marked_notes(text), 1))
    for kind in LINE_KINDS:
        ours = [pair for pair in notes if pair[1].kind == kind]
        ours.sort(key=lambda pair: (-pair[1].strength, pair[1].start))
        yield [(_WEIGHTS[kind], _noted(text, number, note)) for number, note in ours]
    yield list(_points(text))


def _passages(text: TextReview) -> list[Finding]:
    ranked = None if text.originality is None else text.originality.ranked
    found = []
    for number, one in enumerate(() if ranked is None else ranked.passages, 1):
        kind, title = "near", "Reworded"
        if 2 * one.n_verbatim >= one.n_words:
            kind, title = "passage", "Word for word" if _is_whole(one) else "Nearly word for word"
        place = one.span.start, one.span.end
        found.append(_finding(text, kind, title, place, _where(one), number))
    return found


def _is_whole(one: BorrowedPassage) -> bool:
    """Whether it is one run in the same words; between runs there may be other words."""
    return one.n_verbatim == one.n_words and len(one.runs) == 1


def _where(one: BorrowedPassage) -> str:
    words = f"{one.n_words} words"
    if one.n_verbatim == one.n_words:
        words += ", word for word" + (f" in {len(one.runs)} runs" if len(one.runs) > 1 else "")
    elif one.n_verbatim:
        words += f", {one.n_verbatim} of them word for word"
    if not one.sources:
        return f"{words}, found {one.count:,} time{'s' if one.count != 1 else ''} elsewhere."
    document = one.sources[0].document
    by = f", {document.author}" if document.author else ""
    more = max(0, (one.n_documents or one.count) - 1)
    others = f" and {more:,} more" if more else ""
    found = f"{words}; also found in {document.meta.get('title') or document.id}{by}{others}"
    return found if found.endswith(".") else f"{found}."


def _noted(text: TextReview, number: int, note: LineNote) -> Finding:
    title = LINE_KINDS[note.kind].title
    return _finding(text, note.kind, title, (note.start, note.end), note.why, number)


def _points(text: TextReview) -> Iterator[tuple[float, Finding]]:
    number = 0
    for advice in text.advice:
        for point in advice.points:
            number += 1
            if point.places:
                share = advice.share(point)
                yield (
                    _POINT * share,
                    _finding(text, "point", "Feedback", point.places[0], point.text, number),
                )


def _finding(
    text: TextReview, kind: str, title: str, place: tuple[int, int], why: str, number: int
) -> Finding:
    line = line_of(text.document.text, place[0])
    return Finding(kind, title, *place, line, why, number)


def said_of(text: TextReview) -> list[Said]:
    """Summarise the findings in sentences: `Three passages to check. Two repetitions.`"""
    found = list(_originality(text))
    notes = [_noted(text, k, note) for k, note in enumerate(marked_notes(text), 1)]
    counts = Counter(one.kind for one in notes)
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
        ours = [one for one in notes if one.kind in kinds]
        if ours:
            found.append(Said(f"{_count(len(ours), what)}{more}.", "lines", ours[0]))
    if text.lines is not None and text.lines.missing_reason is None and not notes:
        found.append(Said("No notes on lines.", "lines"))
    n_points = sum(len(advice.points) for advice in text.advice)
    if n_points:
        found.append(Said(f"{_count(n_points, 'point')} to revise, by a model.", "feedback"))
    # The sentences of registered instruments.
    for name, measured in text.others.items():
        for one in measured:
            given = one.details.get("findings")
            sentences = given if isinstance(given, list | tuple) else ()
            found += [Said(str(sentence), name) for sentence in sentences]
    return found


def _originality(text: TextReview) -> Iterator[Said]:
    if text.originality is None or text.originality.ranked is None:
        return
    passages = _passages(text)
    n_exact = sum(one.kind == "passage" for one in passages)
    if passages:
        both = zip(passages, text.originality.ranked.passages, strict=True)
        is_whole = all(_is_whole(one) for found, one in both if found.kind == "passage")
        exactly = "word for word" if is_whole else "word for word or nearly so"
        exact = f", {_number(n_exact).lower()} of them {exactly}" if n_exact else ""
        if n_exact == len(passages):
            exact = f", {exactly}"
        sentence = f"{_count(len(passages), 'passage')} to check{exact}."
        yield Said(sentence, "originality", passages[0])
    else:
        yield Said("No passage was found in the reference.", "originality")
    if n_common := len(text.originality.ranked.commonplaces):
        yield Said(f"{_count(n_common, 'common phrase')}, hidden.", "originality")


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
