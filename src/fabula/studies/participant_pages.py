"""The pages of participants."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from sqlalchemy import Connection

from fabula.studies.answer_log import (
    Saved,
    current_answers,
    note_view,
    opened_pages,
    save_answers,
    show_page,
)
from fabula.studies.assigning import Assignment, current_assignment, finish, take_up_again
from fabula.studies.forms import WHY, Answers, Key, Page
from fabula.studies.labels import Labels
from fabula.studies.participants import Participant, find_by_token, hash_of
from fabula.studies.views import keys_of, page_view, render
from fabula.studies.whereabouts import first_unopened, where_they_are
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


@router.get("/page/{name}")
def read(visitor: Visitor, name: str) -> Response:
    """Show a page of the participant's open unit."""
    with visitor.study.store.writing() as connection:
        held = _held(visitor, connection)
        answers, revision = current_answers(connection, held.id)
        pages = visitor.study.pages(held)
        page = _page(pages, name)
        opened = opened_pages(connection, held.id)
        back = _too_early(visitor, held, pages, page, answers, opened)
        if back is not None:
            return visitor.go(_address(back, page))
        show_page(connection, held, pages, page.name)
        note_view(connection, held.id, page.name)
        held = _held(visitor, connection)
    asked = visitor.request.query_params
    return _shown(
        visitor,
        held,
        pages,
        page,
        answers,
        revision,
        {},
        opened | {page.name},
        note=visitor.note(asked.get("after", "")),
        is_filling=asked.get("from") == "open",
    )


@router.post("/page/{name}")
def send(visitor: Visitor, name: str, form: Posted) -> Response:
    """Save a whole page, as browsers without JavaScript submit it, and redirect."""
    with visitor.study.store.writing() as connection:
        held = _held(visitor, connection, form)
        pages = visitor.study.pages(held)
        page = _page(pages, name)
        saved = save_answers(connection, held, pages, keys_of(form), _revision(form))
        opened = opened_pages(connection, held.id)
        back = _too_early(visitor, held, pages, page, saved.answers, opened)
        if back is not None:
            return visitor.go(_address(back, page))
        show_page(connection, held, pages, page.name)
        note_view(connection, held.id, page.name)
        go = form.get("go", "")
        problems = dict(saved.problems)
        facts = held.unit.facts
        following = [later.name for later in pages[pages.index(page) + 1 :]]
        if not go or (go in following and form.get("told") != "yes"):
            problems |= _short_reasons(page, saved.answers, held)
        if go in ("finish", "next") and not problems:
            problems = dict(page.open(saved.answers, facts))
        if go and not problems:
            later = [
                p for p in pages[pages.index(page) + 1 :] if p.applicable(saved.answers, facts)
            ]
            if go == "next" and later:
                return visitor.go(f"/page/{later[0].name}")
            if go == "open":
                return visitor.go("/open")
            if go not in ("finish", "next"):
                return visitor.go(f"/page/{_page(pages, go).name}")
            still = [(p, p.open(saved.answers, facts)) for p in pages]
            if any(found for _, found in still):
                return _open_list(
                    visitor, still, last=pages[-1], unit=held.number, revision=saved.revision
                )
            finish(connection, held)
            return visitor.go("/?after=hand-in")
    said = [] if saved.problems or (problems and go in ("finish", "next")) else ["saved"]
    if problems and go in following:
        said.append("press_again")
    return _shown(
        visitor,
        held,
        pages,
        page,
        saved.answers,
        saved.revision,
        problems,
        opened,
        note=" ".join(map(visitor.say, said)),
        was_told=go in following,
        is_filling=form.get("from") == "open",
    )


@router.get("/open")
def list_open(visitor: Visitor) -> Response:
    """Show what is still to be answered; if nothing is, the submit button."""
    with visitor.study.store.reading() as connection:
        held = _held(visitor, connection)
        answers, revision = current_answers(connection, held.id)
    pages = visitor.study.pages(held)
    if visitor.study.design.kind == "feedback":
        # The list of pages would reveal what was done to the story.
        return visitor.go("/")
    still = [(page, page.open(answers, held.unit.facts)) for page in pages]
    return _open_list(visitor, still, last=pages[-1], unit=held.number, revision=revision)


@router.post("/save")
def save(request: Request, form: Posted) -> Response:
    """Save one answer as it is given; committed before the response is sent."""
    with request.app.state.study.store.writing() as connection:
        visitor = _visit(connection, request, token_of(request))
        held = _held(visitor, connection, form)
        pages = visitor.study.pages(held)
        page = _page(pages, form.get("page", ""))
        saved = save_answers(connection, held, pages, keys_of(form), None)
        opened = opened_pages(connection, held.id)
        back = _too_early(visitor, held, pages, page, saved.answers, opened)
        if back is None:
            show_page(connection, held, pages, page.name)
    if back is not None:
        return visitor.go(_address(back, page))
    return JSONResponse(_told_browser(visitor, held, pages, page, saved, opened, form))


