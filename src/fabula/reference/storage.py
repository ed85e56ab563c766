"""Where a corpus is stored: in a folder, or at an address in an object store.

An object store replaces an object atomically and loses nothing, but it cannot rename folders: a
shard is complete there when its `shard.json` exists, which is uploaded last.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from fabula.errors import CorpusError, FabulaError
from fabula.store import (
    cache_folder,
    checksum,
    fresh_folder,
    note_write,
    publish_folder,
    write_whole,
    writer_lock,
)
from fabula.text import open_filesystem

if TYPE_CHECKING:
    import fsspec

__all__ = ["Home", "LocalHome", "StoredHome", "is_stored", "open_home"]

_LAST = "shard.json"
_CHUNK_BYTES = 1 << 22


class Home(Protocol):
    """A location for the files of a corpus. `name` is a file's path inside it, with slashes."""

    @property
    def spec(self) -> str:
        """The location as the user writes it."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if it does not exist."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file atomically."""
        ...

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its contents; does nothing if it does not exist."""
        ...

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; empty if it does not exist."""
        ...

    def checksum(self, name: str) -> str | None:
        """A file's SHA-256 in hexadecimal; None if it does not exist."""
        ...

    def n_bytes(self, folder: str) -> int:
        """The total size of all files in a folder."""
        ...

    def writing(self, name: str, attempt: str = "") -> AbstractContextManager[Path]:
        """An empty folder on this machine that becomes the folder `name` on exit, atomically.

        `attempt` distinguishes it from that of another process that may still be writing.
        """
        ...

    def lock(self, folder: str = "") -> AbstractContextManager[None]:
        """Hold the exclusive right to write. Raises `BusyError` if another process holds it."""
        ...

    def everywhere(self) -> Home:
        """The same location, under a name that does not depend on where a process runs."""
        ...


def is_stored(spec: str | Path) -> bool:
    """Whether it is an address in an object store (s3://, gs://, file://, ...)."""
    return isinstance(spec, str) and "://" in spec and not spec.startswith(("http://", "https://"))


def open_home(spec: str | Path | Home) -> Home:
    """Open the location that a user names; it need not exist. Raises `CorpusError`."""
    if isinstance(spec, LocalHome | StoredHome):
        return spec
    if is_stored(str(spec)):
        return StoredHome(str(spec).rstrip("/"))
    if str(spec).startswith(("http://", "https://")):
        raise CorpusError(
            f"{spec}: a corpus must be in a folder or an object store (s3://, gs://); one served "
            "over HTTP can be searched, but only changed where it is stored"
        )
    return LocalHome(Path(str(spec)))


@dataclass(frozen=True, slots=True)
class LocalHome:
    """A folder."""

    path: Path

    @property
    def spec(self) -> str:
        return str(self.path)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, data)

    def remove(self, name: str) -> None:
        place = self.path / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def names(self, folder: str = "") -> list[str]:
        place = self.path / folder
        return sorted(entry.name for entry in place.iterdir()) if place.is_dir() else []

    def checksum(self, name: str) -> str | None:
        file = self.path / name
        return checksum(file) if file.exists() else None

    def n_bytes(self, folder: str) -> int:
        return sum(f.stat().st_size for f in (self.path / folder).rglob("*") if f.is_file())

    @contextmanager
    def writing(self, name: str, attempt: str = "") -> Iterator[Path]:
        aside = fresh_folder(self.path / name, attempt)
        yield aside
        publish_folder(aside, self.path / name)

    @contextmanager
    def lock(self, folder: str = "") -> Iterator[None]:
        place = self.path / folder
        with writer_lock(place / ".lock", str(place)):
            # The process that wrote these was killed: the lock excludes other writers.
            for left in place.glob(".*.part"):
                left.unlink(missing_ok=True)
            yield

    def everywhere(self) -> LocalHome:
        return LocalHome(self.path.resolve())


