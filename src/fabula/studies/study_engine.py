"""A study's database: opened, checked to be this study's, backed up to one file, and restored.

A study is frozen once somebody has been given a text. What participants see and what decides the
answers stays as it was then; a changed study is another study. What is compared are digests, by
name, so that an error can say what differs.

A backup is always SQLite, whatever the study's database, so that a study can move from one to the
other. Organisers' logins are not included.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import URL, Connection, Table, delete, insert, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from fabula.core.errors import FabulaError, InputError
from fabula.core.store import sync
from fabula.studies.database import (
    OURS,
    TABLES,
    Store,
    answers,
    assignments,
    count_rows,
    metadata,
    participants,
    read_setting,
    sessions,
    settings,
    write_setting,
)
from fabula.studies.design import StudyDesign
from fabula.studies.units import Unit

_SCHEMA = "1"
"""Version of the tables, kept in the database; another one is refused."""
_MAX_NAMED = 3
"""Number of differences that an error names."""
_COPIED = [table for table in TABLES if table is not sessions]
_IN_BATCHES = {"yield_per": 1000}


def open_store(
    design: StudyDesign, units: list[Unit], url: str | None = None, *, create: bool = True
) -> Store:
    """Open the study's database, new or not; without a URL, a file next to the study.

    Raises `InputError` if the database cannot be opened, or holds another study or a changed one.
    """
    address = url or URL.create("sqlite", database=str(design.path.with_suffix(".db")))
    try:
        parsed = make_url(address)
    except (ArgumentError, ValueError) as error:
        # It may hold a password.
        shown = re.sub("//.*@", "//…@", str(address))
        raise InputError(
            f"`database` {shown}: not a database URL; write sqlite:///FILE or postgresql://..."
        ) from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    shown = parsed.render_as_string(hide_password=True)
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or ":memory:" in parsed.database or parsed.query:
            raise InputError(f"`database` {address}: name a file, as in sqlite:///study.db")
        path = Path(parsed.database)
        if not create and not path.exists():
            raise InputError(f"{path}: does not exist; `fabula study serve` creates it")
        if _lacks_log(path):
            raise InputError(
                f"{path}: was copied without its log, {_log_of(path).name}, so answers may be "
                "missing from it; copy the log too, or restore what is there into another "
                f"`database`: `fabula study backup STUDY.toml {path} --restore`"
            )
        try:
            _make_private(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        store = Store(parsed)
    except (SQLAlchemyError, ImportError) as error:
        if getattr(error, "name", None) == "psycopg":
            raise InputError(
                f"`database` {shown}: PostgreSQL needs psycopg; run: pip install 'fabula[postgres]'"
            ) from error
        raise InputError(f"`database` {shown}: {str(error).splitlines()[0]}") from error
    try:
        _check_tables(store, shown)
        _check_same(store, design, units, shown)
        store.checkpoint()
    except (SQLAlchemyError, sqlite3.Error) as error:
        store.close()
        fault = str(error).splitlines()[0]
        if "malformed" in fault or "not a database" in fault:
            fault = (
                f"the file is damaged ({fault}); restore your last backup into another `database`: "
                "`fabula study backup STUDY.toml BACKUP --restore`"
            )
        raise InputError(f"`database` {shown}: {fault}") from error
    except FabulaError:
        store.close()
        raise
    return store


def _open_file(path: Path) -> Store:
    """Open an SQLite file of any study, new or not. Raises `InputError`."""
    _make_private(path)
    store = Store(URL.create("sqlite", database=str(path)))
    try:
        _check_tables(store, str(path))
    except BaseException:
        store.close()
        raise
    return store


def _check_tables(store: Store, where: str) -> None:
    """Create the tables if there are none. Raises `InputError` if they are of another version."""
    with store.writing() as connection:
        if store.file is None:
            # Two servers that start at once take turns.
            connection.execute(text("SELECT pg_advisory_xact_lock(4702111)"))
        if not inspect(connection).get_table_names():
            metadata.create_all(connection, TABLES)
            write_setting(connection, "schema", _SCHEMA)
            return
        has_settings = inspect(connection).has_table(settings.name)
        version = read_setting(connection, "schema") if has_settings else None
    if version != _SCHEMA:
        raise InputError(
            f"{where}: its tables are not those of a study in this version of Fabula (version "
            f"{version or 'unknown'}, here {_SCHEMA}); open it with the version that wrote it, or "
            "name another with `database`"
        )


def _check_same(store: Store, design: StudyDesign, units: Sequence[Unit], where: str) -> None:
    """Raise `InputError`, naming what differs, unless a database holds this study as it began."""
    # What participants see or what decides their answers, of which digests are kept.
    contents: dict[str, object] = {
        "design": design.kind,
        "rubric": (design.rubric.digest, design.group_rubric and design.group_rubric.digest),
        "reason_words": design.reason_words,
        "seed": design.seed,
        "ties": design.ties,
        "at_once": design.at_once,
        "quiz": (design.quiz, design.quiz_pass),
        "language": design.labels.language,
        "tutorial, about, attention or repeat": design.people.questions_digest,
    }
    contents |= {f"texts.{name}": text for name, text in design.texts.model_dump().items()}
    for unit in units:
        for document in unit.documents:
            meta = sorted((str(name), str(value)) for name, value in document.meta.items())
            contents[f"document {document.id}"] = (meta, document.text, document.author)
    groups = ((unit.key, [member.id for member in unit.documents]) for unit in units)
    contents["the groups of documents"] = sorted(groups)
    digests = {
        name: hashlib.sha256(repr(value).encode(errors="replace")).hexdigest()[:16]
        for name, value in contents.items()
    }
    store.shown = json.dumps(digests, sort_keys=True)
    with store.writing() as connection:
        held = read_setting(connection, "study")
        if held not in (None, design.id):
            raise InputError(
                f"{where}: contains answers for another study ({held}, here {design.id}); "
                "name another with `database`"
            )
        shown = read_setting(connection, "shown")
        is_started = connection.execute(select(assignments.c.id).limit(1)).first() is not None
        if is_started and shown is not None and shown != store.shown:
            was, is_now = json.loads(shown), json.loads(store.shown)
            names = [name for name in {**was, **is_now} if was.get(name) != is_now.get(name)]
            n_more = len(names) - _MAX_NAMED
            more = f" and {n_more:,} more" if n_more > 0 else ""
            raise InputError(
                f"{design.path}: differs in {', '.join(names[:_MAX_NAMED])}{more} from the study "
                f"that participants were given ({where}); put it back, or copy it under another "
                "name with a new database, which is a new study"
            )
        write_setting(connection, "study", design.id)
        write_setting(connection, "shown", store.shown)


def _log_of(path: Path) -> Path:
    """Return the path of the log with changes not yet in the file."""
    return path.with_name(f"{path.name}-wal")


def _make_private(path: Path) -> None:
    """Create the file for its owner only; if it exists, remove others' permissions."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return
    for held in (path, _log_of(path), path.with_name(f"{path.name}-shm")):
        with suppress(OSError):
            mode = held.stat().st_mode & 0o777
            if mode & 0o077:
                held.chmod(mode & 0o700)


