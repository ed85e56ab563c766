"""Databases for studies: SQLite in a file, and a real PostgreSQL where its programs are."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests import study_browsing as web
from tests.studies.test_app import Make, Running, make
from tests.studies_data import story_rows


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of this session's own, on loopback: its address without a database."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    programs = Path(found).resolve().parent if found else next(reversed(folders), Path())
    if not (programs / "pg_ctl").exists():
        pytest.skip("PostgreSQL is not installed")
    # Not among pytest's: another session of the same user closes the folder of all of them again.
    folder = Path(tempfile.mkdtemp(prefix="fabula-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        for parent in folder.parents[:-1]:
            os.chmod(parent, os.stat(parent).st_mode | 0o011)
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program: str, *options: str) -> None:
        command = [*as_user, str(programs / program), "-D", str(folder / "data"), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

    run("initdb", "-U", "study", "-A", "trust", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    options += " -c max_connections=100"
    run("pg_ctl", "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgresql://study@127.0.0.1:{port}"
    finally:
        run("pg_ctl", "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


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
    """A study of two stories."""
    return opened("ttcw", story_rows(1, 2))


@pytest.fixture
def running(opened: Make, database: str) -> Running:
    """The same in a database of each kind."""
    return opened("ttcw", story_rows(1, 2), database)


def _served(kind: str, rows: list[dict[str, Any]]) -> Any:
    @pytest.fixture(scope="module")
    def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[web.Served]:
        with web.serving(tmp_path_factory.mktemp(kind), kind, rows) as served:
            yield served

    return served


ttcw, feedback = _served("ttcw", web.story_rows()), _served("feedback", web.feedback_rows())
downloads, scripted, bare = web.downloads, web.scripted, web.bare
