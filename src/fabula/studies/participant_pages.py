"""The pages of participants: arrival, what comes before reading, their units, and withdrawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from sqlalchemy import Connection

from fabula.studies import assigning, participants
from fabula.studies.assigning import Assignment
from fabula.studies.design import Outcome
from fabula.studies.forms import Answers, Key, Page, Question
from fabula.studies.labels import Labels
from fabula.studies.participants import Participant
from fabula.studies.platforms import NotAdmitted, arrival_of, check_arrival, join
from fabula.studies.quality import is_inattentive
from fabula.studies.views import (
    Field,
    OpenPage,
    base_of,
    current_answers,
    go,
    let_in,
    opened_pages,
    render,
    respond,
    save_answers,
    show_page,
    told,
)
from fabula.web.guard import address_of, csrf_of, form_fields

router = APIRouter()
_NOTES = {"hand-in": "handed_in", "unopened": "open_all_first"}
"""Label shown at the top of a page, by what led there."""
_YEAR_S = 365 * 24 * 3600


def cookie_of(study_id: str) -> str:
    """Return the cookie of a study's participants; its id, which may tell its aim, is not in it."""
    return f"fabula_study_{participants.hash_of(study_id)[:8]}"


def token_of(request: Request) -> str:
    """Return the token from the visitor's browser; empty if there is none."""
    return request.cookies.get(cookie_of(request.app.state.study.design.id), "")


class Visit:
    """A participant's request."""

    def __init__(self, request: Request, token: str, participant: Participant) -> None:
        self.request, self.token, self.participant = request, token, participant
        self.study = study = request.app.state.study
        self.design, self.store = study.design, study.store
        self.say: Labels = self.design.labels

    def page(self, template: str, **values: Any) -> HTMLResponse:
        mine = {"csrf": csrf_of(self.token), "design": self.design, "me": self.participant.name}
        mine["may_stop"] = self.participant.may_stop
        return respond(self.request, template, self.say, **mine, **values)

    def note(self, after: str) -> str:
        """Return the note at the top of a page."""
        return self.say(_NOTES[after]) if after in _NOTES else ""

    def go(self, path: str) -> RedirectResponse:
        return go(self.request, path)


def visit(request: Request) -> Visit:
    """Identify the participant; requests without an invitation get 403."""
    with request.app.state.study.store.reading() as connection:
        return _visit(connection, request, token_of(request))


def _visit(connection: Connection, request: Request, token: str) -> Visit:
    participant = participants.find_by_token(connection, token) if token else None
    if participant is None:
        raise HTTPException(403)
    return Visit(request, token, participant)


Visitor = Annotated[Visit, Depends(visit)]


async def posted(request: Request) -> dict[str, str]:
    """Read a form submitted from one of the study's own pages."""
    request.state.form = await form_fields(request, token_of(request))
    return dict(request.state.form)


Posted = Annotated[dict[str, str], Depends(posted)]


@router.get("/i/{token}")
def arrive(request: Request, token: str) -> Response:
    """Arrive by an invitation; asks first if this browser belongs to another participant."""
    with request.app.state.study.store.reading() as connection:
        comes = participants.find_by_token(connection, token)
        is_here = participants.find_by_token(connection, token_of(request))
    if comes is None:
        raise HTTPException(403)
    is_other = is_here is not None and is_here.id != comes.id and is_here.state != "forgotten"
    if is_other and request.query_params.get("change") != "yes":
        say = request.app.state.study.design.labels
        return respond(request, "change.html.j2", say, title=say("who_reads"), token=token)
    return _come_in(request, token)


def _come_in(request: Request, token: str) -> Response:
    cookie = cookie_of(request.app.state.study.design.id)
    return let_in(request, cookie, token, path="/", max_age_s=_YEAR_S, samesite="lax")


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
        say = study.design.labels
        shown = {"title": "", "heading": say("sorry"), "paragraphs": [say(error.label)], "code": ""}
        return respond(request, "message.html.j2", say, 403, **shown)
    return _come_in(request, token)


