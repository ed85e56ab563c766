"""What all web applications have in common; each adds its own routes.

Pages and services are behind the same guard, report every refusal and failure in one format of
theirs, and are served and stopped in the same way.

uvicorn waits for the rest of a request without a timeout: a thousand half-sent ones would exhaust
the file descriptors of the process, and each would delay the server's shutdown. Nor does it limit
how long the head of a request may be.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fabula.core import __version__
from fabula.core.errors import InputError
from fabula.web import StaticFiles
from fabula.web.guard import Guard, Refuse, Rules

_GRACE_S = 30
"""How long active requests may take when a server is shutting down."""
_REQUEST_S = 30
"""How long a client may take to send a small request."""
_N_PER_ADDRESS = 256
"""Concurrent connections from one address, which may be that of a whole institute."""
_LEAST_BYTES_PER_S = 16_384
"""A body that arrives at this rate or faster may be as long as the application allows."""
_MOST_AROUND = 1 << 16
"""Bytes of a request around its body: its head, what divides chunks, and trailers."""
_TO_STOP_S = 2.0
"""How long a half-sent request may still take when the server is shutting down."""


def guarded_app(
    *,
    title: str,
    rules: Rules,
    refuse: Refuse,
    texts: Mapping[int, str],
    statuses: Mapping[type[Exception], int] = {},
    static: StaticFiles | None = None,
    description: str = "",
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """An application behind its guard, without routes of its own.

    refuse: makes the response for a status and a text, for every refusal and failure. texts: by
    status, the response in place of an error's own message; 500 needs one. statuses: of the
    application's exceptions, whose messages are shown. static: served at `/static/NAME`.
    description: of the API, which is then published; without one it is not, since that would reveal
    how answers are collected.
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
        # The request's content is never repeated.
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:4])
        return answer(request, 422, f"{where or 'body'}: {first['msg']}"[:300])

    async def on_known_error(request: Request, error: Exception) -> Response:
        status = next(status for kind, status in statuses.items() if isinstance(error, kind))
        return answer(request, status, str(error))

    async def on_disconnect(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=400)

    async def on_failure(request: Request, _: Exception) -> Response:
        # The error is in the log. This response is made outside of the guard.
        response = answer(request, 500, "")
        response.headers.update({**rules.headers, "cache-control": "no-store"})
        return response

    app = FastAPI(
        title=title,
        version=__version__,
        description=description,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if description else None,
        lifespan=lifespan,
        exception_handlers={
            StarletteHTTPException: on_http_error,
            RequestValidationError: on_invalid_request,
            ClientDisconnect: on_disconnect,
            Exception: on_failure,
            **dict.fromkeys(statuses, on_known_error),
        },
        middleware=[Middleware(Guard, rules=rules, refuse=answer)],
    )
    if static is not None:
        _serve_static(app, static)
    return app


def _serve_static(app: FastAPI, static: StaticFiles) -> None:
    """Serve these files unchanged, read once; nothing else on the disk is accessible."""
    files = {name: (path.read_bytes(), kind) for name, (path, kind) in static.items()}

    # Not in a thread: those may all be waiting for a database.
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
    """Bind the socket before the service starts, so that a failure is reported first."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        raise InputError(
            f"`port` {port}: cannot listen on it at {host} ({error.strerror}); choose another "
            "port, or 0 for any free one"
        ) from error
    # A response is sent in two pieces, and the second would be delayed by 40 ms. (asyncio sets this
    # only on sockets that name their protocol.)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve(
    app: FastAPI,
    listening: socket.socket,
    announce: Callable[[], None],
    *,
    on_hangup: Callable[[], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    keep_alive_s: int = 20,
    behind_proxy: str | None = None,
    root_path: str = "",
) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP, and return; active requests are finished first.

    `announce` reports the address; from then on a signal stops the server cleanly. `on_hangup` is
    called on SIGHUP, which then stops nothing; `on_stop` before active requests are waited for.
    Forwarded headers are trusted only from the proxy at
    `behind_proxy`. Half-sent requests are dropped after a timeout, and so are connections from one
    address beyond a limit, unless they come through the proxy.
    """

    class Bounded(_BoundedConnection):
        limit_s = _REQUEST_S
        most_held = None if behind_proxy else _N_PER_ADDRESS
        held: ClassVar[dict[str, list[_BoundedConnection]]] = {}

    config = uvicorn.Config(
        app,
        root_path=root_path,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(behind_proxy),
        forwarded_allow_ips=behind_proxy or "",
        ws="none",
        http=Bounded,
        timeout_keep_alive=keep_alive_s,
        timeout_graceful_shutdown=_GRACE_S,
    )

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if on_stop is not None:
                on_stop()
            await super().shutdown(sockets)

    server = Server(config)

    def stop(*_: object) -> None:
        server.should_exit = True

    handlers: dict[int, Callable[..., None]] = {signal.SIGINT: stop, signal.SIGTERM: stop}
    if on_hangup is not None:
        handlers[signal.SIGHUP] = lambda *_: on_hangup()
    elif signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as `nohup` has it
        handlers[signal.SIGHUP] = stop
    # uvicorn handles SIGINT and SIGTERM itself while it runs, and raises them again when it is
    # done: they should stop the server and not the process, which has files to close.
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    # What exists by now remains. Each search for garbage among all of it would keep everyone
    # waiting.
    gc.collect()
    gc.freeze()
    try:
        announce()
        server.run(sockets=[listening])
    finally:
        gc.unfreeze()
        for number, handler in before.items():
            signal.signal(number, handler)


class _BoundedConnection(HttpToolsProtocol):
    """A connection that is dropped when it exceeds a limit; subclasses set the limits."""

    limit_s: ClassVar[float]
    """Time from the first byte, or the connection, to the complete request."""
    most_held: ClassVar[int | None]
    """Concurrent connections from one address; None for no limit."""
    held: ClassVar[dict[str, list[_BoundedConnection]]]
    """Open connections by address, the oldest first."""

    _begun = 0.0
    _n_bytes = 0
    _n_around = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        held = self.held.setdefault(self._address(), [])
        held.append(self)
        self._begin()
        if self.most_held is not None and len(held) > self.most_held:
            # The one that has waited longest: who only holds connections keeps nobody out.
            next((peer for peer in held if peer.is_idle), self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        held = self.held[self._address()]
        held.remove(self)
        if not held:
            del self.held[self._address()]
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._n_bytes += len(data)
        self._n_around += len(data)
        super().data_received(data)
        if self._n_around > _MOST_AROUND and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:
            self._begin()

    def on_body(self, body: bytes) -> None:
        self._n_around = max(0, self._n_around - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._end()
        self._n_around = 0
        super().on_message_complete()

    def shutdown(self) -> None:
        super().shutdown()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self.loop.call_later(_TO_STOP_S, self.transport.abort)

    @property
    def is_idle(self) -> bool:
        """Whether no complete request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete or self._timer is not None

    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _begin(self) -> None:
        self._begun, self._n_bytes = self.loop.time(), 0
        self._timer = self.loop.call_later(self.limit_s, self._check)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        spent = self.loop.time() - self._begun
        left = self.limit_s + self._n_bytes / _LEAST_BYTES_PER_S - spent
        if self.flow.read_paused:
            # The application is the one taking time.
            left = self.limit_s
        if left > 0:
            self._timer = self.loop.call_later(left, self._check)
        else:
            self.transport.abort()
