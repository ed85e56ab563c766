"""People from a crowd platform: who is admitted, and the statuses of their submissions there.

Admission is by allow-list, signed URLs, and a limit per IP address. If a study asks for it,
Prolific signs the URL by which it sends people: `prolific_token` is a JSON Web Token (RS256) over
the three ids (docs.prolific.com, "Retrieve JSON Web Key Set").

https://docs.prolific.com/api-reference/submissions: `GET /api/v1/submissions/?study=ID`, in pages,
with the header `Authorization: Token ...`.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, build_opener

from sqlalchemy import Connection, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from fabula.core.errors import FabulaError
from fabula.models.available import NoRedirect
from fabula.studies.database import (
    OF_PEOPLE,
    Store,
    StoreFailed,
    assignments,
    count_rows,
    now_ms,
    participants,
    read_setting,
    tokens,
    visits,
    write_setting,
)
from fabula.studies.design import Entry
from fabula.studies.labels import ENGLISH
from fabula.studies.participants import (
    TOKEN_BYTES,
    give_back,
    hash_of,
    lock,
    log,
    pseudonym,
    set_state,
)
from fabula.web.guard import is_loopback

Keys = Sequence[Mapping[str, Any]]
_DAY_MS = 24 * 3_600_000
MAX_WAITING = 10_000
"""Maximum number of people from a platform without consent, since anybody can invent more."""
MAX_TOKENS = 50
"""Additional tokens per person; each click at a platform creates one."""
MAX_VISITS = 50
"""Maximum number of submissions stored per person, since anybody can invent more."""
_PROLIFIC_ID = re.compile(r"[0-9a-f]{24}")
# Mechanical Turk's names for workers, tasks and assignments.
_WORKER_ID = re.compile(r"A[0-9A-Z]{8,20}")
_OTHER_ID = re.compile(r"[0-9A-Za-z_]{0,64}")
"""Id of a study or a submission; the platform's own validation is not repeated."""
_PLATFORMS = (
    ("prolific", ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"), _PROLIFIC_ID),
    ("mturk", ("workerId", "hitId", "assignmentId"), _WORKER_ID),
)
_ISSUER = "https://www.prolific.com"
_MIN_KEY_BITS = 2048
_N_A_PAGE, _N_TRIES = 100, 5
_LONGEST_WAIT_S, _TIMEOUT_S = 60.0, 20.0
_KEYS_S = 24 * 3600.0
"""Lifetime of cached public keys: Prolific asks clients to fetch them daily."""
_GONE = ("RETURNED", "TIMED-OUT", "REJECTED", "SCREENED OUT")
_GRACE_MS = 10 * 60_000
"""How long a platform may take to list a submission, in milliseconds."""
_END_S = 5.0
_UNDOCUMENTED = "Prolific's answer does not follow its documentation"


class NotAdmitted(FabulaError):  # noqa: N818 (an event, not a kind of error)
    """A person may not take part; the label is the message for them."""

    def __init__(self, label: str) -> None:
        super().__init__(ENGLISH(label))
        self.label = label


@dataclass(frozen=True, slots=True)
class Arrival:
    """A person from a platform; at Mechanical Turk `study` is the HIT, `session` the assignment."""

    platform: str
    worker: str
    study: str
    session: str


def arrival_of(query: Mapping[str, str]) -> Arrival | None:
    """Parse the arrival from URL parameters; None if they are not those of a platform."""
    for platform, names, pattern in _PLATFORMS:
        worker, study, session = (query.get(name, "") for name in names)
        if worker:
            is_known = pattern.fullmatch(worker) and all(map(_OTHER_ID.fullmatch, (study, session)))
            return Arrival(platform, worker, study, session) if is_known else None
    return None


def check_arrival(
    arrival: Arrival, entry: Entry, folder: Path, token: str = "", keys: Keys = ()
) -> None:
    """Raise `NotAdmitted` unless the study in `folder` admits them; `keys` verify the `token`."""
    not_yours = NotAdmitted("not_yours")
    is_elsewhere = entry.platform and arrival.platform != entry.platform
    if is_elsewhere or (entry.studies and arrival.study not in entry.studies):
        raise not_yours
    if entry.signed:
        try:
            claims = verify_token(token, keys, entry.address)
        except ValueError as error:
            raise NotAdmitted("not_verified") from error
        _, names, _ = _PLATFORMS[0]
        if [claims.get(name) for name in names] != [arrival.worker, arrival.study, arrival.session]:
            raise not_yours
    if entry.allow:
        # Read each time, because organisers add people while the study runs.
        text = (folder / entry.allow).read_text(encoding="utf-8-sig")
        if arrival.worker not in text.split():
            raise not_yours


def verify_token(token: str, keys: Keys, address: str) -> Mapping[str, Any]:
    """Return the ids in a signed Prolific token. Raises `ValueError` if it is not valid.

    keys: JSON Web Keys. address: URL of the study; the token must be issued for its origin.
    """
    import jwt
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    try:
        named = jwt.get_unverified_header(token)["kid"]
        key = jwt.PyJWK(dict(next(jwk for jwk in keys if jwk.get("kid") == named)), "RS256").key
        if not isinstance(key, RSAPublicKey) or key.key_size < _MIN_KEY_BITS:
            raise ValueError("the key is too short to be the platform's")
        # The algorithm is ours, whatever the token names. Audiences are compared below, by origin.
        claims = jwt.decode(
            token,
            key,
            algorithms=["RS256"],
            issuer=_ISSUER,
            # Not when it was issued: a platform's clock may be a second ahead of ours.
            options={"require": ["exp", "iss", "aud"], "verify_aud": False, "verify_iat": False},
        )
    except (jwt.PyJWTError, KeyError, TypeError, StopIteration, RecursionError) as error:
        raise ValueError(f"not a valid token of the platform's: {error}") from error
    audience, ids = claims["aud"], claims.get("prolific")
    audiences = audience if isinstance(audience, list) else [audience]
    if address and not any(_origin(str(url)) == _origin(address) for url in audiences):
        raise ValueError("the token is for another address")
    if not isinstance(ids, dict):
        raise ValueError("the token names nobody")  # noqa: TRY004 (any error is a ValueError)
    return ids


def _origin(address: str) -> str:
    return "/".join(address.lower().split("/", 3)[:3])


def join(connection: Connection, arrival: Arrival, entry: Entry, address: str) -> str:
    """Return a token for the person; call within `Store.writing`.

    Raises `NotAdmitted` if too many came from this IP address in a day; its keyed digest is stored.
    Loopback addresses are not counted: they belong to a proxy that does not report its clients.
    """
    came_from = ""
    if not is_loopback(address):
        if (key := read_setting(connection, "address_key")) is None:
            key = secrets.token_urlsafe(24)
            write_setting(connection, "address_key", key)
        came_from = hash_of(f"{key} {address}")
    known = select(participants.c.id).where(participants.c.platform_id == arrival.worker)
    if connection.scalar(known) is None and came_from and entry.joins_per_address:
        people = select(func.count(visits.c.participant_id.distinct()))
        recent = visits.c.at_ms > now_ms() - _DAY_MS
        n = connection.execute(people.where(visits.c.address == came_from, recent)).scalar_one()
        if n >= entry.joins_per_address:
            raise NotAdmitted("too_many_from_network")
    token = join_from_platform(connection, arrival.worker)
    id_ = connection.execute(known).scalar_one()
    lock(connection, id_)
    is_own = visits.c.participant_id == id_
    n_same = count_rows(connection, visits, is_own, visits.c.session == arrival.session)
    if not n_same and count_rows(connection, visits, is_own) < MAX_VISITS:
        row = asdict(arrival) | {"participant_id": id_, "address": came_from, "at_ms": now_ms()}
        del row["worker"]
        connection.execute(insert(visits).values(row))
    return token


def join_from_platform(connection: Connection, platform_id: str) -> str:
    """Return a token for a person sent by a crowd platform; returning participants resume.

    Earlier tokens stay valid: a second click must not lock out the first tab. Their number is
    limited: beyond `MAX_WAITING` people without consent, the earliest are dropped and may come
    again; beyond `MAX_TOKENS` per person, only the first and the newest remain valid.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    known = select(participants.c.id).where(participants.c.platform_id == platform_id)
    if (id_ := connection.execute(known).scalar()) is None:
        new = {"platform_id": platform_id, "state": "invited", "note": "", "made_ms": now_ms()}
        try:
            with connection.begin_nested():
                connection.execute(participants.insert().values(token_hash=hash_of(token), **new))
        except IntegrityError:
            # A simultaneous click came first.
            id_ = connection.execute(known).scalar_one()
        else:
            # Delete the earliest people without consent in excess of `MAX_WAITING`.
            waiting = (
                participants.c.platform_id.is_not(None),
                participants.c.state.in_(("invited", "declined")),
                ~exists().where(assignments.c.participant_id == participants.c.id),
            )
            n_over = count_rows(connection, participants, *waiting) - MAX_WAITING
            if n_over > 0:
                oldest = select(participants.c.id).where(*waiting).order_by(participants.c.id)
                ids = connection.execute(oldest.limit(n_over)).scalars().all()
                for table in (tokens, *OF_PEOPLE):
                    connection.execute(delete(table).where(table.c.participant_id.in_(ids)))
                connection.execute(delete(participants).where(participants.c.id.in_(ids)))
    if id_ is not None:
        is_own = tokens.c.participant_id == id_
        if count_rows(connection, tokens, is_own) >= MAX_TOKENS:
            connection.execute(delete(tokens).where(is_own))
        connection.execute(tokens.insert().values(token_hash=hash_of(token), participant_id=id_))
    return token


class PlatformFailed(FabulaError):  # noqa: N818 (an event, not a kind of error)
    """The platform is unreachable, or did not answer as documented; statuses are unknown."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A person's submission at the platform. `id` is what URLs call SESSION_ID."""

    id: str
    worker: str
    status: str
    """ACTIVE, AWAITING REVIEW, APPROVED, RETURNED, TIMED-OUT, REJECTED, ..."""


@dataclass(slots=True)
class Prolific:
    """The API, for holders of a token; refusals (429, 5xx) and lost connections are retried."""

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
                raise PlatformFailed(_UNDOCUMENTED) from error
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
        opener = build_opener(NoRedirect)
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
                raise PlatformFailed(_UNDOCUMENTED)
            if number + 1 < n_tries:
                self.wait(min(pause, _LONGEST_WAIT_S))
        raise PlatformFailed(f"Prolific could not be reached after {n_tries} tries: {problem}")


@dataclass(frozen=True, slots=True)
class Applied:
    """The effects of applying the platform's statuses."""

    n_submissions: int
    n_new: int
    """Number of statuses that changed."""
    n_returned: int
    """Number of units released."""
    n_unknown: int
    """Number of people who came by this study's URL but have no submission at the platform."""


def apply_statuses(
    connection: Connection, submissions: Iterable[Submission], studies: Sequence[str]
) -> Applied:
    """Apply the statuses of submissions; call within `Store.writing`.

    submissions: all of these studies. Who returned theirs or timed out loses units not submitted,
    and may continue when active again; submitted ones stay until the organiser removes the person.
    """
    by_session = {s.id: s for s in submissions}
    by_worker: dict[str, list[Submission]] = {}
    for submission in by_session.values():
        by_worker.setdefault(submission.worker, []).append(submission)
    came = select(visits, participants.c.platform_id, participants.c.state).join(participants)
    came = came.where(visits.c.study.in_(studies)).order_by(visits.c.id)
    rows = connection.execute(came).all()

    def note(visit: int, **values: object) -> None:
        connection.execute(update(visits).where(visits.c.id == visit).values(**values))

    n_new = n_returned = n_unknown = 0
    newest = {row.participant_id: row.id for row in rows}
    for row in rows:
        matched = by_session.get(row.session)
        theirs = by_worker.get(row.platform_id, [])
        if matched is None and not row.session and len(theirs) == 1:
            # The address did not name the submission, but there is only one.
            (matched,) = theirs
        if matched is None or matched.worker != row.platform_id:
            is_late = row.at_ms < now_ms() - _GRACE_MS
            n_unknown += is_late
            if is_late and row.status != "UNKNOWN":
                note(row.id, status="UNKNOWN", status_ms=now_ms())
            continue
        if matched.status == row.status:
            continue
        n_new += 1
        note(row.id, status=matched.status, status_ms=now_ms())
        # An earlier submission says nothing about the current one.
        if newest[row.participant_id] != row.id:
            continue
        if matched.status in _GONE:
            if row.state in ("invited", "declined", "consented", "ready", "failed"):
                set_state(connection, row.participant_id, "left")
                note(row.id, state_before=row.state)
            n_returned += give_back(connection, row.participant_id)
        elif row.state == "left" and row.state_before:
            set_state(connection, row.participant_id, row.state_before)
        else:
            continue
        log(connection, "platform", matched.status.lower(), pseudonym(row.participant_id))
    return Applied(len(by_session), n_new, n_returned, n_unknown)


def people_with_status(connection: Connection, status: str) -> set[int]:
    """Return active participants whose latest submission has this status at the platform."""
    query = select(visits.c.participant_id, visits.c.status).join(participants)
    rows = connection.execute(query.where(participants.c.state != "removed").order_by(visits.c.id))
    # The last row for each participant counts.
    newest = {row.participant_id: row.status for row in rows}
    return {id_ for id_, known in newest.items() if known == status.upper()}


@dataclass(slots=True)
class Statuses:
    """The statuses of a study's people at Prolific, and the outcome of the last fetch."""

    prolific: Prolific
    studies: Sequence[str]
    fetched_ms: int | None = None
    problem: str = ""
    """Why the last fetch failed; empty if it succeeded."""

    def fetch(self, store: Store, stop: threading.Event | None = None) -> Applied | None:
        """Fetch and apply all statuses; None if `stop` was set in the meantime.

        A list that breaks off changes nothing. Raises `PlatformFailed`, `StoreFailed`.
        """
        try:
            submissions = [s for study in self.studies for s in self.prolific.submissions(study)]
            if stop is not None and stop.is_set():
                return None
            with store.writing() as connection:
                applied = apply_statuses(connection, submissions, self.studies)
        except (PlatformFailed, StoreFailed) as error:
            self.problem = str(error)
            raise
        self.fetched_ms, self.problem = now_ms(), ""
        return applied


@contextmanager
def followed(store: Store, statuses: Statuses | None) -> Iterator[None]:
    """Fetch statuses every minute on a thread. Failures are recorded and retried."""
    if statuses is None:
        yield
        return
    stop = threading.Event()
    # Shutdown does not wait for a busy platform.
    statuses.prolific = replace(statuses.prolific, wait=stop.wait)

    def run() -> None:
        while not stop.is_set():
            # The error is in `problem`.
            with suppress(PlatformFailed, StoreFailed):
                statuses.fetch(store, stop)
            stop.wait(60)

    thread = threading.Thread(target=run, name="statuses", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_END_S)
