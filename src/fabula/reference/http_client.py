"""Lookups over HTTP, with retries: in an infini-gram index, or a served reference."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from fabula.errors import InputError, LookupFailed
from fabula.packages import needing

if TYPE_CHECKING:
    import httpx

_LONGEST_WAIT_S = 60.0
_TRIES_OF_NOBODY = 3
_REFUSALS = frozenset({400, 401, 404, 405, 422})
"""HTTP statuses that are not retried. 403 is not one of them: the gateway in front of infini-gram's
server replies Forbidden when it is overloaded."""

T = TypeVar("T")


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
        n_parallel: int = 8,
        max_retries: int = 5,
        timeout_s: float,
        backoff_s: float = 1.0,
        headers: Mapping[str, str] = {},
        refusals: frozenset[int] = _REFUSALS,
    ) -> None:
        library = needing(
            "httpx",
            "external indexes need httpx, which is not installed; run "
            "`pip install 'fabula[remote]'`",
        )
        try:
            parsed = library.URL(url)
        except library.InvalidURL as error:
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
        self._faults: tuple[type[Exception], ...] = (library.HTTPError, library.StreamError)
        self._nobody = library.ConnectError
        self._client: httpx.Client = library.Client(
            timeout=timeout_s,
            # For TLS all certificates are read, which takes longer than a look-up.
            verify=parsed.scheme == "https",
            limits=library.Limits(max_connections=n_parallel),
            headers={"User-Agent": "fabula (measures creative writing)", **headers},
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        request: Mapping[str, Any] | bytes | None,
        read: Callable[[bytes], T],
        stop: threading.Event,
        *,
        path: str = "",
    ) -> T:
        """What `read` makes of the server's reply to `request`; it raises `ValueError` at a fault.

        For None the method is GET; bytes are JSON already. `path` is appended to the server's
        address.

        Raises `Refused` with the server's message if retrying is useless (`read` may raise it too),
        `InputError` if the server redirects to another address, `LookupFailed` with the last fault
        when the attempts are used up or `stop` is set.
        """
        body = json.dumps(request).encode() if isinstance(request, Mapping) else request
        n_attempts = self._max_retries + 1
        fault = "no request was made"
        for attempt in range(n_attempts):
            if stop.is_set():
                raise LookupFailed("the search was stopped")
            wait_s: float | None = None
            first_wait_s = self._backoff_s
            try:
                with self._slots:
                    response = self._client.send(
                        self._client.build_request(
                            "GET" if body is None else "POST",
                            self.url + path,
                            content=body,
                            headers={} if body is None else {"Content-Type": "application/json"},
                        )
                    )
                # The user named only this server, and the request may contain words of an
                # unpublished story, and a token; and the next ones would lose their bodies.
                if response.next_request is not None:
                    to = response.next_request.url
                    raise InputError(
                        f"{self.url} redirects to {to.scheme}://{to.netloc.decode()}, which is not "
                        "followed; use that address if it is the one you want"
                    )
                wait_s = _retry_after(response.headers)
                if response.status_code == 200:
                    answer = read(response.content)
                    self._has_answered = True
                    return answer
                fault = f"HTTP {response.status_code} {response.reason_phrase}"
                with suppress(ValueError, LookupError, TypeError, RecursionError):
                    fault = f"HTTP {response.status_code} {response.json()['error']}"
                if response.status_code in self._refusals:
                    raise Refused(fault, response.status_code)
            except self._faults as error:
                fault = f"{type(error).__name__}: {error}".rstrip(": ")
                # A dropped connection does not mean that the server is overloaded.
                first_wait_s = self._backoff_s / 10
                if isinstance(error, self._nobody) and not self._has_answered:
                    n_attempts = min(n_attempts, _TRIES_OF_NOBODY)
            except (ValueError, RecursionError) as error:
                fault = str(error)
            if attempt + 1 >= n_attempts:
                break
            backoff_s = first_wait_s * 2**attempt * self._jitter.uniform(0.5, 1.0)
            stop.wait(min(max(wait_s or 0.0, backoff_s), _LONGEST_WAIT_S))
        raise LookupFailed(
            f"{self.url} did not answer in {n_attempts} attempts; last error: {fault}"
        )


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
