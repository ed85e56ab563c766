"""Participants: invitations, removal, and deletion on request."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, exists, or_, select
from sqlalchemy.exc import IntegrityError

from fabula.errors import InputError
from fabula.studies.database import (
    OF_PEOPLE,
    answers,
    assignments,
    audit,
    count_rows,
    now_ms,
    page_views,
    participants,
    tokens,
)

State = Literal[
    "invited", "declined", "consented", "ready", "failed", "withdrawn", "left", "removed",
    "forgotten",
]  # fmt: skip
_TOKEN_BYTES = 24
MAX_WAITING = 10_000
"""Maximum number of people from a platform without consent, since anybody can invent more."""
MAX_TOKENS = 50
"""Additional tokens per person; each click at a platform creates one."""


@dataclass(frozen=True, slots=True)
class Participant:
    """An invited person. `name` is what the researcher sees."""

    id: int
    state: State

    @property
    def name(self) -> str:
        return pseudonym(self.id)

    @property
    def may_stop(self) -> bool:
        """Whether the participant has anything to withdraw from."""
        return self.state in ("consented", "ready", "failed")


def pseudonym(id_: int) -> str:
    """Return a participant's name in exports: `p0007`."""
    return f"p{id_:04d}"


def hash_of(token: str) -> str:
    """Return the stored hash of a token: 192 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation for one person. The token is not stored and cannot be shown again."""

    id: int
    note: str
    token: str

    @property
    def name(self) -> str:
        """The participant's name."""
        return pseudonym(self.id)


def lock(connection: Connection, id_: int) -> Row[Any]:
    """Lock a participant until the end of the transaction, so that two clicks take turns.

    Raises `InputError` if no participant has this number.
    """
    row = connection.execute(
        select(participants).where(participants.c.id == id_).with_for_update()
    ).first()
    if row is None:
        raise InputError(f"{pseudonym(id_)}: no such participant")
    return row


def set_state(
    connection: Connection, id_: int, state: State, *, was: State | None = None, **others: object
) -> bool:
    """Set a participant's state, and other columns; if `was` is given, only from that state.

    Returns whether this changed anything.
    """
    query = participants.update().where(participants.c.id == id_)
    if was is not None:
        query = query.where(participants.c.state == was)
    return bool(connection.execute(query.values(state=state, **others)).rowcount)


def invite_each(connection: Connection, notes: Sequence[str], who: str) -> list[Invitation]:
    """Create a participant for each of these notes."""
    found = []
    for note in notes:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        row = participants.insert().values(
            token_hash=hash_of(token), state="invited", note=note, made_ms=now_ms()
        )
        key = connection.execute(row).inserted_primary_key
        assert key is not None
        found.append(Invitation(key[0], note, token))
    log(connection, who, "invite", str(len(notes)))
    return found


def invite(connection: Connection, n: int, who: str, note: str = "") -> list[str]:
    """Create participants with one note for all; return their tokens."""
    return [one.token for one in invite_each(connection, [note] * n, who)]


def reissue(connection: Connection, id_: int, who: str) -> Invitation:
    """Create a new link for a participant; earlier ones stop working. Raises `InputError`."""
    row = lock(connection, id_)
    if row.state == "forgotten":
        raise InputError(f"{pseudonym(id_)}: no such participant")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    connection.execute(delete(tokens).where(tokens.c.participant_id == id_))
    connection.execute(
        participants.update().where(participants.c.id == id_).values(token_hash=hash_of(token))
    )
    log(connection, who, "new link", pseudonym(id_))
    return Invitation(id_, row.note, token)


def number_of(name: str) -> int:
    """Parse a participant's name such as `p0007`. Raises `InputError`."""
    number = name.removeprefix("p")
    if not number.isascii() or not number.isdecimal() or len(number) > 12:
        raise InputError(f"{name}: is not a participant; they are called p0001, p0002, ...")
    return int(number)


def check_known(connection: Connection, id_: int) -> None:
    """Raise `InputError` if no participant has this number."""
    if not count_rows(connection, participants, participants.c.id == id_):
        raise InputError(f"{pseudonym(id_)}: no such participant")


