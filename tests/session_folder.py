"""A folder that all workers of a test session share: what is dear is made there once.

pytest's first process makes it and names it in the environment, and removes it at the end.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_VARIABLE = "FABULA_TESTS_FOLDER"


def begin_session() -> Path:
    """Make the folder; processes that begin after this know of it."""
    folder = tempfile.mkdtemp(prefix="fabula-tests-")
    os.environ[_VARIABLE] = folder
    return Path(folder)


def end_session() -> None:
    shutil.rmtree(os.environ.pop(_VARIABLE), ignore_errors=True)


def session_folder() -> Path:
    return Path(os.environ[_VARIABLE])


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """The path `name` in the folder, held by one process at a time."""
    path = session_folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """The file or folder `name`, which `make` writes when it is first asked for."""
    with locked(name) as path:
        done = path.with_name(f"{path.name}.done")
        if not done.exists():
            make(path)
            done.touch()
    return path