def _lacks_log(path: Path) -> bool:
    """Return whether the file was copied without its log. Call before opening it."""
    header = _header(path)
    # Bytes 18 and 19 are 2 if a log is in use, and bytes 68 to 71 hold `application_id`
    # (https://www.sqlite.org/fileformat.html).
    is_ours = len(header) == 100 and struct.unpack(">I", header[68:72])[0] == OURS
    return is_ours and header[18] == 2 and not _log_of(path).exists()


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(100)
    except OSError:
        return b""


@dataclass(frozen=True, slots=True)
class Backup:
    """Row counts of a copy that was verified row by row against its source."""

    n_answers: int
    """Every save counts, including answers changed later."""
    n_people: int
    lacked_log: bool = False
    """Whether the source file was copied without its log."""


def back_up(store: Store, path: Path) -> Backup:
    """Write the current state of the study to `path`, which must not exist.

    The file appears only after it has been read back and verified. Raises `InputError`.
    """
    if path.exists():
        raise InputError(f"{path}: already exists; name another file")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=path.parent) as folder:
        aside = Path(folder) / "study.db"
        with closing(_open_file(aside)) as copy, store.reading() as source:
            with copy.writing() as target:
                done = _copy(source, target)
            with copy.reading() as target:
                _check_whole(target, str(path))
        with aside.open("rb") as file:
            sync(file)
        aside.rename(path)
    return done


def restore(store: Store, design: StudyDesign, units: Sequence[Unit], path: Path) -> Backup:
    """Load a copy of a study's file, unchanged, into an empty database. Raises `InputError`."""
    if not _header(path).startswith(b"SQLite format 3\0"):
        raise InputError(f"{path}: is not a backup of a study; `fabula study backup` writes one")
    with tempfile.TemporaryDirectory(prefix="fabula-") as folder:
        aside = Path(folder) / "study.db"
        log = _log_of(path)
        shutil.copyfile(path, aside)
        if log.exists():
            shutil.copyfile(log, _log_of(aside))
        lacks_log = _lacks_log(path)
        try:
            with closing(_open_file(aside)) as copy, store.writing() as target:
                with copy.reading() as source:
                    _check_whole(source, str(path))
                _check_same(copy, design, units, str(path))
                if count_rows(target, participants):
                    raise InputError(
                        f"{store.file or 'the database'}: already contains people; move it away, "
                        "or name another with `database`"
                    )
                with copy.reading() as source:
                    done = _copy(source, target)
                if target.dialect.name == "postgresql":
                    # Its sequences go on past the copied keys; SQLite does this itself.
                    for table in (table for table in _COPIED if "id" in table.c):
                        last = f"(SELECT coalesce(max(id), 0) + 1 FROM {table.name})"
                        name = f"pg_get_serial_sequence('{table.name}', 'id')"
                        target.execute(text(f"SELECT setval({name}, {last}, false)"))
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from error
    return replace(done, lacked_log=lacks_log)


def _copy(source: Connection, target: Connection) -> Backup:
    """Copy all rows. Raises `InputError` if source and target differ."""
    for table in reversed(_COPIED):
        target.execute(delete(table))
    for table in _COPIED:
        for rows in source.execute(select(table), execution_options=_IN_BATCHES).partitions():
            target.execute(insert(table), [row._asdict() for row in rows])
    for table in _COPIED:
        if _digest(source, table) != _digest(target, table):
            raise InputError(f"the copied table {table.name} differs from the study's; try again")
    return Backup(count_rows(target, answers), count_rows(target, participants))


def _digest(connection: Connection, table: Table) -> int:
    """Return a digest that is independent of row order, since databases sort text differently."""
    digest = 0
    for row in connection.execute(select(table), execution_options=_IN_BATCHES):
        # Rows are unique, since each has its key.
        digest ^= int.from_bytes(hashlib.sha256(repr(tuple(row)).encode("utf-8")).digest())
    return digest


def _check_whole(connection: Connection, where: str) -> None:
    state = connection.execute(text("PRAGMA integrity_check(1)")).scalar()
    if state != "ok":
        raise InputError(f"{where}: is damaged ({state}); use an earlier backup")
