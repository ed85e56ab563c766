"""What all web applications have in common; each brings its routes and what is its own.

Pages and services stand behind the same guard, answer every refusal and failure in one form of
theirs, and are served and stopped in the same way.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect

from fabula import __version__
from fabula.errors import InputError
from fabula.web import StaticFiles
from fabula.web.connections import bounded_connections
from fabula.web.guard import Guard, Refuse, Rules

__all__ = ["PAGE_TEXTS", "guarded_app", "listen", "serve"]

_GRACE_S = 30
"""How long requests under way may take when a server is told to stop."""
_REQUEST_S = 30
"""How long a client may take to send a small request."""
_N_PER_ADDRESS = 256
"""Connections at a time from one address: of a whole institute, behind one."""
PAGE_TEXTS = {
    404: "There is no such page.",
    405: "There is no such page.",
    413: "This is more than the page can accept at once.",
    422: "This could not be read. Please go back and try again.",
}
"""By status, what people are told."""


def guarded_app(
    *,
    title: str,
    rules: Rules,
    refuse: Refuse,
    texts: Mapping[int, str],
    statuses: Mapping[type[Exception], int],
    static: StaticFiles | None = None,
    description: str = "",
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """An application behind its guard, without routes of its own.

    refuse: makes the answer of a status and a text, for every refusal and failure. texts: by
    status, what is answered in place of an error's own words; 500 needs one. statuses: of the
    application's exceptions, whose words are answered. static: served at `/static/NAME`.
    description: of the interface, which is then published; without one it is not, since that would
    tell how answers are taken.
    """

    def answer(request: Request, status: int, text: str) -> Response:
        return refuse(request, status, texts.get(status, text))

    async def on_http_error(request: Request, error: StarletteHTTPException) -> Response:
        if error.status_code == 303:
            return RedirectResponse(error.detail, 303)
        response = answer(request, error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    async def on_invalid_request(request: Request, error: RequestValidationError) -> Response:
        # Nothing of what was sent is repeated.
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:4])
        return answer(request, 422, f"{where or 'body'}: {first['msg']}"[:300])

    async def on_known_error(request: Request, error: Exception) -> Response:
        status = next(status for kind, status in statuses.items() if isinstance(error, kind))
        return answer(request, status, str(error))

    async def on_disconnect(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=400)

    async def on_failure(request: Request, _: Exception) -> Response:
        # What went wrong stands in the log. This is answered outside of the guard.
        response = answer(request, 500, "")
        response.headers.update({**rules.headers, "cache-control": "no-store"})
        return response

    handlers: dict[int | type[Exception], Callable[[Request, Any], Any]] = {
        StarletteHTTPException: on_http_error,
        RequestValidationError: on_invalid_request,
        ClientDisconnect: on_disconnect,
        Exception: on_failure,
        **dict.fromkeys(statuses, on_known_error),
    }
    app = FastAPI(
        title=title,
        version=__version__,
        description=description,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if description else None,
        lifespan=lifespan,
        exception_handlers=handlers,
        middleware=[Middleware(Guard, rules=rules, refuse=answer)],
    )
    if static is not None:
        _serve_static(app, static)
    return app


def _serve_static(app: FastAPI, static: StaticFiles) -> None:
    """These files as they lie, read once; nothing else of the disk can be asked for."""
    files = {name: (path.read_bytes(), kind) for name, (path, kind) in static.items()}

    # Not on a thread: those may all be waiting for a database.
    @app.get("/static/{name}")
    async def file(name: str) -> Response:
        if name not in files:
            raise HTTPException(404)
        data, kind = files[name]
        return Response(data, media_type=kind, headers={"cache-control": "max-age=3600"})

    @app.get("/favicon.ico")
    async def icon() -> Response:
        return Response(status_code=204, headers={"cache-control": "max-age=86400"})


def listen(host: str, port: int) -> socket.socket:
    """A socket that is ours; said before the service starts where it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        raise InputError(
            f"`port` {port}: cannot listen there at {host} ({error.strerror}); name another, or 0 "
            "for any"
        ) from error
    # An answer goes out in two pieces, and the second would wait 40 ms to be asked for. (asyncio
    # sets this only on sockets that name their protocol.)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve(
    app: FastAPI,
    listening: socket.socket,
    announce: Callable[[], None],
    *,
    on_hangup: Callable[[], None] | None = None,
    keep_alive_s: int = 20,
    behind_proxy: str | None = None,
    root_path: str = "",
) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP, and return; requests under way are finished first.

    `announce` tells where; from then on a signal is orderly. `on_hangup` is called at SIGHUP, which
    then stops nothing. Forwarded headers are believed of the proxy at `behind_proxy` only.
    Half-sent requests are dropped after a time, and so are connections of one address beyond a
    number, unless they come through the proxy.
    """
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            root_path=root_path,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=bool(behind_proxy),
            forwarded_allow_ips=behind_proxy or "",
            ws="none",
            http=bounded_connections(_REQUEST_S, None if behind_proxy else _N_PER_ADDRESS),
            timeout_keep_alive=keep_alive_s,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )

    def stop(*_: object) -> None:
        server.should_exit = True

    handlers: dict[signal.Signals, Callable[..., None]] = {
        signal.SIGINT: stop,
        signal.SIGTERM: stop,
    }
    if on_hangup is not None:
        handlers[signal.SIGHUP] = lambda *_: on_hangup()
    elif signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as `nohup` has it
        handlers[signal.SIGHUP] = stop
    # uvicorn takes SIGINT and SIGTERM itself while it runs, and raises them again when it is done:
    # they are to stop the server and not the process, which has files to close.
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        announce()
        server.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
