"""Client for Prolific's API: a study's submissions and their statuses.

https://docs.prolific.com/api-reference/submissions: `GET /api/v1/submissions/?study=ID`, in pages,
with the header `Authorization: Token ...`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from fabula.errors import FabulaError

_N_A_PAGE = 100
_N_TRIES = 5
_LONGEST_WAIT_S = 60.0
_TIMEOUT_S = 20.0
_KEYS_S = 24 * 3600.0
"""Lifetime of cached public keys: Prolific asks clients to fetch them daily."""


class PlatformFailed(FabulaError):  # noqa: N818 (an event, not a kind of error)
    """The platform is unreachable, or did not answer as documented; statuses are unknown."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A person's submission at the platform. `id` is what URLs call SESSION_ID."""

    id: str
    worker: str
    status: str
    """ACTIVE, AWAITING REVIEW, APPROVED, RETURNED, TIMED-OUT, REJECTED, ..."""


class _NoRedirect(HTTPRedirectHandler):
    """Refuse redirects, so that the token is sent only to the requested URL."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


@dataclass(slots=True)
class Prolific:
    """The API, for holders of a token.

    Temporary refusals (429, 5xx) and lost connections are retried.
    """

    token: str
    base: str
    wait: Callable[[float], object] = time.sleep
    _keys: list[Mapping[str, Any]] = field(default_factory=list, init=False)
    _keys_until: float = field(default=0.0, init=False)

    def submissions(self, study: str) -> Iterator[Submission]:
        """Yield all submissions of a study. Raises `PlatformFailed`, possibly midway."""
        page = 1
        while True:
            query = urlencode({"study": study, "page": page, "page_size": _N_A_PAGE})
            content = self._get(f"/api/v1/submissions/?{query}")
            try:
                for row in content["results"]:
                    worker = row.get("participant_id") or row["participant"]
                    status = str(row["status"]).replace("_", " ").upper()
                    status = "TIMED-OUT" if status == "TIMED OUT" else status
                    yield Submission(str(row["id"]), str(worker), status)
                following = (content.get("_links") or {}).get("next") or content.get("next")
            except (KeyError, TypeError, AttributeError) as error:
                raise PlatformFailed(
                    "Prolific's answer does not follow its documentation"
                ) from error
            # A link may be an object without a URL.
            if not (following.get("href") if isinstance(following, dict) else following):
                return
            page += 1

    def keys(self) -> list[Mapping[str, Any]]:
        """Return the public keys for signed URLs, at most a day old."""
        if time.monotonic() >= self._keys_until:
            # A visitor is waiting: try once, and fall back to yesterday's keys.
            try:
                content = self._get("/.well-known/study/jwks.json", n_tries=1)
            except PlatformFailed:
                if not self._keys:
                    raise
            else:
                self._keys = list(content.get("keys") or [])
                self._keys_until = time.monotonic() + _KEYS_S
        return self._keys

    def _get(self, path: str, n_tries: int = _N_TRIES) -> dict[str, Any]:
        headers = {"authorization": f"Token {self.token}"} if self.token else {}
        request = Request(self.base.rstrip("/") + path, headers=headers)
        opener = build_opener(_NoRedirect)
        problem = ""
        for number in range(n_tries):
            pause = 2.0**number
            try:
                with opener.open(request, timeout=_TIMEOUT_S) as response:
                    content = json.load(response)
            except HTTPError as error:
                with error:
                    if error.code in (401, 403):
                        raise PlatformFailed(
                            f"Prolific refuses the token ({error.code}); create a new one on its "
                            "page of API tokens"
                        ) from error
                    if error.code != 429 and error.code < 500:
                        raise PlatformFailed(f"Prolific answered {error.code}") from error
                    problem = f"answered {error.code}"
                    asked = error.headers.get("retry-after", "")
                    pause = float(asked) if asked.isdecimal() else pause
            except (OSError, HTTPException, ValueError) as error:
                problem = str(getattr(error, "reason", error)) or type(error).__name__
            else:
                if isinstance(content, dict):
                    return content
                raise PlatformFailed("Prolific's answer does not follow its documentation")
            if number + 1 < n_tries:
                self.wait(min(pause, _LONGEST_WAIT_S))
        raise PlatformFailed(f"Prolific could not be reached after {n_tries} tries: {problem}")
