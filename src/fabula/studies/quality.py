"""Monitoring of a running study: progress, time, and agreement between participants.

Rashkin et al. 2025, appendix D.3: after each batch they examined every annotator's agreement with
the others and the median and variance of the time per story, and manually graded those who stood
out.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from fabula.measures.ratings import ItemAgreement, item_agreement, score_table, spans_of, value_of
from fabula.studies.database import assignments, participants
from fabula.studies.design import StudyDesign
from fabula.studies.exporting import time_of
from fabula.studies.pairs import compared_answers
from fabula.studies.participants import pseudonym
from fabula.studies.people_facts import PersonFacts, facts_of_all
from fabula.studies.times import Timing, timings
from fabula.studies.units import Unit
from fabula.types import Item, Measurement


@dataclass(frozen=True, slots=True)
class UnitProgress:
    """Progress of a unit."""

    key: str
    n_done: int
    n_open: int
    n_wanted: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A participant as the organiser sees them. None means not known yet."""

    id: int
    name: str
    state: str
    platform_id: str | None
    note: str
    n_done: int
    n_open: int
    median_s: float | None
    """Median time on a submitted unit, in seconds."""
    spread_s: float | None
    """Standard deviation of these times; None for fewer than two."""
    n_right: int | None
    """Number of quiz questions answered correctly."""
    invited: str | None
    consented: str | None
    """Time of consent, in UTC."""
    agreement: float | None
    """Mean of 1 - |a - b| with others' answers to the same questions."""
    n_compared: int
    facts: PersonFacts


def progress(
    connection: Connection, design: StudyDesign, units: Mapping[str, Unit]
) -> list[UnitProgress]:
    """Return the progress of every unit, in the order of the documents."""
    rows = connection.execute(
        select(assignments.c.unit, assignments.c.state, func.count())
        .join(participants, participants.c.id == assignments.c.participant_id)
        .where(participants.c.state.not_in(("removed", "forgotten")))
        .group_by(assignments.c.unit, assignments.c.state)
    )
    counts = Counter({(unit, state): n for unit, state, n in rows})
    return [
        UnitProgress(key, counts[key, "done"], counts[key, "open"], design.raters) for key in units
    ]


def standings(
    connection: Connection, design: StudyDesign, measurements: Sequence[Measurement]
) -> list[Standing]:
    """Return all participants by time of invitation; `measurements` is the output of `export`."""
    agreement = agreement_with_others(measurements, design)
    times: dict[str, list[Timing]] = {}
    for timing in timings(connection):
        times.setdefault(timing.participant, []).append(timing)
    rows = connection.execute(
        select(assignments.c.participant_id, assignments.c.state, func.count()).group_by(
            assignments.c.participant_id, assignments.c.state
        )
    )
    counts = Counter({(id_, state): n for id_, state, n in rows})
    facts = facts_of_all(connection, design)
    found = []
    for row in connection.execute(select(participants).order_by(participants.c.id)):
        name = pseudonym(row.id)
        spent = [timing.seconds for timing in times.get(name, []) if timing.is_done]
        mine, n = agreement.get(name, (None, 0))
        found.append(
            Standing(
                id=row.id,
                name=name,
                state=row.state,
                platform_id=row.platform_id,
                note=row.note,
                n_done=counts[row.id, "done"],
                n_open=counts[row.id, "open"],
                median_s=statistics.median(spent) if spent else None,
                spread_s=statistics.stdev(spent) if len(spent) > 1 else None,
                n_right=row.n_right,
                invited=time_of(row.made_ms),
                consented=time_of(row.consented_ms),
                agreement=mine,
                n_compared=n,
                facts=facts.get(row.id) or PersonFacts(),
            )
        )
    return found


def agreement_with_others(
    measurements: Sequence[Measurement], design: StudyDesign
) -> dict[str, tuple[float | None, int]]:
    """Return each participant's mean similarity to all others, and the number of comparisons.

    Answers to the same question are compared. For pairs of stories: the share of others' answers
    that are the same.
    """
    if design.kind == "pairs":
        counts: dict[str, list[int]] = {}
        for beside in compared_answers(measurements):
            mine = counts.setdefault(beside.rater, [0, 0])
            mine[0] += beside.n_same
            mine[1] += beside.n_others
        return {rater: (n_same / n, n) for rater, (n_same, n) in counts.items()}
    items: dict[str, Item] = {item.id: item for item in design.rubric.items}
    by_question: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for one in measurements:
        value = value_of(items[one.item], one.value) if one.item in items else None
        if value is not None:
            by_question.setdefault((one.document_id, one.item), []).append((one.rater, value))
    similar: dict[str, list[float]] = {}
    for (_, item), given in by_question.items():
        span = items[item].scale.span
        for rater, value in given:
            similar.setdefault(rater, []).extend(
                1 - abs(value - other) / span for who, other in given if who != rater
            )
    return {
        rater: (statistics.fmean(values) if values else None, len(values))
        for rater, values in similar.items()
    }


def agreement_by_item(
    measurements: Sequence[Measurement], design: StudyDesign
) -> dict[str, ItemAgreement]:
    """Return the agreement on each item; for pairs, how often two participants prefer the same."""
    if design.kind != "pairs":
        return item_agreement(score_table(measurements, design.rubric), spans_of(design.rubric))
    found = {}
    for item in design.rubric.items:
        compared = [one for one in compared_answers(measurements) if one.item == item.id]
        n = sum(one.n_others for one in compared)
        same = sum(one.n_same for one in compared) / n if n else None
        found[item.id] = ItemAgreement(len({one.document_id for one in compared}), same, None)
    return found
