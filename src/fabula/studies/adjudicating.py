"""Where people disagree, and what the organiser decides about it.

A decision never takes the place of an answer: it is kept, exported and counted beside them. Like
the participants, whoever decides is not shown where a text comes from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from fabula.studies.database import now_ms
from fabula.studies.design import StudyDesign
from fabula.studies.exporting import time_of
from fabula.studies.forms import FormError, Question, clean_text
from fabula.studies.organiser_tables import resolutions
from fabula.studies.pairs import TIE, options_of, pairs_within
from fabula.studies.participants import log
from fabula.studies.units import Unit
from fabula.types import Item, Measurement, Scale

__all__ = [
    "ADJUDICATED",
    "Disagreement",
    "Opinion",
    "Resolution",
    "adjudicated",
    "disagreements",
    "read_resolutions",
    "resolve",
]

ADJUDICATED = "adjudicated"
"""The rater of decisions."""

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody answered, and why."""

    rater: str
    answer: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What was decided about a question; None where nobody can say what is right."""

    value: str | None
    note: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A question about a text to which people gave different answers."""

    document_id: str
    item: Item
    opinions: tuple[Opinion, ...]
    answers: tuple[str, ...]
    """What may be decided; empty where it is a number."""

    @property
    def key(self) -> str:
        """What a page calls it, which tells nothing of the text."""
        name = f"{self.document_id}\n{self.item.id}".encode(errors="replace")
        return hashlib.sha256(name).hexdigest()[:16]

    def clean(self, answer: str) -> str:
        """A decision as it is kept. Raises `FormError`."""
        item = self.item
        if self.answers:
            item = replace(item, scale=Scale("choice", self.answers))
        return Question("unit", item).clean(answer)


def disagreements(found: Sequence[Measurement], design: StudyDesign) -> list[Disagreement]:
    """Where several people gave different answers, in the order of documents and items.

    `found` is what `export` gives. Free words and rankings are nobody's to decide.
    """
    by_question: dict[_Key, list[Measurement]] = {}
    for one in found:
        if one.value is not None or one.missing_reason == "no_preference":
            by_question.setdefault((one.document_id, one.item), []).append(one)
    items = [item for item in design.rubric.items if item.scale.form != "prose"]
    differing = []
    for document_id in dict.fromkeys(document for document, _ in by_question):
        for item in items:
            given = by_question.get((document_id, item.id), [])
            if len({one.value for one in given}) > 1:
                opinions = tuple(
                    Opinion(one.rater, _shown(one, item, design), one.rationale) for one in given
                )
                answers = _answers(item, design)
                differing.append(Disagreement(document_id, item, opinions, answers))
    return differing


def _answers(item: Item, design: StudyDesign) -> tuple[str, ...]:
    if design.kind == "pairs":
        return (*options_of(2), TIE) if design.ties else options_of(2)
    return item.scale.answers


def _shown(one: Measurement, item: Item, design: StudyDesign) -> str:
    """An answer in words; of pairs, by their order in the documents."""
    if one.value is None:
        return TIE
    if design.kind == "pairs":
        return options_of(2)[not one.document_id.startswith(f"{one.value} : ")]
    return item.scale.word(one.value)


def read_resolutions(connection: Connection) -> dict[_Key, Resolution]:
    """What was decided, the newest of each question."""
    rows = connection.execute(select(resolutions).order_by(resolutions.c.id))
    return {(row.document_id, row.item): Resolution(row.value, row.note, row.at_ms) for row in rows}


def resolve(
    connection: Connection, asked: Disagreement, answer: str, note: str, who: str
) -> Resolution:
    """Keep what was decided; an empty answer says that nobody can say what is right.

    Raises `FormError` where the answer is none, or where there is no note to say why.
    """
    value, words = asked.clean(answer) or None, clean_text(note)
    if not words:
        raise FormError("Please write a note that says why.")
    made = Resolution(value, words, now_ms())
    connection.execute(
        resolutions.insert().values(
            document_id=asked.document_id,
            item=asked.item.id,
            value=value,
            note=words,
            at_ms=made.at_ms,
        )
    )
    log(connection, who, "resolve", f"{asked.item.id} of {asked.document_id}")
    return made


def adjudicated(
    found: Sequence[Measurement],
    design: StudyDesign,
    units: Mapping[str, Unit],
    decided: Mapping[_Key, Resolution],
) -> list[Measurement]:
    """A measurement of each decision, by the rater `adjudicated`, with the answers it is about.

    Those are of people whose answers count now; a question whose answers are all gone is left out.
    """
    by_question: dict[_Key, list[Measurement]] = {}
    for one in found:
        by_question.setdefault((one.document_id, one.item), []).append(one)
    items = {item.id: item for item in design.rubric.items}
    pairs = pairs_within([unit.documents for unit in units.values()])
    made = []
    for key, decision in decided.items():
        given = by_question.get(key)
        if not given:
            continue
        document_id, item = key
        value: float | str | None = None
        if decision.value is not None and design.kind == "pairs":
            sides = dict(zip(options_of(2), pairs[document_id], strict=True))
            value = sides[decision.value].id if decision.value in sides else None
        elif decision.value is not None:
            value = items[item].scale.read(decision.value)
        reason = "no_preference" if decision.value == TIE else "not_decided"
        made.append(
            replace(
                given[0],
                rater=ADJUDICATED,
                value=value,
                missing_reason=None if value is not None else reason,
                rationale=decision.note,
                signature=f"{given[0].signature}|{ADJUDICATED}:organiser",
                details={
                    "answers": {other.rater: other.value for other in given},
                    "resolved": time_of(decision.at_ms),
                },
            )
        )
    return made
