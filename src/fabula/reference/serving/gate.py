"""Access to a served reference: tokens and rate limits."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path

from starlette.requests import HTTPConnection

from fabula.errors import InputError
from fabula.reference.serving.messages import TOKEN, Limits
from fabula.web.guard import Buckets, Refusal, address_of

_OPEN = frozenset({"/health"})


class Tokens:
    """The tokens that grant access. Only their digests are stored."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.replace(tokens)

    def replace(self, tokens: Iterable[str]) -> None:
        """Replace all accepted tokens by these."""
        self._digests = [_digest(token) for token in dict.fromkeys(tokens)]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __len__(self) -> int:
        return len(self._digests)

    def holder(self, header: str) -> str | None:
        """A name for the token in an `Authorization` header, or None if it is not valid.

        Takes the same time for every header: all tokens are compared, by digest only.
        """
        scheme, _, given = header.partition(" ")
        digest = _digest(given.strip())
        is_known = [hmac.compare_digest(digest, known) for known in self._digests]
        return digest.hex() if any(is_known) and scheme.lower() == "bearer" else None


def read_tokens(file: Path | None) -> list[str]:
    """The tokens in a file, one per line, and that of the environment.

    Raises `InputError` if the file has none, or a line cannot be a token.
    """
    given = {TOKEN: os.environ.get(TOKEN, "")}
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read ({error}); use a text file") from error
        if not any(map(str.strip, lines)):
            raise InputError(
                f"{file}: contains no tokens; write one per line, e.g. from `openssl rand -hex 24`"
            )
        given |= {f"{file}, line {number}": line for number, line in enumerate(lines, 1)}
    tokens = {where: text.strip() for where, text in given.items() if text.strip()}
    for where, token in tokens.items():
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InputError(
                f"{where}: a token may contain ASCII letters, digits and punctuation, without "
                "spaces"
            )
    return list(tokens.values())


class Gate:
    """Admits requests with a token, within the rate limits; without tokens, all requests."""

    def __init__(self, tokens: Tokens, limits: Limits) -> None:
        self._tokens, self._n_per_s = tokens, limits.n_per_s
        rate = limits.n_per_s or 1e9
        self._known = Buckets(int(2 * rate), rate)
        # For clients that guess tokens, which may share a proxy with those that check health.
        self._strangers = Buckets(200, 50.0)
        self._open = Buckets(200, 50.0)

    def __call__(self, connection: HTTPConnection) -> Refusal | None:
        address = address_of(connection)
        if connection.scope["path"] in _OPEN:
            return None if self._open.take(address) else (429, "too many requests")
        given = connection.headers.get("authorization", "")
        holder = self._tokens.holder(given) if self._tokens else address
        if holder is None:
            if not self._strangers.take(address):
                return 429, "too many requests without a token"
            return 401, (
                f"a token is required: send Authorization: Bearer TOKEN, or set {TOKEN} for fabula"
            )
        if not self._known.take(holder):
            return 429, f"more than {self._n_per_s:,} requests per second"
        return None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
