"""Who comes in, how often, and with how much: in front of everything that is served."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fabula.errors import InputError
from fabula.reference.serving.checking import TOKEN
from fabula.reference.serving.messages import Limits
from fabula.web.guard import Buckets

__all__ = ["Gate", "Tokens", "is_loopback", "read_tokens"]

_OPEN = frozenset({"/health"})


class Tokens:
    """The tokens that let in. They are kept as digests only."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.replace(tokens)

    def replace(self, tokens: Iterable[str]) -> None:
        """From now on these let in, and no others."""
        self._digests = [_digest(token) for token in dict.fromkeys(tokens)]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __len__(self) -> int:
        return len(self._digests)

    def holder(self, header: str) -> str | None:
        """A name for the token in an `Authorization` header, or None where it lets nobody in.

        It takes as long for every header: all tokens are compared, and their digests only.
        """
        scheme, _, given = header.partition(" ")
        digest = _digest(given.strip())
        is_known = [hmac.compare_digest(digest, known) for known in self._digests]
        return digest.hex() if any(is_known) and scheme.lower() == "bearer" else None


def read_tokens(file: Path | None) -> list[str]:
    """The tokens of a file, one a line, and that of the environment.

    Raises `InputError` where the file holds none, or a line cannot be one.
    """
    tokens = [os.environ[TOKEN].strip()] if os.environ.get(TOKEN, "").strip() else []
    if any(not _is_token(token) for token in tokens):
        raise InputError(f"{TOKEN}: a token is of ASCII letters, digits and marks, without spaces")
    if file is None:
        return tokens
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error}); give a text file") from error
    for number, line in enumerate(lines, 1):
        if line.strip() and not _is_token(line.strip()):
            raise InputError(
                f"{file}, line {number}: a token is of ASCII letters, digits and marks, without "
                f"spaces"
            )
    given = [line.strip() for line in lines if line.strip()]
    if not given:
        raise InputError(
            f"{file}: holds no token; write one a line, such as `openssl rand -hex 24`"
        )
    return tokens + given


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Gate:
    """Refuses who has no token, asks too often or sends too much.

    The body is read whole, up to the limit, before anything else sees the request: so what comes
    in pieces and does not say its length is held to the limit too.
    """

    def __init__(self, app: ASGIApp, *, tokens: Tokens, limits: Limits) -> None:
        self._app, self._tokens, self._limits = app, tokens, limits
        rate = limits.n_per_s or 1e9
        self._known = Buckets(int(2 * rate), rate)
        # Whoever guesses tokens, or asks for the state of health.
        self._strangers = Buckets(200, 50.0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        body = await self._body(headers, receive)
        if body is None:
            most = self._limits.max_body_bytes
            await _refuse(send, 413, f"the body is larger than {most:,} bytes", close=True)
            return
        await self._app(scope, _replayed(body, receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        client = scope.get("client")
        address = client[0] if client else "?"
        if not self._tokens and not _is_own(headers.get("host", "")):
            # A page elsewhere whose name is made to lead here (DNS rebinding) gets nothing.
            return 400, "this service is for its own machine, under the name 127.0.0.1 or localhost"
        if scope["path"] in _OPEN:
            return None if self._strangers.take(address) else (429, "too many requests")
        holder = self._tokens.holder(headers.get("authorization", "")) if self._tokens else address
        if holder is None:
            if not self._strangers.take(address):
                return 429, "too many requests without a token"
            return 401, f"a token is needed: Authorization: Bearer TOKEN, or {TOKEN} for fabula"
        if not self._known.take(holder):
            return 429, f"more than {self._limits.n_per_s:,} requests a second"
        return None

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body, or None where it is larger than the limit."""
        length = headers.get("content-length", "0")
        most = self._limits.max_body_bytes
        if not (length.isascii() and length.isdecimal()) or int(length[:20]) > most:
            return None
        parts: list[bytes] = []
        n_bytes, goes_on = 0, True
        while goes_on:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            parts.append(message.get("body", b""))
            n_bytes += len(parts[-1])
            if n_bytes > most:
                return None
            goes_on = message.get("more_body", False)
        return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and then what the server says."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return parts.pop() if parts else await receive()

    return receive_again


async def _refuse(send: Send, status: int, text: str, *, close: bool = False) -> None:
    body = json.dumps({"error": text}).encode()
    headers: Sequence[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *([(b"www-authenticate", b"Bearer")] if status == 401 else []),
        *([(b"retry-after", b"1")] if status == 429 else []),
        *([(b"connection", b"close")] if close else []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


def _is_own(host: str) -> bool:
    """Whether a `Host` header names this machine, with a port or without."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return is_loopback(name.lower().strip("[]"))


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