@router.get("/")
def home(visitor: Visitor) -> Response:
    """Show the participant's current step: their unit, why there is none, or what comes before."""
    study, design, who = visitor.study, visitor.design, visitor.participant
    if who.state != "ready":
        return _not_reading(visitor)
    if (waiting := _next_step(visitor)) is not None:
        return waiting
    with visitor.store.writing() as connection:
        if paused := assigning.is_paused(connection):
            held = assigning.current_assignment(connection, who, study.units)
        else:
            held = assigning.next_assignment(connection, who, design, study.units, study.store)
        n_mine = 0 if held is None else len(current_answers(connection, held.id)[0])
        n_done = assigning.count_units(connection, who, "done")
        was_inattentive = held is None and is_inattentive(connection, design, who.id)
    if held is None and paused:
        return _ending(visitor, "rests", [visitor.say("come_later")])
    if held is None and not n_done:
        return _nothing_left(visitor)
    if held is None:
        outcome: Outcome = "attention" if was_inattentive else "done"
        return _ending(visitor, "that_was_all", told(design.texts.thanks), outcome)
    names = [page.name for page in study.pages(held)]
    after = visitor.request.query_params.get("after", "")
    is_new = not (n_mine or n_done or held.page)
    if is_new and design.texts.instructions and not design.quiz and not design.people.tutorial:
        return visitor.page(
            "instructions.html.j2",
            title=visitor.say("before_you_begin"),
            first=names[0],
            note=visitor.note(after),
            instructions=told(design.texts.instructions),
        )
    current = held.page if held.page in names else names[0]
    return visitor.go(f"/page/{current}" + (f"?after={after}" if after in _NOTES else ""))


def _ending(
    visitor: Visit,
    heading: str,
    paragraphs: Sequence[str],
    outcome: Outcome | None = None,
    template: str = "message.html.j2",
) -> Response:
    """Show the page for an outcome, with its code or link; `heading` is a label."""
    code = "" if outcome is None else visitor.design.code(outcome)
    heading = visitor.say(heading)
    return visitor.page(template, title="", heading=heading, paragraphs=paragraphs, code=code)


def _not_reading(visitor: Visit) -> Response:
    """Show the current step of a participant who is not reading yet, or no longer."""
    who, design, say = visitor.participant, visitor.design, visitor.say
    state = who.state
    if state == "invited":
        with visitor.store.writing() as connection:
            is_left = assigning.is_wanted(connection, who, design, visitor.study.units)
        # Do not ask for consent to something that is no longer available.
        if not is_left:
            return _nothing_left(visitor)
        return visitor.page(
            "welcome.html.j2",
            title=design.title,
            welcome=told(design.texts.welcome),
            consent=told(design.texts.consent),
            version=participants.consent_version(design),
        )
    if state == "consented":
        if (waiting := _next_step(visitor)) is not None:
            return waiting
        with visitor.store.reading() as connection:
            n_before, n_right = participants.quiz_so_far(connection, who)
        return visitor.page(
            "quiz.html.j2",
            title=say("before_you_begin"),
            instructions=told(design.texts.instructions),
            quiz=[(number, q, told(q.text)) for number, q in enumerate(design.quiz, 1)],
            number=n_before + 1,
            n_tries=design.people.quiz_tries,
            n_right=n_right,
            n_needed=design.quiz_pass,
        )
    if state == "declined":
        heading = "you_do_not_take_part"
        return _ending(visitor, heading, [say("declined")], "declined", "declined.html.j2")
    if state == "failed":
        return _ending(visitor, "thank_you", [say("quiz_failed")], "failed")
    if state == "withdrawn":
        return _ending(visitor, "thank_you", [say("stopped")], "withdrawn")
    contact = design.texts.contact
    if state != "left":
        return _ending(visitor, "thank_you", [say("part_has_ended", contact=contact)])
    # Their submission was returned, or timed out at the platform.
    with visitor.store.reading() as connection:
        n_done = assigning.count_units(connection, who, "done")
    told_them = " ".join(map(say, ["platform_says", *(["handed_in_is_kept"] if n_done else [])]))
    paragraphs = [told_them, say("questions_to", contact=contact)]
    return _ending(visitor, "place_given_back", paragraphs, "done" if n_done else None)


