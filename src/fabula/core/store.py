"""Crash-safe files: atomic writes, checksums, one writer at a time, resumable rows; formats.

A file or folder is written under a temporary name, synced, and renamed, so neither readers nor a
run after a crash ever see half of it. Result rows are appended one line at a time; an incomplete
last line left by a crash is dropped when the run resumes. Rows that hold results end with a
checksum, so that a row that was damaged or edited is not used again as if it had been measured.

A file, or each of its rows, gives the version of its format in a field; without one, the version
is 1. This version of Fabula reads the formats that it writes; others are refused in a sentence with
the command that makes the file again. A format's version increases when the meaning of a field
changes, or when a reader of the previous version would misread it. Rubrics and study files are
written by people; unknown fields in them are errors.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import json
import math
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from fabula.core import __version__
from fabula.core.errors import DAMAGE, BusyError, CorpusError, FabulaError, InputError
from fabula.core.types import Measurement, Span, newer_version


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file, and the version of its format."""

    kind: str
    """For messages, as it follows "holds": `a reference corpus`."""
    version: int
    remedy: str
    """How to recreate one of another version, or what to do instead."""
    field: str = "format"
    error: type[FabulaError] = InputError

    @property
    def mark(self) -> dict[str, int]:
        """The version field to write into a file."""
        return {self.field: self.version}

    def check(self, said: Mapping[str, Any], where: object) -> None:
        """Raise `error` if a file's header or row gives another version than this one reads.

        A row's signature also says which Fabula wrote it.
        """
        number, writer = said.get(self.field, 1), newer_version(said.get("signature"))
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise self.error(
                f"{where}: damaged (its `{self.field}` is {number!r}, not a version); {self.remedy}"
            )
        if number == self.version and writer is None:
            return
        by = f"version {writer}" if writer else "another version"
        raise self.error(
            f"{where}: written by {by} of Fabula ({self.kind} of format {number}), and this is "
            f"{__version__}, which reads format {self.version}; use that version, or {self.remedy}"
        )


CHECKSUM = "fabula_checksum"
"""The last field of a row that holds results: CRC-32 of the line before it."""

CHANGED = (
    f"{{where}}: was changed after Fabula wrote it, as its `{CHECKSUM}` shows; restore it or make "
    "it again, or remove that field to use the row as it is"
)


def was_changed(row: dict[str, Any], line: bytes) -> bool:
    """Remove a row's checksum; whether it shows that the line was changed since it was written."""
    crc = row.pop(CHECKSUM, None)
    if crc is None:
        return False
    begin, _, end = line.rpartition(b',"%b":' % CHECKSUM.encode())
    return crc != f"{zlib.crc32(begin):08x}" or end.strip() != b'"%b"}' % crc.encode()


def check_unchanged(row: dict[str, Any], line: bytes, where: object) -> None:
    """Raise `InputError` if a row was changed since it was written; remove its checksum."""
    if was_changed(row, line):
        raise InputError(CHANGED.format(where=where))


_TRAIN = "train again with `fabula continuation train`"

ROWS = Format("rows", 1, "name another file", field="fabula_format")
"""Rows of any kind of file: scores, answers, measurements, trust, groups and so on."""
RUN = Format("a judge's run", 1, "choose another `out`")
"""Its `run.json`; answers and measurements are rows."""
REFERENCE = Format(
    "a reference corpus", 2, "build it again with `fabula reference build`", error=CorpusError
)
DETECTORS = Format("detectors", 2, "calibrate again with `fabula detect calibrate --out`")
PHRASES = Format(
    "phrases of a group", 1, "write it again with `fabula phrases --out`", field="fabula_phrases"
)
TRAINING = Format("a training corpus", 2, _TRAIN)
CASES = Format("an index of cases", 1, _TRAIN, error=CorpusError)
NETWORK = Format("a recurrent network", 1, _TRAIN, error=CorpusError)
PROVENANCE = Format("a record of how a result was made", 1, "make the result again")
DESK = Format("the desk's drafts", 1, "name another folder with `dir`")

FORMATS = (ROWS, RUN, REFERENCE, DETECTORS, PHRASES, TRAINING, CASES, NETWORK, DESK, PROVENANCE)


note: ContextVar[Callable[[Path], object]] = ContextVar("note", default=lambda _path: None)
"""Called for each file and folder that is written."""


