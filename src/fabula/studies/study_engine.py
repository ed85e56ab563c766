"""Opening a study's database: engine, tables, and the check that it is this study's.

A study is frozen once somebody has been given a text. What participants see and what decides the
answers stays as it was then; a changed study is another study. What is compared are digests, by
name, so that an error can say what differs.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import URL, Connection, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from fabula.errors import FabulaError, InputError
from fabula.studies import sqlite_file
from fabula.studies.database import (
    TABLES,
    Store,
    assignments,
    engine_of,
    metadata,
    read_setting,
    settings,
    write_setting,
)
from fabula.studies.design import StudyDesign
from fabula.studies.units import Unit

_SCHEMA = "1"
"""Version of the tables, kept in the database; another one is refused."""
_MAX_NAMED = 3
"""Number of differences that an error names."""


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
        _make_usable(Path(str(parsed.database)))
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
        said = str(error).splitlines()[0]
        if "malformed" in said or "not a database" in said:
            said = (
                f"the file is damaged ({said}); restore your last backup into another `database`: "
                "`fabula study backup STUDY.toml BACKUP --restore`"
            )
        raise InputError(f"`database` {shown}: {said}") from error
    except FabulaError:
        store.close()
        raise
    return store


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


def _make_usable(path: Path) -> None:
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
            write_setting(connection, "schema", _SCHEMA)
            return
        has_settings = inspect(connection).has_table(settings.name)
        found = read_setting(connection, "schema") if has_settings else None
    if found != _SCHEMA:
        raise InputError(
            f"{where}: its tables are not those of a study in this version of Fabula (version "
            f"{found or 'unknown'}, here {_SCHEMA}); open it with the version that wrote it, or "
            "name another with `database`"
        )


def shown_by(design: StudyDesign, units: Sequence[Unit]) -> dict[str, str]:
    """Return a digest of each thing that participants see or that decides their answers."""
    shown: dict[str, object] = {
        "design": design.kind,
        "rubric": (design.rubric.digest, design.group_rubric and design.group_rubric.digest),
        "reason_words": design.reason_words,
        "seed": design.seed,
        "ties": design.ties,
        "at_once": design.at_once,
        "quiz": (design.quiz, design.quiz_pass),
        "language": (design.labels.language, design.labels.digest),
        "tutorial, about, attention or repeat": design.people.questions_digest,
    }
    shown |= {f"texts.{name}": text for name, text in design.texts.model_dump().items()}
    for unit in units:
        for one in unit.documents:
            own = sorted((str(name), str(value)) for name, value in one.meta.items())
            shown[f"document {one.id}"] = (own, one.text, one.author)
    shown["the groups of documents"] = sorted(
        (unit.key, [one.id for one in unit.documents]) for unit in units
    )
    return {
        name: hashlib.sha256(repr(value).encode(errors="replace")).hexdigest()[:16]
        for name, value in shown.items()
    }


def check_same(store: Store, design: StudyDesign, units: Sequence[Unit], where: str) -> None:
    """Check that a database holds this study, as it was started if it was.

    Raises `InputError` naming what differs.
    """
    store.shown = json.dumps(shown_by(design, units), sort_keys=True)
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


def is_shown_now(connection: Connection, store: Store) -> bool:
    """Whether no other process has opened the study with another file since this one did."""
    return read_setting(connection, "shown") == store.shown
