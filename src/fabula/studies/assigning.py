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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, exists, func, select, text

from fabula.core.errors import FabulaError
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
from fabula.studies.units import Seen, Unit, Units, count_for_one_person

Order = tuple[int, ...]
"""Indexes of documents in their unit, in reading order."""
_IS_HELD = assignments.c.state.in_(("open", "done"))
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

    authors: of each document. given: the orders used by other readers of the unit. own: the authors
    in each order of the reader's other units. Chance is seeded by unit and reader.
    """
    names, square = list(range(len(authors))), williams_square(len(authors))
    # Once a square is used up, start another.
    random.Random(f"{unit} {len(given) // len(square)}").shuffle(names)
    placed = Counter((place, k) for order in given for k, place in enumerate(order))
    used = Counter(given)
    author_places = Counter((name, k) for order in own for k, name in enumerate(order) if name)

    def cost(row: Order) -> tuple[int, int, int, bytes]:
        return (
            sum(int(placed[place, k]) for k, place in enumerate(row)),
            used[row],
            sum(int(author_places[authors[place] or "", k]) for k, place in enumerate(row)),
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
    number: int = 0
    """Number among the participant's own units, from 1; the only identifier their browser sees."""
    first: tuple[Unit, Order] | None = None
    """The first unit that the participant submitted, and its order."""

    def document(self, part: str) -> int:
        """Return the index in the unit of the story that the participant knows by this part."""
        return self.order[int(part) - 1]


def current_assignment(
    connection: Connection, participant: Participant, units: Units, *, for_update: bool = False
) -> Assignment | None:
    """Return the participant's open assignment; `for_update` locks it against changes."""
    is_own = assignments.c.participant_id == participant.id
    query = select(assignments).where(is_own).order_by(assignments.c.id)
    rows = connection.execute(query.with_for_update() if for_update else query).all()
    done = next((row for row in rows if row.state == "done"), None)
    for number, row in enumerate(rows, 1):
        if row.state == "open":
            first = None if done is None else (units[done.unit], order_of(done))
            unit, order = units[row.unit], order_of(row)
            return Assignment(row.id, row.participant_id, unit, order, row.page, number, first)
    return None


def next_assignment(
    connection: Connection,
    participant: Participant,
    design: StudyDesign,
    units: Units,
    store: Store,
) -> Assignment | None:
    """Return the participant's open or a new assignment; None if no unit is available.

    Call within `store.writing`: concurrent participants get different places. Raises `StudyChanged`
    if another process has opened the study with another file.
    """
    held, key, rows = _next_unit(connection, participant, design, units)
    if held is not None or key is None:
        return held
    if read_setting(connection, "shown") != store.shown:
        # Another process has opened the study with another file since this one did.
        raise StudyChanged
    if (earlier := rows.get(key)) is not None:
        _open_again(connection, earlier.id)
        return current_assignment(connection, participant, units)
    now, unit = now_ms(), units[key]
    orders = select(assignments.c.order).join(participants)
    others = connection.execute(orders.where(assignments.c.unit == key, _IS_HELD, IS_ACTIVE))
    read_before = [(order_of(row), units[row.unit]) for row in rows.values() if row.unit in units]
    authors, given = [document.author for document in unit.documents], map(order_of, others)
    mine = [[past.documents[place].author for place in order] for order, past in read_before]
    who = f"{design.seed} {participant.id} {key}"
    order = balanced_order(authors, list(given), mine, unit=f"{design.seed} {key}", reader=who)
    row = {"participant_id": participant.id, "unit": key, "order": ",".join(map(str, order))}
    row |= {"state": "open", "page": "", "given_ms": now, "seen_ms": now}
    connection.execute(assignments.insert().values(row))
    return current_assignment(connection, participant, units)


def _next_unit(
    connection: Connection, participant: Participant, design: StudyDesign, units: Units
) -> tuple[Assignment | None, str | None, dict[str, Row[Any]]]:
    """Return a participant's open unit, else the key of the next, if any, and those before."""
    _take_turns(connection)
    # Release idle places of others.
    now, is_own = now_ms(), assignments.c.participant_id == participant.id
    has_answers = exists().where(answers.c.assignment_id == assignments.c.id)
    was_away = assignments.c.seen_ms < now - design.hours * 3_600_000
    is_unread = (assignments.c.seen_ms < now - design.people.minutes * 60_000) & ~has_answers
    idle = assignments.update().where(assignments.c.state == "open", ~is_own, was_away | is_unread)
    connection.execute(idle.values(state="returned"))
    held = current_assignment(connection, participant, units)
    rows = {row.unit: row for row in connection.execute(select(assignments).where(is_own))}
    n_done = sum(row.state == "done" for row in rows.values())
    if held is not None or n_done >= design.per_participant:
        return held, None, rows
    seen = Seen(design.per_story, (units[key] for key in rows if key in units))
    returned = {key for key, row in rows.items() if row.state == "returned"}
    taken = _taken(connection)
    key = choose_unit(design, units, taken, seen, participant.id, rows.keys(), returned)
    return None, key, rows