def dump_json(value: Any) -> str:
    """Compact JSON on one line: keys in the given order, non-ASCII unescaped, NaN as null."""
    options: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "default": str}
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(_without_nan(value), allow_nan=False, **options)


def _without_nan(value: Any) -> Any:
    """Replace what JSON cannot represent (NaN, infinity) by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return value


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_digest(text: str) -> str:
    """A digest of a text or a prompt, 16 hexadecimal digits; rows need not hold all of it."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def write_whole(path: Path, data: bytes, *, is_private: bool = False) -> None:
    """Replace a file's content atomically: after a crash it is either the old or the new one.

    A private file is readable by its owner only. If several processes write it at the same
    time, the last one wins.
    """
    try:
        aside, file = _open_beside(path)
        try:
            with file:
                if is_private:
                    os.fchmod(file.fileno(), 0o600)
                file.write(data)
                sync(file)
                aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    _sync_folder(path.parent)
    note.get()(path)


def _open_beside(path: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside `path`, open for appending, which its writer renames or removes.

    The writer holds a lock on it while it is alive: files that dead ones left there are removed.
    """
    begin = f".{path.name[:40]}."
    for stale in path.parent.glob(f"{glob.escape(begin)}*.part"):
        with contextlib.suppress(OSError), stale.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stale.unlink()
    while True:
        aside = path.with_name(f"{begin}{os.getpid()}-{secrets.token_hex(8)}.part")
        new = aside.open("ab+")
        try:
            _lock(new, str(path))
            if aside.exists():
                return aside, new
        except BusyError:
            pass  # Another writer looks whether it is one that a dead writer left.
        except BaseException:
            new.close()
            aside.unlink(missing_ok=True)
            raise
        new.close()


def sync(file: IO[Any]) -> None:
    """Flush the file to disk."""
    file.flush()
    os.fsync(file.fileno())


def fresh_folder(path: Path) -> Path:
    """Create an empty folder beside `path`, to be filled and passed to `publish_folder`."""
    aside = path.with_name(f"{path.name}.part")
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
    note.get()(path)


@contextlib.contextmanager
def writer_lock(path: Path, what: str, *, waits: bool = False) -> Iterator[None]:
    """Hold an exclusive write lock, which the system releases even after `kill -9`.

    If another process holds it, wait, or raise `BusyError` immediately.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        _lock(file, what, waits=waits)
        yield


def _lock(file: IO[Any], what: str, *, waits: bool = False) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise BusyError(f"{what}: another process is writing to it; wait until it ends") from error


_ROW_BEGIN = b'{"id":'


def sealed(row: Mapping[str, Any]) -> bytes:
    """A row as a line of JSON with its checksum."""
    # A model may write half of a surrogate pair, which is not valid UTF-8.
    begin = dump_json(row).encode(errors="replace")[:-1]
    return b'%b,"%b":"%08x"}\n' % (begin, CHECKSUM.encode(), zlib.crc32(begin))


class RowWriter:
    """Appends JSON rows to a file, each handed to the system before the next one starts.

    Only one writer may have the file open; another raises `BusyError`.
    `RowWriter.kept` holds the rows that were complete when the file was opened.
    """

    def __init__(self, path: Path, *, restart: bool = False) -> None:
        """With `restart`, existing rows may have been changed: the caller will drop them."""
        self.path, self._restart = path, restart
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a file that rows could be kept in; name another")
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            self._file: IO[bytes] = path.open("ab+")
            try:
                _lock(self._file, str(path))
                # The previous holder may have replaced the file since it was opened.
                if path.exists() and os.path.samestat(os.fstat(self._file.fileno()), path.stat()):
                    self.kept = self._read_kept()
                    return
            except BaseException:
                self._file.close()
                raise
            self._file.close()

    def _read_kept(self) -> list[dict[str, Any]]:
        """The complete rows of the file."""
        self._file.seek(0)
        kept: list[dict[str, Any]] = []
        end = 0
        for line in self._file:
            where = f"{self.path}, line {len(kept) + 1}"
            row = None
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)
            if not isinstance(row, dict):
                # Only the beginning of a row may be dropped: the file may be somebody's novel.
                if not line.endswith(b"\n") and _ROW_BEGIN.startswith(line[: len(_ROW_BEGIN)]):
                    break
                raise InputError(f"{where}: not a row that Fabula wrote; choose another `out`")
            if self._restart:
                row.pop(CHECKSUM, None)
            ROWS.check(row, where)
            check_unchanged(row, line, where)
            kept.append(row)
            end += len(line)
        self._end = end
        self._lacks_newline = bool(kept) and not line.endswith(b"\n") and end == self._file.tell()
        return kept

    def begin(self) -> None:
        """Truncate the file after its last complete row. Until then it is not changed."""
        self._file.truncate(self._end)
        self._file.seek(self._end)
        if self._lacks_newline:
            self._file.write(b"\n")

    def write(self, row: dict[str, Any]) -> None:
        """Append a row; once this returns, the row survives a crash of this process."""
        self._file.write(sealed(row))
        self._file.flush()

    def clear(self) -> None:
        """Remove all rows."""
        self.kept, self._end, self._lacks_newline = [], 0, False

    def replace(self, rows: Iterable[dict[str, Any]]) -> None:
        """Atomically replace all rows by these; `write` then appends to them."""
        # Locked before anybody else can see it under its name.
        aside, file = _open_beside(self.path)
        try:
            for row in rows:
                file.write(sealed(row))
            sync(file)
            aside.replace(self.path)
        except BaseException:
            file.close()
            aside.unlink(missing_ok=True)
            raise
        _sync_folder(self.path.parent)
        self._file.close()
        self._file = file

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
        note.get()(self.path)