@dataclass(frozen=True, slots=True)
class StoredHome:
    """An address in an object store, accessed with fsspec.

    The lock only excludes other processes of this machine: a store has no locks. Two machines that
    build the same corpus there write the same bytes.
    """

    spec: str

    def read(self, name: str) -> bytes | None:
        with self._reached() as (filesystem, root):
            try:
                data: bytes = filesystem.cat_file(f"{root}/{name}")
            except FileNotFoundError:
                return None
            return data

    def write(self, name: str, data: bytes) -> None:
        with self._reached() as (filesystem, root):
            _make_folder(filesystem, os.path.dirname(f"{root}/{name}"))
            filesystem.pipe_file(f"{root}/{name}", data)
        note_write(f"{self.spec}/{name}")

    def remove(self, name: str) -> None:
        with self._reached() as (filesystem, root), contextlib.suppress(FileNotFoundError):
            filesystem.rm(f"{root}/{name}", recursive=True)

    def names(self, folder: str = "") -> list[str]:
        place = f"{self._root()}/{folder}".rstrip("/")
        with self._reached() as (filesystem, _):
            try:
                found = filesystem.ls(place, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted({PurePosixPath(one).name for one in found if one.rstrip("/") != place})

    def checksum(self, name: str) -> str | None:
        digest = hashlib.sha256()
        with self._reached() as (filesystem, root):
            try:
                with filesystem.open(f"{root}/{name}", "rb", block_size=_CHUNK_BYTES) as file:
                    while chunk := file.read(_CHUNK_BYTES):
                        digest.update(chunk)
            except FileNotFoundError:
                return None
        return digest.hexdigest()

    def n_bytes(self, folder: str) -> int:
        with self._reached() as (filesystem, root):
            return int(filesystem.du(f"{root}/{folder}"))

    @contextmanager
    def writing(self, name: str, attempt: str = "") -> Iterator[Path]:
        del attempt  # Each has its own folder.
        with tempfile.TemporaryDirectory(prefix="fabula-") as scratch:
            aside = Path(scratch)
            yield aside
            files = sorted(aside.iterdir(), key=lambda file: (file.name == _LAST, file.name))
            with self._reached() as (filesystem, root):
                _make_folder(filesystem, f"{root}/{name}")
                for file in files:
                    filesystem.put_file(str(file), f"{root}/{name}/{file.name}")
        note_write(f"{self.spec}/{name}")

    def fetch(self, name: str, to: Path) -> None:
        """Download a file. Raises `CorpusError` if it does not exist."""
        with self._reached() as (filesystem, root):
            try:
                filesystem.get_file(f"{root}/{name}", str(to))
            except FileNotFoundError as error:
                raise CorpusError(
                    f"{self.spec}/{name}: missing; restore it, or build the corpus again"
                ) from error

    def lock(self, folder: str = "") -> AbstractContextManager[None]:
        what = f"{self.spec}/{folder}".rstrip("/")
        stands_for = hashlib.sha256(what.encode()).hexdigest()[:16]
        return writer_lock(cache_folder() / "locks" / stands_for, what)

    def everywhere(self) -> StoredHome:
        return self

    def _root(self) -> str:
        with self._reached() as (_, root):
            return root

    @contextmanager
    def _reached(self) -> Iterator[tuple[fsspec.AbstractFileSystem, str]]:
        """The store's file system, not cached. Raises `CorpusError` if an operation fails."""
        filesystem, root = open_filesystem(self.spec)
        filesystem.invalidate_cache()
        try:
            yield filesystem, root.rstrip("/")
        except FabulaError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise  # This machine's disk is full.
            # Each kind of store has its own errors.
            raise CorpusError(
                f"{self.spec}: the object store failed ({_first_line(error)}); check the address "
                "and the read and write permissions, and run the same command again"
            ) from error


def _make_folder(filesystem: fsspec.AbstractFileSystem, place: str) -> None:
    # Object stores have none, and would try to create a bucket, even for a mistyped name.
    if "file" in filesystem.protocol:
        filesystem.makedirs(place, exist_ok=True)


def _first_line(error: Any) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
