"""Locate the words of a draft that an editor quotes, and the same places in the next draft."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabula.tasks.feedback.answer_lines import Entry, quotations_in
from fabula.text.quotations import QuotableText

_PLACES = {
    0: "first 1st opening start beginning",
    1: "second 2nd",
    2: "third 3rd",
    3: "fourth 4th",
    4: "fifth",
    -1: "last final closing end close",
}
_ORDINALS = {word: place for place, words in _PLACES.items() for word in words.split()}
_ORDER = "|".join(_ORDINALS)
_WHICH = re.compile(
    rf"\b(?:({_ORDER})\s(?:time|occurrence|instance|mention|use|appearance|one)"
    r"|(?:at|near|towards?) the (?:very )?(end|close|start|beginning))\b",
    re.IGNORECASE,
)
_WHERE = re.compile(
    rf"\b(?:({_ORDER})\s(paragraph|line)|(paragraph|line)\s#?(\d{{1,3}}))\b", re.IGNORECASE
)
_LEADING = " *_:,.;-–—\"”“„‘’'`»«›‹)]"
_GOES_ON = re.compile(r"[\s\"”’']*(?:&|and|or|versus|vs\.?)\s*[\"“„«‘'`]", re.IGNORECASE)
_BACKTICKS = re.compile(r"`([^`]+)`")
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Quoted:
    """What an entry says, and the places in the draft it may refer to, in order."""

    said: str
    places: tuple[tuple[int, int], ...]


def find_quoted(item: Entry, draft: QuotableText) -> Quoted | None:
    """The entry's first quotation that occurs in the draft; None if there is none.

    Words that occur in several places keep them all, unless the entry says which: by number ("the
    second time"), by paragraph or line, or by other words that it quotes from one paragraph.
    """
    found = quotations_in(item.text, item.emphasised, draft)
    if not found:
        return None
    start, end, places = found[0]
    rest = item.text[:start] + " " + item.text[end:]
    others = [where[0] for _, _, where in found[1:] if len(where) == 1]
    chosen = _meant(places, rest, others, draft.text) if len(places) > 1 else places
    before = item.text[: max(0, start - 1)].strip(" *_:-–—\"“„«‹‘‚`'(")
    is_alone = not before and not _GOES_ON.match(item.text[end:])
    said = item.text[end:].lstrip(_LEADING) if is_alone else item.text
    said = _BACKTICKS.sub(r"“\1”", said).replace("`", "").strip()
    return Quoted(said[:1].upper() + said[1:], tuple(chosen))


def find_words(words: str, said: str, draft: QuotableText) -> Quoted | None:
    """Like `find_quoted`, for a quotation that is given apart from what is said about it."""
    places = draft.find(words)
    if not places:
        return None
    others = [where[0] for _, _, where in quotations_in(said, (), draft) if len(where) == 1]
    chosen = _meant(places, said, others, draft.text) if len(places) > 1 else places
    return Quoted(said[:1].upper() + said[1:], tuple(chosen))


def _meant(
    places: list[tuple[int, int]], rest: str, others: list[tuple[int, int]], text: str
) -> list[tuple[int, int]]:
    """The intended ones of several places; all of them if nothing says which."""
    if (which := _WHICH.search(rest)) is not None:
        place = _ORDINALS[(which[1] or which[2]).casefold()]
        return [places[place]] if -len(places) <= place < len(places) else places
    if (where := _WHERE.search(rest)) is not None:
        unit = (where[2] or where[3]).casefold()
        number = _ORDINALS[where[1].casefold()] if where[1] else int(where[4]) - 1
        inside = _within(places, number, unit, text)
        if inside:
            return inside
    for other in others:
        near = [
            place
            for place in places
            if "\n" not in text[min(place[1], other[1]) : max(place[0], other[0])]
        ]
        if len(near) == 1:
            return near
    return places


def _within(
    places: list[tuple[int, int]], number: int, unit: str, text: str
) -> list[tuple[int, int]]:
    """The places that are in the paragraph or line of this number."""
    parts = [(m.start(), m.end()) for m in re.finditer(r"[^\n]+", text) if m[0].strip()]
    if unit == "paragraph" and re.search(r"\n\s*\n", text):
        parts = [(m.start(), m.end()) for m in re.finditer(r"(?:[^\n]+\n?)+", text) if m[0].strip()]
    if not -len(parts) <= number < len(parts):
        return []
    a, b = parts[number]
    return [place for place in places if a <= place[0] < b]


def moved_places(
    places: list[tuple[int, int]], before: str, after: str
) -> list[tuple[int, int] | None]:
    """Map places of one draft to the next; None where all of the place's text is gone.

    The drafts are compared word by word: a replacement takes the place of the words it replaces.
    Passages that were moved are not tracked.
    """
    old = [(m.start(), m.end(), m[0].casefold()) for m in _TOKEN.finditer(before)]
    new = [(m.start(), m.end(), m[0].casefold()) for m in _TOKEN.finditer(after)]
    matcher = difflib.SequenceMatcher(
        None, [word for *_, word in old], [word for *_, word in new], autojunk=False
    )
    steps = matcher.get_opcodes()
    return [_moved(place, old, new, steps) for place in places]


def _moved(
    place: tuple[int, int],
    old: list[tuple[int, int, str]],
    new: list[tuple[int, int, str]],
    steps: Sequence[tuple[str, int, int, int, int]],
) -> tuple[int, int] | None:
    mine = [k for k, (start, end, _) in enumerate(old) if start < place[1] and place[0] < end]
    if not mine:
        return None
    first, last = mine[0], mine[-1] + 1
    there: list[int] = []
    for kind, a, b, c, d in steps:
        if a < last and first < b and d > c:
            whole = kind != "equal"
            there += [c, d] if whole else [c + max(first, a) - a, d - (b - min(last, b))]
    return (new[min(there)][0], new[max(there) - 1][1]) if there else None
