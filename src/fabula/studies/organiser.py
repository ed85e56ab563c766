"""The organiser's page: progress, people, and actions on them; behind its own login."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import Connection, delete, select

from fabula.core.errors import InputError
from fabula.core.store import measurement_row
from fabula.studies import participants
from fabula.studies.assigning import is_paused
from fabula.studies.database import audit, now_ms, sessions, write_setting
from fabula.studies.exporting import export, invitations_csv, json_lines
from fabula.studies.forms import clean_text
from fabula.studies.participants import Invitation, hash_of, log, pseudonym
from fabula.studies.quality import agreement_by_item, progress, standings
from fabula.studies.views import base_of, go, let_in, respond
from fabula.web.guard import address_of, csrf_of, form_fields, is_secret

router = APIRouter(prefix="/organise")
_HOURS = 12
_COOKIE = "fabula_organiser_"
_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_INVITED, _MAX_NOTE = 500, 200


class Login:
    """A request of the logged-in organiser."""

    def __init__(self, request: Request, token: str) -> None:
        self.request, self.token = request, token
        self.study = request.app.state.study
        self.store = self.study.store

    def page(self, template: str, title: str, **values: Any) -> HTMLResponse:
        return respond(self.request, template, title=title, csrf=csrf_of(self.token), **values)

    def back(self) -> Response:
        return go(self.request, "/organise")


def organiser(request: Request) -> Login:
    """Identify the organiser; others are redirected to the login."""
    study = request.app.state.study
    if token := request.cookies.get(f"{_COOKIE}{study.design.id}"):
        with study.store.reading() as connection:
            is_own = sessions.c.token_hash == _session_hash(request, token)
            ends_ms = connection.scalar(select(sessions.c.ends_ms).where(is_own))
        if ends_ms is not None and ends_ms > now_ms():
            return Login(request, token)
    raise HTTPException(303, f"{base_of(request)}/organise/login")


Organiser = Annotated[Login, Depends(organiser)]


async def asked(login: Organiser) -> dict[str, str]:
    return await form_fields(login.request, login.token)


Asked = Annotated[dict[str, str], Depends(asked)]


@router.get("/login")
def ask_password(request: Request) -> HTMLResponse:
    return respond(request, "login.html.j2", title="Organiser", problem="")


async def sent_password(request: Request) -> object:
    return (await request.form(max_files=0)).get("password")


@router.post("/login")
def log_in(request: Request, given: Annotated[object, Depends(sent_password)]) -> Response:
    state, store = request.app.state, request.app.state.study.store
    by_address, everybody = state.tries
    if not (by_address.take(address_of(request)) and everybody.take("all")):
        raise HTTPException(429, "Too many tries; please wait a minute.")
    if state.password is None or not is_secret(given, state.password):
        with store.writing() as connection:
            log(connection, "somebody", "login refused")
        problem = "This is not the password."
        return respond(request, "login.html.j2", status=401, title="Organiser", problem=problem)
    token, seconds = secrets.token_urlsafe(24), _HOURS * 3600
    with store.writing() as connection:
        connection.execute(delete(sessions).where(sessions.c.ends_ms < now_ms()))
        row = {"token_hash": _session_hash(request, token), "ends_ms": now_ms() + 1000 * seconds}
        connection.execute(sessions.insert().values(row))
        log(connection, "organiser", "login")
    cookie, path = f"{_COOKIE}{state.study.design.id}", "/organise"
    return let_in(request, cookie, token, path=path, max_age_s=seconds, samesite="strict")


@router.get("")
def overview(login: Organiser) -> HTMLResponse:
    return _overview(login, [])


def _overview(login: Login, invitations: Sequence[Invitation]) -> HTMLResponse:
    study = login.study
    with study.store.reading() as connection:
        units = progress(connection, study.design, study.units)
        marks = list(export(connection, study.design, study.units))
        people = standings(connection, study.design, marks)
        agreement = agreement_by_item(marks, study.design)
        is_resting = is_paused(connection)
        logged = connection.execute(select(audit).order_by(audit.c.id.desc()).limit(20)).all()
    fetched = study.statuses and study.statuses.fetched_ms
    return login.page(
        "organise.html.j2",
        study.design.title,
        design=study.design,
        units=units,
        people=people,
        invitations=invitations,
        address=str(login.request.base_url).rstrip("/"),
        statuses=study.statuses,
        checked=bool(study.design.people.attention or study.design.people.repeat),
        fetched=fetched and _shown_time(fetched),
        is_paused=is_resting,
        logged=[(_shown_time(row.at_ms), row.who, row.what, row.detail) for row in logged],
        agreement=agreement,
        n_done=sum(min(unit.n_done, unit.n_wanted) for unit in units),
        n_wanted=sum(unit.n_wanted for unit in units),
    )


@router.post("/pause")
def pause(login: Organiser, form: Asked) -> Response:
    value = "yes" if form.get("pause") == "yes" else "no"
    with login.store.writing() as connection:
        write_setting(connection, "paused", value)
        log(connection, "organiser", "pause" if value == "yes" else "go on")
    return login.back()


@router.get("/export.jsonl")
def download(login: Organiser) -> Response:
    design = login.study.design
    with login.store.writing() as connection:
        log(connection, "organiser", "export")
    with login.store.reading() as connection:
        data = json_lines(map(measurement_row, export(connection, design, login.study.units)))
    return _file(data, "application/x-ndjson", f"{design.id}.jsonl")


def _file(data: bytes, kind: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=kind, headers=headers)


@router.post("/logout")
def log_out(login: Organiser, form: Asked) -> Response:
    with login.store.writing() as connection:
        is_own = sessions.c.token_hash == _session_hash(login.request, login.token)
        connection.execute(delete(sessions).where(is_own))
        log(connection, "organiser", "logout")
    return go(login.request, "/organise/login")


def _session_hash(request: Request, token: str) -> str:
    """Return the stored hash of a session; changing the password invalidates it."""
    return hash_of(f"{token} {hash_of(str(request.app.state.password))}")


def _shown_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


@router.post("/invite")
def invite_more(login: Organiser, form: Asked) -> Response:
    """Invite N people with one note, or one per line of notes; as a page or a file."""
    lines = [line.strip()[:_MAX_NOTE] for line in clean_text(form.get("notes", "")).splitlines()]
    if not (notes := [line for line in lines if line]):
        n = int(form["n"]) if _NUMBER.fullmatch(form.get("n", "")) else 0
        notes = [clean_text(form.get("note", ""))[:_MAX_NOTE]] * min(n, _MAX_INVITED + 1)
    if not 1 <= len(notes) <= _MAX_INVITED:
        raise HTTPException(422)
    with login.store.writing() as connection:
        invitations = participants.invite(connection, notes, "organiser")
    if form.get("as") != "csv":
        return _overview(login, invitations)
    data = invitations_csv(invitations, str(login.request.base_url).rstrip("/"))
    return _file(data, "text/csv", f"{login.study.design.id}-invitations.csv")


@router.post("/reissue")
@router.post("/remove")
@router.post("/forget")
def act(login: Organiser, form: Asked) -> Response:
    """Act on the participant next to the button, or all who are ticked, once that is confirmed."""
    action = login.request.url.path.rpartition("/")[2]
    heading, what, do = _ACTIONS[action]
    ticked = [name.removeprefix("chosen_") for name in form if name.startswith("chosen_")]
    chosen = [form["id"]] if form.get("id") else ticked
    if not all(map(_NUMBER.fullmatch, chosen)):
        raise HTTPException(422)
    ids = sorted(map(int, chosen))
    if form.get("sure") != "yes" and not ids:
        return login.back()
    if form.get("sure") != "yes":
        names = [pseudonym(id_) for id_ in ids]
        asked_about = {"action": action, "heading": heading, "what": what, "ids": ids}
        return login.page("sure.html.j2", heading, names=names, **asked_about)
    try:
        with login.store.writing() as connection:
            done = [do(connection, id_, "organiser") for id_ in ids]
    except InputError as error:
        raise HTTPException(404) from error
    if action == "forget":
        login.store.after_forgetting()
    links = [invitation for invitation in done if isinstance(invitation, Invitation)]
    return _overview(login, links) if action == "reissue" else login.back()


_ACTIONS: dict[str, tuple[str, str, Callable[[Connection, int, str], object]]] = {
    "reissue": (
        "Make a new link for",
        "Their old link stops working at once, also in a browser where they are reading.",
        participants.reissue,
    ),
    "remove": (
        "Remove",
        "Their answers are excluded from everything from now on, and their places go to others. "
        "This cannot be undone.",
        participants.remove,
    ),
    # As participants may request by their number.
    "forget": (
        "Delete all answers of",
        "Everything that they answered, everything about them and every id is deleted; only their "
        "number stays. This cannot be undone. Backups and exports keep what they contain.",
        participants.forget,
    ),
}
"""What the page for confirmation says of each action, and what does it."""
