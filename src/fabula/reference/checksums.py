"""Checksums of a corpus's files: compared when it is opened first, and remembered.

    CACHE/checked/KEY.json     by file of a folder: its size, times and inode, and its SHA-256

KEY stands for the folder. What was compared once costs nothing until the file changes; the files of
a small folder are compared each time. Rows of JSON carry the checksum of what they say.
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

from fabula.errors import CorpusError
from fabula.reference.storage import Home
from fabula.store import cache_folder, checksum, dump_json, write_whole
from fabula.workers import default_jobs

__all__ = ["check_files", "check_seal", "parse_row", "read_row", "seal"]

Report = Callable[[str], None]

_SEAL = "sha256"
_SMALL_BYTES = 4 << 20
"""A folder of no more is compared each time; that takes milliseconds."""
_MANY_BYTES = 1 << 30
"""Of more it is said how far the comparison is."""
_SETTLED_NS = 2 * 10**9
"""A file that was written just now may change again within the same tick of the clock."""


def check_files(
    folders: Sequence[tuple[Path, Mapping[str, str]]], report: Report = lambda stage: None
) -> None:
    """Compare the SHA-256 of the files of these folders, but those that were compared before.

    folders: each with the checksums by file name. Raises `CorpusError` that names the first file
    that is missing, or is not what was written.
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
                report(f"checking files, once: {n_done / 1e9:.1f} of {n_all / 1e9:.1f} GB")

    if new:
        with ThreadPoolExecutor(min(default_jobs(), len(new))) as pool:
            for _ in pool.map(check, new):
                pass
    for folder in checked:
        folder.remember()


class _Folder:
    """The files of one folder, and which of them were compared before."""

    def __init__(self, path: Path, files: Mapping[str, str]) -> None:
        self.path = path
        self.files = files
        self.stamps = {name: self._stamp(name) for name in files}
        place = str(path.resolve())
        key = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:16]
        self._note = cache_folder() / "checked" / f"{key}.json"
        self._is_small = sum(stamp[0] for stamp in self.stamps.values()) <= _SMALL_BYTES
        known = {} if self._is_small else self._known()
        self.new = [name for name in files if known.get(name) != self._entry(name)]

    def check(self, name: str) -> None:
        """Raises `CorpusError` where the file is not what was written."""
        if checksum(self.path / name) != self.files[name]:
            raise CorpusError(
                f"{self.path / name}: damaged, it has changed since it was written; restore it "
                f"from a copy, or build it again (`fabula reference verify` checks all files)"
            )

    def remember(self) -> None:
        """Note what was compared. Where that cannot be written, it is compared each time."""
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

    def _known(self) -> dict[str, Any]:
        try:
            known = json.loads(self._note.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return known if isinstance(known, dict) else {}

    def _stamp(self, name: str) -> list[int]:
        """What a change of the file alters: size, its content's time and its own, inode."""
        try:
            found = (self.path / name).stat()
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"{self.path / name}: missing or not to be read ({error}); restore it from a copy, "
                f"or build it again (`fabula reference verify` checks all files)"
            ) from error
        return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def seal(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the checksum of what it says."""
    return {**row, _SEAL: _digest(row)}


def parse_row(data: bytes, file: str) -> dict[str, Any]:
    """A row of JSON. Raises `CorpusError` that names the file where it is none."""
    try:
        row = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{file}: damaged ({error}); restore it or build again") from error
    if not isinstance(row, dict):
        raise CorpusError(f"{file}: damaged (not an object); restore it or build again")
    return row


def check_seal(row: dict[str, Any], file: str) -> None:
    """Raise `CorpusError` where a row does not say what was written.

    Rows from before they had a checksum are taken as they are.
    """
    said = {key: value for key, value in row.items() if key != _SEAL}
    if _SEAL in row and row[_SEAL] != _digest(said):
        raise CorpusError(
            f"{file}: damaged, it has changed since it was written; restore it from a copy, or "
            f"build it again"
        )


def read_row(home: Home, name: str) -> dict[str, Any] | None:
    """What a sealed row there says; None where there is none. Raises `CorpusError`."""
    if (data := home.read(name)) is None:
        return None
    file = f"{home.spec}/{name}"
    row = parse_row(data, file)
    check_seal(row, file)
    row.pop(_SEAL, None)
    return row


def _digest(row: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
