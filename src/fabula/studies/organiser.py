"""The organiser's page: progress, people, and actions; behind its own login."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import delete, select

from fabula.store import dump_json, measurement_row
from fabula.studies.database import audit, now_ms, sessions, settings
from fabula.studies.exporting import export
from fabula.studies.participants import Invitation, hash_of, log
from fabula.studies.quality import agreement_by_item, progress, standings
from fabula.studies.views import render
from fabula.web.guard import address_of, csrf_of, form_fields, is_secret

router = APIRouter(prefix="/organise")
_HOURS = 12


def _cookie(request: Request) -> str:
    return f"fabula_organiser_{request.app.state.study.design.id}"


def organiser(request: Request) -> str:
    """Return the token of the logged-in organiser; others are redirected to the login."""
    study = request.app.state.study
    if token := request.cookies.get(_cookie(request)):
        with study.store.reading() as connection:
            found = connection.execute(
                select(sessions.c.ends_ms).where(
                    sessions.c.token_hash == _session_hash(request, token)
                )
            ).scalar()
        if found is not None and found > now_ms():
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
    html = render(
        "login.html.j2", title="Organiser", problem=problem, base=request.scope.get("root_path", "")
    )
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
        paused = connection.execute(
            select(settings.c.value).where(settings.c.key == "paused")
        ).scalar()
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
        is_paused=paused == "yes",
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
        connection.execute(delete(settings).where(settings.c.key == "paused"))
        connection.execute(settings.insert().values(key="paused", value=value))
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
    return Response(
        lines.encode(errors="replace"),
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{study.design.id}.jsonl"'},
    )


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
