"""Admission of people from a platform: allow-list, signed URLs, and a limit per IP address.

If a study asks for it, Prolific signs the URL by which it sends people: `prolific_token` is a JSON
Web Token (RS256) over the three ids (docs.prolific.com, "Retrieve JSON Web Key Set").
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select

from fabula.errors import FabulaError
from fabula.studies.database import (
    count_rows,
    now_ms,
    participants,
    read_setting,
    visits,
    write_setting,
)
from fabula.studies.labels import ENGLISH
from fabula.studies.participants import hash_of, join_from_platform, lock
from fabula.studies.recruiting import Entry
from fabula.web.guard import is_loopback

_DAY_MS = 24 * 3_600_000
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


class NotAdmitted(FabulaError):  # noqa: N818 (an event, not a kind of error)
    """A person may not take part; the label is the message for them."""

    def __init__(self, label: str) -> None:
        super().__init__(ENGLISH(label))
        self.label = label


@dataclass(frozen=True, slots=True)
class Arrival:
    """A person sent by a platform.

    For Mechanical Turk, `study` is the HIT and `session` the assignment.
    """

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
    arrival: Arrival,
    entry: Entry,
    folder: Path,
    token: str = "",
    keys: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Raise `NotAdmitted` if the study does not admit the person.

    folder: directory of the study's file and its allow-list. token, keys: the signed parameters and
    the platform's public keys, if `entry.signed`.
    """
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


def verify_token(token: str, keys: Sequence[Mapping[str, Any]], address: str) -> Mapping[str, Any]:
    """Return the ids in a signed Prolific token. Raises `ValueError` if it is not valid.

    keys: JSON Web Keys. address: URL of the study; the token must be issued for its origin.
    """
    import jwt
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    try:
        named = jwt.get_unverified_header(token)["kid"]
        key = jwt.PyJWK(dict(next(one for one in keys if one.get("kid") == named)), "RS256").key
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
    if address and not any(_origin(str(one)) == _origin(address) for one in audiences):
        raise ValueError("the token is for another address")
    if not isinstance(ids, dict):
        raise ValueError("the token names nobody")  # noqa: TRY004 (any error is a ValueError)
    return ids


def _origin(address: str) -> str:
    return "/".join(address.lower().split("/", 3)[:3])


def join(connection: Connection, arrival: Arrival, entry: Entry, address: str) -> str:
    """Return a token for the person; call within `Store.writing`.

    Raises `NotAdmitted` if too many people came from this IP address in a day. Only a keyed digest
    of the address is stored. Loopback addresses are not counted: they belong to a proxy that does
    not report its clients.
    """
    came_from = ""
    if not is_loopback(address):
        key = read_setting(connection, "address_key")
        if key is None:
            key = secrets.token_urlsafe(24)
            write_setting(connection, "address_key", key)
        came_from = hash_of(f"{key} {address}")
    known = select(participants.c.id).where(participants.c.platform_id == arrival.worker)
    if connection.scalar(known) is None and came_from and entry.joins_per_address:
        n = connection.execute(
            select(func.count(visits.c.participant_id.distinct())).where(
                visits.c.address == came_from, visits.c.at_ms > now_ms() - _DAY_MS
            )
        ).scalar_one()
        if n >= entry.joins_per_address:
            raise NotAdmitted("too_many_from_network")
    token = join_from_platform(connection, arrival.worker)
    id_ = connection.execute(known).scalar_one()
    lock(connection, id_)
    mine = visits.c.participant_id == id_
    n_same = count_rows(connection, visits, mine, visits.c.session == arrival.session)
    if not n_same and count_rows(connection, visits, mine) < MAX_VISITS:
        row = asdict(arrival) | {"participant_id": id_, "address": came_from, "at_ms": now_ms()}
        del row["worker"]
        connection.execute(insert(visits).values(row))
    return token
