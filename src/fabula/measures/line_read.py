"""A text as the rules that note lines see it, and what a note is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabula.measures.linguistic.grammar import Fault
from fabula.measures.linguistic.lexis import Frequencies
from fabula.measures.linguistic.parsing import Token

__all__ = [
    "LINE_KINDS",
    "LineKind",
    "LineNote",
    "Place",
    "ReadSentence",
    "ReadText",
    "line_of",
    "note_of",
]

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LineKind:
    """A kind of note, and how much it matters beside the others: from 1 down to 0."""

    id: str
    title: str
    weight: float
    is_on: bool = True
    """Whether it is noted without being asked for: right often enough, by labels of people's
    fiction (docs/writer.md)."""


LINE_KINDS = {
    kind.id: kind
    for kind in (
        LineKind("name", "Name in two spellings", 1.0),
        LineKind("sentence", "Repeated sentence", 0.95),
        LineKind("spelling", "Spelling", 0.9),
        LineKind("grammar", "Grammar", 0.85),
        LineKind("tense", "Tense", 0.75),
        LineKind("viewpoint", "Viewpoint", 0.72),
        LineKind("tag", "Dialogue tag", 0.7),
        LineKind("stock", "Stock phrase", 0.65),
        LineKind("beginning", "Same beginning", 0.6),
        LineKind("pet", "Pet phrase", 0.55, is_on=False),
        LineKind("echo", "Echo", 0.5),
        LineKind("long", "Long sentence", 0.4),
        LineKind("filter", "Filter", 0.3),
        LineKind("adverb", "Adverbs", 0.25, is_on=False),
        LineKind("passive", "Passive", 0.2, is_on=False),
    )
}
"""All kinds by id, those that matter most first."""


@dataclass(frozen=True, slots=True)
class LineNote:
    """A place, half-open in characters, and why it is noted; `also` is where the same stands."""

    kind: str
    start: int
    end: int
    why: str
    strength: float
    also: tuple[Place, ...] = ()


def line_of(text: str, place: int) -> int:
    """The line of a place in a text, from 1."""
    return text.count("\n", 0, place) + 1


@dataclass(frozen=True, slots=True)
class ReadSentence:
    start: int
    end: int
    tokens: tuple[Token, ...]
    """By their places in the sentence's own text, which `start` is added to."""
    faults: tuple[Fault, ...]
    is_spoken: tuple[bool, ...]
    """Of each token, whether it stands in quoted speech."""

    @property
    def words(self) -> list[Token]:
        return [token for token in self.tokens if token.is_word]

    @property
    def is_narration(self) -> bool:
        return not any(self.is_spoken)

    def at(self, token: Token) -> Place:
        start, end = token.place
        return self.start + start, self.start + end


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text as the rules see it."""

    text: str
    sentences: tuple[ReadSentence, ...]
    frequencies: Frequencies
    n_words: int

    def narrated(self) -> Iterator[tuple[int, ReadSentence, Token]]:
        """The words that nobody says, numbered over the whole text, speech counted too."""
        number = 0
        for sentence in self.sentences:
            for token, spoken in zip(sentence.tokens, sentence.is_spoken, strict=True):
                number += token.is_word
                if token.is_word and not spoken:
                    yield number, sentence, token


def note_of(
    kind: str, place: Place, why: str, of: float = 1.0, also: Sequence[Place] = ()
) -> LineNote:
    """A note whose strength is that of its kind, more or less by a tenth as `of` is 1 or 0."""
    strength = LINE_KINDS[kind].weight + 0.1 * (of - 1)
    return LineNote(kind, *place, why, round(strength, 6), tuple(also))
