"""Export answers as measurements: those that count, of active participants.

A measurement names the document, the rubric, the item and the participant by number. Answers that
were retired or withdrawn, or given by a removed participant, are excluded; the history stays in the
database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from fabula import __version__
from fabula.studies.assigning import Assignment, Order, order_of
from fabula.studies.database import IS_ACTIVE, answers, assignments, participants
from fabula.studies.design import StudyDesign
from fabula.studies.forms import AGAIN, CHECK, WHY, Answers, Key, pages_of
from fabula.studies.pairs import BEST, TIE, WORST, pair_key, preferences, said_of
from fabula.studies.participants import pseudonym
from fabula.studies.units import Unit
from fabula.text.feedback_pieces import OWN_FEEDBACK
from fabula.types import Measurement, Rubric, Signature


def export(
    connection: Connection,
    design: StudyDesign,
    units: Mapping[str, Unit],
    *,
    unfinished: bool = False,
) -> Iterator[Measurement]:
    """Yield measurements by participant and unit; unsubmitted ones only on request."""
    states = ("done", "open", "returned") if unfinished else ("done",)
    rows = connection.execute(
        select(assignments, participants.c.platform_id)
        .join(participants, participants.c.id == assignments.c.participant_id)
        .where(assignments.c.state.in_(states), IS_ACTIVE)
        .order_by(assignments.c.participant_id, assignments.c.id)
    ).all()
    given = _answers_of_all(connection)
    for row in rows:
        unit, order = units[row.unit], order_of(row)
        held = Assignment(row.id, row.participant_id, unit, order, row.page, row.state == "open")
        said = _of_pairs if design.kind == "pairs" else _of_assignment
        yield from said(design, held, given.get(row.id, {}), row.state)


def _answers_of_all(connection: Connection) -> dict[int, dict[Key, tuple[str, int]]]:
    """Return the current answers by assignment, with the time each was saved, in one query."""
    found: dict[int, dict[Key, tuple[str, int]]] = {}
    query = select(
        answers.c.assignment_id, answers.c.part, answers.c.item, answers.c.value, answers.c.saved_ms
    ).order_by(answers.c.id)
    for assignment_id, part, item, value, saved_ms in connection.execute(query):
        current = found.setdefault(assignment_id, {})
        if value:
            current[part, item] = value, saved_ms
        else:
            current.pop((part, item), None)
    return found


def time_of(at_ms: int | None) -> str | None:
    """Format a time as ISO 8601 in UTC: `2026-11-23T03:00:00.000Z`."""
    if at_ms is None:
        return None
    shown = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")


def _of_assignment(
    design: StudyDesign, held: Assignment, kept: Mapping[Key, tuple[str, int]], state: str
) -> Iterator[Measurement]:
    given: Answers = {key: value for key, (value, _) in kept.items()}
    rater = pseudonym(held.participant_id)
    for page in pages_of(design, len(held.unit.documents)):
        applicable = page.applicable(given, held.unit.facts)
        for question in page.questions:
            value = given.get(question.key)
            if question.part in (CHECK, AGAIN) or (question.is_optional and value is None):
                continue
            reason = None
            if value is None:
                reason = "no_answer" if question in applicable else "not_asked"
            rubric = question.rubric
            part = question.part if question.part.isdecimal() else "1"
            document = held.unit.documents[held.document(part)]
            details: dict[str, object] = {"unit": held.unit.key, "place": int(part), "state": state}
            read = None if value is None else question.item.scale.read(value)
            if rubric is None:
                # What a labeller has to know about the story it concerns.
                known = ("story_id", "method")
                details |= {n: document.meta[n] for n in known if n in document.meta}
            if value is not None:
                details["saved"] = time_of(kept[question.key][1])
            yield Measurement(
                document_id=document.id,
                rubric=OWN_FEEDBACK if rubric is None else rubric.key,
                item=question.item.id,
                rater=rater,
                value=read,
                missing_reason=reason,
                evidence=(),
                rationale=given.get(question.why),
                signature=str(_signature(design, rubric)),
                details=details,
            )


def _of_pairs(
    design: StudyDesign, held: Assignment, kept: Mapping[Key, tuple[str, int]], state: str
) -> Iterator[Measurement]:
    """Yield measurements of stories shown side by side.

    There is one for every two stories for which an answer says which is preferred, or one for the
    whole set if an answer is missing.
    """
    documents = held.unit.documents
    for item in design.rubric.items:
        reasons = [(part, item.id + WHY) for part in ("unit", BEST)]
        whole = Measurement(
            document_id=held.unit.key,
            rubric=design.rubric.key,
            item=item.id,
            rater=pseudonym(held.participant_id),
            value=None,
            missing_reason="no_answer",
            evidence=(),
            rationale=next((kept[key][0] for key in reasons if key in kept), None),
            signature=str(_signature(design, design.rubric)),
            details={"unit": held.unit.key, "state": state},
        )
        given = [kept[part, item.id] for part in ("unit", BEST, WORST) if (part, item.id) in kept]
        saved = time_of(max((at_ms for _, at_ms in given), default=None))
        is_whole, compared = _compared(design, item.id, kept, held.order)
        for pair, preferred in compared:
            orders = said_of(pair, preferred, held.order)
            yield replace(
                whole,
                document_id=pair_key(*(documents[place] for place in pair)),
                value=None if preferred is None else documents[preferred].id,
                missing_reason="no_preference" if preferred is None else None,
                details={**whole.details, "orders": orders, "saved": saved},
            )
        if not is_whole:
            yield whole


def _compared(
    design: StudyDesign, item: str, kept: Mapping[Key, tuple[str, int]], order: Order
) -> tuple[bool, list[tuple[tuple[int, int], int | None]]]:
    """Return whether all of an item's questions are answered, and the comparisons.

    A comparison holds the indexes of two documents and the index of the preferred one.
    """

    def place_of(part: str) -> int | None:
        answer = kept.get((part, item), ("", 0))[0]
        return order[int(answer[-1]) - 1] if answer and answer != TIE else None

    if design.at_once == 2:
        is_answered = ("unit", item) in kept
        return is_answered, [((0, 1), place_of("unit"))] if is_answered else []
    best, worst = place_of(BEST), place_of(WORST)
    if worst == best:
        worst = None
    pairs: list[tuple[tuple[int, int], int | None]] = [
        ((min(two), max(two)), two[0]) for two in preferences(best, worst, design.at_once)
    ]
    return best is not None and worst is not None, pairs


def _signature(design: StudyDesign, rubric: Rubric | None) -> Signature:
    return Signature.of(
        "study",
        id=design.id,
        rubric=OWN_FEEDBACK if rubric is None else rubric.key,
        design=f"{design.kind}@{design.digest}",
        v=__version__,
    )
