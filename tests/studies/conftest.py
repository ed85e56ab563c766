"""Databases for studies: SQLite in a file, and a real PostgreSQL where its programs are."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import study_browsing as web
from tests.studies.running import Make, Running, make


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder in memory: a study waits at each answer until the disk has it, a hundredth of a
    second. A process that is killed loses nothing of it either."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with in_memory() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of this session's own, on loopback: its address without a database."""
    # That of bench/study.py. Its folder is not among pytest's: another session of the same user
    # closes the folder of all of them again.
    from study import postgres as server

    folder = tempfile.TemporaryDirectory(prefix="fabula-postgres-")
    with folder as name, server(Path(name)) as address:
        if address is None:
            pytest.skip("PostgreSQL is not installed")
        yield address.removesuffix("/postgres")


def _database(name: str) -> Any:
    @pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
    def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
        """The address of an empty database, once of each kind."""
        if request.param == "sqlite":
            return f"sqlite:///{tmp_path / name}.db"
        server, own = request.getfixturevalue("postgres"), f"study_{uuid.uuid4().hex}"
        import psycopg

        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{own}"')
        return f"{server}/{own}"

    return address


database, other = _database("study"), _database("other")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Make]:
    """Makes studies as `make` does, and closes them at the end."""
    with ExitStack() as ending:

        def opened_study(*about: Any, **options: Any) -> Running:
            running = make(tmp_path, *about, **options)
            ending.callback(running.store.close)
            return running

        yield opened_study


@pytest.fixture
def study(opened: Make) -> Running:
    return opened("ttcw")


@pytest.fixture
def running(opened: Make, database: str) -> Running:
    return opened("ttcw", url=database)


def served_study(kind: str, rows: list[dict[str, Any]]) -> Any:
    @pytest.fixture(scope="module")
    def served() -> Iterator[web.Served]:
        with in_memory() as folder, web.serving(folder, kind, rows) as served:
            yield served

    return served


ttcw = served_study("ttcw", web.story_rows())
feedback = served_study("feedback", web.feedback_rows())
scripted, bare = web.scripted, web.bare