def join_from_platform(connection: Connection, platform_id: str) -> str:
    """Return a token for a person sent by a crowd platform; returning participants resume.

    Earlier tokens stay valid: a second click must not lock out the first tab. Their number is
    limited: beyond `MAX_WAITING` people without consent, the earliest are dropped and may come
    again; beyond `MAX_TOKENS` per person, only the first and the newest remain valid.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    known = select(participants.c.id).where(participants.c.platform_id == platform_id)
    found = connection.execute(known).scalar()
    if found is None:
        new = {"platform_id": platform_id, "state": "invited", "note": "", "made_ms": now_ms()}
        try:
            with connection.begin_nested():
                connection.execute(participants.insert().values(token_hash=hash_of(token), **new))
        except IntegrityError:
            # A simultaneous click came first.
            found = connection.execute(known).scalar_one()
        else:
            _drop_longest_waiting(connection)
    if found is not None:
        mine = tokens.c.participant_id == found
        if count_rows(connection, tokens, mine) >= MAX_TOKENS:
            connection.execute(delete(tokens).where(mine))
        connection.execute(tokens.insert().values(token_hash=hash_of(token), participant_id=found))
    return token


def _drop_longest_waiting(connection: Connection) -> None:
    """Delete the earliest people without consent in excess of `MAX_WAITING`."""
    waiting = (
        participants.c.platform_id.is_not(None),
        participants.c.state.in_(("invited", "declined")),
        ~exists().where(assignments.c.participant_id == participants.c.id),
    )
    n_over = count_rows(connection, participants, *waiting) - MAX_WAITING
    if n_over <= 0:
        return
    oldest = select(participants.c.id).where(*waiting).order_by(participants.c.id).limit(n_over)
    ids = connection.execute(oldest).scalars().all()
    for table in (tokens, *OF_PEOPLE):
        connection.execute(delete(table).where(table.c.participant_id.in_(ids)))
    connection.execute(delete(participants).where(participants.c.id.in_(ids)))


def find_by_token(connection: Connection, token: str) -> Participant | None:
    """Return the participant who owns a token."""
    others = select(tokens.c.participant_id).where(tokens.c.token_hash == hash_of(token))
    row = connection.execute(
        select(participants.c.id, participants.c.state).where(
            or_(participants.c.token_hash == hash_of(token), participants.c.id.in_(others))
        )
    ).first()
    return None if row is None else Participant(row.id, row.state)


def consent(connection: Connection, participant: Participant, *, needs_quiz: bool) -> bool:
    """Record an invited person's consent; return whether this changed anything."""
    state: State = "consented" if needs_quiz else "ready"
    return set_state(connection, participant.id, state, was="invited", consented_ms=now_ms())


def remove(connection: Connection, id_: int, who: str) -> int:
    """Exclude a participant's answers and release all their units; return how many."""
    if lock(connection, id_).state != "forgotten":
        set_state(connection, id_, "removed")
    changed = connection.execute(
        assignments.update()
        .where(assignments.c.participant_id == id_, assignments.c.state.in_(("open", "done")))
        .values(state="removed")
    )
    log(connection, who, "remove", pseudonym(id_))
    return int(changed.rowcount)


def forget(connection: Connection, id_: int, who: str) -> int:
    """Delete all of a participant's answers permanently; return how many. Raises `InputError`."""
    lock(connection, id_)
    mine = select(assignments.c.id).where(assignments.c.participant_id == id_)
    # Wait for a save in progress.
    connection.execute(mine.with_for_update()).all()
    n = count_rows(connection, answers, answers.c.assignment_id.in_(mine))
    for table in (answers, page_views):
        connection.execute(delete(table).where(table.c.assignment_id.in_(mine)))
    for table in (assignments, tokens, *OF_PEOPLE):
        connection.execute(delete(table).where(table.c.participant_id == id_))
    connection.execute(delete(audit).where(audit.c.who == pseudonym(id_)))
    nothing = dict.fromkeys(("platform_id", "n_right", "quiz_ms", "consented_ms"))
    token_hash = f"forgotten-{id_}"
    set_state(connection, id_, "forgotten", note="", token_hash=token_hash, **nothing)
    log(connection, who, "forget", pseudonym(id_))
    return n


def log(connection: Connection, who: str, what: str, detail: str = "") -> None:
    """Add a line to the audit log."""
    connection.execute(
        audit.insert().values(at_ms=now_ms(), who=who, what=what, detail=detail[:500])
    )
