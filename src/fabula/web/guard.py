"""What stands between the page and the open internet: headers, limits, tokens."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "Buckets", "Guard", "TooMuch", "csrf_of", "is_csrf"]

_MAX_BODY_BYTES = 256 * 1024
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # An invitation is in the address: no other site may learn it.
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def csrf_of(token: str) -> str:
    """What a form must hold: only who has the cookie can know it."""
    return hashlib.sha256(f"form {token}".encode(errors="replace")).hexdigest()[:40]


def is_csrf(token: str, given: object) -> bool:
    """Whether a form came from a page of ours."""
    return isinstance(given, str) and hmac.compare_digest(
        csrf_of(token).encode(), given.encode(errors="replace")
    )


class TooMuch(Exception):  # noqa: N818 (an event, not a kind of error)
    """A body is larger than any form of ours."""


class Buckets:
    """How many requests each visitor may make: so many at once, so many a second."""

    def __init__(self, n_at_once: int, n_per_s: float, n_visitors: int = 50_000) -> None:
        self._most, self._rate, self._n = float(n_at_once), n_per_s, n_visitors
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, visitor: str) -> bool:
        """Whether one more is allowed."""
        now = time.monotonic()
        left, before = self._held.pop(visitor, (self._most, now))
        left = min(self._most, left + (now - before) * self._rate)
        self._held[visitor] = (left - 1 if left >= 1 else left, now)
        while len(self._held) > self._n:
            self._held.popitem(last=False)
        return left >= 1


class Guard:
    """Adds headers to every answer; refuses bodies and rates that no person needs."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        cookie: str,
        n_at_once: int = 120,
        n_per_s: float = 20.0,
        max_body_bytes: int = _MAX_BODY_BYTES,
        headers: Mapping[str, str] = HEADERS,
    ) -> None:
        """`cookie` is the name of the one by which a visitor is known."""
        self._app, self._cookie = app, cookie
        self._max_bytes, self._headers = max_body_bytes, headers
        self._known = Buckets(n_at_once, n_per_s)
        # Whoever has no cookie shares an address with a whole institute.
        self._unknown = Buckets(20 * n_at_once, 10 * n_per_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["cache-control"] = "no-store"
                if "server" in headers:
                    del headers["server"]
            await send(message)

        connection = HTTPConnection(scope)
        if not self._is_allowed(connection):
            await _refuse(send_guarded, 429, "Too many requests; please wait a moment.")
            return
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length) > self._max_bytes:
            await _refuse(send_guarded, 413, "This is more than can be taken at once.")
            return
        n_read = 0

        async def receive_counted() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > self._max_bytes:
                raise TooMuch
            return message

        try:
            await self._app(scope, receive_counted, send_guarded)
        except TooMuch:
            await _refuse(send_guarded, 413, "This is more than can be taken at once.")

    def _is_allowed(self, connection: HTTPConnection) -> bool:
        token = connection.cookies.get(self._cookie)
        if token:
            return self._known.take(
                hashlib.sha256(token.encode(errors="replace")).hexdigest()
            ) and self._address(connection)
        return self._address(connection)

    def _address(self, connection: HTTPConnection) -> bool:
        host = connection.client.host if connection.client else "?"
        return self._unknown.take(host)


async def _refuse(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
