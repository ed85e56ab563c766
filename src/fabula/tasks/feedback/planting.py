"""Where and about whom sentences are planted in a story, and the sentences themselves.

The bank of sentences was written for this purpose and is in a file, `planted.toml`. A model can
write others (`written_faults`); what is planted is always a whole sentence after another one.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.tasks.feedback.characters import characters, kinds_called
from fabula.tasks.feedback.narration import Narration, word_set
from fabula.text.speech import quotations_of

__all__ = [
    "Person",
    "bank",
    "ends_of",
    "is_named_before",
    "places_of",
    "protagonist",
    "said_of",
    "tense_column",
]

_MIN_NARRATOR = 3
_MIN_CALLED = 2
_VERB = re.compile(r"\{([^{}|]+)\|([^{}|]+)\|([^{}|]+)\}")
# A sentence that begins like this depends on the one before it.
_LEANING = word_set(
    "he she it they him her his its their them this that these those there then so but and or yet "
    "both another one which who such instead still however otherwise neither nor too"
)


@dataclass(frozen=True, slots=True)
class Person:
    """Who sentences can be about: a name, `I`, or a description such as `the fox`."""

    name: str
    place: int
    """The first mention."""

    @property
    def is_narrator(self) -> bool:
        return self.name == "I"


@functools.cache
def bank() -> Mapping[str, Any]:
    """The sentences of `planted.toml`: threads, facts, motives."""
    path = Path(__file__).with_name("planted.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def protagonist(story: Narration) -> Person | None:
    """Who is named most often, or the narrator, or a character like `the fox`; None if nobody.

    "The fox" is a character only if there is just one fox.
    """
    narrator = [
        start
        for start, token in story.words()
        if token.text == "I" and token.tag_ == "PRP" and not story.is_quoted(start, start + 1)
    ]
    if len(narrator) >= _MIN_NARRATOR:
        return Person("I", narrator[0])
    if people := characters(story):
        return Person(people[0].name, people[0].places[0])
    for word, places, _ in kinds_called(story):
        if len(places) >= _MIN_CALLED:
            return Person(f"the {word}", places[0])
    return None


def tense_column(story: Narration, who: Person | None) -> int:
    """Which of a verb's three forms fits: the past, or the present of a third or first person."""
    if story.main_tense == "past":
        return 0
    return 2 if who is not None and who.is_narrator else 1


def said_of(template: str, who: Person | None, column: int, **more: str) -> str:
    """A sentence of the bank about a person; `more` fills its other placeholders."""
    plain = _VERB.sub(lambda match: match[column + 1], template)
    name = "" if who is None else who.name
    filled = plain.format(who=name, whom="me" if name == "I" else name, **more)
    return filled[:1].upper() + filled[1:]


def is_named_before(who: str, text: str) -> bool:
    """Whether a person is mentioned in a text: the first `the fox` may be a fox."""
    word = who.removeprefix("the ")
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def places_of(thing: str, text: str) -> list[int]:
    """Where a thing is named, also as a part of a word: keys, keyhole, letterbox."""
    pattern = rf"(?<!\w){re.escape(thing)}"
    return [match.start() for match in re.finditer(pattern, text, re.IGNORECASE)]


def ends_of(story: Narration, named: int, *, late: bool = False) -> list[int]:
    """The best sentences of the first half, or of the second, to plant another one after.

    Best is the end of a paragraph of narration, after which nobody is called he or she before being
    named. None is before `named`, where the person is named for the first time.
    """
    text, spans = story.text, story.sentences
    found: list[tuple[int, int]] = []
    middle = len(spans) // 2
    begin, stop = (middle, len(spans) - 1) if late else (0, middle)
    for k in range(max(begin, story.sentence_of(named)), stop):
        start, end = spans[k]
        following = text[end : spans[k + 1][0]]
        is_end = re.search(r"\n\s*\n", following) is not None
        # Verse, and lines with manual breaks, are not split.
        fits = is_end or "\n" not in following
        if story.is_quoted(start, end + 1) or text[end - 1] not in ".!?" or not fits:
            continue
        if following.strip() or "\n" in text[start:end] or re.search(r"\n[ \t]", following):
            continue
        after = text[slice(*spans[k + 1])]
        first = re.search(r"[\w’']+", after)
        if first is None or first[0].lower() not in _LEANING:
            found.append((k, (0 if is_end else 1) + (2 if _calls_back(after) else 0)))
    best = min((rank for _, rank in found), default=0)
    return [k for k, rank in found if rank == best]


def _calls_back(sentence: str) -> bool:
    """Whether the narration uses he or she before it names anybody."""
    plain = sentence
    for one in reversed(quotations_of(sentence)):
        plain = f"{plain[: one.start]} {plain[one.end :]}"
    pronoun = re.search(r"\b(?:he|she|his|her|him|they|their)\b", plain, re.IGNORECASE)
    return pronoun is not None and not re.search(r"\b[A-Z]\w+", plain[1 : pronoun.start()])
