"""Lookups in a remote index over HTTP, with retries and a cache on disk."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.cached_results import cache_folder
from fabula.errors import InputError, LookupFailed

if TYPE_CHECKING:
    import httpx

_LONGEST_WAIT_S = 60.0
_TRIES_OF_NOBODY = 3
_MAX_REDIRECTS = 5
_BUSY_S = 30.0
"""How long to wait while another process writes to the cache."""
_REFUSALS = frozenset({400, 401, 404, 405, 422})
"""HTTP statuses that are not retried. 403 is not one of them: the gateway in front of infini-gram's
server replies Forbidden when it is overloaded."""

Reply = dict[str, Any]


class Refused(Exception):  # noqa: N818 (a reply, not yet an error)
    """The server understood the request and will never answer it; the message says why."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status
        """HTTP status; 0 if the error is in the reply itself."""


class LookupServer:
    """A server that takes and returns JSON objects; requests are retried.

    `n_parallel`: maximum number of requests in flight, over all threads. `backoff_s`: the wait
    before the second attempt, doubled for each further one, with jitter, and a tenth of it after a
    dropped connection; the server's Retry-After is honoured, up to a minute. If the server has
    never answered and cannot be reached, there are only three attempts. `headers` are sent with
    every request; `refusals` are the statuses that are not retried.
    """

    def __init__(
        self,
        url: str,
        *,
        n_parallel: int,
        max_retries: int,
        timeout_s: float,
        backoff_s: float,
        headers: Mapping[str, str] = {},
        refusals: frozenset[int] = _REFUSALS,
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            raise InputError(
                "external indexes need httpx, which is not installed; run "
                "`pip install 'fabula[remote]'`"
            ) from error
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise InputError(f"{url!r} is not a valid index address: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InputError(
                f"{url!r} is not a valid index address; use one such as https://example.org/"
            )
        self.url = url
        self._max_retries = max_retries
        self._backoff_s = backoff_s
        self._refusals = refusals
        self._slots = threading.BoundedSemaphore(n_parallel)
        self._jitter = random.Random()
        self._has_answered = False
        self._faults: tuple[type[Exception], ...] = (httpx.HTTPError, httpx.StreamError)
        self._nobody = httpx.ConnectError
        self._client: httpx.Client = httpx.Client(
            timeout=timeout_s,
            # For TLS all certificates are read, which takes longer than a look-up.
            verify=parsed.scheme == "https",
            limits=httpx.Limits(max_connections=n_parallel),
            headers={"User-Agent": "fabula (measures creative writing)", **headers},
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        request: Reply | bytes | None,
        fault_in: Callable[[Reply], str | None],
        stop: threading.Event,
        *,
        path: str = "",
    ) -> Reply:
        """The server's reply to `request`, in which `fault_in` finds no fault.

        For None the method is GET; bytes are JSON already. `path` is appended to the server's
        address.

        Raises `Refused` with the server's message if retrying is useless (`fault_in` may raise it
        too), `InputError` if the server redirects to another address, `LookupFailed` with the last
        fault when the attempts are used up or `stop` is set.
        """
        body = json.dumps(request).encode() if isinstance(request, dict) else request
        n_attempts = self._max_retries + 1
        fault = "no request was made"
        for attempt in range(self._max_retries + 1):
            if stop.is_set():
                raise LookupFailed("the search was stopped")
            wait_s: float | None = None
            first_wait_s = self._backoff_s
            try:
                with self._slots:
                    response = self._send(path, body)
            except self._faults as error:
                fault = f"{type(error).__name__}: {error}".rstrip(": ")
                # A dropped connection does not mean that the server is overloaded.
                first_wait_s = self._backoff_s / 10
                if isinstance(error, self._nobody) and not self._has_answered:
                    n_attempts = min(n_attempts, _TRIES_OF_NOBODY)
            else:
                reply, fault = _read(response, self._refusals)
                if reply is not None:
                    found = fault_in(reply)
                    if found is None:
                        self._has_answered = True
                        return reply
                    fault = found
                wait_s = _retry_after(response.headers)
            if attempt + 1 >= n_attempts:
                break
            backoff_s = first_wait_s * 2**attempt * self._jitter.uniform(0.5, 1.0)
            stop.wait(min(max(wait_s or 0.0, backoff_s), _LONGEST_WAIT_S))
        raise LookupFailed(
            f"{self.url} did not answer in {n_attempts} attempts; last error: {fault}"
        )

    def _send(self, path: str, body: bytes | None) -> httpx.Response:
        """The response to a request, after redirects within the server's own address.

        Raises `InputError` if one leads elsewhere: the user named only this server, and the request
        may contain words of an unpublished story, and a token.
        """
        headers = {} if body is None else {"Content-Type": "application/json"}
        method = "GET" if body is None else "POST"
        request = self._client.build_request(method, self.url + path, content=body, headers=headers)
        for _ in range(_MAX_REDIRECTS):
            response = self._client.send(request)
            if response.next_request is None:
                return response
            to = response.next_request.url
            if not _is_same_server(request.url, to):
                raise InputError(
                    f"{self.url} redirects to {to.scheme}://{to.netloc.decode()}, which is not "
                    "followed; use that address if it is the one you want"
                )
            request = response.next_request
        raise InputError(
            f"{self.url} redirects more than {_MAX_REDIRECTS} times; use another address"
        )


def _is_same_server(asked: httpx.URL, to: httpx.URL) -> bool:
    """Whether a redirect keeps the host and port, or upgrades the host from http to https."""
    is_upgrade = (asked.scheme, to.scheme) == ("http", "https")
    ports = {url.port or {"http": 80, "https": 443}.get(url.scheme) for url in (asked, to)}
    if asked.host != to.host:
        return False
    return ports == {80, 443} if is_upgrade else asked.scheme == to.scheme and len(ports) == 1


def _read(response: httpx.Response, refusals: frozenset[int]) -> tuple[Reply | None, str]:
    """The object in a reply, or None and the fault; raises `Refused`."""
    try:
        reply = response.json()
    except (ValueError, RecursionError):  # not JSON, not text, or nested too deeply
        reply = None
    words = str(reply["error"]) if isinstance(reply, dict) and "error" in reply else ""
    status = response.status_code
    if status in refusals:
        raise Refused(words or f"HTTP {status} {response.reason_phrase}", status)
    if status != 200:
        return None, f"HTTP {status} {words or response.reason_phrase}"
    if not isinstance(reply, dict):
        return None, "the reply is not a JSON object"
    return reply, words


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, which the server may state as a number or as a date."""
    value = headers.get("Retry-After", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def cache_path() -> Path:
    """The default location of cached counts."""
    return cache_folder() / "infinigram.sqlite3"


class LookupCache:
    """A cache of counts, in an SQLite file that threads and processes share.

    Queries are stored as hashes: a cache must not contain the words of an unpublished story. Each
    count has a checksum of query and count, so that no count from a damaged file is used. Raises
    `InputError` if the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._rows = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            self._set_up()
        except sqlite3.Error as error:
            self._rows.close()
            raise self._unusable(error) from error

    def _set_up(self) -> None:
        # SQLite does not wait when two processes open a new file at the same time, so this code
        # does.
        until = time.monotonic() + _BUSY_S
        while True:
            try:
                self._rows.execute("PRAGMA journal_mode = WAL")
                # Enough to survive a crash of the process; after a power failure the last ones are
                # queried again.
                self._rows.execute("PRAGMA synchronous = NORMAL")
                self._rows.execute(
                    "CREATE TABLE IF NOT EXISTS counts "
                    "(key BLOB PRIMARY KEY, count INTEGER, checksum INTEGER) WITHOUT ROWID"
                )
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def close(self) -> None:
        with self._lock:
            self._rows.close()

    def get(self, url: str, corpus: str, query: str) -> int | None:
        """The cached count of `query`, or None."""
        key = _key(url, corpus, query)
        try:
            with self._lock:
                row = self._rows.execute(
                    "SELECT count, checksum FROM counts WHERE key = ?", (key,)
                ).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        if row is None or row[1] != _checksum(key, row[0]):
            return None
        count: int = row[0]
        return count

    def put(self, url: str, corpus: str, query: str, count: int) -> None:
        key = _key(url, corpus, query)
        try:
            with self._lock:
                self._rows.execute(
                    "INSERT OR REPLACE INTO counts VALUES (?, ?, ?)",
                    (key, count, _checksum(key, count)),
                )
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> InputError:
        return InputError(
            f"cannot use {self.path} as the look-up cache ({error}); remove it to look everything "
            "up again, or set FABULA_CACHE to another folder"
        )


def _key(url: str, corpus: str, query: str) -> bytes:
    return hashlib.sha256("\0".join((url, corpus, query)).encode()).digest()


def _checksum(key: bytes, count: object) -> int:
    return zlib.crc32(key + repr(count).encode())
