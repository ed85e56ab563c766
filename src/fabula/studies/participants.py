"""Participants: invitations, removal, and deletion on request."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, delete, exists, func, or_, select
from sqlalchemy.exc import IntegrityError

from fabula.errors import InputError
from fabula.studies.database import (
    answers,
    assignments,
    audit,
    now_ms,
    page_views,
    participants,
    tokens,
)
from fabula.studies.people_tables import OF_PEOPLE

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
    row = connection.execute(
        select(participants.c.state, participants.c.note)
        .where(participants.c.id == id_)
        .with_for_update()
    ).first()
    if row is None or row.state == "forgotten":
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
    known = select(participants.c.id).where(participants.c.id == id_)
    if connection.execute(known).first() is None:
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
        try:
            with connection.begin_nested():
                connection.execute(
                    participants.insert().values(
                        token_hash=hash_of(token),
                        platform_id=platform_id,
                        state="invited",
                        note="",
                        made_ms=now_ms(),
                    )
                )
        except IntegrityError:
            # A simultaneous click came first.
            found = connection.execute(known).scalar_one()
        else:
            _drop_longest_waiting(connection)
    if found is not None:
        mine = tokens.c.participant_id == found
        n = connection.execute(select(func.count()).select_from(tokens).where(mine)).scalar_one()
        if n >= MAX_TOKENS:
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
    counted = select(func.count()).select_from(participants).where(*waiting)
    n_over = connection.execute(counted).scalar_one() - MAX_WAITING
    if n_over <= 0:
        return
    oldest = select(participants.c.id).where(*waiting).order_by(participants.c.id).limit(n_over)
    ids = connection.execute(oldest).scalars().all()
    for table in (tokens, *OF_PEOPLE):
        connection.execute(delete(table).where(table.c.participant_id.in_(ids)))
    connection.execute(delete(participants).where(participants.c.id.in_(ids)))


def find_by_token(connection: Connection, token: str) -> Participant | None:
    """Return the participant who owns a token."""
    row = connection.execute(
        select(participants.c.id, participants.c.state).where(
            or_(
                participants.c.token_hash == hash_of(token),
                participants.c.id.in_(
                    select(tokens.c.participant_id).where(tokens.c.token_hash == hash_of(token))
                ),
            )
        )
    ).first()
    return None if row is None else Participant(row.id, row.state)


def consent(connection: Connection, participant: Participant, *, needs_quiz: bool) -> bool:
    """Record an invited person's consent; return whether this changed anything."""
    changed = connection.execute(
        participants.update()
        .where(participants.c.id == participant.id, participants.c.state == "invited")
        .values(state="consented" if needs_quiz else "ready", consented_ms=now_ms())
    )
    return bool(changed.rowcount)


def remove(connection: Connection, id_: int, who: str) -> int:
    """Exclude a participant's answers and release all their units; return how many."""
    participant = connection.execute(
        select(participants.c.state).where(participants.c.id == id_).with_for_update()
    ).first()
    if participant is None:
        raise InputError(f"{pseudonym(id_)}: no such participant")
    connection.execute(
        participants.update()
        .where(participants.c.id == id_, participants.c.state != "forgotten")
        .values(state="removed")
    )
    changed = connection.execute(
        assignments.update()
        .where(assignments.c.participant_id == id_, assignments.c.state.in_(("open", "done")))
        .values(state="removed")
    )
    log(connection, who, "remove", pseudonym(id_))
    return int(changed.rowcount)


def forget(connection: Connection, id_: int, who: str) -> int:
    """Delete all of a participant's answers permanently; return how many. Raises `InputError`."""
    mine = select(assignments.c.id).where(assignments.c.participant_id == id_)
    if (
        connection.execute(
            select(participants.c.id).where(participants.c.id == id_).with_for_update()
        ).first()
        is None
    ):
        raise InputError(f"{pseudonym(id_)}: no such participant")
    # Wait for a save in progress.
    connection.execute(
        select(assignments.c.id).where(assignments.c.participant_id == id_).with_for_update()
    ).all()
    n = connection.execute(
        select(func.count()).select_from(answers).where(answers.c.assignment_id.in_(mine))
    ).scalar_one()
    connection.execute(delete(answers).where(answers.c.assignment_id.in_(mine)))
    connection.execute(delete(page_views).where(page_views.c.assignment_id.in_(mine)))
    connection.execute(delete(assignments).where(assignments.c.participant_id == id_))
    connection.execute(delete(tokens).where(tokens.c.participant_id == id_))
    for table in OF_PEOPLE:
        connection.execute(delete(table).where(table.c.participant_id == id_))
    connection.execute(delete(audit).where(audit.c.who == pseudonym(id_)))
    connection.execute(
        participants.update()
        .where(participants.c.id == id_)
        .values(
            state="forgotten",
            platform_id=None,
            note="",
            token_hash=f"forgotten-{id_}",
            n_right=None,
            quiz_ms=None,
            consented_ms=None,
        )
    )
    log(connection, who, "forget", pseudonym(id_))
    return int(n)


def log(connection: Connection, who: str, what: str, detail: str = "") -> None:
    """Add a line to the audit log."""
    connection.execute(
        audit.insert().values(at_ms=now_ms(), who=who, what=what, detail=detail[:500])
    )