def _told_browser(
    visitor: Visit,
    held: Assignment,
    pages: tuple[Page, ...],
    page: Page,
    saved: Saved,
    opened: set[str],
    form: dict[str, str],
) -> dict[str, Any]:
    """Return the data for the script; includes questions only if the applicable ones changed."""
    view = page_view(
        visitor.study.design, held, pages, page, saved.answers, dict(saved.problems), opened
    )
    ended = set(form.get("ended", "").split())
    short = _short_reasons(page, saved.answers, held).items()
    content: dict[str, Any] = {
        "revision": saved.revision,
        "problems": {":".join(key): text for key, text in saved.problems},
        "short": {":".join(key): text for key, text in short if ":".join(key) in ended},
        "steps": [{"name": s["name"], "done": s["n_done"], "of": s["n"]} for s in view["steps"]],
    }
    if set(form.get("shown", "").split()) != {field.name for field in view["fields"]}:
        content["html"] = render("questions.html.j2", visitor.say, **view)
        content["turn"] = render("turn.html.j2", visitor.say, **view)
    return content


def _held(visitor: Visit, connection: Connection, form: dict[str, str] | None = None) -> Assignment:
    """Return the participant's open unit; without one, redirect to the current step."""
    held = None
    if visitor.participant.state == "ready":
        held = current_assignment(
            connection, visitor.participant, visitor.study.units, for_update=True
        )
    if held is None and form is not None and visitor.participant.state == "ready":
        # A participant who reads past the study's time limit keeps their answers.
        held = take_up_again(
            connection,
            visitor.participant,
            visitor.study.design,
            visitor.study.units,
            form.get("unit", ""),
        )
    # A stale tab may send answers to a unit submitted in the meantime.
    if held is None or (form is not None and form.get("unit") != str(held.number)):
        raise HTTPException(303, visitor.base + "/")
    return held


def _page(pages: tuple[Page, ...], name: str) -> Page:
    found = next((page for page in pages if page.name == name), None)
    if found is None:
        raise HTTPException(404)
    return found


def _address(page: Page, instead_of: Page) -> str:
    """Return the URL of a page that has to come first, with the reason if it only needs opening."""
    return f"/page/{page.name}" + ("" if instead_of.shows else "?after=unopened")


def _short_reasons(page: Page, answers: Answers, held: Assignment) -> dict[Key, str]:
    """Return the reasons on the page that are missing or too short, for questions with answers."""
    found = page.open(answers, held.unit.facts)
    return {key: text for key, text in found if key[1].endswith(WHY)}


def _too_early(
    visitor: Visit,
    held: Assignment,
    pages: tuple[Page, ...],
    page: Page,
    answers: Answers,
    opened: set[str],
) -> Page | None:
    """Return the page to answer first.

    If pages build on each other, each waits for those before it. Stories are compared once all of
    them have been opened.
    """
    if visitor.study.design.kind != "feedback":
        return None if page.shows else first_unopened(pages, opened, answers)
    before = pages[: pages.index(page)]
    first = next((p for p in before if p.open(answers, held.unit.facts)), None)
    if first is None and not page.applicable(answers, held.unit.facts):
        return before[-1]
    return first


def _revision(form: dict[str, str]) -> int:
    text = form.get("revision", "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _shown(
    visitor: Visit,
    held: Assignment,
    pages: tuple[Page, ...],
    page: Page,
    answers: Answers,
    revision: int,
    problems: dict[Key, str],
    opened: set[str],
    *,
    note: str = "",
    was_told: bool = False,
    is_filling: bool = False,
) -> HTMLResponse:
    """was_told: whether the participant was already warned about short reasons and may continue.
    is_filling: whether the page was opened from the list of open questions.
    """
    design = visitor.study.design
    view = page_view(design, held, pages, page, answers, problems, opened)
    where = where_they_are(design, held, pages, page, answers, visitor.study.n_for_one)
    return visitor.page(
        "page.html.j2",
        title=page.title,
        unit=held.number,
        revision=revision,
        note=note,
        where=where,
        was_told=was_told,
        is_filling=is_filling,
        **view,
    )


def _open_list(
    visitor: Visit,
    still: list[tuple[Page, list[tuple[Key, str]]]],
    *,
    last: Page,
    unit: int,
    revision: int,
) -> HTMLResponse:
    """Show what is still to be answered before the unit can be submitted on its last page."""
    return visitor.page(
        "open.html.j2",
        title=visitor.say("nearly_done"),
        last=last,
        unit=unit,
        revision=revision,
        still=[(page, found) for page, found in still if found],
    )
