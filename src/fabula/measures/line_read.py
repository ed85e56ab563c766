"""A text as seen by the rules that note lines, and the definition of a note."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fabula.measures.linguistic.grammar import Fault
from fabula.measures.linguistic.lexis import Frequencies
from fabula.measures.linguistic.parsing import Token

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LineKind:
    """A kind of note, its importance beside the others (from 1 down to 0), and how often it is
    right.

    A reader labelled notes on fiction by people, and `bench/line_labels.py` counts those that the
    present rules still find. Those in stories that nobody had edited count if there are ten or
    more; otherwise those in all texts.
    """

    id: str
    title: str
    weight: float
    n_right: int = 0
    """Labelled notes that a writer would want to know."""
    n_labelled: int = 0

    @property
    def precision(self) -> float | None:
        """The share of labelled notes that are right; None if none was labelled."""
        return self.n_right / self.n_labelled if self.n_labelled else None

    @property
    def shown(self) -> str:
        """`right 85 %`: how often its notes are right; empty if that is not known."""
        return "" if self.precision is None else f"right {100 * self.precision:.0f} %"

    @property
    def is_on(self) -> bool:
        """Whether it is on by default: it is not known to be wrong more often than right."""
        return self.precision is None or self.precision >= 0.5


LINE_KINDS: dict[str, LineKind] = {
    kind.id: kind
    for kind in (
        LineKind("name", "Name in two spellings", 1.0),
        LineKind("renamed", "Change of name", 0.97),
        LineKind("sentence", "Repeated sentence", 0.95),
        LineKind("spelling", "Spelling", 0.9, 6, 10),
        LineKind("grammar", "Grammar", 0.85, 17, 20),
        LineKind("tag", "Dialogue tag", 0.7, 4, 4),
        LineKind("stock", "Stock phrase", 0.65, 7, 16),
        LineKind("beginning", "Same beginning", 0.6, 7, 14),
        LineKind("echo", "Echo", 0.5, 5, 24),
        LineKind("long", "Long sentence", 0.4, 12, 45),
    )
}
"""All kinds by id, the most important first."""


@dataclass(frozen=True, slots=True)
class LineNote:
    """A place, half-open in characters, and why it is noted; `also` is where the same occurs."""

    kind: str
    start: int
    end: int
    why: str
    strength: float
    also: tuple[Place, ...] = ()


def line_of(text: str, place: int) -> int:
    """The line of an offset in a text, from 1."""
    return text.count("\n", 0, place) + 1


@dataclass(frozen=True, slots=True)
class ReadSentence:
    start: int
    end: int
    tokens: tuple[Token, ...]
    """By their offsets in the sentence's own text, plus `start`."""
    faults: tuple[Fault, ...]
    is_spoken: tuple[bool, ...]
    """For each token, whether it is in quoted speech."""

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
    is_word: Callable[[str], bool]
    """Whether the checker accepts a word in lower case; False without a checker."""

    def narrated(self) -> Iterator[tuple[int, ReadSentence, Token]]:
        """The words outside speech, numbered over the whole text including speech."""
        number = 0
        for sentence in self.sentences:
            for token, spoken in zip(sentence.tokens, sentence.is_spoken, strict=True):
                number += token.is_word
                if token.is_word and not spoken:
                    yield number, sentence, token


def note_of(
    kind: str, place: Place, why: str, of: float = 1.0, also: Sequence[Place] = ()
) -> LineNote:
    """A note with the strength of its kind, adjusted by up to a tenth as `of` is 1 or 0."""
    strength = LINE_KINDS[kind].weight + 0.1 * (of - 1)
    return LineNote(kind, *place, why, round(strength, 6), tuple(also))
