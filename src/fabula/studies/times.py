"""How long people took, over a unit and over each of its pages.

From when a page was opened or saved to what came next, on whichever page. Who leaves in between
cannot be told from who thinks, so a gap counts ten minutes at most; it is never left out, or a
slow reader of long stories would seem quick.
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

__all__ = ["MOST_MS", "Event", "PageTime", "Timing", "page_times", "spent_ms", "timings"]

MOST_MS = 10 * 60_000
"""What a gap counts at most."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a participant took over a unit, in seconds."""

    participant: str
    unit: str
    seconds: float
    is_done: bool


@dataclass(frozen=True, slots=True)
class PageTime:
    """How long a participant took over a page of a unit, in seconds."""

    rater: str
    unit: str
    page: str
    seconds: float
    n_opened: int
    n_saved: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that somebody did on a page, which is empty where it is not known."""

    at_ms: int
    page: str
    is_save: bool = False


def spent_ms(events: Iterable[Event]) -> dict[str, int]:
    """By page, how long until the next event, each gap capped; what comes last has none."""
    spent: dict[str, int] = {}
    in_order = sorted(events, key=lambda event: event.at_ms)
    for one, after in itertools.pairwise(in_order):
        spent[one.page] = spent.get(one.page, 0) + min(after.at_ms - one.at_ms, MOST_MS)
    return spent


def timings(connection: Connection) -> list[Timing]:
    """Time over each unit, in the order of participants and units."""
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
    """Time over each page that was opened or answered. pages: those of each unit."""
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
    """What was done with each assignment: given, opened, saved, handed in."""
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
