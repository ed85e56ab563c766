"""The organiser's page: progress, people, and actions on them; behind its own login."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection, delete, select

from fabula.errors import InputError
from fabula.store import dump_json, measurement_row
from fabula.studies.assigning import is_paused
from fabula.studies.database import audit, now_ms, sessions, write_setting
from fabula.studies.exporting import export, invitations_csv
from fabula.studies.forms import clean_text
from fabula.studies.participants import (
    Invitation,
    forget,
    hash_of,
    invite_each,
    log,
    pseudonym,
    reissue,
    remove,
)
from fabula.studies.quality import agreement_by_item, progress, standings
from fabula.studies.views import render
from fabula.web.guard import address_of, csrf_of, form_fields, is_secret

router = APIRouter(prefix="/organise")
_HOURS = 12
_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_INVITED = 500
_MAX_NOTE = 200


def _cookie(request: Request) -> str:
    return f"fabula_organiser_{request.app.state.study.design.id}"


def organiser(request: Request) -> str:
    """Return the token of the logged-in organiser; others are redirected to the login."""
    study = request.app.state.study
    if token := request.cookies.get(_cookie(request)):
        with study.store.reading() as connection:
            own = sessions.c.token_hash == _session_hash(request, token)
            ends_ms = connection.scalar(select(sessions.c.ends_ms).where(own))
        if ends_ms is not None and ends_ms > now_ms():
            return token
    raise HTTPException(303, f"{request.scope.get('root_path', '')}/organise/login")


Organiser = Annotated[str, Depends(organiser)]


async def asked(request: Request, token: Organiser) -> dict[str, str]:
    """Read a form of the organiser's page."""
    return await form_fields(request, token)


Asked = Annotated[dict[str, str], Depends(asked)]


@router.get("/login")
def ask_password(request: Request) -> HTMLResponse:
    return _login(request, "")


def _login(request: Request, problem: str) -> HTMLResponse:
    base = request.scope.get("root_path", "")
    html = render("login.html.j2", title="Organiser", problem=problem, base=base)
    return HTMLResponse(html, 401 if problem else 200)


async def sent_password(request: Request) -> object:
    """Read the submitted password."""
    return (await request.form(max_files=0)).get("password")


@router.post("/login")
def log_in(request: Request, given: Annotated[object, Depends(sent_password)]) -> Response:
    state = request.app.state
    mine, everybody = state.tries
    if not (mine.take(address_of(request)) and everybody.take("all")):
        raise HTTPException(429, "Too many tries; please wait a minute.")
    if state.password is None or not is_secret(given, state.password):
        with state.study.store.writing() as connection:
            log(connection, "somebody", "login refused")
        return _login(request, "This is not the password.")
    token = secrets.token_urlsafe(24)
    with state.study.store.writing() as connection:
        connection.execute(delete(sessions).where(sessions.c.ends_ms < now_ms()))
        connection.execute(
            sessions.insert().values(
                token_hash=_session_hash(request, token), ends_ms=now_ms() + _HOURS * 3_600_000
            )
        )
        log(connection, "organiser", "login")
    base = str(request.scope.get("root_path", ""))
    response = RedirectResponse(f"{base}/organise", 303)
    response.set_cookie(
        _cookie(request),
        token,
        max_age=_HOURS * 3600,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path=f"{base}/organise",
    )
    return response


@router.get("")
def overview(request: Request, token: Organiser) -> HTMLResponse:
    return overview_page(request, token, [])


def overview_page(request: Request, token: str, invitations: Sequence[Invitation]) -> HTMLResponse:
    """Render the organiser's page, including links created just now."""
    study = request.app.state.study
    with study.store.reading() as connection:
        units = progress(connection, study.design, study.units)
        found = list(export(connection, study.design, study.units))
        people = standings(connection, study.design, found)
        agreement = agreement_by_item(found, study.design)
        is_resting = is_paused(connection)
        logged = connection.execute(select(audit).order_by(audit.c.id.desc()).limit(20)).all()
    fetched = study.statuses and study.statuses.fetched_ms
    html = render(
        "organise.html.j2",
        title=study.design.title,
        base=request.scope.get("root_path", ""),
        csrf=csrf_of(token),
        design=study.design,
        units=units,
        people=people,
        invitations=invitations,
        address=str(request.base_url).rstrip("/"),
        statuses=study.statuses,
        checked=bool(study.design.people.attention or study.design.people.repeat),
        fetched=fetched and _shown_time(fetched),
        is_paused=is_resting,
        logged=[(_shown_time(row.at_ms), row.who, row.what, row.detail) for row in logged],
        agreement=agreement,
        n_done=sum(min(unit.n_done, unit.n_wanted) for unit in units),
        n_wanted=sum(unit.n_wanted for unit in units),
    )
    return HTMLResponse(html)


@router.post("/pause")
def pause(request: Request, token: Organiser, form: Asked) -> Response:
    study, value = request.app.state.study, "yes" if form.get("pause") == "yes" else "no"
    with study.store.writing() as connection:
        write_setting(connection, "paused", value)
        log(connection, "organiser", "pause" if value == "yes" else "go on")
    return _back(request)


