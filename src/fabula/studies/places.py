"""Places: who holds one, when it is released, and the platform's status of participants.

A place is one of the `raters` of a unit. It is reserved at consent, so that nobody agrees, passes
the quiz and then finds nothing left. It is released when its holder has answered nothing for the
study's `minutes`, was away for its `hours`, fails the quiz, stops, is removed, or returned their
submission to the platform or let it time out there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from sqlalchemy import Connection, exists, or_, select, update

from fabula.studies.database import (
    Store,
    StoreFailed,
    answers,
    assignments,
    now_ms,
    participants,
    visits,
)
from fabula.studies.design import StudyDesign
from fabula.studies.participants import log, pseudonym, set_state
from fabula.studies.prolific import PlatformFailed, Prolific, Submission

_GONE = ("RETURNED", "TIMED-OUT", "REJECTED", "SCREENED OUT")
_GRACE_MS = 10 * 60_000
"""How long a platform may take to list a submission, in milliseconds."""
_END_S = 5.0


def return_idle(connection: Connection, design: StudyDesign, keep: int | None = None) -> int:
    """Release idle places, except that of participant `keep`; return how many."""
    now = now_ms()
    has_answers = exists().where(answers.c.assignment_id == assignments.c.id)
    changed = connection.execute(
        update(assignments)
        .where(
            assignments.c.state == "open",
            assignments.c.participant_id != (-1 if keep is None else keep),
            or_(
                assignments.c.seen_ms < now - design.hours * 3_600_000,
                (assignments.c.seen_ms < now - design.people.minutes * 60_000) & ~has_answers,
            ),
        )
        .values(state="returned")
    )
    return changed.rowcount


def give_back(connection: Connection, participant: int) -> int:
    """Release a participant's unsubmitted units; return how many."""
    own = assignments.c.participant_id == participant
    query = update(assignments).where(own, assignments.c.state == "open")
    return connection.execute(query.values(state="returned")).rowcount


@dataclass(frozen=True, slots=True)
class Applied:
    """The effects of applying the platform's statuses."""

    n_submissions: int
    n_new: int
    """Number of statuses that changed."""
    n_returned: int
    """Number of units released."""
    n_unknown: int
    """Number of people who came by this study's URL but have no submission at the platform."""


def apply_statuses(
    connection: Connection, submissions: Iterable[Submission], studies: Sequence[str]
) -> Applied:
    """Apply the statuses of submissions; call within `Store.writing`.

    submissions: all of these studies at the platform. Participants who returned theirs or timed out
    lose their unsubmitted units; submitted ones stay until the organiser removes the participant. A
    participant who becomes active again may continue.
    """
    by_session = {one.id: one for one in submissions}
    by_worker: dict[str, list[Submission]] = {}
    for one in by_session.values():
        by_worker.setdefault(one.worker, []).append(one)
    rows = connection.execute(
        select(visits, participants.c.platform_id, participants.c.state)
        .join(participants, participants.c.id == visits.c.participant_id)
        .where(visits.c.study.in_(studies))
        .order_by(visits.c.id)
    ).all()
    n_new = n_returned = n_unknown = 0
    newest = {row.participant_id: row.id for row in rows}
    for row in rows:
        found = by_session.get(row.session)
        own = by_worker.get(row.platform_id, [])
        if found is None and not row.session and len(own) == 1:
            # The address did not name the submission, but there is only one.
            (found,) = own
        if found is None or found.worker != row.platform_id:
            is_late = row.at_ms < now_ms() - _GRACE_MS
            n_unknown += is_late
            if is_late and row.status != "UNKNOWN":
                _note(connection, row.id, "UNKNOWN")
            continue
        if found.status == row.status:
            continue
        n_new += 1
        _note(connection, row.id, found.status)
        # An earlier submission says nothing about the current one.
        if newest[row.participant_id] == row.id:
            n_returned += _follow(connection, row.id, row.participant_id, row.state, found.status)
    return Applied(len(by_session), n_new, n_returned, n_unknown)


def people_with_status(connection: Connection, status: str) -> set[int]:
    """Return active participants whose latest submission has this status at the platform."""
    rows = connection.execute(
        select(visits.c.participant_id, visits.c.status)
        .join(participants, participants.c.id == visits.c.participant_id)
        .where(participants.c.state != "removed")
        .order_by(visits.c.id)
    )
    # The last row for each participant counts.
    newest = {row.participant_id: row.status for row in rows}
    return {id_ for id_, found in newest.items() if found == status.upper()}


def _note(connection: Connection, visit: int, status: str) -> None:
    connection.execute(
        update(visits).where(visits.c.id == visit).values(status=status, status_ms=now_ms())
    )


def _follow(connection: Connection, visit: int, participant: int, state: str, status: str) -> int:
    """Apply a new status to a participant's place; return how many units it frees."""
    if status in _GONE:
        if state in ("invited", "declined", "consented", "ready", "failed"):
            set_state(connection, participant, "left")
            connection.execute(
                update(visits).where(visits.c.id == visit).values(state_before=state)
            )
        log(connection, "platform", status.lower(), pseudonym(participant))
        return give_back(connection, participant)
    before = select(visits.c.state_before).where(visits.c.id == visit)
    if state == "left" and (again := connection.execute(before).scalar()):
        set_state(connection, participant, again)
        log(connection, "platform", status.lower(), pseudonym(participant))
    return 0


@dataclass(slots=True)
class Statuses:
    """The statuses of a study's people at Prolific, and the outcome of the last fetch."""

    prolific: Prolific
    studies: Sequence[str]
    """The study's ids at Prolific."""
    fetched_ms: int | None = None
    problem: str = ""
    """Why the last fetch failed; empty if it succeeded."""

    def fetch(self, store: Store, stop: threading.Event | None = None) -> Applied | None:
        """Fetch and apply all statuses; None if `stop` was set in the meantime.

        All or nothing: a list that breaks off changes nothing. Raises `PlatformFailed`,
        `StoreFailed`.
        """
        try:
            found = [one for study in self.studies for one in self.prolific.submissions(study)]
            if stop is not None and stop.is_set():
                return None
            with store.writing() as connection:
                applied = apply_statuses(connection, found, self.studies)
        except (PlatformFailed, StoreFailed) as error:
            self.problem = str(error)
            raise
        self.fetched_ms, self.problem = now_ms(), ""
        return applied


@contextmanager
def followed(store: Store, statuses: Statuses | None, every_s: float) -> Iterator[None]:
    """Fetch statuses every `every_s` seconds on a thread. Failures are recorded and retried."""
    if statuses is None:
        yield
        return
    stop = threading.Event()
    # Shutdown does not wait for a busy platform.
    statuses.prolific = replace(statuses.prolific, wait=stop.wait)

    def run() -> None:
        while not stop.is_set():
            # The error is in `problem`.
            with suppress(PlatformFailed, StoreFailed):
                statuses.fetch(store, stop)
            stop.wait(every_s)

    thread = threading.Thread(target=run, name="statuses", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_END_S)
