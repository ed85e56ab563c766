"""Databases for studies: SQLite in a file, and a real PostgreSQL where its programs are."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.studies.test_app import Running, make
from tests.studies_data import story_rows as plain_rows
from tests.study_browsing import Served, chrome, feedback_rows, serving, story_rows


def _programs() -> Path | None:
    found = shutil.which("initdb")
    if found and shutil.which("pg_ctl"):
        return Path(found).parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of this session's own, on loopback: its address without a database."""
    programs = _programs()
    if programs is None:
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
        for parent in folder.parents:
            if parent != Path(parent.anchor):
                os.chmod(parent, os.stat(parent).st_mode | 0o011)
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run([*as_user, *command], check=True, capture_output=True, cwd=folder)

    run(str(programs / "initdb"), "-D", str(data), "-U", "study", "-A", "trust", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    options += " -c max_connections=100"
    log = str(folder / "log")
    run(str(programs / "pg_ctl"), "-D", str(data), "-o", options, "-l", log, "-w", "start")
    try:
        yield f"postgresql://study@127.0.0.1:{port}"
    finally:
        run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    make: Callable[[], str] = request.getfixturevalue("new_postgres")
    return make()


@pytest.fixture
def new_postgres(postgres: str) -> Callable[[], str]:
    """Makes a new database on the server."""
    import psycopg

    def make() -> str:
        name = f"study_{uuid.uuid4().hex}"
        with psycopg.connect(f"{postgres}/postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"{postgres}/{name}"

    return make


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Makes studies as `make` does, and closes them at the end."""
    with ExitStack() as ending:

        def opened_study(*about: Any, **options: Any) -> Running:
            running = make(tmp_path, *about, **options)
            ending.callback(running.store.close)
            return running

        yield opened_study


@pytest.fixture
def running(opened: Callable[..., Running], database: str) -> Running:
    """A study of two stories, in a database of each kind."""
    return opened("ttcw", plain_rows(1, 2), database)


@pytest.fixture(scope="module")
def ttcw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("ttcw"), "ttcw", story_rows()) as served:
        yield served


@pytest.fixture(scope="module")
def feedback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("feedback"), "feedback", feedback_rows()) as served:
        yield served


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def scripted(downloads: Path) -> Iterator[Any]:
    """A browser with JavaScript."""
    with chrome(downloads, with_script=True) as driver:
        yield driver


@pytest.fixture(scope="module")
def bare(downloads: Path) -> Iterator[Any]:
    """A browser without JavaScript."""
    with chrome(downloads, with_script=False) as driver:
        yield driver
