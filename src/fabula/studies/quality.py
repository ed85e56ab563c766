"""Monitoring of a running study: progress, time, and agreement between participants.

Rashkin et al. 2025, appendix D.3: after each batch they examined every annotator's agreement with
the others and the median and variance of the time per story, and manually graded those who stood
out. Here participants also answer attention items, which name their right answer, and questions a
second time, about the same text, on a page of its own: both are reported per person and are
excluded from the results.

Time on a page runs from when it was opened or saved to the next event, on any page. Leaving cannot
be distinguished from thinking, so a gap counts for at most ten minutes; it is never dropped, or
slow readers of long stories would seem fast.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, func, select

from fabula.core.types import Item, Measurement
from fabula.raters.agreement import AmongPeople
from fabula.raters.ratings import item_agreement, score_table, value_of
from fabula.studies.database import (
    IS_ACTIVE,
    about_answers,
    answers,
    assignments,
    consents,
    page_views,
    participants,
    quiz_tries,
    time_of,
    visits,
)
from fabula.studies.design import StudyDesign
from fabula.studies.forms import AGAIN, BEST, CHECK, Page
from fabula.studies.participants import pseudonym
from fabula.studies.units import Units

MOST_MS = 10 * 60_000
"""Maximum duration counted for a gap."""


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
    right = {id_: check.answer for id_, check in people.attention_items.items()}
    first_part = "1" if design.kind == "ttcw" else "unit" if design.at_once == 2 else BEST
    is_theirs = assignments.c.id == answers.c.assignment_id
    is_part = answers.c.part.in_((CHECK, AGAIN, first_part))
    is_asked = answers.c.item.in_((*right, *people.repeat))
    query = select(assignments.c.participant_id, answers).join(assignments, is_theirs)
    query = query.where(assignments.c.state == "done", is_part, is_asked)
    query = query.order_by(answers.c.assignment_id, answers.c.id)
    if participant is not None:
        query = query.where(assignments.c.participant_id == participant)
    saved: dict[int, dict[int, dict[tuple[str, str], str]]] = {}
    for row in connection.execute(query):
        units = saved.setdefault(row.participant_id, {})
        units.setdefault(row.assignment_id, {})[row.part, row.item] = row.value or ""
    checks = {}
    for id_, units in saved.items():
        # Repeated questions concern the first unit.
        first = next(iter(units.values()))
        asked = [answer for unit in units.values() for answer in unit.items()]
        marks = [value == right[item] for (part, item), value in asked if part == CHECK and value]
        again = [(item, value) for (part, item), value in asked if part == AGAIN and value]
        same = [value == first.get((first_part, item)) for item, value in again]
        checks[id_] = Checks(len(marks), marks.count(True), len(same), same.count(True))
    return checks


def is_inattentive(connection: Connection, design: StudyDesign, participant: int) -> bool:
    """Return whether a participant exceeded the allowed number of wrong attention answers."""
    checks = checks_of_all(connection, design, participant).get(participant, Checks())
    return checks.n_attention - checks.n_attention_right > design.people.attention_wrong


@dataclass(slots=True)
class PersonFacts:
    """Facts about one participant. None means unknown."""

    platform_study: str | None = None
    platform_session: str | None = None
    platform_status: str | None = None
    """Latest status reported by the platform."""
    said: str | None = None
    """Latest response to the consent text: agreed, declined, withdrawn."""
    consent_version: str | None = None
    """Version of the consent text they responded to."""
    n_tries: int = 0
    checks: Checks = field(default_factory=Checks)
    about: dict[str, str] = field(default_factory=dict)
    """Answers about themselves, by question."""


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


def progress(connection: Connection, design: StudyDesign, units: Units) -> list[UnitProgress]:
    """Return the progress of every unit, in the order of the documents."""
    of_unit = assignments.c.unit, assignments.c.state
    counted = select(*of_unit, func.count()).join(participants).where(IS_ACTIVE)
    rows = connection.execute(counted.group_by(*of_unit))
    counts = Counter({(unit, state): n for unit, state, n in rows})
    return [UnitProgress(k, counts[k, "done"], counts[k, "open"], design.raters) for k in units]


def standings(
    connection: Connection, design: StudyDesign, measurements: Sequence[Measurement]
) -> list[Standing]:
    """Return all participants by time of invitation; `measurements` is the output of `export`."""
    agreement = agreement_with_others(measurements, design)
    times: dict[str, list[float]] = {}
    for row, events in _events(connection, {}):
        if row.state == "done":
            seconds = sum(int(ms) for ms in spent_ms(events).values()) / 1000
            times.setdefault(pseudonym(row.participant_id), []).append(seconds)
    of_person = assignments.c.participant_id, assignments.c.state
    rows = connection.execute(select(*of_person, func.count()).group_by(*of_person))
    counts = Counter({(id_, state): n for id_, state, n in rows})
    facts: defaultdict[int, PersonFacts] = defaultdict(PersonFacts)
    # The last row for each participant counts.
    for row in connection.execute(select(visits).order_by(visits.c.id)):
        person = facts[row.participant_id]
        person.platform_study, person.platform_session = row.study or None, row.session or None
        person.platform_status = row.status
    for row in connection.execute(select(consents).order_by(consents.c.id)):
        person = facts[row.participant_id]
        person.said, person.consent_version = row.what, row.version
    counted = select(quiz_tries.c.participant_id, func.count().label("n"))
    for row in connection.execute(counted.group_by(quiz_tries.c.participant_id)):
        facts[row.participant_id].n_tries = row.n
    for row in connection.execute(select(about_answers).order_by(about_answers.c.item)):
        facts[row.participant_id].about[row.item] = row.value
    for id_, checks in checks_of_all(connection, design).items():
        facts[id_].checks = checks
    people = []
    for row in connection.execute(select(participants).order_by(participants.c.id)):
        name = pseudonym(row.id)
        spent = times.get(name, [])
        similarity, n = agreement.get(name, (None, 0))
        people.append(
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
                agreement=similarity,
                n_compared=n,
                facts=facts[row.id],
            )
        )
    return people


@dataclass(frozen=True, slots=True)
class Compared:
    """One participant's answer, and others' answers to the same question about the same pair."""

    item: str
    document_id: str
    rater: str
    n_same: int
    n_others: int


def compared_answers(found: Sequence[Measurement]) -> list[Compared]:
    """Return each answer that has others to compare with; "neither" agrees only with "neither"."""
    asked: dict[tuple[str, str], list[tuple[str, object]]] = {}
    for mark in found:
        if "orders" in mark.details:
            asked.setdefault((mark.item, mark.document_id), []).append((mark.rater, mark.value))
    return [
        Compared(item, document, rater, sum(v == value for v in others), len(others))
        for (item, document), answered in asked.items()
        for rater, value in answered
        if (others := [v for who, v in answered if who != rater])
    ]


def agreement_with_others(
    measurements: Sequence[Measurement], design: StudyDesign
) -> dict[str, tuple[float | None, int]]:
    """Return each participant's mean similarity to all others, and the number of comparisons.

    Answers to the same question are compared; for pairs of stories, same answers are counted.
    """
    if design.kind == "pairs":
        counts: dict[str, list[int]] = {}
        for beside in compared_answers(measurements):
            tally = counts.setdefault(beside.rater, [0, 0])
            tally[0] += beside.n_same
            tally[1] += beside.n_others
        return {rater: (n_same / n, n) for rater, (n_same, n) in counts.items()}
    items: dict[str, Item] = {item.id: item for item in design.rubric.items}
    by_question: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for mark in measurements:
        value = value_of(items[mark.item], mark.value) if mark.item in items else None
        if value is not None:
            by_question.setdefault((mark.document_id, mark.item), []).append((mark.rater, value))
    similar: dict[str, list[float]] = {}
    for (_, item), values in by_question.items():
        span = items[item].scale.span
        for rater, value in values:
            similar.setdefault(rater, []).extend(
                1 - abs(value - other) / span for who, other in values if who != rater
            )
    return {who: (statistics.fmean(of) if of else None, len(of)) for who, of in similar.items()}


def agreement_by_item(marks: Sequence[Measurement], design: StudyDesign) -> dict[str, AmongPeople]:
    """Return the agreement on each item; for pairs, how often two participants prefer the same."""
    if design.kind != "pairs":
        return item_agreement(score_table(marks, design.rubric), design.rubric)
    by_item, every = {}, compared_answers(marks)
    for item in design.rubric.items:
        compared = [beside for beside in every if beside.item == item.id]
        n = sum(beside.n_others for beside in compared)
        same = sum(beside.n_same for beside in compared) / n if n else None
        n = len({beside.document_id for beside in compared})
        by_item[item.id] = AmongPeople(item.id, n, similarity=same)
    return by_item


@dataclass(frozen=True, slots=True)
class PageTime:
    """A participant's time on a page of a unit, in seconds."""

    rater: str
    unit: str
    page: str
    seconds: float
    n_opened: int
    n_saved: int


