"""The pages of participants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from sqlalchemy import Connection

from fabula.studies.answer_log import current_answers, opened_pages, save_answers, show_page
from fabula.studies.assigning import Assignment, current_assignment, finish, take_up_again
from fabula.studies.forms import WHY, Answers, Key, Page
from fabula.studies.labels import Labels
from fabula.studies.participants import Participant, find_by_token, hash_of
from fabula.studies.views import first_unopened, keys_of, page_view, render, where_they_are
from fabula.web.guard import csrf_of, form_fields

router = APIRouter()
NOTES = {"hand-in": "handed_in", "unopened": "open_all_first"}
"""Label shown at the top of a page, by what led there."""


def cookie_of(study_id: str) -> str:
    """Return the cookie name for participants, since one browser may take part in several studies.

    A study's id may reveal what it is about, so the name does not contain it.
    """
    return f"fabula_study_{hash_of(study_id)[:8]}"


def token_of(request: Request) -> str:
    """Return the token from the visitor's browser; empty if there is none."""
    return request.cookies.get(cookie_of(request.app.state.study.design.id), "")


class Visit:
    """A participant's request."""

    def __init__(self, request: Request, token: str, participant: Participant) -> None:
        self.request = request
        self.token = token
        self.participant = participant
        self.study = request.app.state.study
        self.base = str(request.scope.get("root_path", ""))
        self.say: Labels = self.study.design.labels

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        html = render(
            template,
            self.say,
            base=self.base,
            csrf=csrf_of(self.token),
            design=self.study.design,
            me=self.participant.name,
            may_stop=self.participant.may_stop,
            **values,
        )
        return HTMLResponse(html, status)

    def note(self, after: str) -> str:
        """Return the note at the top of a page."""
        return self.say(NOTES[after]) if after in NOTES else ""

    def go(self, path: str) -> RedirectResponse:
        return RedirectResponse(self.base + path, 303)


def visit(request: Request) -> Visit:
    """Identify the participant; requests without an invitation get 403."""
    with request.app.state.study.store.reading() as connection:
        return _visit(connection, request, token_of(request))


def _visit(connection: Connection, request: Request, token: str) -> Visit:
    participant = find_by_token(connection, token) if token else None
    if participant is None:
        raise HTTPException(403)
    return Visit(request, token, participant)


Visitor = Annotated[Visit, Depends(visit)]


async def posted(request: Request) -> dict[str, str]:
    """Read a form submitted from one of the study's own pages."""
    request.state.form = await form_fields(request, token_of(request))
    return dict(request.state.form)


Posted = Annotated[dict[str, str], Depends(posted)]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A page of a participant's open unit, with the answers given so far."""

    visitor: Visit
    held: Assignment
    pages: tuple[Page, ...]
    page: Page
    answers: Answers
    revision: int
    opened: set[str]
    """The pages opened so far."""

    def too_early(self) -> Response | None:
        """Redirect to the page to answer first, with the reason if it only needs opening.

        If pages build on each other, each waits for those before it. Stories are compared once all
        of them have been opened.
        """
        page, facts = self.page, self.held.unit.facts
        if self.visitor.study.design.kind != "feedback":
            first = None if page.shows else first_unopened(self.pages, self.opened, self.answers)
        else:
            before = self.pages[: self.pages.index(page)]
            first = next((p for p in before if p.open(self.answers, facts)), None)
            if first is None and not page.applicable(self.answers, facts):
                first = before[-1]
        if first is None:
            return None
        return self.visitor.go(f"/page/{first.name}" + ("" if page.shows else "?after=unopened"))

    def short_reasons(self) -> dict[Key, str]:
        """Return the reasons that are missing or too short, for questions with answers."""
        still = self.page.open(self.answers, self.held.unit.facts)
        return {key: text for key, text in still if key[1].endswith(WHY)}

    def view(self, problems: dict[Key, str]) -> dict[str, Any]:
        """Return everything that the page shows."""
        design, held = self.visitor.study.design, self.held
        return page_view(design, held, self.pages, self.page, self.answers, problems, self.opened)

    def shown(self, problems: dict[Key, str], note: str, **more: bool) -> HTMLResponse:
        """Show the page.

        more: `was_told`, whether the participant was already warned about short reasons and may
        continue, and `is_filling`, whether the page was opened from the list of open questions.
        """
        study, held, answers = self.visitor.study, self.held, self.answers
        where = where_they_are(study.design, held, self.pages, self.page, answers, study.n_for_one)
        return self.visitor.page(
            "page.html.j2",
            title=self.page.title,
            unit=held.number,
            revision=self.revision,
            note=note,
            where=where,
            **more,
            **self.view(problems),
        )


@router.get("/page/{name}")
def read(visitor: Visitor, name: str) -> Response:
    """Show a page of the participant's open unit."""
    with visitor.study.store.writing() as connection:
        held = _held(visitor, connection)
        answers, revision = current_answers(connection, held.id)
        pages, before = visitor.study.pages(held), opened_pages(connection, held.id)
        here = _Opened(visitor, held, pages, _page(pages, name), answers, revision, before)
        back = here.too_early()
        if back is not None:
            return back
        show_page(connection, held, pages, name)
        here = replace(here, held=_held(visitor, connection), opened=before | {name})
    asked = visitor.request.query_params
    note = visitor.note(asked.get("after", ""))
    return here.shown({}, note, was_told=False, is_filling=asked.get("from") == "open")


