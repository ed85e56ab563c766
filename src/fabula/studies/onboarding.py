"""Arrival by invitation or from a platform, the participant's home page, and those before reading.

Also covers the page for withdrawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from fabula.studies.answer_log import current_answers
from fabula.studies.assigning import (
    begin_now,
    count_done,
    current_assignment,
    has_returned,
    is_paused,
    is_wanted,
    next_assignment,
)
from fabula.studies.design import Outcome
from fabula.studies.forms import Key, Question
from fabula.studies.participant_pages import NOTES, Posted, Visit, Visitor, cookie_of, token_of
from fabula.studies.participants import (
    agree,
    consent_version,
    decline,
    find_by_token,
    give_back,
    has_passed,
    keep_about,
    pass_step,
    quiz_so_far,
    read_about,
    set_state,
    take_quiz,
    withdraw,
)
from fabula.studies.platforms import NotAdmitted, arrival_of, check_arrival, join
from fabula.studies.quality import is_inattentive
from fabula.studies.views import field_of, render, told
from fabula.web.guard import address_of

router = APIRouter()
_YEAR_S = 365 * 24 * 3600


def _with_cookie(request: Request, token: str) -> RedirectResponse:
    base = str(request.scope.get("root_path", ""))
    response = RedirectResponse(base + "/", 303)
    response.set_cookie(
        cookie_of(request.app.state.study.design.id),
        token,
        max_age=_YEAR_S,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
        path=base or "/",
    )
    return response


@router.get("/i/{token}")
def arrive(request: Request, token: str) -> Response:
    """Arrive by an invitation; asks first if this browser belongs to another participant."""
    with request.app.state.study.store.reading() as connection:
        comes = find_by_token(connection, token)
        is_here = find_by_token(connection, token_of(request))
    if comes is None:
        raise HTTPException(403)
    is_other = is_here is not None and is_here.id != comes.id and is_here.state != "forgotten"
    if is_other and request.query_params.get("change") != "yes":
        base = str(request.scope.get("root_path", ""))
        say = request.app.state.study.design.labels
        html = render("change.html.j2", say, title=say("who_reads"), base=base, token=token)
        return HTMLResponse(html)
    return _with_cookie(request, token)


@router.get("/join")
def join_study(request: Request) -> Response:
    """Arrive from a crowd platform that identifies its worker: Prolific or Mechanical Turk."""
    study = request.app.state.study
    entry = study.design.people.entry
    arrival = arrival_of(request.query_params)
    if arrival is None or not (study.design.code("done") or entry.platform):
        raise HTTPException(403)
    signature = request.query_params.get("prolific_token", "")
    keys = study.prolific.keys() if entry.signed else ()
    try:
        check_arrival(arrival, entry, study.design.path.parent, signature, keys)
        with study.store.writing() as connection:
            token = join(connection, arrival, entry, address_of(request))
    except NotAdmitted as error:
        base = str(request.scope.get("root_path", ""))
        say = study.design.labels
        said = {"heading": say("sorry"), "paragraphs": [say(error.label)], "code": ""}
        return HTMLResponse(render("message.html.j2", say, title="", base=base, **said), 403)
    return _with_cookie(request, token)


@router.get("/")
def home(visitor: Visitor) -> Response:
    """Show the participant's current step."""
    if visitor.participant.state != "ready":
        return _before_reading(visitor)
    waiting = _next_step(visitor)
    return _reading(visitor) if waiting is None else waiting


def _reading(visitor: Visitor) -> Response:
    """Show the participant's unit, or why there is none."""
    study = visitor.study
    design = study.design
    who, units = visitor.participant, study.units
    with study.store.writing() as connection:
        if paused := is_paused(connection):
            assignment = current_assignment(connection, who, units)
        else:
            assignment = next_assignment(connection, who, design, units, study.store)
        n_mine = 0 if assignment is None else len(current_answers(connection, assignment.id)[0])
        n_done = count_done(connection, who)
        was_inattentive = assignment is None and is_inattentive(connection, design, who.id)
    if assignment is None and paused:
        return _ending(visitor, "rests", [design.labels("come_later")])
    if assignment is None and not n_done:
        return _nothing_left(visitor)
    if assignment is None:
        outcome: Outcome = "attention" if was_inattentive else "done"
        return _ending(visitor, "that_was_all", told(design.texts.thanks), outcome)
    pages = study.pages(assignment)
    names = [page.name for page in pages]
    after = visitor.request.query_params.get("after", "")
    is_new = not (n_mine or n_done or assignment.page)
    if is_new and design.texts.instructions and not design.quiz and not design.people.tutorial:
        return visitor.page(
            "instructions.html.j2",
            title=design.labels("before_you_begin"),
            first=pages[0].name,
            note=visitor.note(after),
            instructions=told(design.texts.instructions),
        )
    here = assignment.page if assignment.page in names else names[0]
    return visitor.go(f"/page/{here}" + (f"?after={after}" if after in NOTES else ""))


