"""Line by line: places in a draft that its writer may want to check, each with a reason.

No language model is used. Every note can be located and checked: a word that recurs within a few
lines, a repeated sentence, consecutive sentences that begin alike, a name spelt in two ways or
changed for another, an error of grammar or spelling, a stock phrase. None of it is a grade, and
none of it must be changed: repetition can be intended. So notes are ranked, and only the first of
them are shown.

Quoted text belongs to its speaker: there only spelling, names and stock phrases are noted.
Thresholds are heuristics of `line_rules`; `LINE_RULES` names them in signatures.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from fabula.measures.line_rules import LINE_KINDS, LINE_RULES, RULES, LineNote, line_of
from fabula.measures.linguistic.metrics import TextTools
from fabula.measures.linguistic.profile import Profile, opened_tools, profile_text
from fabula.text import check_documents, count_words
from fabula.text.chapters import CHAPTER_RULES, without_headings
from fabula.text.language import not_english
from fabula.types import Document, Measurement, Signature, Span
from fabula.workers import in_order


@dataclass(frozen=True, slots=True)
class LineReview:
    """All notes on a text, in text order; none, with the reason, if it cannot be read."""

    n_words: int | None
    """None if they are not English words."""
    notes: tuple[LineNote, ...]
    signature: str
    missing_reason: str | None = None

    def first(self, per_thousand: int) -> list[LineNote]:
        """The most important notes, in text order; all of them for 0.

        This many per thousand words, and at least this many.
        """
        if not (per_thousand and self.n_words):
            return list(self.notes)
        n = max(per_thousand, math.ceil(per_thousand * self.n_words / 1000))
        best = sorted(self.notes, key=lambda note: (-note.strength, note.start))[:n]
        return sorted(best, key=lambda note: (note.start, note.end, note.kind))

    def without(self, kinds: Collection[str], also: Collection[str] = ()) -> LineReview:
        """The review without notes of these kinds, and without those that are off by default unless
        in `also`; its signature names what is left out."""
        off = {kind.id for kind in LINE_KINDS.values() if not kind.is_on} - set(also)
        left = sorted((set(kinds) | off) & LINE_KINDS.keys())
        if not left:
            return self
        notes = tuple(note for note in self.notes if note.kind not in left)
        return replace(self, notes=notes, signature=f"{self.signature}|without:{'+'.join(left)}")

    def to_row(self, document: Document, per_thousand: int) -> dict[str, Any]:
        """As written to JSON: the first notes, and how many there are of each kind."""
        shown = self.first(per_thousand)
        return {
            "id": document.id,
            "n_words": self.n_words,
            "n_notes": dict(sorted(Counter(note.kind for note in self.notes).items())),
            "n_shown": len(shown),
            "notes": [
                {
                    "line": line_of(document.text, note.start),
                    "text": document.text[note.start : note.end],
                    **asdict(note),
                    "precision": LINE_KINDS[note.kind].precision,
                }
                for note in shown
            ],
            "missing_reason": self.missing_reason,
            "signature": self.signature,
        }

    def measurements(self, document_id: str) -> Iterator[Measurement]:
        """The number of notes of each kind, and their places, as measurements."""
        left = dict(Signature.parse(self.signature).parts).get("without", "").split("+")
        for kind in LINE_KINDS:
            if kind in left:
                continue
            notes = [note for note in self.notes if note.kind == kind]
            spans = tuple(Span(document_id, note.start, note.end) for note in notes)
            about = document_id, "lines", kind, "fabula"
            found = None if self.missing_reason else len(notes), self.missing_reason
            yield Measurement(*about, *found, spans, None, self.signature)


def read_lines(tools: TextTools, document: Document) -> LineReview:
    """The notes on a text; headings are not sentences."""
    grammar = "none" if tools.checker is None else tools.checker.name
    parts = {"rules": LINE_RULES, "grammar": grammar, "freq": tools.frequencies.name}
    parts |= {"heads": CHAPTER_RULES, **tools.parser.signature_parts}
    signature = str(Signature.of("lines", **parts))
    text = without_headings(document)
    if (foreign := not_english(text)) is not None:
        return LineReview(None, (), signature, foreign)
    reading = tools.read(text)
    if not any(sentence.words for sentence in reading.parsed):
        return LineReview(0, (), signature, "no_words")
    notes = [note for rule in RULES for note in rule(reading)]
    notes.sort(key=lambda note: (note.start, note.end, note.kind))
    return LineReview(count_words(document.text), tuple(notes), signature)


Wanted = Literal["profile", "lines"]
_FEW = 4
"""Below this many texts, starting processes is not worthwhile."""


@dataclass(frozen=True, slots=True)
class DraftReading:
    """What was requested for a draft, read once: its profile, and the notes on its lines."""

    profile: Profile | None
    lines: LineReview | None


def read_drafts(
    documents: Iterable[Document],
    wanted: Collection[Wanted],
    grammar: str = "harper",
    *,
    n_jobs: int = 1,
) -> Iterator[DraftReading]:
    """Each document's profile, and the notes on its lines, in order.

    grammar: a checker, as for `open_checker`. Raises `ModelError` if a dependency is missing.
    """
    one = functools.partial(_read, grammar, frozenset(wanted))
    yield from in_order(one, check_documents(documents), n_jobs, n_small=_FEW)


def _read(grammar: str, wanted: frozenset[Wanted], document: Document) -> DraftReading:
    tools = opened_tools(grammar)
    profile = profile_text(tools, document) if "profile" in wanted else None
    return DraftReading(profile, read_lines(tools, document) if "lines" in wanted else None)