def choose_unit(
    design: StudyDesign,
    units: Units,
    taken: Mapping[str, int],
    seen: Seen,
    participant: int,
    mine: Collection[str],
    returned: Collection[str] = (),
) -> str | None:
    """Return the unit to assign next, or None.

    taken: participants per unit. mine: units this one had before; `returned` ones may come again.
    """
    lacking = (key for key in units if taken.get(key, 0) < design.raters)
    wanted = [k for k in lacking if (k in returned if k in mine else seen.allows(units[k]))]
    # Units begun come first, then those with the fewest people, in each participant's own order.
    ranks = {key: (key not in mine, taken.get(key, 0)) for key in wanted}
    best = min(ranks.values(), default=None)

    def draw(key: str) -> bytes:
        drawn = f"{design.seed} {participant} {key}"
        return hashlib.sha256(drawn.encode(errors="replace")).digest()

    return min((key for key in wanted if ranks[key] == best), key=draw, default=None)


def _open_again(connection: Connection, id_: int) -> None:
    """Reopen a released assignment, in the order its participant already knows."""
    is_own = assignments.c.id == id_
    connection.execute(assignments.update().where(is_own).values(state="open", seen_ms=now_ms()))


class StudyChanged(FabulaError):  # noqa: N818 (an event, not a kind of error)
    """The study was changed while the server runs: it would show something outdated."""

    def __init__(self) -> None:
        super().__init__(ENGLISH("being_changed"))


def is_paused(connection: Connection) -> bool:
    """Return whether the organiser has paused assignments."""
    return read_setting(connection, "paused") == "yes"


def count_units(connection: Connection, participant: Participant, state: str) -> int:
    """Return how many of a participant's units are `done` (submitted), or `returned`."""
    is_own = assignments.c.participant_id == participant.id
    return count_rows(connection, assignments, is_own, assignments.c.state == state)


def is_wanted(
    connection: Connection, participant: Participant, design: StudyDesign, units: Units
) -> bool:
    """Return whether a unit is available for a person, so that they may be asked to take part."""
    held, key, _ = _next_unit(connection, participant, design, units)
    return held is not None or key is not None


def begin_now(connection: Connection, participant: Participant) -> None:
    """Start the clock of the unit reserved at consent: the participant starts reading."""
    of, now = assignments.c, now_ms()
    unread = of.participant_id == participant.id, of.state == "open", of.page == ""
    connection.execute(assignments.update().where(*unread).values(given_ms=now, seen_ms=now))


def take_up_again(
    connection: Connection, participant: Participant, design: StudyDesign, units: Units, number: str
) -> Assignment | None:
    """Reopen a participant's unit for late answers; None if it is taken, or they have another."""
    if not number.isdecimal() or not 0 < len(number) < 7 or not int(number):
        return None
    _take_turns(connection)
    is_own = assignments.c.participant_id == participant.id
    query = select(assignments).where(is_own).order_by(assignments.c.id)
    row = connection.execute(query.limit(1).offset(int(number) - 1)).first()
    if row is None or row.state != "returned" or _taken(connection)[row.unit] >= design.raters:
        return None
    if current_assignment(connection, participant, units) is not None:
        return None
    _open_again(connection, row.id)
    return current_assignment(connection, participant, units)


def _take_turns(connection: Connection) -> None:
    """Serialise assignment, so that a free place is seen once; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(4702112)"))


def finish(connection: Connection, assignment: Assignment) -> None:
    is_own = assignments.c.id == assignment.id
    update = assignments.update().where(is_own, assignments.c.state == "open")
    connection.execute(update.values(state="done", done_ms=now_ms(), seen_ms=now_ms()))


def _taken(connection: Connection) -> Counter[str]:
    """Count the active participants who have each unit open or done."""
    held = select(assignments.c.unit, func.count().label("n")).join(participants)
    rows = connection.execute(held.where(_IS_HELD, IS_ACTIVE).group_by(assignments.c.unit))
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
    """People needed as units are assigned, if each reads all of theirs; None: too many steps."""
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
    versions: dict[str, Counter[str | None]] = {}
    for unit in units:
        for mark, version in unit.stories.items():
            versions.setdefault(mark, Counter())[version] += 1
    # Nobody reads a unit twice, or two versions of a story.
    n_people = max(math.ceil(n_readings / n_for_one), design.raters)
    for counts in versions.values():
        n_of_story = 0
        for version, n in counts.items():
            per_story = 1 if version is None else design.per_story
            n_of_story += math.ceil(n * design.raters / per_story)
        n_people = max(n_people, n_of_story)
    # Simulate assignment; return how many people arrive until everything is read.
    if n_people * n_for_one * len(units) > _MOST_STEPS:
        n_shared_out = None
    else:
        known = {unit.key: unit for unit in units}
        taken: Counter[str] = Counter()
        person = 0
        while any(taken[key] < design.raters for key in known):
            person += 1
            seen, read = Seen(design.per_story), set[str]()
            while len(read) < design.per_participant:
                key = choose_unit(design, known, taken, seen, person, read)
                if key is None:
                    break
                seen.add(known[key])
                read.add(key)
                taken[key] += 1
        n_shared_out = person
    giving_away = [unit.key for unit in units if unit.n_versions > 1 and len(unit.documents) > 1]
    return Workload(n_readings, n_for_one, n_people, n_shared_out, tuple(giving_away))
