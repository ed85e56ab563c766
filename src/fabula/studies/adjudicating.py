"""Disagreements between participants, and the organiser's decisions about them.

A decision never replaces an answer: it is stored, exported and counted alongside the answers. Like
participants, the person who decides is not shown where a text comes from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from fabula.scales import Scale
from fabula.studies.database import now_ms
from fabula.studies.design import StudyDesign
from fabula.studies.exporting import time_of
from fabula.studies.forms import FormError, Question, clean_text
from fabula.studies.organiser_tables import resolutions
from fabula.studies.pairs import TIE, options_of, pairs_within
from fabula.studies.participants import log
from fabula.studies.units import Unit
from fabula.types import Item, Measurement

ADJUDICATED = "adjudicated"
"""The rater name used for decisions."""

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Opinion:
    """One participant's answer and the reason for it."""

    rater: str
    answer: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The decision on a question; None if the right answer cannot be determined."""

    value: str | None
    note: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A question about a text that participants answered differently."""

    document_id: str
    item: Item
    opinions: tuple[Opinion, ...]
    answers: tuple[str, ...]
    """The possible decisions; empty if the answer is a number."""

    @property
    def key(self) -> str:
        """The key used in pages; reveals nothing about the text."""
        name = f"{self.document_id}\n{self.item.id}".encode(errors="replace")
        return hashlib.sha256(name).hexdigest()[:16]

    def clean(self, answer: str) -> str:
        """Return the decision in stored form. Raises `FormError`."""
        item = self.item
        if self.answers:
            item = replace(item, scale=Scale("choice", self.answers))
        return Question("unit", item).clean(answer)


def disagreements(found: Sequence[Measurement], design: StudyDesign) -> list[Disagreement]:
    """Return questions with differing answers, in the order of documents and items.

    `found` is the output of `export`. Free text and rankings are not adjudicated.
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
    """Return an answer in words; pairs are named by their order in the documents."""
    if one.value is None:
        return TIE
    if design.kind == "pairs":
        return options_of(2)[not one.document_id.startswith(f"{one.value} : ")]
    return item.scale.word(one.value)


def read_resolutions(connection: Connection) -> dict[_Key, Resolution]:
    """Return the newest decision on each question."""
    rows = connection.execute(select(resolutions).order_by(resolutions.c.id))
    return {(row.document_id, row.item): Resolution(row.value, row.note, row.at_ms) for row in rows}


def resolve(
    connection: Connection, asked: Disagreement, answer: str, note: str, who: str
) -> Resolution:
    """Store a decision; an empty answer means that the right answer cannot be determined.

    Raises `FormError` if the answer is invalid, or if it is empty and no note gives the reason.
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
    """Return a measurement for each decision, by rater `adjudicated`, with the answers it covers.

    Only answers that currently count are included; a question with none left is omitted.
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
