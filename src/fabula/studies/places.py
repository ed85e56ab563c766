"""Places: who holds one, when it is released, and the platform's status of participants.

A place is one of the `raters` of a unit. It is reserved at consent, so that nobody agrees, passes
the quiz and then finds nothing left. It is released when its holder has answered nothing for the
study's `minutes`, was away for its `hours`, fails the quiz, stops, is removed, or returned their
submission to the platform or let it time out there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, exists, or_, select, update

from fabula.studies.database import answers, assignments, now_ms, participants
from fabula.studies.design import StudyDesign
from fabula.studies.participants import log, pseudonym
from fabula.studies.people_tables import visits
from fabula.studies.prolific import Submission

_GONE = ("RETURNED", "TIMED-OUT", "REJECTED", "SCREENED OUT")
_GRACE_MS = 10 * 60_000
"""How long a platform may take to list a submission, in milliseconds."""


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
    changed = connection.execute(
        update(assignments)
        .where(assignments.c.participant_id == participant, assignments.c.state == "open")
        .values(state="returned")
    )
    return changed.rowcount


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
    by_session: dict[str, Submission] = {one.id: one for one in submissions}
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
        is_theirs = found is not None and found.worker == row.platform_id
        if found is None or not is_theirs:
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
    own = participants.c.id == participant
    if status in _GONE:
        if state in ("invited", "declined", "consented", "ready", "failed"):
            connection.execute(update(participants).where(own).values(state="left"))
            connection.execute(
                update(visits).where(visits.c.id == visit).values(state_before=state)
            )
        log(connection, "platform", status.lower(), pseudonym(participant))
        return give_back(connection, participant)
    before = select(visits.c.state_before).where(visits.c.id == visit)
    if state == "left" and (again := connection.execute(before).scalar()):
        connection.execute(update(participants).where(own).values(state=again))
        log(connection, "platform", status.lower(), pseudonym(participant))
    return 0
