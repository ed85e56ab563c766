"""The file in which SQLite keeps a study: its owner's alone, and whole once it is closed.

While the file is open, what was saved last is in a log beside it (`FILE-wal`). SQLite notes in the
file's header that there is such a log. Closing writes all of it into the file and takes that note
back. So a file with the note and without the log was copied alone, and answers are missing in it.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path

__all__ = ["checkpoint", "close_file", "is_database", "lacks_log", "log_of", "make_private"]

_OURS = 0x46616273
"""`application_id` of the files whose closing takes the note back: those of earlier versions of
Fabula keep it."""
_TO_CLOSE_S = 2.0


def log_of(path: Path) -> Path:
    """Where SQLite keeps what is not in the file yet."""
    return path.with_name(f"{path.name}-wal")


def make_private(path: Path) -> None:
    """Make the file, for its owner alone; of one that is there, take away what others may do."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return
    for held in (path, log_of(path), path.with_name(f"{path.name}-shm")):
        with suppress(OSError):
            mode = held.stat().st_mode & 0o777
            if mode & 0o077:
                held.chmod(mode & 0o700)


def is_database(path: Path) -> bool:
    """Whether that is a file of SQLite's."""
    return _header(path).startswith(b"SQLite format 3\0")


def lacks_log(path: Path) -> bool:
    """Whether the file was copied without its log. To be asked before it is opened."""
    header = _header(path)
    # Bytes 18 and 19 are 2 where a log is in use, and 68 to 71 hold `application_id`
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
    """Write into the file what is only in its log, as far as nobody reads or writes it just now,
    and have it say that without its log answers are missing.
    """
    with suppress(sqlite3.OperationalError), _connected(path) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _OURS:
            connection.execute(f"PRAGMA application_id={_OURS}")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def close_file(path: Path, *, is_served: bool = False) -> bool:
    """Write all of the log into the file; whether the file now holds everything by itself.

    is_served: whether nobody else goes on to save. Another program that has the file open and is
    the last to close it writes the rest of the log into it, but does not take the note back.
    """
    try:
        with _connected(path) as connection:
            with suppress(sqlite3.OperationalError):
                # Only for whoever has the file alone.
                if connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0] == "delete":
                    return True
            if is_served:
                # The last entry of the log: whoever has it in the file has all before it.
                connection.execute("PRAGMA application_id=0")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
    except sqlite3.OperationalError:
        return False


def _connected(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, timeout=_TO_CLOSE_S, isolation_level=None))