def _nothing_left(visitor: Visit) -> Response:
    with visitor.store.reading() as connection:
        was_away = assigning.count_units(connection, visitor.participant, "returned") > 0
    keys = ("was_away" if was_away else "others_were_quicker", "may_try_again")
    return _ending(visitor, "nothing_left", [" ".join(map(visitor.say, keys))], "full")


def _next_step(visitor: Visit) -> Response | None:
    """Return the tutorial or, once they may read, the questions about them, if due; else None."""
    people, who = visitor.design.people, visitor.participant
    asks_about = who.state == "ready" and people.about
    with visitor.store.reading() as connection:
        if people.tutorial and not participants.has_passed(connection, who, "tutorial"):
            return tutorial(visitor)
        if asks_about and not participants.has_passed(connection, who, "about"):
            return _about(visitor, {}, {})
    return None


@router.post("/consent")
def answer_consent(visitor: Visitor, form: Posted) -> Response:
    """Handle the response to the consent text: yes, no, or, after a no, show it again."""
    study, who = visitor.study, visitor.participant
    design, units = study.design, study.units
    # Participants who were shown an outdated text are shown the current one.
    version = participants.consent_version(design)
    if form.get("version", version) == version:
        with study.store.writing() as connection:
            if form.get("again") == "yes":
                # Those who declined may read the text again.
                participants.set_state(connection, who.id, "invited", was="declined")
            elif form.get("agree") == "no":
                participants.decide(connection, who, design, agrees=False)
            # If the last place was taken in the meantime, their state is unchanged.
            elif (
                assigning.is_wanted(connection, who, design, units)
                and participants.decide(connection, who, design, agrees=True)
                and not assigning.is_paused(connection)
            ):
                assigning.next_assignment(connection, who, design, units, study.store)
    return visitor.go("/")


@router.get("/tutorial")
def tutorial(visitor: Visitor) -> Response:
    """Show the instructions and worked examples; they can be read again before the quiz."""
    design = visitor.design
    if not design.people.tutorial or visitor.participant.state not in ("consented", "ready"):
        return visitor.go("/")
    return visitor.page(
        "tutorial.html.j2",
        title=visitor.say("before_you_begin"),
        instructions=told(design.texts.instructions),
        examples=[(shown, told(shown.text), told(shown.why)) for shown in design.people.tutorial],
    )


@router.post("/tutorial")
def leave_tutorial(visitor: Visitor, form: Posted) -> Response:
    if visitor.participant.state in ("consented", "ready"):
        with visitor.store.writing() as connection:
            participants.pass_step(connection, visitor.participant, "tutorial")
            assigning.begin_now(connection, visitor.participant)
    return visitor.go("/")


@router.post("/quiz")
def answer_quiz(visitor: Visitor, form: Posted) -> Response:
    """Grade an attempt at the quiz. Wrong answers are explained to those who passed."""
    design = visitor.design
    chosen = [form.get(f"quiz-{number}", "") for number in range(1, len(design.quiz) + 1)]
    if not all(chosen) or visitor.participant.state != "consented":
        return visitor.go("/")
    attempt = form.get("try", "")
    number = int(attempt) if attempt.isdecimal() and len(attempt) < 6 else None
    who = visitor.participant
    with visitor.store.writing() as connection:
        state = participants.take_quiz(connection, who, design, chosen, number)
        if state == "ready":
            assigning.begin_now(connection, who)
        elif state == "failed":
            participants.give_back(connection, who.id)
    if state != "ready":
        return visitor.go("/")
    answered = zip(design.quiz, chosen, strict=True)
    graded = [(q, told(q.text), answer == q.answer) for q, answer in answered]
    return visitor.page("passed.html.j2", title=visitor.say("thank_you"), quiz=graded)


def _about(visitor: Visit, about: Mapping[str, str], problems: Mapping[Key, str]) -> Response:
    asked, say = visitor.design.people.about, visitor.say
    answers = {("about", item): value for item, value in about.items()}
    questions = (Question("about", question.item, labels=say) for question in asked)
    return visitor.page(
        "about.html.j2",
        title=say("about_you"),
        fields=[Field(question, answers, problems) for question in questions],
        is_group=False,
        has_optional=not all(question.required for question in asked),
    )


