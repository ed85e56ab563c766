"""Participants: invitations, consent, quiz and questions before reading, withdrawal, deletion."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, insert, or_, select

from fabula.core.errors import InputError
from fabula.studies.database import (
    OF_PEOPLE,
    about_answers,
    answers,
    assignments,
    audit,
    consent_texts,
    consents,
    count_rows,
    now_ms,
    page_views,
    participants,
    quiz_tries,
    steps,
    tokens,
)
from fabula.studies.design import AboutQuestion, StudyDesign
from fabula.studies.forms import FormError, Key, Question
from fabula.studies.labels import Labels

State = Literal[
    "invited", "declined", "consented", "ready", "failed", "withdrawn", "left", "removed",
    "forgotten",
]  # fmt: skip
TOKEN_BYTES = 24


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
        return pseudonym(self.id)

    def row(self, address: str) -> dict[str, Any]:
        """Number, note, and link to the study at this address."""
        return {"participant": self.name, "note": self.note, "link": f"{address}/i/{self.token}"}


def lock(connection: Connection, id_: int) -> Row[Any]:
    """Lock a participant, so that two clicks take turns. Raises `InputError` if there is none."""
    query = select(participants).where(participants.c.id == id_)
    if (row := connection.execute(query.with_for_update()).first()) is None:
        raise InputError(f"{pseudonym(id_)}: no such participant")
    return row


def set_state(
    connection: Connection, id_: int, state: State, *, was: State | None = None, **others: object
) -> bool:
    """Set state and other columns (with `was`, only from that); return whether it changed."""
    query = participants.update().where(participants.c.id == id_)
    if was is not None:
        query = query.where(participants.c.state == was)
    return bool(connection.execute(query.values(state=state, **others)).rowcount)


def invite(connection: Connection, notes: Sequence[str], who: str) -> list[Invitation]:
    """Create a participant for each of these notes."""
    invitations = []
    for note in notes:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        row = {"token_hash": hash_of(token), "state": "invited", "note": note, "made_ms": now_ms()}
        key = connection.execute(participants.insert().values(row)).inserted_primary_key
        assert key is not None
        invitations.append(Invitation(key[0], note, token))
    log(connection, who, "invite", str(len(notes)))
    return invitations


def reissue(connection: Connection, id_: int, who: str) -> Invitation:
    """Create a new link for a participant; earlier ones stop working. Raises `InputError`."""
    row = lock(connection, id_)
    if row.state == "forgotten":
        raise InputError(f"{pseudonym(id_)}: no such participant")
    token = secrets.token_urlsafe(TOKEN_BYTES)
    connection.execute(delete(tokens).where(tokens.c.participant_id == id_))
    is_own = participants.c.id == id_
    connection.execute(participants.update().where(is_own).values(token_hash=hash_of(token)))
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


def find_by_token(connection: Connection, token: str) -> Participant | None:
    others = select(tokens.c.participant_id).where(tokens.c.token_hash == hash_of(token))
    is_own = or_(participants.c.token_hash == hash_of(token), participants.c.id.in_(others))
    row = connection.execute(select(participants.c.id, participants.c.state).where(is_own)).first()
    return None if row is None else Participant(row.id, row.state)


def remove(connection: Connection, id_: int, who: str) -> int:
    """Exclude a participant's answers and release all their units; return how many."""
    if lock(connection, id_).state != "forgotten":
        set_state(connection, id_, "removed")
    is_own, held = assignments.c.participant_id == id_, assignments.c.state.in_(("open", "done"))
    changed = connection.execute(assignments.update().where(is_own, held).values(state="removed"))
    log(connection, who, "remove", pseudonym(id_))
    return int(changed.rowcount)


def forget(connection: Connection, id_: int, who: str) -> int:
    """Delete all of a participant's answers permanently; return how many. Raises `InputError`."""
    lock(connection, id_)
    of_person = select(assignments.c.id).where(assignments.c.participant_id == id_)
    # Wait for a save in progress.
    connection.execute(of_person.with_for_update()).all()
    n = count_rows(connection, answers, answers.c.assignment_id.in_(of_person))
    for table in (answers, page_views):
        connection.execute(delete(table).where(table.c.assignment_id.in_(of_person)))
    for table in (assignments, tokens, *OF_PEOPLE):
        connection.execute(delete(table).where(table.c.participant_id == id_))
    connection.execute(delete(audit).where(audit.c.who == pseudonym(id_)))
    nothing = dict.fromkeys(("platform_id", "n_right", "quiz_ms", "consented_ms"))
    set_state(connection, id_, "forgotten", note="", token_hash=f"forgotten-{id_}", **nothing)
    log(connection, who, "forget", pseudonym(id_))
    return n


def log(connection: Connection, who: str, what: str, detail: str = "") -> None:
    row = {"at_ms": now_ms(), "who": who, "what": what, "detail": detail[:500]}
    connection.execute(audit.insert().values(row))


def give_back(connection: Connection, participant: int) -> int:
    """Release a participant's unsubmitted units; return how many."""
    is_own = assignments.c.participant_id == participant
    query = assignments.update().where(is_own, assignments.c.state == "open")
    return connection.execute(query.values(state="returned")).rowcount