@dataclass(frozen=True, slots=True)
class Event:
    """An action on a page; `page` is empty if not known."""

    at_ms: int
    page: str
    is_save: bool = False


def spent_ms(events: Iterable[Event]) -> dict[str, int]:
    """Return the time by page until the next event, each gap capped; the last event has none."""
    spent: dict[str, int] = {}
    for start, after in itertools.pairwise(sorted(events, key=lambda event: event.at_ms)):
        spent[start.page] = spent.get(start.page, 0) + min(after.at_ms - start.at_ms, MOST_MS)
    return spent


def page_times(connection: Connection, pages: Mapping[str, Iterable[Page]]) -> list[PageTime]:
    """Return the time on each page that was opened or answered. pages: those of each unit."""
    times = []
    for row, events in _events(connection, pages):
        rater, spent = pseudonym(row.participant_id), spent_ms(events)
        for page in pages.get(row.unit, ()):
            if saves := [event.is_save for event in events if event.page == page.name]:
                where, seconds = (rater, row.unit, page.name), spent.get(page.name, 0) / 1000
                times.append(PageTime(*where, seconds, saves.count(False), saves.count(True)))
    return times


def _events(
    connection: Connection, pages: Mapping[str, Iterable[Page]]
) -> list[tuple[Row[Any], list[Event]]]:
    """Return each assignment with its events: assigned, opened, saved, submitted."""
    of_key = {
        unit: {key: page.name for page in of_unit for q in page.questions for key in q.keys}
        for unit, of_unit in pages.items()
    }
    query = select(assignments).order_by(assignments.c.participant_id, assignments.c.id)
    rows = {row.id: row for row in connection.execute(query)}
    events = {
        id_: [Event(at_ms, "") for at_ms in (row.given_ms, row.done_ms) if at_ms is not None]
        for id_, row in rows.items()
    }
    for row in connection.execute(select(page_views).order_by(page_views.c.id)):
        events[row.assignment_id].append(Event(row.at_ms, row.page))
    for row in connection.execute(select(answers).order_by(answers.c.id)):
        page = of_key.get(rows[row.assignment_id].unit, {}).get((row.part, row.item), "")
        events[row.assignment_id].append(Event(row.saved_ms, page, is_save=True))
    return [(row, events[id_]) for id_, row in rows.items()]
