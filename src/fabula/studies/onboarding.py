"""How people come in: by invitation or from a platform, their consent, the quiz, where they are."""

from __future__ import annotations

import re

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import select

from fabula.studies.answering import current_answers
from fabula.studies.assigning import count_done, current_assignment, next_assignment
from fabula.studies.database import settings
from fabula.studies.pages import Posted, Visitor, cookie_of, token_of
from fabula.studies.participants import (
    consent,
    find_by_token,
    join_from_platform,
    log,
    take_quiz,
)
from fabula.studies.views import render, told

__all__ = ["router"]

router = APIRouter()
_YEAR_S = 365 * 24 * 3600
# As Prolific and Mechanical Turk name people.
_WORKER = re.compile(r"[0-9a-f]{24}|A[0-9A-Z]{8,20}")


def _with_cookie(request: Request, token: str) -> RedirectResponse:
    response = RedirectResponse(str(request.scope.get("root_path", "")) + "/", 303)
    response.set_cookie(
        cookie_of(request.app.state.study.design.id), token,
        max_age=_YEAR_S, httponly=True, samesite="lax",
        secure=request.url.scheme == "https", path=str(request.scope.get("root_path", "")) or "/",
    )  # fmt: skip
    return response


@router.get("/i/{token}")
def arrive(request: Request, token: str) -> Response:
    """By an invitation. Where somebody else takes part in this browser already, it asks first."""
    with request.app.state.study.store.reading() as connection:
        comes = find_by_token(connection, token)
        is_here = find_by_token(connection, token_of(request))
    if comes is None:
        raise HTTPException(403)
    is_other = is_here is not None and is_here.id != comes.id and is_here.state != "forgotten"
    if is_other and request.query_params.get("change") != "yes":
        base = str(request.scope.get("root_path", ""))
        return HTMLResponse(
            render("change.html.j2", title="Who is reading?", base=base, token=token)
        )
    return _with_cookie(request, token)


@router.get("/join")
def join(request: Request) -> Response:
    """From a crowd platform, which names its worker: Prolific or Mechanical Turk."""
    study = request.app.state.study
    worker = next(
        (v for n in ("PROLIFIC_PID", "workerId") if (v := request.query_params.get(n))), ""
    )
    if not study.design.completion_code or not _WORKER.fullmatch(worker):
        raise HTTPException(403)
    with study.store.writing() as connection:
        token = join_from_platform(connection, worker)
    return _with_cookie(request, token)


@router.get("/")
def home(visitor: Visitor) -> Response:
    """Where the participant is."""
    study, state = visitor.study, visitor.participant.state
    design = study.design
    if state == "invited":
        return visitor.page(
            "welcome.html.j2", title=design.title, welcome=told(design.texts.welcome),
            consent=told(design.texts.consent),
        )  # fmt: skip
    if state == "consented":
        return visitor.page(
            "quiz.html.j2", title="Before you begin", instructions=told(design.texts.instructions),
            quiz=[(number, q, told(q.text)) for number, q in enumerate(design.quiz, 1)],
        )  # fmt: skip
    if state != "ready":
        text = (
            "Thank you for trying. The questions were answered in another way than this study "
            "needs, so it ends here for you."
            if state == "failed"
            else f"Your part in this study has ended. Questions? Write to {design.texts.contact}."
        )
        return visitor.page("message.html.j2", title="", heading="Thank you", paragraphs=[text],
                            code="")  # fmt: skip
    with study.store.writing() as connection:
        paused = connection.execute(
            select(settings.c.value).where(settings.c.key == "paused")
        ).scalar()
        if paused == "yes":
            assignment = current_assignment(connection, visitor.participant, study.units)
        else:
            assignment = next_assignment(connection, visitor.participant, design, study.units)
        n_mine = 0 if assignment is None else len(current_answers(connection, assignment.id)[0])
        n_done = count_done(connection, visitor.participant)
    if assignment is None and paused == "yes":
        return visitor.page(
            "message.html.j2", title="", heading="The study rests", code="",
            paragraphs=["Please come back later by the same link; what you answered is kept."],
        )  # fmt: skip
    if assignment is None and not n_done:
        return visitor.page(
            "message.html.j2", title="", heading="Nothing is left to read", code="",
            paragraphs=["Others were quicker, and every place is taken. Thank you for coming; you "
                        "may try again later by the same link."],
        )  # fmt: skip
    if assignment is None:
        return visitor.page(
            "message.html.j2", title="", heading="That was all", code=design.completion_code,
            paragraphs=told(design.texts.thanks),
        )  # fmt: skip
    pages = study.pages(assignment.unit)
    names = [page.name for page in pages]
    if not n_mine and not assignment.page and design.texts.instructions and not design.quiz:
        return visitor.page(
            "instructions.html.j2", title="Before you begin", first=pages[0].name,
            instructions=told(design.texts.instructions),
        )  # fmt: skip
    return visitor.go(f"/page/{assignment.page if assignment.page in names else names[0]}")


@router.post("/consent")
def agree(visitor: Visitor, form: Posted) -> Response:
    with visitor.study.store.writing() as connection:
        consent(connection, visitor.participant, needs_quiz=bool(visitor.study.design.quiz))
    return visitor.go("/")


@router.post("/quiz")
def answer_quiz(visitor: Visitor, form: Posted) -> Response:
    """The quiz, once. What was wrong is explained to those who passed."""
    design = visitor.study.design
    lacking = [k for k in range(1, len(design.quiz) + 1) if not form.get(f"quiz-{k}")]
    if lacking or visitor.participant.state != "consented":
        return visitor.go("/")
    right = [q.answer == form.get(f"quiz-{k}") for k, q in enumerate(design.quiz, 1)]
    with visitor.study.store.writing() as connection:
        state = take_quiz(connection, visitor.participant, sum(right), design.quiz_pass)
        log(connection, visitor.participant.name, "quiz", f"{sum(right)} of {len(right)}")
    if state != "ready":
        return visitor.go("/")
    return visitor.page(
        "passed.html.j2", title="Thank you",
        quiz=[(q, told(q.text), form[f"quiz-{k}"] == q.answer)
              for k, q in enumerate(design.quiz, 1)],
    )  # fmt: skip
