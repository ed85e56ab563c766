"""Check whether participants read attentively: attention items and repeated questions.

An attention item names its right answer. A repeated question is asked a second time, about the same
text, on a page of its own. Both are reported per person and are excluded from the results.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from fabula.studies.database import answers, assignments
from fabula.studies.design import StudyDesign
from fabula.studies.forms import AGAIN, CHECK
from fabula.studies.pairs import BEST

_Asked = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Checks:
    """Results of the checks over a participant's submitted units."""

    n_attention: int = 0
    """Number of attention items answered."""
    n_attention_right: int = 0
    n_repeated: int = 0
    """Number of questions answered twice."""
    n_repeated_same: int = 0
    """Number of these with the same answer both times."""


def checks_of_all(
    connection: Connection, design: StudyDesign, participant: int | None = None
) -> dict[int, Checks]:
    """Return the checks by participant, for those who were asked any; or for one participant."""
    people = design.people
    if not (people.attention or people.repeat):
        return {}
    right = {id_: one.answer for id_, one in people.attention_items.items()}
    first_part = "1" if design.kind == "ttcw" else "unit" if design.at_once == 2 else BEST
    query = (
        select(
            assignments.c.participant_id,
            answers.c.assignment_id,
            answers.c.part,
            answers.c.item,
            answers.c.value,
        )
        .join(assignments, assignments.c.id == answers.c.assignment_id)
        .where(
            assignments.c.state == "done",
            answers.c.part.in_((CHECK, AGAIN, first_part)),
            answers.c.item.in_((*right, *people.repeat)),
        )
        .order_by(answers.c.assignment_id, answers.c.id)
    )
    if participant is not None:
        query = query.where(assignments.c.participant_id == participant)
    given: dict[int, dict[int, dict[_Asked, str]]] = {}
    for row in connection.execute(query):
        units = given.setdefault(row.participant_id, {})
        units.setdefault(row.assignment_id, {})[row.part, row.item] = row.value or ""
    return {id_: _checks(right, first_part, list(units.values())) for id_, units in given.items()}


def _checks(right: dict[str, str], first_part: str, units: list[dict[_Asked, str]]) -> Checks:
    """Return the checks of one participant's submitted units.

    units: the answers in each, in order. Repeated questions concern the first one.
    """
    said = [
        value == right[item]
        for unit in units
        for (part, item), value in unit.items()
        if part == CHECK and value
    ]
    same = [
        value == units[0].get((first_part, item))
        for unit in units
        for (part, item), value in unit.items()
        if part == AGAIN and value
    ]
    return Checks(len(said), said.count(True), len(same), same.count(True))


def is_inattentive(connection: Connection, design: StudyDesign, participant: int) -> bool:
    """Return whether a participant exceeded the allowed number of wrong attention answers."""
    found = checks_of_all(connection, design, participant).get(participant, Checks())
    return found.n_attention - found.n_attention_right > design.people.attention_wrong
