"""Assign units: each to a set number of participants, replacing those who drop out.

Nobody reads a unit twice, or two units of which one reveals what was done to the story of the
other. Of the units that lack participants, one with the fewest is assigned, so that the load stays
balanced and agreement can be reported early.

A place is one of the `raters` of a unit. It is reserved at consent, so that nobody agrees, passes
the quiz and then finds nothing left. It is released when its holder has answered nothing for the
study's `minutes`, was away for its `hours`, fails the quiz, stops, is removed, or returned their
submission to the platform or let it time out there. A participant who comes back may get it again
while it is still needed.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, exists, func, or_, select, text

from fabula.errors import FabulaError
from fabula.studies.database import (
    IS_ACTIVE,
    Store,
    answers,
    assignments,
    count_rows,
    now_ms,
    participants,
    read_setting,
)
from fabula.studies.design import StudyDesign
from fabula.studies.labels import ENGLISH
from fabula.studies.participants import Participant
from fabula.studies.study_engine import is_shown_now
from fabula.studies.units import Seen, Unit, count_for_one_person

Order = tuple[int, ...]
"""Indexes of documents in their unit, in reading order."""
_MOST_STEPS = 500_000
"""Most steps for which assignment is simulated."""


def williams_square(n: int) -> list[Order]:
    """Return the rows of a Williams square: `n` orders, or `2n` if `n` is odd."""
    first = [step // 2 + 1 if step % 2 else (n - step // 2) % n for step in range(n)]
    rows = [tuple((place + shift) % n for place in first) for shift in range(n)]
    return rows if n % 2 == 0 else [*rows, *(row[::-1] for row in rows)][: 2 * n if n > 1 else 1]


def balanced_order(
    authors: Sequence[str | None],
    given: Sequence[Order],
    own: Iterable[Sequence[str | None]],
    *,
    unit: str,
    reader: str,
) -> Order:
    """Return the order in which a reader gets a unit.

    authors: author of each document. given: the orders used by other readers of the unit. own: the
    authors in each order of the reader's other units. The random choice is seeded by unit and
    reader.
    """
    names, square = list(range(len(authors))), williams_square(len(authors))
    # Once a square is used up, start another.
    random.Random(f"{unit} {len(given) // len(square)}").shuffle(names)
    placed = Counter((place, k) for order in given for k, place in enumerate(order))
    used = Counter(given)
    mine = Counter((name, k) for order in own for k, name in enumerate(order) if name)

    def cost(row: Order) -> tuple[int, int, int, bytes]:
        return (
            sum(int(placed[place, k]) for k, place in enumerate(row)),
            used[row],
            sum(int(mine[authors[place] or "", k]) for k, place in enumerate(row)),
            hashlib.sha256(f"{reader} {row}".encode(errors="replace")).digest(),
        )

    return min((tuple(names[place] for place in row) for row in square), key=cost)


def order_of(row: Row[Any]) -> Order:
    """Return the order of the documents in a row of `assignments`."""
    return tuple(int(place) for place in row.order.split(","))


@dataclass(frozen=True, slots=True)
class Assignment:
    """A unit assigned to a participant. `order` holds indexes into the unit's documents."""

    id: int
    participant_id: int
    unit: Unit
    order: Order
    page: str
    """The furthest page shown."""
    is_open: bool
    number: int = 0
    """Number among the participant's own units, from 1; the only identifier their browser sees."""
    first: tuple[Unit, Order] | None = None
    """The first unit that the participant submitted, and its order."""

    def document(self, part: str) -> int:
        """Return the index in the unit of the story that the participant knows by this part."""
        return self.order[int(part) - 1]


