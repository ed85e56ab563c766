"""Checksums of a corpus's files: compared when the corpus is first opened, then cached.

    CACHE/checked/KEY.json     by file of a folder: its size, times and inode, and its SHA-256

KEY stands for the folder. A file is compared again only after it changes, except that the files of
a small folder are compared each time. JSON rows contain a checksum of their own content.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fabula.cached_results import cache_folder
from fabula.errors import CorpusError
from fabula.store import checksum, dump_json, write_whole
from fabula.workers import default_jobs

Report = Callable[[str], None]

_SEAL = "sha256"
_SMALL_BYTES = 4 << 20
"""Folders up to this size are compared each time; that takes milliseconds."""
_MANY_BYTES = 1 << 30
"""Above this size, progress is reported."""
_SETTLED_NS = 2 * 10**9
"""A file written more recently may change again within the same tick of the clock."""


def check_files(
    folders: Sequence[tuple[Path, Mapping[str, str]]], report: Report = lambda stage: None
) -> None:
    """Compare the SHA-256 of the files of these folders, except those already compared.

    folders: each with its checksums by file name. Raises `CorpusError` that names the first file
    that is missing or changed.
    """
    checked = [_Folder(folder, files) for folder, files in folders]
    new = [(folder, name) for folder in checked for name in folder.new]
    n_all = sum(folder.stamps[name][0] for folder, name in new)
    n_done, lock = 0, threading.Lock()

    def check(one: tuple[_Folder, str]) -> None:
        nonlocal n_done
        folder, name = one
        folder.check(name)
        with lock:
            n_done += folder.stamps[name][0]
            if n_all > _MANY_BYTES:
                report(f"checking files (once): {n_done / 1e9:.1f} of {n_all / 1e9:.1f} GB")

    if new:
        with ThreadPoolExecutor(min(default_jobs(), len(new))) as pool:
            for _ in pool.map(check, new):
                pass
    for folder in checked:
        folder.remember()


class _Folder:
    """The files of one folder, and which of them are already compared."""

    def __init__(self, path: Path, files: Mapping[str, str]) -> None:
        self.path = path
        self.files = files
        self.stamps = {name: self._stamp(name) for name in files}
        place = str(path.resolve())
        key = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:16]
        self._note = cache_folder() / "checked" / f"{key}.json"
        self._is_small = sum(stamp[0] for stamp in self.stamps.values()) <= _SMALL_BYTES
        known: Any = {}
        if not self._is_small:
            with contextlib.suppress(OSError, ValueError, RecursionError):
                known = json.loads(self._note.read_bytes())
        if not isinstance(known, dict):
            known = {}
        self.new = [name for name in files if known.get(name) != self._entry(name)]

    def check(self, name: str) -> None:
        """Raises `CorpusError` if the file is not as it was written."""
        if checksum(self.path / name) != self.files[name]:
            raise CorpusError(
                f"{self.path / name}: damaged (changed since it was written); restore it from a "
                "copy, or build it again (`fabula reference info --check` checks all files)"
            )

    def remember(self) -> None:
        """Save which files were compared. If that fails, they are compared each time."""
        if self._is_small or not self.new:
            return
        before = time.time_ns() - _SETTLED_NS
        settled = [
            name
            for name, (_, _, changed, _) in self.stamps.items()
            if changed < before and self._stamp(name) == self.stamps[name]
        ]
        with contextlib.suppress(OSError):
            self._note.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._note, dump_json({n: self._entry(n) for n in settled}).encode())

    def _entry(self, name: str) -> list[Any]:
        return [*self.stamps[name], self.files[name]]

    def _stamp(self, name: str) -> list[int]:
        """The attributes that change with the file: size, modification and change times, inode."""
        try:
            found = (self.path / name).stat()
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"{self.path / name}: missing or unreadable ({error}); restore it from a copy, or "
                "build it again (`fabula reference info --check` checks all files)"
            ) from error
        return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def seal(row: dict[str, Any]) -> dict[str, Any]:
    """Add a checksum of the row's content to it."""
    return {**row, _SEAL: _digest(row)}


def parse_row(data: bytes, file: str) -> dict[str, Any]:
    """Parse a row of JSON. Raises `CorpusError` that names the file if it is not one."""
    try:
        row = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{file}: damaged ({error}); restore it or build it again") from error
    if not isinstance(row, dict):
        raise CorpusError(f"{file}: damaged (not an object); restore it or build it again")
    return row


def check_seal(row: dict[str, Any], file: str) -> dict[str, Any]:
    """The row without its checksum. Raises `CorpusError` if it is not as it was written.

    Rows from versions without checksums are accepted.
    """
    said = {key: value for key, value in row.items() if key != _SEAL}
    if _SEAL in row and row[_SEAL] != _digest(said):
        raise CorpusError(
            f"{file}: damaged (changed since it was written); restore it from a copy, or build it "
            "again"
        )
    return said


def _digest(row: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
