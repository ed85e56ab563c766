"""The web application of the desk."""

from __future__ import annotations

import hashlib
import time

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from fabula.desk import classes, desk_pages, editor_pages
from fabula.desk.work import STATIC, Desk, render
from fabula.errors import FabulaError
from fabula.web.app import guarded_app
from fabula.web.guard import HEADERS, Rules, Visitors, csrf_of, is_secret

COOKIE = "fabula_desk"
_MAX_BODY_BYTES = 64 * 1024 * 1024
_MONTH_S = 30 * 24 * 3600
# Reports contain their own styles; otherwise the policy is as strict as for studies.
_HEADERS = HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
}
_TEXTS = {
    403: "This desk belongs to somebody else. Open it at the address that `fabula desk` prints.",
    404: "Page not found.",
    405: "This page cannot be asked for in that way.",
    413: "This is more than the page can accept at once.",
    422: "This could not be read. Please go back and try again.",
    500: "Something went wrong; see the terminal in which the desk runs.",
}


def desk_name(key: str) -> str:
    """A name of this machine for this desk alone.

    Browsers send a cookie to every port of a host, so under 127.0.0.1 it would reach the pages of
    other users of the machine; nobody else knows this name.
    """
    return f"{hashlib.sha256(f'name {key}'.encode()).hexdigest()[:20]}.localhost"


def _session(key: str, n_before: int = 0) -> str:
    """The value of this month's cookie, or of an earlier month's. It does not reveal the key."""
    month = int(time.time() // _MONTH_S) - n_before
    return hashlib.sha256(f"session {month} {key}".encode()).hexdigest()


def create_app(desk: Desk, *, key: str, cookie: str = COOKIE) -> FastAPI:
    """The application; it requires `key`, and a host name of this machine."""

    def owner(request: Request) -> None:
        # Other users of this machine can reach its loopback interface too.
        given = request.cookies.get(cookie, "")
        if not any(is_secret(given, _session(key, n)) for n in (0, 1)):
            raise HTTPException(403)

    visitors = Visitors(cookie, n_at_once=400, n_per_s=100.0)
    app = guarded_app(
        title="Fabula",
        rules=Rules(visitors, _MAX_BODY_BYTES, own_names_only=True, headers=_HEADERS),
        refuse=lambda _, status, text: HTMLResponse(render("message.html.j2", text=text), status),
        texts=_TEXTS,
        statuses={FabulaError: 400},
        static=STATIC,
    )
    app.state.desk, app.state.csrf = desk, csrf_of(key)
    for pages in (editor_pages, classes, desk_pages):
        app.include_router(pages.router, dependencies=[Depends(owner)])

    @app.get("/open")
    def come_in(given: str = "") -> Response:
        if not is_secret(given, key):
            raise HTTPException(403)
        response = RedirectResponse("/", 303)
        session = _session(key)
        response.set_cookie(cookie, session, max_age=_MONTH_S, httponly=True, samesite="strict")
        return response

    return app