def current_assignment(
    connection: Connection,
    participant: Participant,
    units: Mapping[str, Unit],
    *,
    for_update: bool = False,
) -> Assignment | None:
    """Return the participant's open assignment; `for_update` locks it against changes."""
    earlier = assignments.alias()
    number = select(func.count()).where(
        earlier.c.participant_id == participant.id, earlier.c.id <= assignments.c.id
    )
    done = assignments.alias()
    first = (
        select(func.min(done.c.id))
        .where(done.c.participant_id == participant.id, done.c.state == "done")
        .scalar_subquery()
    )
    query = select(
        assignments, number.scalar_subquery().label("number"), first.label("first")
    ).where(assignments.c.participant_id == participant.id, assignments.c.state == "open")
    row = connection.execute(query.with_for_update() if for_update else query).first()
    if row is None:
        return None
    earliest = None
    if row.first is not None:
        of = connection.execute(select(assignments).where(assignments.c.id == row.first)).one()
        earliest = units[of.unit], order_of(of)
    is_open, unit, order = row.state == "open", units[row.unit], order_of(row)
    return Assignment(
        row.id, row.participant_id, unit, order, row.page, is_open, row.number, earliest
    )


def next_assignment(
    connection: Connection,
    participant: Participant,
    design: StudyDesign,
    units: Mapping[str, Unit],
    store: Store,
) -> Assignment | None:
    """Return the participant's open or a new assignment; None if no unit is available.

    Call within `store.writing`: concurrent participants get different places. Raises `StudyChanged`
    if another process has opened the study with another file.
    """
    _take_turns(connection)
    _return_idle(connection, design, participant.id)
    found = current_assignment(connection, participant, units)
    if found is not None:
        return found
    key, mine = _wanted_unit(connection, participant, design, units)
    if key is None:
        return None
    if not is_shown_now(connection, store):
        raise StudyChanged
    if (earlier := mine.get(key)) is not None:
        _open_again(connection, earlier.id)
    else:
        own = [(order_of(row), units[row.unit]) for row in mine.values() if row.unit in units]
        _give(connection, participant, units[key], own, design.seed)
    return current_assignment(connection, participant, units)


def _wanted_unit(
    connection: Connection, participant: Participant, design: StudyDesign, units: Mapping[str, Unit]
) -> tuple[str | None, dict[str, Row[Any]]]:
    """Return the unit that a participant gets next, if any, and those they had before."""
    own = assignments.c.participant_id == participant.id
    mine = {row.unit: row for row in connection.execute(select(assignments).where(own))}
    if sum(row.state == "done" for row in mine.values()) >= design.per_participant:
        return None, mine
    seen = Seen(design.per_story, (units[key] for key in mine if key in units))
    returned = {key for key, row in mine.items() if row.state == "returned"}
    taken = _taken(connection)
    key = choose_unit(design, units, taken, seen, participant.id, mine.keys(), returned)
    return key, mine


def choose_unit(
    design: StudyDesign,
    units: Mapping[str, Unit],
    taken: Mapping[str, int],
    seen: Seen,
    participant: int,
    mine: Collection[str],
    returned: Collection[str] = (),
) -> str | None:
    """Return the unit to assign next, or None.

    taken: number of participants per unit. mine: units this participant had before; those in
    `returned` may be assigned again.
    """
    wanted = [
        key
        for key, unit in units.items()
        if taken.get(key, 0) < design.raters
        and (key in returned if key in mine else seen.allows(unit))
    ]
    # Units already begun come first, then those with the fewest participants, in an order specific
    # to each participant.
    ranks = {key: (key not in mine, taken.get(key, 0)) for key in wanted}
    best = min(ranks.values(), default=None)

    def draw(key: str) -> bytes:
        drawn = f"{design.seed} {participant} {key}"
        return hashlib.sha256(drawn.encode(errors="replace")).digest()

    return min((key for key in wanted if ranks[key] == best), key=draw, default=None)


def _open_again(connection: Connection, id_: int) -> None:
    """Reopen a released assignment, in the order its participant already knows."""
    connection.execute(
        assignments.update().where(assignments.c.id == id_).values(state="open", seen_ms=now_ms())
    )


