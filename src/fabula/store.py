"""Files that are whole or not there: atomic writes, checksums, one writer, resumable rows.

A file or folder is written beside its place, synced, and renamed; so a reader, or a run after a
crash, never sees half of one. Result rows are appended a line at a time; a line that a crash cut
short is dropped before the run goes on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from fabula.errors import BusyError, FabulaError, InputError

__all__ = [
    "RowWriter",
    "checksum",
    "dump_json",
    "fresh_folder",
    "publish_folder",
    "read_rows",
    "sync",
    "write_whole",
    "writer_lock",
]


def dump_json(value: Any) -> str:
    """Compact JSON in one line: keys as given, characters as they are, no NaN."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str
    )


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file's content at once: after a crash it holds the old or the new, whole."""
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            file.write(data)
            sync(file)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    _sync_folder(path.parent)


def sync(file: IO[Any]) -> None:
    """Have the file's bytes on the disk before going on."""
    file.flush()
    os.fsync(file.fileno())


def fresh_folder(path: Path) -> Path:
    """An empty folder beside `path`, to be filled and then given to `publish_folder`."""
    aside = path.with_name(path.name + ".part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    return aside


def publish_folder(aside: Path, path: Path) -> None:
    """Sync all files of `aside` and rename it to `path`, which must not exist."""
    for entry in aside.iterdir():
        with entry.open("rb+") as file:
            os.fsync(file.fileno())
    _sync_folder(aside)
    aside.rename(path)
    _sync_folder(path.parent)


@contextlib.contextmanager
def writer_lock(path: Path, what: str) -> Iterator[None]:
    """Hold the only right to write; the system takes it back even after `kill -9`.

    Raises `BusyError` at once where another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        _lock(file, what)
        yield


def _lock(file: IO[Any], what: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BusyError(f"{what}: another process is writing to it; wait until it ends") from error


class RowWriter:
    """Appends JSON rows to a file, each handed to the system before the next is begun.

    Only one at a time may have the file open; another raises `BusyError`.
    `RowWriter.kept` holds the rows that were whole when the file was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab+")
        try:
            _lock(self._file, str(path))
            self.kept = self._drop_cut_line()
        except FabulaError:
            self._file.close()
            raise

    def _drop_cut_line(self) -> list[dict[str, Any]]:
        self._file.seek(0)
        kept: list[dict[str, Any]] = []
        end = 0
        for line in self._file:
            # Only the beginning of a row may be dropped: the file may be somebody's novel.
            if not line.endswith(b"\n") and line[:2] in (b"{", b'{"'):
                break
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(
                    f"{self.path}, line {len(kept) + 1}: not a row of scores; choose another --out"
                ) from error
            kept.append(row)
            end += len(line)
        self._file.truncate(end)
        self._file.seek(end)
        return kept

    def write(self, row: dict[str, Any]) -> None:
        """Append a row; it outlives this process when this returns."""
        self._file.write((dump_json(row) + "\n").encode())
        self._file.flush()

    def clear(self) -> None:
        self._file.truncate(0)
        self.kept = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sync(self._file)
        self._file.close()


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file that `RowWriter` wrote. Raises `InputError` with the line."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    with file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(
                    f"{path}, line {number}: not JSON; run the command that wrote it again "
                    f"to complete the file"
                ) from error
            if not isinstance(row, dict):
                raise InputError(f"{path}, line {number}: not a JSON object; is this the file?")
            yield row


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
