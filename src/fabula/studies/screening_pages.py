"""The pages before the first unit, and the page for withdrawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from fastapi.responses import Response
from sqlalchemy import Connection

from fabula.studies.assigning import (
    begin_now,
    count_done,
    has_returned,
    is_paused,
    is_wanted,
    next_assignment,
)
from fabula.studies.forms import Key, Question
from fabula.studies.participant_pages import Posted, Visit, Visitor
from fabula.studies.places import give_back
from fabula.studies.recruiting import Outcome
from fabula.studies.screening import (
    agree,
    consent_version,
    count_tries,
    decline,
    has_passed,
    keep_about,
    last_score,
    pass_step,
    read_about,
    reconsider,
    take_quiz,
    withdraw,
)
from fabula.studies.views import Field, field_name, told

router = APIRouter()


def ending(
    visitor: Visit, heading: str, paragraphs: Sequence[str], outcome: Outcome | None = None
) -> Response:
    """Show the page for an outcome, with its code or link.

    heading: a label.
    """
    code = "" if outcome is None else visitor.study.design.code(outcome)
    return visitor.page(
        "message.html.j2", title="", heading=visitor.say(heading), paragraphs=paragraphs, code=code
    )


def before_reading(visitor: Visit) -> Response:
    """Show the current step of a participant who is not reading yet, or no longer."""
    state, design, say = visitor.participant.state, visitor.study.design, visitor.say
    if state == "invited":
        with visitor.study.store.writing() as connection:
            is_left = is_wanted(connection, visitor.participant, design, visitor.study.units)
        # Do not ask for consent to something that is no longer available.
        if not is_left:
            return nothing_left(visitor)
        return visitor.page(
            "welcome.html.j2",
            title=design.title,
            welcome=told(design.texts.welcome),
            consent=told(design.texts.consent),
            version=consent_version(design),
        )
    if state == "consented":
        waiting = next_step(visitor)
        return _quiz(visitor) if waiting is None else waiting
    if state == "declined":
        return visitor.page(
            "declined.html.j2",
            title="",
            heading=say("you_do_not_take_part"),
            paragraphs=[say("declined")],
            code=design.code("declined"),
        )
    if state == "failed":
        return ending(visitor, "thank_you", [say("quiz_failed")], "failed")
    if state == "withdrawn":
        return ending(visitor, "thank_you", [say("stopped")], "withdrawn")
    if state == "left":
        return _left(visitor)
    text = say("part_has_ended", contact=design.texts.contact)
    return ending(visitor, "thank_you", [text])


def nothing_left(visitor: Visit) -> Response:
    """Show why no place is left, with the code or link back."""
    with visitor.study.store.reading() as connection:
        was_away = has_returned(connection, visitor.participant)
    said = ("was_away" if was_away else "others_were_quicker", "may_try_again")
    return ending(visitor, "nothing_left", [" ".join(map(visitor.say, said))], "full")


def _left(visitor: Visit) -> Response:
    """Show the page for those whose submission was returned or timed out at the platform."""
    with visitor.study.store.reading() as connection:
        n_done = count_done(connection, visitor.participant)
    said = ["platform_says", *(["handed_in_is_kept"] if n_done else [])]
    contact = visitor.say("questions_to", contact=visitor.study.design.texts.contact)
    return ending(
        visitor,
        "place_given_back",
        [" ".join(map(visitor.say, said)), contact],
        "done" if n_done else None,
    )


def next_step(visitor: Visit) -> Response | None:
    """Return the next page before reading, after consent; None if there is none.

    That is the tutorial, or the questions about the participant once they may read.
    """
    people = visitor.study.design.people
    with visitor.study.store.reading() as connection:
        if people.tutorial and not has_passed(connection, visitor.participant, "tutorial"):
            return tutorial(visitor)
        is_ready = visitor.participant.state == "ready"
        if is_ready and people.about and not has_passed(connection, visitor.participant, "about"):
            return _about(visitor, {}, {})
    return None


@router.post("/consent")
def answer_consent(visitor: Visitor, form: Posted) -> Response:
    """Handle the response to the consent text: yes, no, or, after a no, show it again."""
    design = visitor.study.design
    # Participants who were shown an outdated text are shown the current one.
    if form.get("version", consent_version(design)) == consent_version(design):
        with visitor.study.store.writing() as connection:
            if form.get("again") == "yes":
                reconsider(connection, visitor.participant)
            elif form.get("agree") == "no":
                decline(connection, visitor.participant, design)
            else:
                _take_place(connection, visitor)
    return visitor.go("/")


def _take_place(connection: Connection, visitor: Visit) -> None:
    """Record consent and reserve a place.

    If the last place was taken in the meantime, the participant's state is unchanged.
    """
    study, who = visitor.study, visitor.participant
    is_new = is_wanted(connection, who, study.design, study.units) and agree(
        connection, who, study.design
    )
    if is_new and not is_paused(connection):
        next_assignment(connection, who, study.design, study.units, study.store)


@router.get("/tutorial")
def tutorial(visitor: Visitor) -> Response:
    """Show the instructions and worked examples; they can be read again before the quiz."""
    design = visitor.study.design
    if not design.people.tutorial or visitor.participant.state not in ("consented", "ready"):
        return visitor.go("/")
    return visitor.page(
        "tutorial.html.j2",
        title=visitor.say("before_you_begin"),
        instructions=told(design.texts.instructions),
        examples=[(one, told(one.text), told(one.why)) for one in design.people.tutorial],
    )


@router.post("/tutorial")
def leave_tutorial(visitor: Visitor, form: Posted) -> Response:
    if visitor.participant.state in ("consented", "ready"):
        with visitor.study.store.writing() as connection:
            pass_step(connection, visitor.participant, "tutorial")
            begin_now(connection, visitor.participant)
    return visitor.go("/")


def _quiz(visitor: Visit) -> Response:
    design = visitor.study.design
    with visitor.study.store.reading() as connection:
        n_before = count_tries(connection, visitor.participant)
        n_right = last_score(connection, visitor.participant)
    return visitor.page(
        "quiz.html.j2",
        title=visitor.say("before_you_begin"),
        instructions=told(design.texts.instructions),
        quiz=[(number, q, told(q.text)) for number, q in enumerate(design.quiz, 1)],
        number=n_before + 1,
        n_tries=design.people.quiz_tries,
        n_right=n_right,
        n_needed=design.quiz_pass,
    )


@router.post("/quiz")
def answer_quiz(visitor: Visitor, form: Posted) -> Response:
    """Grade an attempt at the quiz. Wrong answers are explained to those who passed."""
    design = visitor.study.design
    given = [form.get(f"quiz-{number}", "") for number in range(1, len(design.quiz) + 1)]
    if not all(given) or visitor.participant.state != "consented":
        return visitor.go("/")
    number = form.get("try", "")
    with visitor.study.store.writing() as connection:
        state = take_quiz(
            connection,
            visitor.participant,
            design,
            given,
            int(number) if number.isdecimal() and len(number) < 6 else None,
        )
        if state == "ready":
            begin_now(connection, visitor.participant)
        elif state == "failed":
            give_back(connection, visitor.participant.id)
    if state != "ready":
        return visitor.go("/")
    return visitor.page(
        "passed.html.j2",
        title=visitor.say("thank_you"),
        quiz=[
            (q, told(q.text), answer == q.answer)
            for q, answer in zip(design.quiz, given, strict=True)
        ],
    )


def _about(visitor: Visit, given: Mapping[str, str], problems: Mapping[Key, str]) -> Response:
    """Show the questions about the participant, in the same form as those about a story."""
    asked = visitor.study.design.people.about
    fields = [
        Field(
            question=question,
            name=field_name(question.key),
            why="",
            reason="",
            value=given.get(one.id, ""),
            problem=problems.get(question.key, ""),
            is_locked=False,
        )
        for one in asked
        for question in (Question("about", one.item, labels=visitor.say),)
    ]
    return visitor.page(
        "about.html.j2",
        title=visitor.say("about_you"),
        fields=fields,
        is_group=False,
        has_optional=not all(one.required for one in asked),
    )


@router.post("/about")
def answer_about(visitor: Visitor, form: Posted) -> Response:
    if visitor.participant.state == "ready":
        given, problems = read_about(visitor.study.design.people.about, form, visitor.say)
        if problems:
            return _about(visitor, given, problems)
        with visitor.study.store.writing() as connection:
            keep_about(connection, visitor.participant, given)
            begin_now(connection, visitor.participant)
    return visitor.go("/")


@router.get("/withdraw")
def ask_to_stop(visitor: Visitor) -> Response:
    if not visitor.participant.may_stop:
        return visitor.go("/")
    return visitor.page("withdraw.html.j2", title=visitor.say("stop_question"))


@router.post("/withdraw")
def stop(visitor: Visitor, form: Posted) -> Response:
    delete = form.get("do") == "delete"
    if not visitor.participant.may_stop or form.get("do") not in ("keep", "delete"):
        return visitor.go("/")
    with visitor.study.store.writing() as connection:
        withdraw(connection, visitor.participant, visitor.study.design, delete=delete)
    if not delete:
        return visitor.go("/")
    visitor.study.store.after_forgetting()
    return ending(visitor, "thank_you", [visitor.say("stopped_deleted")], "withdrawn")
