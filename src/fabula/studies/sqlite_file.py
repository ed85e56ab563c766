"""The SQLite file of a study: readable by its owner only, and complete once closed.

While the file is open, the latest changes are in a log next to it (`FILE-wal`), and SQLite sets a
flag in the file's header that says so. Closing writes the whole log into the file and clears the
flag. A file with the flag but without the log was copied alone, and lacks answers.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path

_OURS = 0x46616273
"""`application_id` of files whose flag is cleared on closing."""
_TO_CLOSE_S = 2.0


def log_of(path: Path) -> Path:
    """Return the path of the log with changes not yet in the file."""
    return path.with_name(f"{path.name}-wal")


def make_private(path: Path) -> None:
    """Create the file for its owner only; if it exists, remove others' permissions."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return
    for held in (path, log_of(path), path.with_name(f"{path.name}-shm")):
        with suppress(OSError):
            mode = held.stat().st_mode & 0o777
            if mode & 0o077:
                held.chmod(mode & 0o700)


def is_database(path: Path) -> bool:
    """Return whether this is an SQLite file."""
    return _header(path).startswith(b"SQLite format 3\0")


def lacks_log(path: Path) -> bool:
    """Return whether the file was copied without its log. Call before opening it."""
    header = _header(path)
    # Bytes 18 and 19 are 2 if a log is in use, and bytes 68 to 71 hold `application_id`
    # (https://www.sqlite.org/fileformat.html).
    is_ours = len(header) == 100 and struct.unpack(">I", header[68:72])[0] == _OURS
    return is_ours and header[18] == 2 and not log_of(path).exists()


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(100)
    except OSError:
        return b""


def checkpoint(path: Path) -> None:
    """Write the log into the file as far as concurrent readers and writers allow.

    Also marks the file so that a copy without its log is recognised as incomplete.
    """
    with suppress(sqlite3.OperationalError), _connected(path) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _OURS:
            connection.execute(f"PRAGMA application_id={_OURS}")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def close_file(path: Path, *, is_served: bool = False) -> bool:
    """Write the whole log into the file; return whether the file is now complete by itself.

    is_served: whether no other process will save. Another program that has the file open and is the
    last to close it writes the rest of the log into it, but does not clear the flag.
    """
    try:
        with _connected(path) as connection:
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


def _connected(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, timeout=_TO_CLOSE_S, isolation_level=None))