@router.post("/about")
def answer_about(visitor: Visitor, form: Posted) -> Response:
    if visitor.participant.state == "ready":
        about, problems = participants.read_about(visitor.design.people.about, form, visitor.say)
        if problems:
            return _about(visitor, about, problems)
        with visitor.store.writing() as connection:
            participants.keep_about(connection, visitor.participant, about)
            assigning.begin_now(connection, visitor.participant)
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
    with visitor.store.writing() as connection:
        participants.withdraw(connection, visitor.participant, visitor.design, delete=delete)
    if not delete:
        return visitor.go("/")
    visitor.store.after_forgetting()
    return _ending(visitor, "thank_you", [visitor.say("stopped_deleted")], "withdrawn")


@router.get("/page/{name}")
def read(visitor: Visitor, name: str) -> Response:
    """Show a page of the participant's open unit."""
    with visitor.store.writing() as connection:
        held = _held(visitor, connection)
        answers, revision = current_answers(connection, held.id)
        pages, seen = visitor.study.pages(held), opened_pages(connection, held.id)
        opened = OpenPage(visitor.design, held, pages, _page(pages, name), answers, revision, seen)
        if (back := _too_early(visitor, opened)) is not None:
            return back
        show_page(connection, held, pages, name)
        opened = replace(opened, held=_held(visitor, connection), opened=seen | {name})
    asked = visitor.request.query_params
    note, is_filling = visitor.note(asked.get("after", "")), asked.get("from") == "open"
    return _shown(visitor, opened, {}, note, was_told=False, is_filling=is_filling)


@router.post("/page/{name}")
def send(visitor: Visitor, name: str, form: Posted) -> Response:
    """Save a whole page, as browsers without JavaScript submit it, and redirect."""
    with visitor.store.writing() as connection:
        served = form.get("revision", "")
        revision = int(served) if served.isdecimal() and len(served) < 19 else 0
        opened, rejected = _saved(visitor, connection, form, name, revision)
        if (back := _too_early(visitor, opened)) is not None:
            return back
        held, pages, page = opened.held, opened.pages, opened.page
        show_page(connection, held, pages, name)
        go, problems, facts = form.get("go", ""), dict(rejected), held.unit.facts
        after = pages[pages.index(page) + 1 :]
        following = [later.name for later in after]
        if not go or (go in following and form.get("told") != "yes"):
            problems |= opened.short_reasons()
        if go in ("finish", "next") and not problems:
            problems = dict(page.open(opened.answers, facts))
        if go and not problems:
            later = [p for p in after if p.applicable(opened.answers, facts)]
            if go == "next" and later:
                return visitor.go(f"/page/{later[0].name}")
            if go == "open":
                return visitor.go("/open")
            if go not in ("finish", "next"):
                return visitor.go(f"/page/{_page(pages, go).name}")
            if any(p.open(opened.answers, facts) for p in pages):
                return _open_list(visitor, held, opened.answers, opened.revision)
            assigning.finish(connection, held)
            return visitor.go("/?after=hand-in")
    keys = [] if rejected or (problems and go in ("finish", "next")) else ["saved"]
    if problems and go in following:
        keys.append("press_again")
    note, is_filling = " ".join(map(visitor.say, keys)), form.get("from") == "open"
    return _shown(visitor, opened, problems, note, was_told=go in following, is_filling=is_filling)


@router.get("/open")
def list_open(visitor: Visitor) -> Response:
    """Show what is still to be answered; if nothing is, the submit button."""
    with visitor.store.reading() as connection:
        held = _held(visitor, connection)
        answers, revision = current_answers(connection, held.id)
    if visitor.design.kind == "feedback":
        # The list of pages would reveal what was done to the story.
        return visitor.go("/")
    return _open_list(visitor, held, answers, revision)


