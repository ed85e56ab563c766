"""Time that participants spent on each unit and each of its pages.

Time runs from when a page was opened or saved to the next event, on any page. Leaving cannot be
distinguished from thinking, so a gap counts for at most ten minutes; it is never dropped, or slow
readers of long stories would seem fast.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from fabula.studies.database import answers, assignments, page_views
from fabula.studies.forms import Page
from fabula.studies.participants import pseudonym

MOST_MS = 10 * 60_000
"""Maximum duration counted for a gap."""


@dataclass(frozen=True, slots=True)
class Timing:
    """A participant's time on a unit, in seconds."""

    participant: str
    unit: str
    seconds: float
    is_done: bool


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
    in_order = sorted(events, key=lambda event: event.at_ms)
    for one, after in itertools.pairwise(in_order):
        spent[one.page] = spent.get(one.page, 0) + min(after.at_ms - one.at_ms, MOST_MS)
    return spent


def timings(connection: Connection) -> list[Timing]:
    """Return the time on each unit, in the order of participants and units."""
    events = _events(connection, {})
    return [
        Timing(
            pseudonym(row.participant_id),
            row.unit,
            sum(int(ms) for ms in spent_ms(events[row.id]).values()) / 1000,
            row.state == "done",
        )
        for row in _assignments(connection)
    ]


def page_times(connection: Connection, pages: Mapping[str, Iterable[Page]]) -> list[PageTime]:
    """Return the time on each page that was opened or answered. pages: those of each unit."""
    found = []
    events = _events(connection, pages)
    for row in _assignments(connection):
        spent = spent_ms(events[row.id])
        for page in pages.get(row.unit, ()):
            mine = [one for one in events[row.id] if one.page == page.name]
            if mine:
                n_saved = sum(one.is_save for one in mine)
                found.append(
                    PageTime(
                        pseudonym(row.participant_id),
                        row.unit,
                        page.name,
                        spent.get(page.name, 0) / 1000,
                        len(mine) - n_saved,
                        n_saved,
                    )
                )
    return found


def _assignments(connection: Connection) -> Sequence[Row[Any]]:
    query = select(assignments).order_by(assignments.c.participant_id, assignments.c.id)
    return connection.execute(query).all()


def _events(connection: Connection, pages: Mapping[str, Iterable[Page]]) -> dict[int, list[Event]]:
    """Return the events of each assignment: assigned, opened, saved, submitted."""
    of_key = {
        unit: {key: page.name for page in own for q in page.questions for key in (q.key, q.why)}
        for unit, own in pages.items()
    }
    found: dict[int, list[Event]] = {}
    units: dict[int, str] = {}
    for row in connection.execute(select(assignments)):
        units[row.id] = row.unit
        found[row.id] = [Event(row.given_ms, "")]
        if row.done_ms is not None:
            found[row.id].append(Event(row.done_ms, ""))
    for row in connection.execute(select(page_views).order_by(page_views.c.id)):
        found[row.assignment_id].append(Event(row.at_ms, row.page))
    query = select(answers).order_by(answers.c.id)
    for row in connection.execute(query):
        page = of_key.get(units[row.assignment_id], {}).get((row.part, row.item), "")
        found[row.assignment_id].append(Event(row.saved_ms, page, is_save=True))
    return found
