"""Checks between an application and its clients: host names, rates, sizes, headers, secrets."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fastapi import HTTPException, Request
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Refusal = tuple[int, str]
"""An HTTP status, and why."""
Admit = Callable[[HTTPConnection], Refusal | None]
"""Returns why a client is rejected, or None."""
Refuse = Callable[[Request, int, str], Response]
"""Makes the response for a status and a text: a page, or JSON."""

_MAX_FIELDS = 400
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # An invitation is in the URL: it must not leak to other sites.
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_secret(given: object, secret: str) -> bool:
    """Compare with the secret in constant time."""
    return isinstance(given, str) and hmac.compare_digest(
        given.encode(errors="replace"), secret.encode()
    )


def csrf_of(token: str) -> str:
    """The token that a form must include: it can only be derived from the cookie."""
    return hashlib.sha256(f"form {token}".encode(errors="replace")).hexdigest()[:40]


async def form_fields(request: Request, token: str) -> dict[str, str]:
    """The fields of a form from a page made for the owner of `token`; others get a 403."""
    form = await request.form(max_fields=_MAX_FIELDS, max_files=0)
    if not is_secret(form.get("csrf"), csrf_of(token)):
        raise HTTPException(403)
    return {name: value for name, value in form.items() if isinstance(value, str)}


def address_of(connection: HTTPConnection) -> str:
    """The address that a request comes from."""
    return connection.client.host if connection.client else "?"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    if host in ("127.0.0.1", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Buckets:
    """Rate limits per visitor: a burst size, and requests per second."""

    def __init__(self, n_at_once: int, n_per_s: float, n_visitors: int = 50_000) -> None:
        self._most, self._rate, self._n = float(n_at_once), n_per_s, n_visitors
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, visitor: str) -> bool:
        """Whether one more request is allowed."""
        now = time.monotonic()
        left, before = self._held.pop(visitor, (self._most, now))
        left = min(self._most, left + (now - before) * self._rate)
        self._held[visitor] = (left - 1 if left >= 1 else left, now)
        while len(self._held) > self._n:
            self._held.popitem(last=False)
        return left >= 1


class Visitors:
    """Rate limits for people: per cookie, and per address."""

    def __init__(self, cookie: str, *, n_at_once: int = 120, n_per_s: float = 20.0) -> None:
        """`cookie` is the name of the cookie that identifies a visitor."""
        self._cookie = cookie
        self._known = Buckets(n_at_once, n_per_s)
        # Visitors without a cookie share an address, perhaps with a whole institute.
        self._addresses = Buckets(20 * n_at_once, 10 * n_per_s)

    def __call__(self, connection: HTTPConnection) -> Refusal | None:
        token = connection.cookies.get(self._cookie)
        known = hashlib.sha256(token.encode(errors="replace")).hexdigest() if token else None
        is_allowed = known is None or self._known.take(known)
        if is_allowed and self._addresses.take(address_of(connection)):
            return None
        return 429, "Too many requests; please wait a moment."


@dataclass(frozen=True, slots=True)
class Rules:
    """What a guard lets through."""

    admit: Admit
    max_body_bytes: int = 256 * 1024
    own_names_only: bool = False
    """Whether it answers only under a name of this machine."""
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)


class Guard:
    """Rejects host names, visitors and bodies that an application does not serve; adds headers.

    Bodies without a declared length are counted as they arrive.
    """

    def __init__(self, app: ASGIApp, *, rules: Rules, refuse: Refuse) -> None:
        self._app, self._rules, self._refuse = app, rules, refuse
        self._headers = {k.lower().encode(): v.encode("latin-1") for k, v in rules.headers.items()}
        self._too_much = 413, f"the body is larger than {rules.max_body_bytes:,} bytes"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                # The rules' headers in place of the response's own of the same name.
                headers = message.get("headers", ())
                kept = [pair for pair in headers if pair[0].lower() not in self._headers]
                kept += self._headers.items()
                if not any(name.lower() == b"cache-control" for name, _ in kept):
                    kept.append((b"cache-control", b"no-store"))
                message["headers"] = kept
            await send(message)

        n_read = 0

        async def receive_counted() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > self._rules.max_body_bytes:
                raise HTTPException(*self._too_much)
            return message

        refusal = self._refusal(HTTPConnection(scope))
        if refusal is None:
            await self._app(scope, receive_counted, send_guarded)
        else:
            await self._refuse(Request(scope), *refusal)(scope, receive, send_guarded)

    def _refusal(self, request: HTTPConnection) -> Refusal | None:
        if self._rules.own_names_only and not _is_own(request.headers.get("host", "")):
            # Reject pages elsewhere whose name was made to resolve here (DNS rebinding).
            return 400, (
                "this service is only for its own machine, under the name 127.0.0.1 or localhost"
            )
        if (refusal := self._rules.admit(request)) is not None:
            return refusal
        length = request.headers.get("content-length", "0")
        is_number = length.isascii() and length.isdecimal()
        is_small = is_number and int(length[:20]) <= self._rules.max_body_bytes
        return None if is_small else self._too_much


def _is_own(host: str) -> bool:
    """Whether a `Host` header names this machine, with a port or without."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    name = name.lower().strip("[]")
    # Names below localhost are this machine's too, for browsers (RFC 6761).
    return is_loopback(name) or name.endswith(".localhost")
