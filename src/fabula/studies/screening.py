"""Steps before the first unit: consent, the tutorial, the quiz, questions about the person.

Also covers withdrawal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, insert, select

from fabula.studies.database import (
    about_answers,
    consent_texts,
    consents,
    count_rows,
    now_ms,
    participants,
    quiz_tries,
    steps,
)
from fabula.studies.design import StudyDesign
from fabula.studies.forms import FormError, Key, Question
from fabula.studies.labels import Labels
from fabula.studies.participants import Participant, State, consent, forget, lock, log, set_state
from fabula.studies.places import give_back
from fabula.studies.recruiting import AboutQuestion


def consent_version(design: StudyDesign) -> str:
    """Return an eight-digit digest of the consent text."""
    return hashlib.sha256(design.texts.consent.encode(errors="replace")).hexdigest()[:8]


def agree(connection: Connection, participant: Participant, design: StudyDesign) -> bool:
    """Record that a participant agrees to take part; return whether this changed anything."""
    is_new = consent(connection, participant, needs_quiz=bool(design.quiz))
    if is_new:
        _record(connection, participant, design, "agreed")
    return is_new


def decline(connection: Connection, participant: Participant, design: StudyDesign) -> None:
    """Record that a participant declines; they may still change their mind."""
    if set_state(connection, participant.id, "declined", was="invited"):
        _record(connection, participant, design, "declined")


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


def _record(
    connection: Connection, participant: Participant, design: StudyDesign, what: str
) -> None:
    """Record the response with the version of the text; the text itself is stored once."""
    version = consent_version(design)
    if not count_rows(connection, consent_texts, consent_texts.c.version == version):
        connection.execute(insert(consent_texts).values(version=version, text=design.texts.consent))
    connection.execute(
        insert(consents).values(
            participant_id=participant.id, what=what, version=version, at_ms=now_ms()
        )
    )


def has_passed(connection: Connection, participant: Participant, step: str) -> bool:
    """Return whether a participant has completed a page before the first unit."""
    own = steps.c.participant_id == participant.id
    return count_rows(connection, steps, own, steps.c.step == step) > 0


def pass_step(connection: Connection, participant: Participant, step: str) -> None:
    """Record that a page is completed. Call within `Store.writing`."""
    lock(connection, participant.id)
    if not has_passed(connection, participant, step):
        connection.execute(
            insert(steps).values(participant_id=participant.id, step=step, at_ms=now_ms())
        )


def count_tries(connection: Connection, participant: Participant) -> int:
    """Return how often a participant has answered the quiz."""
    return count_rows(connection, quiz_tries, quiz_tries.c.participant_id == participant.id)


def last_score(connection: Connection, participant: Participant) -> int | None:
    """Return the number of right answers in the latest quiz attempt; None before the first."""
    query = select(participants.c.n_right).where(participants.c.id == participant.id)
    n_right: int | None = connection.execute(query).scalar_one()
    return n_right


def take_quiz(
    connection: Connection,
    participant: Participant,
    design: StudyDesign,
    given: Sequence[str],
    number: int | None,
) -> State:
    """Record an attempt at the quiz; return the resulting state.

    number: number of the attempt on the submitted page, from 1; duplicates count once.
    """
    state: State = lock(connection, participant.id).state
    n_before = count_tries(connection, participant)
    if state != "consented" or number not in (None, n_before + 1):
        return state
    n_right = sum(q.answer == answer for q, answer in zip(design.quiz, given, strict=True))
    now = now_ms()
    if n_right >= design.quiz_pass:
        state = "ready"
    elif n_before + 1 >= design.people.quiz_tries:
        state = "failed"
    connection.execute(
        insert(quiz_tries).values(
            participant_id=participant.id,
            n_right=n_right,
            at_ms=now,
            given=json.dumps(list(given), ensure_ascii=False),
        )
    )
    set_state(connection, participant.id, state, quiz_ms=now, n_right=n_right)
    log(connection, participant.name, "quiz", f"{n_right} of {len(design.quiz)}")
    return state


def read_about(
    asked: Sequence[AboutQuestion], form: Mapping[str, str], labels: Labels
) -> tuple[dict[str, str], dict[Key, str]]:
    """Return a participant's answers about themselves, and the errors in them."""
    given: dict[str, str] = {}
    problems: dict[Key, str] = {}
    for one in asked:
        question = Question("about", one.item, labels=labels)
        raw = form.get(":".join(question.key), "")
        try:
            given[one.id] = question.clean(raw)
        except FormError as error:
            given[one.id], problems[question.key] = raw, str(error)
        if one.required and not given[one.id]:
            problems[question.key] = labels("answer_this")
    return given, problems


def keep_about(connection: Connection, participant: Participant, given: Mapping[str, str]) -> None:
    """Store the answers; skipped questions have none. Call within `Store.writing`."""
    lock(connection, participant.id)
    if has_passed(connection, participant, "about"):
        return
    pass_step(connection, participant, "about")
    own = {"participant_id": participant.id, "saved_ms": now_ms()}
    rows = [own | {"item": item, "value": value} for item, value in given.items() if value]
    if rows:
        connection.execute(insert(about_answers), rows)