@router.post("/page/{name}")
def send(visitor: Visitor, name: str, form: Posted) -> Response:
    """Save a whole page, as browsers without JavaScript submit it, and redirect."""
    with visitor.study.store.writing() as connection:
        served = form.get("revision", "")
        revision = int(served) if served.isdecimal() and len(served) < 19 else 0
        here, rejected = _saved(visitor, connection, form, name, revision)
        back = here.too_early()
        if back is not None:
            return back
        held, pages, page = here.held, here.pages, here.page
        show_page(connection, held, pages, name)
        go, problems, facts = form.get("go", ""), dict(rejected), held.unit.facts
        after = pages[pages.index(page) + 1 :]
        following = [later.name for later in after]
        if not go or (go in following and form.get("told") != "yes"):
            problems |= here.short_reasons()
        if go in ("finish", "next") and not problems:
            problems = dict(page.open(here.answers, facts))
        if go and not problems:
            later = [p for p in after if p.applicable(here.answers, facts)]
            if go == "next" and later:
                return visitor.go(f"/page/{later[0].name}")
            if go == "open":
                return visitor.go("/open")
            if go not in ("finish", "next"):
                return visitor.go(f"/page/{_page(pages, go).name}")
            if any(p.open(here.answers, facts) for p in pages):
                return _open_list(visitor, held, here.answers, here.revision)
            finish(connection, held)
            return visitor.go("/?after=hand-in")
    said = [] if rejected or (problems and go in ("finish", "next")) else ["saved"]
    if problems and go in following:
        said.append("press_again")
    note, is_filling = " ".join(map(visitor.say, said)), form.get("from") == "open"
    return here.shown(problems, note, was_told=go in following, is_filling=is_filling)


@router.get("/open")
def list_open(visitor: Visitor) -> Response:
    """Show what is still to be answered; if nothing is, the submit button."""
    with visitor.study.store.reading() as connection:
        held = _held(visitor, connection)
        answers, revision = current_answers(connection, held.id)
    if visitor.study.design.kind == "feedback":
        # The list of pages would reveal what was done to the story.
        return visitor.go("/")
    return _open_list(visitor, held, answers, revision)


@router.post("/save")
def save(request: Request, form: Posted) -> Response:
    """Save one answer as it is given; committed before the response is sent."""
    with request.app.state.study.store.writing() as connection:
        visitor = _visit(connection, request, token_of(request))
        here, rejected = _saved(visitor, connection, form, form.get("page", ""), None)
        back = here.too_early()
        if back is None:
            show_page(connection, here.held, here.pages, here.page.name, is_new_view=False)
    if back is not None:
        return back
    view = here.view(dict(rejected))
    ended = set(form.get("ended", "").split())
    short = {":".join(key): text for key, text in here.short_reasons().items()}
    content: dict[str, Any] = {
        "revision": here.revision,
        "problems": {":".join(key): text for key, text in rejected},
        "short": {key: text for key, text in short.items() if key in ended},
        "steps": [{"name": s["name"], "done": s["n_done"], "of": s["n"]} for s in view["steps"]],
    }
    # The script gets the questions only if others apply now.
    if set(form.get("shown", "").split()) != {field.name for field in view["fields"]}:
        content["html"] = render("questions.html.j2", visitor.say, **view)
        content["turn"] = render("turn.html.j2", visitor.say, **view)
    return JSONResponse(content)


def _saved(
    visitor: Visit, connection: Connection, form: dict[str, str], name: str, revision: int | None
) -> tuple[_Opened, tuple[tuple[Key, str], ...]]:
    """Save the answers of a form; returns the page as it is then, and what was rejected."""
    held = _held(visitor, connection, form)
    pages = visitor.study.pages(held)
    page = _page(pages, name)
    saved = save_answers(connection, held, pages, keys_of(form), revision)
    opened = opened_pages(connection, held.id)
    here = _Opened(visitor, held, pages, page, saved.answers, saved.revision, opened)
    return here, saved.problems


def _held(visitor: Visit, connection: Connection, form: dict[str, str] | None = None) -> Assignment:
    """Return the participant's open unit; without one, redirect to the current step."""
    held, study, who = None, visitor.study, visitor.participant
    if who.state == "ready":
        held = current_assignment(connection, who, study.units, for_update=True)
        if held is None and form is not None:
            # A participant who reads past the study's time limit keeps their answers.
            unit = form.get("unit", "")
            held = take_up_again(connection, who, study.design, study.units, unit)
    # A stale tab may send answers to a unit submitted in the meantime.
    if held is None or (form is not None and form.get("unit") != str(held.number)):
        raise HTTPException(303, visitor.base + "/")
    return held


def _page(pages: tuple[Page, ...], name: str) -> Page:
    for page in pages:
        if page.name == name:
            return page
    raise HTTPException(404)


def _open_list(visitor: Visit, held: Assignment, answers: Answers, revision: int) -> HTMLResponse:
    """Show what is still to be answered before the unit can be submitted on its last page."""
    pages = visitor.study.pages(held)
    still = [(page, found) for page in pages if (found := page.open(answers, held.unit.facts))]
    return visitor.page(
        "open.html.j2",
        title=visitor.say("nearly_done"),
        last=pages[-1],
        unit=held.number,
        revision=revision,
        still=still,
    )
