"""Storage for answers: SQLite in one file, or PostgreSQL by URL, with the same tables.

Answers are never overwritten: each is a separate row, and the last one counts. Acknowledged answers
are committed. A write transaction takes the write lock when it begins, so that concurrent saves
wait for each other and none is rejected.

While an SQLite file is open, the latest changes are in a log next to it (`FILE-wal`), and SQLite
sets a flag in the file's header that says so. Closing writes the whole log into the file and clears
the flag. A file with the flag but without the log was copied alone, and lacks answers.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.schema import SchemaItem

from fabula.core.errors import FabulaError

metadata = sa.MetaData()
_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""The type of keys: SQLite numbers rows automatically only if the key is an integer."""


def _table(name: str, *parts: SchemaItem) -> sa.Table:
    return sa.Table(name, metadata, *parts)


def _key() -> sa.Column[int]:
    return sa.Column("id", _ID, primary_key=True, autoincrement=True)


def _of(owner: str, **more: Any) -> sa.Column[int]:
    """Return the column that says whose row it is: of a participant, of an assignment."""
    return sa.Column(f"{owner}_id", _ID, sa.ForeignKey(f"{owner}s.id"), nullable=False, **more)


def _text(name: str, **more: Any) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, **more)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


participants = _table(
    "participants",
    _key(),
    # Hash of the token in the invitation: reading the database is not enough to answer as another.
    _text("token_hash", unique=True),
    sa.Column("platform_id", sa.Text, unique=True),
    _text("state"),
    _text("note", default=""),
    _number("made_ms"),
    sa.Column("consented_ms", sa.BigInteger),
    sa.Column("quiz_ms", sa.BigInteger),
    sa.Column("n_right", sa.Integer),
)

IS_ACTIVE = participants.c.state.not_in(("removed", "forgotten"))
"""Whether a participant counts."""

# A participant sent again by a platform, from another browser or by a second click, has several.
tokens = _table("tokens", _text("token_hash", primary_key=True), _of("participant"))

assignments = _table(
    "assignments",
    _key(),
    _of("participant"),
    _text("unit"),
    # The participant's order of the unit's documents, as indexes: `2,0,3,1`.
    _text("order"),
    _text("state"),
    _text("page", default=""),
    _number("given_ms"),
    _number("seen_ms"),
    sa.Column("done_ms", sa.BigInteger),
    sa.UniqueConstraint("participant_id", "unit"),
    sa.Index("assignments_by_unit", "unit", "state"),
)

answers = _table(
    "answers",
    _key(),
    _of("assignment"),
    _text("part"),
    _text("item"),
    # Empty if the answer was withdrawn, NULL if it no longer applied.
    sa.Column("value", sa.Text),
    _number("saved_ms"),
    sa.Index("answers_by_assignment", "assignment_id", "id"),
)

page_views = _table(
    "page_views",
    _key(),
    _of("assignment"),
    _text("page"),
    _number("at_ms"),
    sa.Index("page_views_by_assignment", "assignment_id", "id"),
)

sessions = _table("sessions", _text("token_hash", primary_key=True), _number("ends_ms"))

audit = _table(
    "audit", _key(), _number("at_ms"), _text("who"), _text("what"), _text("detail", default="")
)

settings = _table("settings", _text("key", primary_key=True), _text("value"))

# What follows is about the people of a study, in addition to their answers.

# Consent texts shown, and the response: agreed, declined, withdrawn.
consents = _table(
    "consents", _key(), _of("participant"), _text("what"), _text("version"), _number("at_ms")
)

consent_texts = _table("consent_texts", _text("version", primary_key=True), _text("text"))

quiz_tries = _table(
    "quiz_tries",
    _key(),
    _of("participant"),
    sa.Column("n_right", sa.Integer, nullable=False),
    # The answers in the order of the questions, as a JSON list.
    _text("given"),
    _number("at_ms"),
)

# Completed pages before the first unit: tutorial, about.
steps = _table(
    "steps", _of("participant", primary_key=True), _text("step", primary_key=True), _number("at_ms")
)

about_answers = _table(
    "about_answers",
    _of("participant", primary_key=True),
    _text("item", primary_key=True),
    _text("value"),
    _number("saved_ms"),
)

