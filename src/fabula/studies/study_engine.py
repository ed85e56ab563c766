"""Opening a study's database: engine, tables, and the check that it is this study's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import URL, insert, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from fabula.errors import FabulaError, InputError
from fabula.studies import sqlite_file
from fabula.studies.database import Store, engine_of, metadata, settings
from fabula.studies.design import StudyDesign
from fabula.studies.frozen import check_same
from fabula.studies.people_tables import TABLES
from fabula.studies.units import Unit

_SCHEMA = "1"
"""Version of the tables, kept in the database; another one is refused."""


def open_store(
    design: StudyDesign, units: list[Unit], url: str | None = None, *, create: bool = True
) -> Store:
    """Open the study's database, new or not; without a URL, a file next to the study.

    Raises `InputError` if the database cannot be opened, or holds another study or a changed one.
    """
    default = URL.create("sqlite", database=str(design.path.with_suffix(".db")))
    address = url or default
    try:
        parsed = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise InputError(
            f"`database` {address}: not a database URL; write sqlite:///FILE or postgresql://..."
        ) from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    is_sqlite = parsed.get_backend_name() == "sqlite"
    if is_sqlite and (not parsed.database or ":memory:" in parsed.database or parsed.query):
        raise InputError(f"`database` {address}: name a file, as in sqlite:///study.db")
    if is_sqlite and not create and parsed.database and not Path(parsed.database).exists():
        raise InputError(f"{parsed.database}: does not exist; `fabula study serve` creates it")
    shown = parsed.render_as_string(hide_password=True)
    if is_sqlite:
        _check_file(Path(str(parsed.database)))
    try:
        store = Store(engine_of(parsed, is_sqlite=is_sqlite))
    except (SQLAlchemyError, NoSuchModuleError, ImportError) as error:
        if getattr(error, "name", None) == "psycopg":
            raise InputError(
                f"`database` {shown}: PostgreSQL needs psycopg; run: pip install 'fabula[postgres]'"
            ) from error
        raise InputError(f"`database` {shown}: {str(error).splitlines()[0]}") from error
    try:
        _check_tables(store, shown)
        check_same(store, design, units, shown)
        if store.file is not None:
            sqlite_file.checkpoint(store.file)
    except (SQLAlchemyError, sqlite3.Error) as error:
        store.close()
        raise InputError(f"`database` {shown}: {_fault(error)}") from error
    except FabulaError:
        store.close()
        raise
    return store


def _fault(error: Exception) -> str:
    said = str(error).splitlines()[0]
    if "malformed" in said or "not a database" in said:
        return (
            f"the file is damaged ({said}); restore your last backup into another `database`: "
            "`fabula study backup STUDY.toml BACKUP --restore`"
        )
    return said


def open_file(path: Path) -> Store:
    """Open an SQLite file of any study, new or not. Raises `InputError`."""
    sqlite_file.make_private(path)
    store = Store(engine_of(URL.create("sqlite", database=str(path)), is_sqlite=True))
    try:
        _check_tables(store, str(path))
    except BaseException:
        store.close()
        raise
    return store


def _check_file(path: Path) -> None:
    """Create the file if it does not exist. Raises `InputError` if it is unusable."""
    if sqlite_file.lacks_log(path):
        raise InputError(
            f"{path}: was copied without its log, {sqlite_file.log_of(path).name}, so answers may "
            "be missing from it; copy the log too, or restore what is there into another "
            f"`database`: `fabula study backup STUDY.toml {path} --restore`"
        )
    try:
        sqlite_file.make_private(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def _check_tables(store: Store, where: str) -> None:
    """Create the tables if there are none. Raises `InputError` if they are of another version."""
    with store.writing() as connection:
        if store.file is None:
            # Two servers that start at once take turns.
            connection.execute(text("SELECT pg_advisory_xact_lock(4702111)"))
        if not inspect(connection).get_table_names():
            metadata.create_all(connection, TABLES)
            connection.execute(insert(settings).values(key="schema", value=_SCHEMA))
            return
        found = None
        if inspect(connection).has_table(settings.name):
            found = connection.scalar(select(settings.c.value).where(settings.c.key == "schema"))
    if found != _SCHEMA:
        raise InputError(
            f"{where}: its tables are not those of a study in this version of Fabula (version "
            f"{found or 'unknown'}, here {_SCHEMA}); open it with the version that wrote it, or "
            "name another with `database`"
        )
