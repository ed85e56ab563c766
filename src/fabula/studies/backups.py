"""Back up a running study to one file, and restore it into any database.

The file is always SQLite, whatever the study's database, so that a study can move from one to the
other. Organisers' logins are not included.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from fabula.errors import InputError
from fabula.store import sync
from fabula.studies import sqlite_file
from fabula.studies.database import TABLES, Store, answers, count_rows, participants, sessions
from fabula.studies.design import StudyDesign
from fabula.studies.study_engine import check_same, open_file
from fabula.studies.units import Unit

_TABLES = [table for table in TABLES if table is not sessions]
_N_AT_ONCE = 1000


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
        with closing(open_file(aside)) as copy, store.reading() as source:
            with copy.writing() as target:
                done = _copy(source, target)
            with copy.reading() as target:
                _check_whole(target, str(path))
        with aside.open("rb") as file:
            sync(file)
        aside.rename(path)
    return done


def restore(store: Store, design: StudyDesign, units: Sequence[Unit], path: Path) -> Backup:
    """Load a file written by `back_up`, or another copy of a study's file, into an empty database.

    The copy is not changed. Raises `InputError`.
    """
    if not sqlite_file.is_database(path):
        raise InputError(f"{path}: is not a backup of a study; `fabula study backup` writes one")
    with tempfile.TemporaryDirectory(prefix="fabula-") as folder:
        aside = Path(folder) / "study.db"
        log = sqlite_file.log_of(path)
        shutil.copyfile(path, aside)
        if log.exists():
            shutil.copyfile(log, sqlite_file.log_of(aside))
        lacks_log = sqlite_file.lacks_log(path)
        try:
            with closing(open_file(aside)) as copy, store.writing() as target:
                with copy.reading() as source:
                    _check_whole(source, str(path))
                check_same(copy, design, list(units), str(path))
                if count_rows(target, participants):
                    raise InputError(
                        f"{store.file or 'the database'}: already contains people; move it away, "
                        "or name another with `database`"
                    )
                with copy.reading() as source:
                    done = _copy(source, target)
                if target.dialect.name == "postgresql":
                    # Its sequences go on past the copied keys; SQLite does this itself.
                    for table in (table for table in _TABLES if "id" in table.c):
                        last = f"(SELECT coalesce(max(id), 0) + 1 FROM {table.name})"
                        name = f"pg_get_serial_sequence('{table.name}', 'id')"
                        target.execute(text(f"SELECT setval({name}, {last}, false)"))
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from error
    return replace(done, lacked_log=lacks_log)


def _copy(source: Connection, target: Connection) -> Backup:
    """Copy all rows. Raises `InputError` if source and target differ."""
    for table in reversed(_TABLES):
        target.execute(delete(table))
    for table in _TABLES:
        for rows in _batches(source, table):
            target.execute(insert(table), [row._asdict() for row in rows])
    for table in _TABLES:
        if _digest(source, table) != _digest(target, table):
            raise InputError(f"the copied table {table.name} differs from the study's; try again")
    return Backup(count_rows(target, answers), count_rows(target, participants))


def _batches(connection: Connection, table: Table) -> Iterator[Sequence[Row[Any]]]:
    yield from connection.execute(
        select(table), execution_options={"yield_per": _N_AT_ONCE}
    ).partitions()


def _digest(connection: Connection, table: Table) -> int:
    """Return a digest that is independent of row order, since databases sort text differently."""
    digest = 0
    for row in (row for rows in _batches(connection, table) for row in rows):
        # Rows are unique, since each has its key.
        digest ^= int.from_bytes(hashlib.sha256(repr(tuple(row)).encode("utf-8")).digest())
    return digest


def _check_whole(connection: Connection, where: str) -> None:
    found = connection.execute(text("PRAGMA integrity_check(1)")).scalar()
    if found != "ok":
        raise InputError(f"{where}: is damaged ({found}); use an earlier backup")