# Arrivals from a platform: one row per submission, with the latest status reported there.
visits = _table(
    "visits",
    _key(),
    _of("participant"),
    _text("platform"),
    _text("study"),
    _text("session"),
    # A keyed digest; empty if unknown.
    _text("address"),
    _number("at_ms"),
    sa.Column("status", sa.Text),
    sa.Column("status_ms", sa.BigInteger),
    # State of the participant before the platform reported that they left.
    sa.Column("state_before", sa.Text),
    sa.UniqueConstraint("participant_id", "session"),
    sa.Index("visits_by_address", "address", "at_ms"),
)

OF_PEOPLE = (consents, quiz_tries, steps, about_answers, visits)
"""Tables with a participant's data, which is deleted on request."""

TABLES = metadata.sorted_tables
"""All tables of a study, including those for answers, in order of their references."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def time_of(at_ms: int | None) -> str | None:
    """Format a time as ISO 8601 in UTC: `2026-11-23T03:00:00.000Z`."""
    if at_ms is None:
        return None
    shown = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")


def count_rows(connection: sa.Connection, table: sa.Table, *where: sa.ColumnElement[bool]) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(*where)
    return int(connection.execute(query).scalar_one())


def read_setting(connection: sa.Connection, key: str) -> str | None:
    """Return a stored setting; None if it was never set."""
    value: str | None = connection.scalar(sa.select(settings.c.value).where(settings.c.key == key))
    return value


def write_setting(connection: sa.Connection, key: str, value: str) -> None:
    """Store a setting in place of its earlier value."""
    connection.execute(settings.delete().where(settings.c.key == key))
    connection.execute(settings.insert().values(key=key, value=value))


Trouble = Literal["locked", "full", "failed"]
_WORDS: dict[Trouble, str] = {
    "locked": "another program is using the study's database",
    "full": "the disk with the study's database is full",
    "failed": "the study's database is not responding",
}


class StoreFailed(FabulaError):  # noqa: N818 (an event, not a kind of error)
    """The database is temporarily unavailable; nothing was changed, and a retry may work."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(f"{_WORDS[trouble]}; try again")
        self.trouble = trouble


_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")
_WAIT_S = 5.0
"""How long a save waits for another writer."""
_WAIT_AGAIN_S = 0.2
"""The same after a wait timed out, since the waits of many queued requests would add up."""
_TO_CLOSE_S = 2.0
_ROOM_BYTES = 8 * 1024 * 1024
OURS = 0x46616273
"""`application_id` of SQLite files whose flag is cleared on closing."""