def _give(
    connection: Connection,
    participant: Participant,
    unit: Unit,
    own: Iterable[tuple[Order, Unit]],
    seed: int,
) -> None:
    """Open a unit for a participant, in the order most needed by the unit and the participant.

    own: the participant's earlier units, with their orders.
    """
    now = now_ms()
    held = connection.execute(
        select(assignments.c.order)
        .join(participants, participants.c.id == assignments.c.participant_id)
        .where(assignments.c.unit == unit.key, assignments.c.state.in_(("open", "done")), IS_ACTIVE)
    )
    order = balanced_order(
        [document.author for document in unit.documents],
        [order_of(row) for row in held],
        [[of.documents[place].author for place in order] for order, of in own],
        unit=f"{seed} {unit.key}",
        reader=f"{seed} {participant.id} {unit.key}",
    )
    connection.execute(
        assignments.insert().values(
            participant_id=participant.id,
            unit=unit.key,
            order=",".join(map(str, order)),
            state="open",
            page="",
            given_ms=now,
            seen_ms=now,
        )
    )


class StudyChanged(FabulaError):  # noqa: N818 (an event, not a kind of error)
    """The study was changed while the server runs: it would show something outdated."""

    def __init__(self) -> None:
        super().__init__(ENGLISH("being_changed"))


def is_paused(connection: Connection) -> bool:
    """Return whether the organiser has paused assignments."""
    return read_setting(connection, "paused") == "yes"


def count_done(connection: Connection, participant: Participant) -> int:
    """Return the number of units a participant has submitted."""
    own = assignments.c.participant_id == participant.id
    return count_rows(connection, assignments, own, assignments.c.state == "done")


def is_wanted(
    connection: Connection, participant: Participant, design: StudyDesign, units: Mapping[str, Unit]
) -> bool:
    """Return whether a unit is available for a person, so that they may be asked to take part."""
    _take_turns(connection)
    _return_idle(connection, design, participant.id)
    if current_assignment(connection, participant, units) is not None:
        return True
    return _wanted_unit(connection, participant, design, units)[0] is not None


def has_returned(connection: Connection, participant: Participant) -> bool:
    """Return whether a unit of the participant was released."""
    own = assignments.c.participant_id == participant.id
    return count_rows(connection, assignments, own, assignments.c.state == "returned") > 0


def begin_now(connection: Connection, participant: Participant) -> None:
    """Start the clock of the unit reserved at consent: the participant starts reading."""
    now = now_ms()
    connection.execute(
        assignments.update()
        .where(
            assignments.c.participant_id == participant.id,
            assignments.c.state == "open",
            assignments.c.page == "",
        )
        .values(given_ms=now, seen_ms=now)
    )


def take_up_again(
    connection: Connection,
    participant: Participant,
    design: StudyDesign,
    units: Mapping[str, Unit],
    number: str,
) -> Assignment | None:
    """Reopen a released unit of the participant for late answers.

    Returns None if the place has been assigned to somebody else, or the participant now has another
    unit.
    """
    if not number.isdecimal() or not 0 < len(number) < 7 or not int(number):
        return None
    _take_turns(connection)
    row = connection.execute(
        select(assignments.c.id, assignments.c.unit, assignments.c.state)
        .where(assignments.c.participant_id == participant.id)
        .order_by(assignments.c.id)
        .limit(1)
        .offset(int(number) - 1)
    ).first()
    if row is None or row.state != "returned" or _taken(connection)[row.unit] >= design.raters:
        return None
    if current_assignment(connection, participant, units) is not None:
        return None
    _open_again(connection, row.id)
    return current_assignment(connection, participant, units)


