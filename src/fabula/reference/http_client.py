"""Look-ups in an index elsewhere: asked over HTTP, with patience, and remembered on disk."""

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

from fabula.errors import InputError, LookupFailed
from fabula.store import cache_folder

if TYPE_CHECKING:
    import httpx

__all__ = ["LookupCache", "LookupServer", "Refused", "cache_path"]

_LONGEST_WAIT_S = 60.0
_TRIES_OF_NOBODY = 3
_MAX_REDIRECTS = 5
_BUSY_S = 30.0
"""How long another process may write to the cache before this one gives up."""
_REFUSALS = frozenset({400, 401, 404, 405, 422})
"""HTTP statuses that stay however often one asks. 403 is none of them: the gateway before
infini-gram's server says Forbidden when it has too much to do."""

Reply = dict[str, Any]


class Refused(Exception):  # noqa: N818 (a reply, not yet an error)
    """The server understood the request and will never answer it; the text says why."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status
        """Of HTTP; 0 where the answer itself says so."""


class LookupServer:
    """A server that takes and gives JSON objects, asked again where it stumbles.

    `n_parallel`: requests in flight at most, over all threads. `backoff_s`: the wait before the
    second attempt, doubled for each further one, with jitter, and a tenth of it where a connection
    was cut; the server's Retry-After is honoured, up to a minute. Where nobody has ever
    answered and none can be reached, three attempts are enough. `headers` go with every request;
    `refusals` are the statuses that stay however often one asks.
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
                "an index elsewhere is asked by means of httpx, which is not installed; "
                "run `pip install 'fabula[remote]'`"
            ) from error
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise InputError(f"{url!r} is no address of an index: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InputError(f"{url!r} is no address of an index, such as https://example.org/")
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

        None asks by GET; bytes are JSON already. `path` goes on from the server's address.

        Raises `Refused` with the server's words where asking again is no use (`fault_in` may raise
        it too), `InputError` where it redirects to another address, `LookupFailed` with the last
        fault when the attempts are used up or `stop` is set.
        """
        body = json.dumps(request).encode() if isinstance(request, dict) else request
        n_attempts = self._max_retries + 1
        fault = "it was not asked"
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
                # A connection that was cut is not a server that has too much to do.
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
        raise LookupFailed(f"{self.url} did not answer in {n_attempts} attempts, at last: {fault}")

    def _send(self, path: str, body: bytes | None) -> httpx.Response:
        """The reply to a request, after redirects within the server's own address.

        Raises `InputError` where one leads elsewhere: the user named this server and no other, and
        what is asked may be words of an unpublished story, with a token.
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
                    f"{self.url} redirects to {to.scheme}://{to.netloc.decode()}, where nothing is "
                    f"sent; name that address if it is the one you want"
                )
            request = response.next_request
        raise InputError(f"{self.url} redirects more than {_MAX_REDIRECTS} times; name another")


def _is_same_server(asked: httpx.URL, to: httpx.URL) -> bool:
    """Whether a redirect stays with the host and port, or goes from http to https there."""
    is_upgrade = (asked.scheme, to.scheme) == ("http", "https")
    ports = {url.port or {"http": 80, "https": 443}.get(url.scheme) for url in (asked, to)}
    if asked.host != to.host:
        return False
    return ports == {80, 443} if is_upgrade else asked.scheme == to.scheme and len(ports) == 1


def _read(response: httpx.Response, refusals: frozenset[int]) -> tuple[Reply | None, str]:
    """The object in a reply, or None and what is wrong with it; raises `Refused`."""
    try:
        reply = response.json()
    except (ValueError, RecursionError):  # no JSON, no text at all, or a trap for its readers
        reply = None
    words = str(reply["error"]) if isinstance(reply, dict) and "error" in reply else ""
    status = response.status_code
    if status in refusals:
        raise Refused(words or f"HTTP {status} {response.reason_phrase}", status)
    if status != 200:
        return None, f"HTTP {status} {words or response.reason_phrase}"
    if not isinstance(reply, dict):
        return None, "a reply that is no JSON object"
    return reply, words


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, which the server may say as a number or as a date."""
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
    """Where counts are kept unless the user says otherwise."""
    return cache_folder() / "infinigram.sqlite3"


class LookupCache:
    """Counts that were once answered, in an SQLite file that threads and processes share.

    What was asked is kept as a hash: a cache must not hold the words of an unpublished story. Each
    count stands beside a checksum of question and answer, so that of a damaged file no count is
    believed. Raises `InputError` where the file cannot be used.
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
        # SQLite does not wait where two processes open a new file at the same time, so this does.
        until = time.monotonic() + _BUSY_S
        while True:
            try:
                self._rows.execute("PRAGMA journal_mode = WAL")
                # Enough to survive the end of the process; after a power cut the last ones are
                # asked again.
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
        """The count of `query`, or None where it is not known."""
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
            f"{self.path} cannot be used as the cache of look-ups ({error}); remove it, so that "
            "they are asked again, or name another folder in FABULA_CACHE"
        )


def _key(url: str, corpus: str, query: str) -> bytes:
    return hashlib.sha256("\0".join((url, corpus, query)).encode()).digest()


def _checksum(key: bytes, count: object) -> int:
    return zlib.crc32(key + repr(count).encode())