class Store:
    """The database of one study."""

    def __init__(self, url: sa.URL) -> None:
        is_sqlite = url.get_backend_name() == "sqlite"
        to_driver: dict[str, Any] = {"timeout": _WAIT_S, "check_same_thread": False}
        of_pool: dict[str, Any] = {"pool_size": 20, "max_overflow": 40}
        if not is_sqlite:
            to_driver = {"connect_timeout": 10}
            of_pool |= {"max_overflow": 20, "pool_pre_ping": True}
        engine = sa.create_engine(url, hide_parameters=True, connect_args=to_driver, **of_pool)

        @sa.event.listens_for(engine, "connect")
        def prepare(connection: Any, _: object) -> None:
            if not is_sqlite:
                connection.execute(f"SET lock_timeout = {int(1000 * _WAIT_S)}")
                connection.commit()
                return
            # Transactions are begun explicitly: the driver's own BEGIN would come too late.
            connection.isolation_level = None
            for pragma in _PRAGMAS:
                # Retried while the file is locked: the busy timeout ignores pragmas.
                for n_left in reversed(range(101)):
                    try:
                        connection.execute(f"PRAGMA {pragma}")
                        break
                    except sqlite3.OperationalError as error:
                        if "locked" not in str(error) or not n_left:
                            raise
                    time.sleep(0.1)

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            wait_ms = connection.get_execution_options().get("wait_ms")
            if is_sqlite and wait_ms is not None:
                connection.exec_driver_sql(f"PRAGMA busy_timeout={wait_ms}")
            if is_sqlite:
                connection.exec_driver_sql("BEGIN" if wait_ms is None else "BEGIN IMMEDIATE")
            elif wait_ms is not None and wait_ms < 1000 * _WAIT_S - 100:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {wait_ms}")

        self.engine = engine
        self.file = Path(str(url.database)) if is_sqlite else None
        """Path of the SQLite file."""
        # SQLite has one writer. Threads waiting in its busy handler sleep and overtake each other;
        # with a lock, each proceeds as soon as the previous one is done.
        self._turn = threading.Lock()
        self._is_stuck = False
        self.shown = ""
        """What this process shows, once known: digests as JSON."""

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a consistent read view. Raises `StoreFailed`."""
        # All reads see one snapshot, even while others write.
        level = "SERIALIZABLE" if self.file else "REPEATABLE READ"
        with self._failures_named(), self.engine.connect() as connection:
            connection.execution_options(isolation_level=level)
            yield connection

    @contextmanager
    def writing(self, wait_s: float | None = None) -> Iterator[sa.Connection]:
        """Open a transaction that holds the write lock from the start; commit it at the end.

        wait_s: how long to wait for the lock. Raises `StoreFailed`.
        """
        if wait_s is None:
            wait_s = _WAIT_AGAIN_S if self._is_stuck else _WAIT_S
        until = time.monotonic() + wait_s
        with self._failures_named(), self.engine.connect() as connection, self._turn_by(until):
            left_ms = max(1, int(1000 * (until - time.monotonic())))
            with connection.execution_options(wait_ms=left_ms).begin():
                self._is_stuck = False
                yield connection

    @contextmanager
    def _turn_by(self, until: float) -> Iterator[None]:
        if self.file is None:
            yield
            return
        if not self._turn.acquire(timeout=max(0.0, until - time.monotonic())):
            self._is_stuck = True
            raise StoreFailed("locked")
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Convert errors of the database itself, not of a statement, to `StoreFailed`."""
        try:
            yield
        except (DBAPIError, PoolTimeoutError) as error:
            if (trouble := self._trouble_of(error)) is None:
                raise
            self._is_stuck = trouble == "locked"
            raise StoreFailed(trouble) from error

    def _trouble_of(self, error: DBAPIError | PoolTimeoutError) -> Trouble | None:
        if isinstance(error, PoolTimeoutError):
            return "failed"
        why = error.orig
        if isinstance(why, sqlite3.Error):
            # The low byte is the primary code; PostgreSQL has a five-character state.
            code = getattr(why, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return "locked"
            is_full = code == sqlite3.SQLITE_FULL
            if is_full or (code == sqlite3.SQLITE_IOERR and not self._has_room()):
                return "full"
            is_ours = code == sqlite3.SQLITE_ERROR or not isinstance(why, sqlite3.OperationalError)
            return None if is_ours else "failed"
        state = str(getattr(why, "sqlstate", None) or "")
        if state == "55P03":
            return "locked"
        if state == "53100":
            return "full"
        # Failed or dropped connections, and a server that is shutting down.
        is_gone = error.connection_invalidated or not state or state[:2] in ("08", "53", "57")
        return "failed" if is_gone else None

    def _has_room(self) -> bool:
        return self.file is None or shutil.disk_usage(self.file.parent).free >= _ROOM_BYTES

    def problem(self) -> str | None:
        """Return why answers cannot be saved, or None. Writes a row; waits up to half a second."""
        try:
            with self.writing(wait_s=0.5) as connection:
                write_setting(connection, "health", str(now_ms()))
        except StoreFailed as error:
            return _WORDS[error.trouble]
        return None if self._has_room() else _WORDS["full"]

    def checkpoint(self) -> None:
        """Move saved rows from SQLite's log into the file, as far as others who use it allow.

        Also marks the file so that a copy without its log is recognised as incomplete.
        """
        if self.file is None:
            return
        with suppress(sqlite3.OperationalError), _file_alone(self.file) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != OURS:
                connection.execute(f"PRAGMA application_id={OURS}")
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def after_forgetting(self) -> None:
        """Purge deleted rows from SQLite's log too, so that no copy remains."""
        if self.file is not None:
            with self._turn, self.engine.connect() as connection:
                connection.exec_driver_sql("ROLLBACK")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.exec_driver_sql("BEGIN")

    def close(self, *, is_served: bool = False) -> bool:
        """Close the store; return whether all data is in the database, with nothing left in a log.

        is_served: whether this process was the one that accepted participants' answers, so that no
        other will save. Another program that has the file open and is the last to close it writes
        the rest of the log into it, but does not clear the flag.
        """
        self.engine.dispose()
        if self.file is None:
            return True
        try:
            with _file_alone(self.file) as connection:
                with suppress(sqlite3.OperationalError):
                    # Succeeds only with exclusive access.
                    if connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0] == "delete":
                        return True
                if is_served:
                    # The last entry in the log: a file that contains it contains all earlier ones.
                    connection.execute("PRAGMA application_id=0")
                busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not busy
        except sqlite3.DatabaseError:
            # Held by another program, or damaged, as whoever opened it was told.
            return False


def _file_alone(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, timeout=_TO_CLOSE_S, isolation_level=None))