def _take_turns(connection: Connection) -> None:
    """Serialise assignment, so that two concurrent participants never see the same free place.

    SQLite needs no lock here, because it has one writer.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(4702112)"))


def _return_idle(connection: Connection, design: StudyDesign, keep: int) -> None:
    """Release idle places, except that of participant `keep`."""
    now = now_ms()
    has_answers = exists().where(answers.c.assignment_id == assignments.c.id)
    connection.execute(
        assignments.update()
        .where(
            assignments.c.state == "open",
            assignments.c.participant_id != keep,
            or_(
                assignments.c.seen_ms < now - design.hours * 3_600_000,
                (assignments.c.seen_ms < now - design.people.minutes * 60_000) & ~has_answers,
            ),
        )
        .values(state="returned")
    )


def finish(connection: Connection, assignment: Assignment) -> None:
    """Submit the participant's unit."""
    connection.execute(
        assignments.update()
        .where(assignments.c.id == assignment.id, assignments.c.state == "open")
        .values(state="done", done_ms=now_ms(), seen_ms=now_ms())
    )


def _taken(connection: Connection) -> Counter[str]:
    """Count the active participants who have each unit open or done."""
    rows = connection.execute(
        select(assignments.c.unit, func.count().label("n"))
        .join(participants, participants.c.id == assignments.c.participant_id)
        .where(assignments.c.state.in_(("open", "done")), IS_ACTIVE)
        .group_by(assignments.c.unit)
    )
    return Counter({row.unit: row.n for row in rows})


@dataclass(frozen=True, slots=True)
class Workload:
    """The number of people needed. A reading is a unit read by one person."""

    n_readings: int
    n_for_one_person: int
    """Maximum units per person: limited by `per_participant`, and by what would reveal a story."""
    n_people: int
    """Lower bound: fewer people cannot suffice under any assignment."""
    n_people_shared_out: int | None
    """People needed with the actual assignment, if each reads all that they are given; None if that
    is too expensive to compute.
    """
    giving_away: tuple[str, ...]
    """Units that contain several versions of one story."""


def workload_of(design: StudyDesign, units: Sequence[Unit]) -> Workload:
    """Return the workload of the design with these units.

    A person reads one of the units about a story (or `per_story` that show the same version); so a
    story with K units takes K times `raters` people. If each unit is about one story, the maximum
    of these and of all readings divided by readings per person is enough: assigned in turn, story
    by story, nobody gets two of one.
    """
    n_readings = design.raters * len(units)
    n_for_one = min(count_for_one_person(units, design.per_story), design.per_participant)
    # Nobody reads a unit twice.
    n_people = max(math.ceil(n_readings / n_for_one), design.raters, *_by_story(design, units))
    return Workload(
        n_readings=n_readings,
        n_for_one_person=n_for_one,
        n_people=n_people,
        n_people_shared_out=_shared_out(design, units, n_for_one, n_people),
        giving_away=tuple(
            unit.key for unit in units if unit.n_versions > 1 and len(unit.documents) > 1
        ),
    )


def _by_story(design: StudyDesign, units: Sequence[Unit]) -> Iterator[int]:
    """Yield the number of people per story: nobody reads two versions of it."""
    versions: dict[str, Counter[str | None]] = {}
    for unit in units:
        for mark, version in unit.stories.items():
            versions.setdefault(mark, Counter())[version] += 1
    for counts in versions.values():
        n_people = 0
        for version, n in counts.items():
            per_story = 1 if version is None else design.per_story
            n_people += math.ceil(n * design.raters / per_story)
        yield n_people


def _shared_out(
    design: StudyDesign, units: Sequence[Unit], n_for_one: int, n_people: int
) -> int | None:
    """Simulate assignment; return how many people arrive until everything is read.

    Each person gets units until none is left for them.
    """
    if n_people * n_for_one * len(units) > _MOST_STEPS:
        return None
    known = {unit.key: unit for unit in units}
    taken: Counter[str] = Counter()
    person = 0
    while any(taken[key] < design.raters for key in known):
        person += 1
        seen, mine = Seen(design.per_story), set[str]()
        while len(mine) < design.per_participant:
            key = choose_unit(design, known, taken, seen, person, mine)
            if key is None:
                break
            seen.add(known[key])
            mine.add(key)
            taken[key] += 1
    return person