@router.get("/export.jsonl")
def download(request: Request, token: Organiser) -> Response:
    study = request.app.state.study
    with study.store.writing() as connection:
        log(connection, "organiser", "export")
    with study.store.reading() as connection:
        rows = [measurement_row(one) for one in export(connection, study.design, study.units)]
    lines = "".join(dump_json(row) + "\n" for row in rows)
    data = lines.encode(errors="replace")
    return _file(data, "application/x-ndjson", f"{study.design.id}.jsonl")


def _file(data: bytes, kind: str, name: str) -> Response:
    """Return a file to save under this name."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=kind, headers=headers)


@router.post("/logout")
def log_out(request: Request, token: Organiser, form: Asked) -> Response:
    with request.app.state.study.store.writing() as connection:
        connection.execute(
            delete(sessions).where(sessions.c.token_hash == _session_hash(request, token))
        )
        log(connection, "organiser", "logout")
    return RedirectResponse(f"{request.scope.get('root_path', '')}/organise/login", 303)


def _session_hash(request: Request, token: str) -> str:
    """Return the stored hash of a session; changing the password invalidates it."""
    return hash_of(f"{token} {hash_of(str(request.app.state.password))}")


def _shown_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _back(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/organise", 303)


@router.post("/invite")
def invite_more(request: Request, token: Organiser, form: Asked) -> Response:
    """Invite N people with one note, or one per line of notes; as a page or a file."""
    lines = [line.strip()[:_MAX_NOTE] for line in clean_text(form.get("notes", "")).splitlines()]
    notes = [line for line in lines if line]
    if not notes:
        n = int(form["n"]) if _NUMBER.fullmatch(form.get("n", "")) else 0
        notes = [clean_text(form.get("note", ""))[:_MAX_NOTE]] * min(n, _MAX_INVITED + 1)
    if not 1 <= len(notes) <= _MAX_INVITED:
        raise HTTPException(422)
    with request.app.state.study.store.writing() as connection:
        invitations = invite_each(connection, notes, "organiser")
    if form.get("as") != "csv":
        return overview_page(request, token, invitations)
    data = invitations_csv(invitations, str(request.base_url).rstrip("/"))
    return _file(data, "text/csv", f"{request.app.state.study.design.id}-invitations.csv")


@router.post("/reissue")
def give_new_link(request: Request, token: Organiser, form: Asked) -> Response:
    """Replace a link after confirmation: the old one stops working, even for an active reader."""
    what = "Their old link stops working at once, also in a browser where they are reading."
    invitations: list[Invitation] = []

    def renew(connection: Connection, id_: int, who: str) -> None:
        invitations.append(reissue(connection, id_, who))

    done = _of_each(request, token, form, "reissue", "Make a new link for", what, renew)
    is_sure = form.get("sure") == "yes"
    return overview_page(request, token, invitations) if is_sure else done


@router.post("/remove")
def leave_out(request: Request, token: Organiser, form: Asked) -> Response:
    """Remove participants after confirmation, so that nobody is removed by accident."""
    what = (
        "Their answers are excluded from everything from now on, and their places go to others. "
        "This cannot be undone."
    )
    return _of_each(request, token, form, "remove", "Remove", what, remove)


@router.post("/forget")
def delete_all(request: Request, token: Organiser, form: Asked) -> Response:
    """Delete a participant's data, as they may request by their number."""
    what = (
        "Everything that they answered, everything about them and every id is deleted; only their "
        "number stays. This cannot be undone. Backups and exports keep what they contain."
    )
    done = _of_each(request, token, form, "forget", "Delete all answers of", what, forget)
    if form.get("sure") == "yes":
        request.app.state.study.store.after_forgetting()
    return done


def _of_each(
    request: Request,
    token: str,
    form: Mapping[str, str],
    action: str,
    heading: str,
    what: str,
    do: Callable[[Connection, int, str], object],
) -> Response:
    """Ask for confirmation, then act on everybody chosen, or on nobody."""
    ids = _chosen(form)
    if form.get("sure") != "yes" and not ids:
        return _back(request)
    if form.get("sure") != "yes":
        html = render(
            "sure.html.j2",
            title=heading,
            base=request.scope.get("root_path", ""),
            csrf=csrf_of(token),
            action=action,
            heading=heading,
            what=what,
            ids=ids,
            names=[pseudonym(id_) for id_ in ids],
        )
        return HTMLResponse(html)
    try:
        with request.app.state.study.store.writing() as connection:
            for id_ in ids:
                do(connection, id_, "organiser")
    except InputError as error:
        raise HTTPException(404) from error
    return _back(request)


def _chosen(form: Mapping[str, str]) -> list[int]:
    """Return the participant next to the button, or all who are ticked."""
    ticked = [name.removeprefix("chosen_") for name in form if name.startswith("chosen_")]
    given = [form["id"]] if form.get("id") else ticked
    if not all(map(_NUMBER.fullmatch, given)):
        raise HTTPException(422)
    return sorted(map(int, given))