def consent_version(design: StudyDesign) -> str:
    """Return an eight-digit digest of the consent text."""
    return hashlib.sha256(design.texts.consent.encode(errors="replace")).hexdigest()[:8]


def decide(
    connection: Connection, participant: Participant, design: StudyDesign, *, agrees: bool
) -> bool:
    """Record whether an invited person takes part; return whether this changed anything.

    Those who decline may still change their mind.
    """
    state: State = "declined" if not agrees else "consented" if design.quiz else "ready"
    times = {"consented_ms": now_ms()} if agrees else {}
    if is_new := set_state(connection, participant.id, state, was="invited", **times):
        _record(connection, participant, design, "agreed" if agrees else "declined")
    return is_new


def withdraw(
    connection: Connection, participant: Participant, design: StudyDesign, *, delete: bool
) -> None:
    """Withdraw a participant: release open units, and keep or delete submitted ones.

    After `delete`, call `Store.after_forgetting` once this is committed.
    """
    if participant.state in ("removed", "forgotten"):
        return
    if delete:
        forget(connection, participant.id, "participant")
        return
    set_state(connection, participant.id, "withdrawn")
    give_back(connection, participant.id)
    _record(connection, participant, design, "withdrawn")
    log(connection, participant.name, "withdraw")


def _record(connection: Connection, person: Participant, design: StudyDesign, what: str) -> None:
    """Record the response with the version of the text; the text itself is stored once."""
    version = consent_version(design)
    if not count_rows(connection, consent_texts, consent_texts.c.version == version):
        connection.execute(insert(consent_texts).values(version=version, text=design.texts.consent))
    row = {"participant_id": person.id, "what": what, "version": version, "at_ms": now_ms()}
    connection.execute(insert(consents).values(row))


def has_passed(connection: Connection, participant: Participant, step: str) -> bool:
    """Return whether a participant has completed a page before the first unit."""
    is_own = steps.c.participant_id == participant.id
    return count_rows(connection, steps, is_own, steps.c.step == step) > 0


def pass_step(connection: Connection, participant: Participant, step: str) -> None:
    """Record that a page is completed. Call within `Store.writing`."""
    lock(connection, participant.id)
    if not has_passed(connection, participant, step):
        row = {"participant_id": participant.id, "step": step, "at_ms": now_ms()}
        connection.execute(insert(steps).values(row))


def quiz_so_far(connection: Connection, participant: Participant) -> tuple[int, int | None]:
    """Return how often a participant answered the quiz, and their right answers the last time."""
    n_right = select(participants.c.n_right).where(participants.c.id == participant.id)
    is_own = quiz_tries.c.participant_id == participant.id
    return count_rows(connection, quiz_tries, is_own), connection.scalar(n_right)


def take_quiz(
    connection: Connection,
    participant: Participant,
    design: StudyDesign,
    given: Sequence[str],
    number: int | None,
) -> State:
    """Record an attempt at the quiz, each `number` (from 1) once; return the resulting state."""
    state: State = lock(connection, participant.id).state
    n_before, _ = quiz_so_far(connection, participant)
    if state != "consented" or number not in (None, n_before + 1):
        return state
    n_right = sum(q.answer == answer for q, answer in zip(design.quiz, given, strict=True))
    now = now_ms()
    if n_right >= design.quiz_pass:
        state = "ready"
    elif n_before + 1 >= design.people.quiz_tries:
        state = "failed"
    row = {"participant_id": participant.id, "n_right": n_right, "at_ms": now}
    chosen = json.dumps(list(given), ensure_ascii=False)
    connection.execute(insert(quiz_tries).values(given=chosen, **row))
    set_state(connection, participant.id, state, quiz_ms=now, n_right=n_right)
    log(connection, participant.name, "quiz", f"{n_right} of {len(design.quiz)}")
    return state


def read_about(
    asked: Sequence[AboutQuestion], form: Mapping[str, str], labels: Labels
) -> tuple[dict[str, str], dict[Key, str]]:
    """Return a participant's answers about themselves, and the errors in them."""
    values: dict[str, str] = {}
    problems: dict[Key, str] = {}
    for entry in asked:
        question = Question("about", entry.item, labels=labels)
        raw = form.get(":".join(question.key), "")
        try:
            values[entry.id] = question.clean(raw)
        except FormError as error:
            values[entry.id], problems[question.key] = raw, str(error)
        if entry.required and not values[entry.id]:
            problems[question.key] = labels("answer_this")
    return values, problems


def keep_about(connection: Connection, participant: Participant, given: Mapping[str, str]) -> None:
    """Store the answers; skipped questions have none. Call within `Store.writing`."""
    lock(connection, participant.id)
    if has_passed(connection, participant, "about"):
        return
    pass_step(connection, participant, "about")
    base = {"participant_id": participant.id, "saved_ms": now_ms()}
    rows = [base | {"item": item, "value": value} for item, value in given.items() if value]
    if rows:
        connection.execute(insert(about_answers), rows)