def read_rows(path: Path, *, is_edited: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of a file written by `RowWriter`. Raises `InputError` with the line number.

    `is_edited`: they are texts, which people may have changed.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    with file:
        for number, line in enumerate(file, 1):
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{where}: not JSON; run the command that wrote it again to complete the file"
                ) from error
            if not isinstance(row, dict):
                raise InputError(f"{where}: not a JSON object; is this the right file?")
            ROWS.check(row, where)
            if is_edited:
                row.pop(CHECKSUM, None)
            check_unchanged(row, line, where)
            yield row


def located_rows(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Like `read_rows`, each row with its place."""
    for number, row in enumerate(read_rows(path), 1):
        yield row, f"{path}, line {number}"


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], *, are_results: bool = False) -> None:
    """Atomically replace a file by these rows, in the format of `read_rows`.

    Results get a checksum each; rows that people may edit do not.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if are_results:
        data = b"".join(map(sealed, rows))
    else:
        data = "".join(dump_json(row) + "\n" for row in rows).encode(errors="replace")
    write_whole(path, data)


def measurement_row(measurement: Measurement) -> dict[str, Any]:
    """A measurement as a row; `read_measurements` reads it back."""
    return {
        "id": measurement.document_id,
        "rubric": measurement.rubric,
        "item": measurement.item,
        "rater": measurement.rater,
        "value": measurement.value,
        "missing_reason": measurement.missing_reason,
        "rationale": measurement.rationale,
        "evidence": [[span.start, span.end] for span in measurement.evidence],
        "details": dict(measurement.details),
        "signature": measurement.signature,
    }


def read_measurements(path: Path) -> Iterator[Measurement]:
    """The measurements of a file. Raises `InputError` with the line number."""
    for number, row in enumerate(read_rows(path), 1):
        # The author of the text, if a row of the user's has it in a field of its own.
        author = {"author": row["author"]} if isinstance(row.get("author"), str) else {}
        try:
            if (value := row["value"]) is not None and not isinstance(value, str):
                value = float(value)
                if not math.isfinite(value):
                    raise ValueError(f"{row['value']} is not a number")
            yield Measurement(
                document_id=str(row["id"]),
                rubric=str(row["rubric"]),
                item=str(row["item"]),
                rater=str(row["rater"]),
                value=value,
                missing_reason=_text_or_none(row["missing_reason"]),
                evidence=tuple(Span(str(row["id"]), a, b) for a, b in row.get("evidence") or ()),
                rationale=_text_or_none(row.get("rationale")),
                signature=str(row.get("signature", "")),
                details=author | dict(row.get("details") or {}),
            )
        except DAMAGE as error:
            raise InputError(
                f"{path}, line {number}: not a measurement ({error}); it needs id, rubric, item, "
                f"rater, and a value or a missing_reason"
            ) from error


def _text_or_none(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is not a text")


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
