"""The web application of the desk."""

from __future__ import annotations

import hmac
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from fabula.desk import pages
from fabula.desk.rendering import STATIC, render
from fabula.desk.work import Desk
from fabula.errors import FabulaError
from fabula.web.assets import serve_assets
from fabula.web.guard import HEADERS, Guard, csrf_of

__all__ = ["COOKIE", "create_app"]

COOKIE = "fabula_desk"
_MAX_BODY_BYTES = 64 * 1024 * 1024
_MONTH_S = 30 * 24 * 3600
# Reports bring their style with them; everything else is as strict as for studies.
_HEADERS = HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
}
_SAID = {
    403: "This desk belongs to somebody else. Open it by the address that `fabula desk` prints.",
    404: "There is no such page.",
    405: "There is no such page.",
    422: "This could not be read. Please go back and try again.",
    500: "Something went wrong; the terminal in which the desk runs says what.",
}


def create_app(desk: Desk, *, key: str, cookie: str = COOKIE) -> FastAPI:
    """The application; only who knows `key` comes in, and only under a name of this machine."""

    def owner(request: Request) -> None:
        # Whoever else works on this machine can reach its loopback too.
        given = request.cookies.get(cookie, "")
        if not hmac.compare_digest(given.encode(errors="replace"), key.encode()):
            raise HTTPException(403)

    app = FastAPI(title="Fabula", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.desk, app.state.csrf = desk, csrf_of(key)
    app.add_middleware(
        Guard, cookie=cookie, max_body_bytes=_MAX_BODY_BYTES, headers=_HEADERS,
        n_at_once=400, n_per_s=100.0,
    )  # fmt: skip
    # A page elsewhere whose name is made to lead here (DNS rebinding) gets nothing.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"])
    app.include_router(pages.router, dependencies=[Depends(owner)])
    serve_assets(app, STATIC)

    @app.get("/open")
    def come_in(given: str = "") -> Response:
        if not hmac.compare_digest(given.encode(errors="replace"), key.encode()):
            raise HTTPException(403)
        response = RedirectResponse("/", 303)
        response.set_cookie(cookie, key, max_age=_MONTH_S, httponly=True, samesite="strict")
        return response

    @app.exception_handler(StarletteHTTPException)
    def refused(_: Request, error: StarletteHTTPException) -> Response:
        return _message(error.status_code, _SAID.get(error.status_code, error.detail))

    @app.exception_handler(RequestValidationError)
    def unread(_: Request, __: Exception) -> Response:
        return _message(422, _SAID[422])

    @app.exception_handler(FabulaError)
    def told(_: Request, error: Exception) -> Response:
        return _message(400, str(error))

    @app.exception_handler(Exception)
    def broken(_: Request, __: Exception) -> Response:
        return _message(500, _SAID[500])

    return app


def _message(status: int, text: Any) -> HTMLResponse:
    html = render("message.html.j2", text=str(text))
    return HTMLResponse(html, status, headers={**_HEADERS, "cache-control": "no-store"})
