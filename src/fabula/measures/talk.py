"""Who says how much: attribute each speech to the person named beside it with a speech verb.

A name counts where it is next to the verb, in the clause right after the speech ("...," said
Anne; "...," Anne said) or right before it (Anne said softly, "..."). A speech without such words
has the speaker of its paragraph, if that has one. Pronouns ("she said") and turns without a name
are not attributed: counting cannot separate two speakers who take turns.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabula.measures.cast import Person
from fabula.text.sentences import paragraph_spans
from fabula.text.speech import SAYING, WORD
from fabula.text.words import word_set

TALK_RULES = "1"
"""Version: changes with any rule or threshold below."""

_MAX_CHARS = 120
_MAX_BETWEEN = 1
"""Words between a name and its verb: poor, softly."""
_MAX_FIRST = 2
"""Words between the speech and the nearer of the two."""
_MAX_LAST = 6
"""Words from the verb to a speech that follows it."""
_END = re.compile(r"[.!?;…]")
_NO_SUBJECT = word_set(
    "to of for at and with by the a that as when while in about on from her his my their our",
    "your than like beside before after behind upon into",
)
"""After one of these a name is not the speaker: said to Anne."""

_TELLER = "I"
"""The narrator, who has no name."""

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Talk:
    """What somebody says."""

    n_speeches: int
    n_words: int


def talk_of(
    people: Sequence[Person], speakers: Sequence[str | None], n_words: Sequence[int]
) -> Mapping[str, Talk]:
    """By name, for those who say anything. n_words: for each speech."""
    n_speeches, n_said = Counter[str](), Counter[str]()
    for speaker, n in zip(speakers, n_words, strict=True):
        if speaker is not None:
            n_speeches[speaker] += 1
            n_said[speaker] += n
    return {
        one.name: Talk(n_speeches[one.name], n_said[one.name])
        for one in people
        if one.name in n_speeches
    }


def speakers_of(text: str, people: Sequence[Person], speech: Sequence[Place]) -> list[str | None]:
    """The name of each speech's speaker, in order; None if unknown."""
    names = sorted((start, end, one.name) for one in people for start, end in one.places)
    speakers: list[str | None] = []
    starts = [start for start, _ in speech]
    for low, high in paragraph_spans(text):
        # The speeches that begin in the paragraph.
        inside = speech[len(speakers) : bisect_left(starts, high)]
        found = []
        for k, (start, end) in enumerate(inside):
            before = inside[k - 1][1] if k else low
            after = inside[k + 1][0] if k + 1 < len(inside) else high
            found.append(
                _named_after(text, end, min(after, end + _MAX_CHARS), names)
                or _named_before(text, max(before, start - _MAX_CHARS), start, names)
            )
        told = {name for name in found if name is not None}
        only = told.pop() if len(told) == 1 else None
        speakers += [name or only for name in found]
    return [name if name != _TELLER else None for name in speakers]


def _named_after(
    text: str, start: int, end: int, names: Sequence[tuple[int, int, str]]
) -> str | None:
    """The person named in the clause that follows a speech."""
    words = [(match.start(), match[0]) for match in WORD.finditer(text, start, end)]
    stop = _clause_end(text, start, end, names)
    return _subject(words, stop, _MAX_FIRST, names)


def _named_before(
    text: str, start: int, end: int, names: Sequence[tuple[int, int, str]]
) -> str | None:
    """The person named in the clause before a speech, ending in a comma or colon."""
    if text[start:end].rstrip()[-1:] not in (",", ":"):
        return None
    at = start
    while (stop := _clause_end(text, at, end, names)) < end:
        at = stop + 1
    words = [(match.start(), match[0]) for match in WORD.finditer(text, at, end)]
    found = _subject(words, end, len(words), names)
    last = max((k for k, (_, word) in enumerate(words) if word.lower() in SAYING), default=0)
    return found if len(words) - last <= _MAX_LAST else None


def _clause_end(text: str, start: int, end: int, names: Sequence[tuple[int, int, str]]) -> int:
    """The first mark that ends a sentence, except those within a name: Mr. Darcy."""
    for mark in _END.finditer(text, start, end):
        k = bisect_left(names, (mark.start(),)) - 1
        if k < 0 or names[k][1] <= mark.start():
            return mark.start()
    return end


def _subject(
    words: Sequence[tuple[int, str]], stop: int, most: int, names: Sequence[tuple[int, int, str]]
) -> str | None:
    """The name next to the first speech verb; at most `most` words come before both."""
    words = [(place, word) for place, word in words if place < stop]
    verb = next((k for k, (_, word) in enumerate(words) if word.lower() in SAYING), None)
    if verb is None:
        return None
    beside = [word for _, word in words[max(0, verb - 1) : verb + 2]]
    if verb <= most and not {"I", "we", "We"}.isdisjoint(beside):
        return _TELLER
    places = [place for place, _ in words]
    begin = bisect_left(names, (places[0] if places else 0,))
    for low, high, name in names[begin : bisect_left(names, (stop,))]:
        first = bisect_left(places, low)
        last = bisect_left(places, high) - 1
        if min(first, verb) > most:
            continue
        between = words[last + 1 : verb] if last < verb else words[verb + 1 : first]
        is_subject = not any(
            word.lower() in _NO_SUBJECT
            for _, word in (between if first > verb else words[max(0, first - 1) : first])
        )
        if len(between) <= _MAX_BETWEEN and is_subject:
            return name
    return None
