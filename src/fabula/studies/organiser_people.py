"""The organiser's actions on people: invite, replace a link, remove, delete."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection

from fabula.errors import InputError
from fabula.studies.export_files import invitations_csv
from fabula.studies.forms import clean_text
from fabula.studies.organiser import Asked, Organiser, overview_page
from fabula.studies.participants import forget, invite_each, pseudonym, reissue, remove
from fabula.studies.views import render
from fabula.web.guard import csrf_of

router = APIRouter(prefix="/organise")
_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_INVITED = 500
_MAX_NOTE = 200


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
    name = f"{request.app.state.study.design.id}-invitations.csv"
    return Response(
        data,
        media_type="text/csv",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


@router.post("/reissue")
def give_new_link(request: Request, token: Organiser, form: Asked) -> Response:
    """Replace a link after confirmation: the old one stops working, even for an active reader."""
    ids = _chosen(form)
    if form.get("sure") != "yes":
        what = "Their old link stops working at once, also in a browser where they are reading."
        return _ask_again(request, token, "reissue", "Make a new link for", ids, what)
    try:
        with request.app.state.study.store.writing() as connection:
            invitations = [reissue(connection, id_, "organiser") for id_ in ids]
    except InputError as error:
        raise HTTPException(404) from error
    return overview_page(request, token, invitations)


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
    do: Callable[[Connection, int, str], int],
) -> Response:
    """Ask for confirmation, then act on everybody chosen, or on nobody."""
    ids = _chosen(form)
    if form.get("sure") != "yes":
        return _ask_again(request, token, action, heading, ids, what)
    try:
        with request.app.state.study.store.writing() as connection:
            for id_ in ids:
                do(connection, id_, "organiser")
    except InputError as error:
        raise HTTPException(404) from error
    return _back(request)


def _chosen(form: Mapping[str, str]) -> list[int]:
    """Return the participant next to the button, or all who are ticked."""
    given = (
        [form["id"]]
        if form.get("id")
        else [name.removeprefix("chosen_") for name in form if name.startswith("chosen_")]
    )
    if not all(map(_NUMBER.fullmatch, given)):
        raise HTTPException(422)
    return sorted(map(int, given))


def _ask_again(
    request: Request, token: str, action: str, heading: str, ids: list[int], what: str
) -> Response:
    if not ids:
        return _back(request)
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


def _back(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/organise", 303)