@router.post("/save")
def save(request: Request, form: Posted) -> Response:
    """Save one answer as it is given; committed before the response is sent."""
    with request.app.state.study.store.writing() as connection:
        visitor = _visit(connection, request, token_of(request))
        opened, rejected = _saved(visitor, connection, form, form.get("page", ""), None)
        if (back := _too_early(visitor, opened)) is None:
            show_page(connection, opened.held, opened.pages, opened.page.name, is_new_view=False)
    if back is not None:
        return back
    view = opened.view(dict(rejected))
    ended = set(form.get("ended", "").split())
    short = {":".join(key): text for key, text in opened.short_reasons().items()}
    content: dict[str, Any] = {
        "revision": opened.revision,
        "problems": {":".join(key): text for key, text in rejected},
        "short": {key: text for key, text in short.items() if key in ended},
        "steps": [{"name": s["name"], "done": s["n_done"], "of": s["n"]} for s in view["steps"]],
    }
    # The script gets the questions only if others apply now.
    if set(form.get("shown", "").split()) != {field.name for field in view["fields"]}:
        content["html"] = render("questions.html.j2", visitor.say, **view)
        content["turn"] = render("turn.html.j2", visitor.say, **view)
    return JSONResponse(content)


def _too_early(visitor: Visit, opened: OpenPage) -> Response | None:
    """Redirect to the page to answer first, with the reason if it only needs opening."""
    if (first := opened.to_answer_first()) is None:
        return None
    return visitor.go(f"/page/{first.name}" + ("" if opened.page.shows else "?after=unopened"))


def _shown(
    visitor: Visit, opened: OpenPage, problems: Mapping[Key, str], note: str, **more: bool
) -> HTMLResponse:
    """Show a page of a unit. more: `was_told`, whether short reasons were pointed out already, so
    that they may stay, and `is_filling`, whether it was opened from the list of open questions."""
    return visitor.page(
        "page.html.j2",
        title=opened.page.title,
        unit=opened.held.number,
        revision=opened.revision,
        note=note,
        where=opened.where(visitor.study.n_for_one),
        **more,
        **opened.view(problems),
    )


def _saved(
    visitor: Visit, connection: Connection, form: dict[str, str], name: str, revision: int | None
) -> tuple[OpenPage, tuple[tuple[Key, str], ...]]:
    """Save the answers of a form; returns the page as it is then, and what was rejected."""
    held = _held(visitor, connection, form)
    pages = visitor.study.pages(held)
    page = _page(pages, name)
    named = ((field.partition(":"), value) for field, value in form.items())
    sent = {(part, item): value for (part, colon, item), value in named if colon}
    saved = save_answers(connection, held, pages, sent, revision)
    current = saved.answers, saved.revision, opened_pages(connection, held.id)
    return OpenPage(visitor.design, held, pages, page, *current), saved.problems


def _held(visitor: Visit, connection: Connection, form: dict[str, str] | None = None) -> Assignment:
    """Return the participant's open unit; without one, redirect to the current step."""
    held, study, who = None, visitor.study, visitor.participant
    if who.state == "ready":
        held = assigning.current_assignment(connection, who, study.units, for_update=True)
        if held is None and form is not None:
            # A participant who reads past the study's time limit keeps their answers.
            unit = form.get("unit", "")
            held = assigning.take_up_again(connection, who, study.design, study.units, unit)
    # A stale tab may send answers to a unit submitted in the meantime.
    if held is None or (form is not None and form.get("unit") != str(held.number)):
        raise HTTPException(303, base_of(visitor.request) + "/")
    return held


def _page(pages: tuple[Page, ...], name: str) -> Page:
    for page in pages:
        if page.name == name:
            return page
    raise HTTPException(404)


def _open_list(visitor: Visit, held: Assignment, answers: Answers, revision: int) -> HTMLResponse:
    """Show what is still to be answered before the unit can be submitted on its last page."""
    pages = visitor.study.pages(held)
    return visitor.page(
        "open.html.j2",
        title=visitor.say("nearly_done"),
        last=pages[-1],
        unit=held.number,
        revision=revision,
        still=[(page, gaps) for page in pages if (gaps := page.open(answers, held.unit.facts))],
    )