def _ending(
    visitor: Visit, heading: str, paragraphs: Sequence[str], outcome: Outcome | None = None
) -> Response:
    """Show the page for an outcome, with its code or link.

    heading: a label.
    """
    code = "" if outcome is None else visitor.study.design.code(outcome)
    return visitor.page(
        "message.html.j2", title="", heading=visitor.say(heading), paragraphs=paragraphs, code=code
    )


def _before_reading(visitor: Visit) -> Response:
    """Show the current step of a participant who is not reading yet, or no longer."""
    state, design, say = visitor.participant.state, visitor.study.design, visitor.say
    if state == "invited":
        with visitor.study.store.writing() as connection:
            is_left = is_wanted(connection, visitor.participant, design, visitor.study.units)
        # Do not ask for consent to something that is no longer available.
        if not is_left:
            return _nothing_left(visitor)
        return visitor.page(
            "welcome.html.j2",
            title=design.title,
            welcome=told(design.texts.welcome),
            consent=told(design.texts.consent),
            version=consent_version(design),
        )
    if state == "consented":
        waiting = _next_step(visitor)
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
        return _ending(visitor, "thank_you", [say("quiz_failed")], "failed")
    if state == "withdrawn":
        return _ending(visitor, "thank_you", [say("stopped")], "withdrawn")
    if state == "left":
        return _left(visitor)
    text = say("part_has_ended", contact=design.texts.contact)
    return _ending(visitor, "thank_you", [text])


def _nothing_left(visitor: Visit) -> Response:
    """Show why no place is left, with the code or link back."""
    with visitor.study.store.reading() as connection:
        was_away = has_returned(connection, visitor.participant)
    said = ("was_away" if was_away else "others_were_quicker", "may_try_again")
    return _ending(visitor, "nothing_left", [" ".join(map(visitor.say, said))], "full")


def _left(visitor: Visit) -> Response:
    """Show the page for those whose submission was returned or timed out at the platform."""
    with visitor.study.store.reading() as connection:
        n_done = count_done(connection, visitor.participant)
    said = ["platform_says", *(["handed_in_is_kept"] if n_done else [])]
    contact = visitor.say("questions_to", contact=visitor.study.design.texts.contact)
    return _ending(
        visitor,
        "place_given_back",
        [" ".join(map(visitor.say, said)), contact],
        "done" if n_done else None,
    )


def _next_step(visitor: Visit) -> Response | None:
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
    study, who = visitor.study, visitor.participant
    design, units = study.design, study.units
    # Participants who were shown an outdated text are shown the current one.
    if form.get("version", consent_version(design)) == consent_version(design):
        with study.store.writing() as connection:
            if form.get("again") == "yes":
                # Those who declined may read the text again.
                set_state(connection, who.id, "invited", was="declined")
            elif form.get("agree") == "no":
                decline(connection, who, design)
            # If the last place was taken in the meantime, their state is unchanged.
            elif (
                is_wanted(connection, who, design, units)
                and agree(connection, who, design)
                and not is_paused(connection)
            ):
                next_assignment(connection, who, design, units, study.store)
    return visitor.go("/")


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
        n_before, n_right = quiz_so_far(connection, visitor.participant)
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
    said = form.get("try", "")
    number = int(said) if said.isdecimal() and len(said) < 6 else None
    who = visitor.participant
    with visitor.study.store.writing() as connection:
        state = take_quiz(connection, who, design, given, number)
        if state == "ready":
            begin_now(connection, who)
        elif state == "failed":
            give_back(connection, who.id)
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
    questions = [Question("about", one.item, labels=visitor.say) for one in asked]
    answers = {("about", item): value for item, value in given.items()}
    fields = [field_of(question, answers, problems) for question in questions]
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
    return _ending(visitor, "thank_you", [visitor.say("stopped_deleted")], "withdrawn")
