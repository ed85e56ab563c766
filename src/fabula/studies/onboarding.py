"""Arrival by invitation or from a platform, and the participant's home page."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from fabula.studies.answer_log import current_answers
from fabula.studies.assigning import count_done, current_assignment, is_paused, next_assignment
from fabula.studies.checks import is_inattentive
from fabula.studies.entry import NotAdmitted, arrival_of, check_arrival, join
from fabula.studies.participant_pages import NOTES, Visitor, cookie_of, token_of
from fabula.studies.participants import find_by_token
from fabula.studies.recruiting import Outcome
from fabula.studies.screening_pages import before_reading, ending, next_step, nothing_left
from fabula.studies.views import render, told
from fabula.web.guard import address_of

router = APIRouter()
_YEAR_S = 365 * 24 * 3600


def _with_cookie(request: Request, token: str) -> RedirectResponse:
    response = RedirectResponse(str(request.scope.get("root_path", "")) + "/", 303)
    response.set_cookie(
        cookie_of(request.app.state.study.design.id),
        token,
        max_age=_YEAR_S,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
        path=str(request.scope.get("root_path", "")) or "/",
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
        return HTMLResponse(
            render("change.html.j2", say, title=say("who_reads"), base=base, token=token)
        )
    return _with_cookie(request, token)


@router.get("/join")
def join_study(request: Request) -> Response:
    """Arrive from a crowd platform that identifies its worker: Prolific or Mechanical Turk."""
    study = request.app.state.study
    entry = study.design.people.entry
    arrival = arrival_of(request.query_params)
    is_open = bool(study.design.code("done") or entry.platform)
    if arrival is None or not is_open:
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
        html = render(
            "message.html.j2",
            say,
            title="",
            base=base,
            heading=say("sorry"),
            code="",
            paragraphs=[say(error.label)],
        )
        return HTMLResponse(html, 403)
    return _with_cookie(request, token)


@router.get("/")
def home(visitor: Visitor) -> Response:
    """Show the participant's current step."""
    if visitor.participant.state != "ready":
        return before_reading(visitor)
    waiting = next_step(visitor)
    return _reading(visitor) if waiting is None else waiting


def _reading(visitor: Visitor) -> Response:
    """Show the participant's unit, or why there is none."""
    study = visitor.study
    design = study.design
    with study.store.writing() as connection:
        paused = is_paused(connection)
        if paused:
            assignment = current_assignment(connection, visitor.participant, study.units)
        else:
            assignment = next_assignment(
                connection, visitor.participant, design, study.units, study.store
            )
        n_mine = 0 if assignment is None else len(current_answers(connection, assignment.id)[0])
        n_done = count_done(connection, visitor.participant)
        was_inattentive = assignment is None and is_inattentive(
            connection, design, visitor.participant.id
        )
    if assignment is None and paused:
        return ending(visitor, "rests", [design.labels("come_later")])
    if assignment is None and not n_done:
        return nothing_left(visitor)
    if assignment is None:
        outcome: Outcome = "attention" if was_inattentive else "done"
        return ending(visitor, "that_was_all", told(design.texts.thanks), outcome)
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
