"""Turn what the user names (files, folders, patterns, URLs, `-`) into checked documents."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

import zstandard

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.text.isolation import Limits, read_isolated
from fabula.text.readers import READERS, TABLE_LIMITS, TABLES, Fields, Table

if TYPE_CHECKING:
    import fsspec
    from typing_extensions import Buffer

_COMPRESSIONS = (".gz", ".zst")
_INSTALL = {
    "s3": "fabula[remote]", "hf": "fabula[remote]", "http": "fabula[remote]",
    "https": "fabula[remote]", "gs": "fabula[google]", "gcs": "fabula[google]",
}  # fmt: skip
_READ = {"file", "local", "memory", *_INSTALL}
"""Schemes of addresses that are read; of others the libraries beneath fail in their own ways."""
_MAX_HERE_BYTES = 8 << 20
_UNKNOWN_SIZE_BYTES = 64 << 20
_CPU_S_A_BYTE = 1e-6
_DAY = (1980, 1, 1, 0, 0, 0)
_WANTED = "expected documents: a list of Document(id, text), or the result of read_documents([...])"
Meter = Callable[[int], None]
Read = Callable[[IO[bytes], str], Iterator[Document]]
"""Reads the documents of an open file with a given name; must be picklable."""
OnUnreadable = Callable[[InputError], None]
"""Called with the reason for each file that is skipped as unreadable."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """One file to read: its name as the user would write it, and how to open it."""

    name: str
    size_bytes: int | None
    """None if it cannot be known before reading (standard input, some web servers)."""
    filesystem: Any = None
    path: str = ""

    @property
    def format(self) -> str:
        """The file's suffix without compression: `jsonl` for `a.jsonl.gz`; `` if it has none."""
        name = self.name.split("?")[0] if "://" in self.name else self.name
        path = PurePosixPath(name.lower())
        if path.suffix in _COMPRESSIONS:
            path = path.with_suffix("")
        return path.suffix[1:]

    def open(self, meter: Meter = lambda n_bytes: None) -> IO[bytes]:
        """Open the file, decompressed; `meter` receives the number of bytes read from it."""
        if self.filesystem is None:
            return sys.stdin.buffer
        if self.format == "scriv" and self.filesystem.isdir(self.path):
            # A Scrivener project as an archive of the files that contain text.
            folder = self.path.rstrip("/")
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                for path in sorted(filter(_is_of_project, self.filesystem.find(folder))):
                    name = zipfile.ZipInfo(path[len(folder) + 1 :], _DAY)
                    with self.filesystem.open(path, "rb") as part:
                        archive.writestr(name, io.BufferedReader(_Metered(part, meter)).read())
            packed.seek(0)
            return packed
        try:
            file: IO[bytes] = self.filesystem.open(self.path, "rb")
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror or error})") from error
        raw = io.BufferedReader(_Metered(file, meter), 1 << 18)
        ending = PurePosixPath(self.name.lower()).suffix
        if ending == ".gz":
            return io.BufferedReader(gzip.GzipFile(fileobj=raw))
        if ending == ".zst":
            reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            return io.BufferedReader(reader)
        return raw


def find_files(sources: Iterable[str], *, format_: str | None = None) -> list[FileSource]:
    """List the files that `sources` name, in order; those of a folder or pattern sorted by name.

    A source is a file, a folder (searched recursively for known suffixes, skipping hidden files), a
    pattern with `*`, `?` or `[...]`, an fsspec URL of any of these, or `-` for standard input.

    Raises `InputError` if a source matches nothing, or without `format_` a suffix is unknown.
    """
    readable: list[FileSource] = []
    for source in sources:
        files = [FileSource("-", None)] if source == "-" else _expand(source)
        if not files:
            raise InputError(
                f"{source}: contains no readable texts; known extensions are "
                f"{', '.join('.' + e for e in READERS)}, also with .gz or .zst"
            )
        readable += files
    for file in readable:
        if format_ is None:
            _check_extension(file)
    if not readable:
        raise InputError("no texts given; use files, folders, patterns, URLs, or - for stdin")
    return readable


def files_named(paths: Sequence[Path]) -> list[FileSource]:
    """Local files, called by their names without folders, as whoever uploaded them knows them.

    Raises `InputError` if a suffix is unknown.
    """
    files: dict[str, FileSource] = {}
    for k, path in enumerate(paths, 1):
        name = path.name if path.name not in files else f"{k}-{path.name}"
        filesystem, _ = open_filesystem(str(path))
        files[name] = FileSource(name, path.stat().st_size, filesystem, str(path))
        _check_extension(files[name])
    return list(files.values())


def _check_extension(file: FileSource) -> None:
    if file.name != "-" and file.format not in READERS:
        raise InputError(
            f"{file.name}: unknown extension; rename the file or set `format` "
            f"({', '.join(READERS)})"
        )


def read_documents(
    sources: Iterable[str | Path] | Iterable[FileSource],
    *,
    text_field: str = "text",
    id_field: str = "id",
    format_: str | None = None,
    meter: Meter = lambda n_bytes: None,
    on_unreadable: OnUnreadable | None = None,
) -> Iterator[Document]:
    """Stream the documents of `sources`, one at a time, in order.

    In tables (JSON Lines, CSV, Parquet) a row is a document; its other fields are its `meta`. A row
    without `id_field` is named after its file and line. Any other file is one document.

    Raises `InputError`, naming file, line and remedy, at the first unreadable file; or, with
    `on_unreadable`, passes the error to it and goes on. If no file can be read, it raises anyway.
    """
    is_several = hasattr(sources, "__iter__") and not isinstance(sources, str | bytes | dict)
    named: list[Any] = []
    if is_several:
        named = [str(source) if isinstance(source, Path) else source for source in sources]
    kinds = {type(source) for source in named}
    if not is_several or not (kinds <= {str} or kinds <= {FileSource}):
        shown = str(sources) if isinstance(sources, str | Path) else "books/"
        raise InputError(
            "expected a list of files, folders, patterns or URLs, as in "
            f"read_documents([{shown!r}])"
        )
    if format_ is not None:
        _reader_of(format_)

    def documents() -> Iterator[Document]:
        files = named if FileSource in kinds else find_files(named, format_=format_)
        n_documents = 0
        for k, file in enumerate(files, 1):
            try:
                kind = format_ or ("txt" if file.name == "-" else file.format)
                read = partial(_reader_of(kind), fields=Fields(text_field, id_field))
                for document in _read_file(file, kind, read, meter):
                    n_documents += 1
                    yield document
            except InputError as error:
                is_none_read = k == len(files) and n_documents == 0
                if on_unreadable is None or len(files) == 1 or is_none_read:
                    raise
                on_unreadable(error)

    return documents()


def _reader_of(kind: str) -> Any:
    read = READERS.get(kind)
    if read is None:
        raise InputError(f"format {kind}: unknown; choose from {', '.join(READERS)}")
    return read


def read_table(source: str | Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the rows of a table (JSON Lines, CSV, Parquet, XLSX, also compressed) with places.

    Raises `InputError`, naming file, line and remedy.
    """
    (file, *others) = find_files([str(source)])
    reader = READERS.get(file.format)
    if others or not isinstance(reader, Table):
        endings = ", ".join(f".{kind}" for kind in TABLES)
        raise InputError(f"{source}: not a table; known extensions are {endings}")
    for row in _read_file(file, file.format, reader.unchanged, lambda n_bytes: None):
        yield row.meta, row.id


def read_ids(path: Path) -> list[str]:
    """Read the ids in a file, one per line; blank lines are skipped. Raises `InputError`."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8; save the list of ids as UTF-8 text") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise InputError(f"{path}: contains no ids; write one per line")
    return ids


def _read_file(file: FileSource, kind: str, read: Read, meter: Meter) -> Iterator[Document]:
    """Yield a file's documents; read by another process, within limits, unless it is harmless."""
    limits: Limits | None = getattr(READERS.get(kind), "limits", None)
    with contextlib.ExitStack() as stack:
        if file.name == "-" and limits is not None:
            from fsspec.implementations.local import LocalFileSystem

            copy = stack.enter_context(tempfile.NamedTemporaryFile())
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            file = FileSource("-", os.path.getsize(copy.name), LocalFileSystem(), copy.name)
        elif _is_harmless(file, limits):
            yield from _read_here(file, read, meter)
            return
        limits = limits or TABLE_LIMITS
        cpu_s = limits.cpu_s + (file.size_bytes or _UNKNOWN_SIZE_BYTES) * _CPU_S_A_BYTE
        read_file = partial(_read_here, file, read)
        yield from read_isolated(read_file, file.name, Limits(limits.memory_bytes, cpu_s), meter)


def _is_harmless(file: FileSource, limits: Limits | None) -> bool:
    """Whether reading takes memory and time proportional to a size that is known and small."""
    if file.name == "-" or getattr(file.filesystem, "protocol", "") == "memory":
        return True
    is_plain = limits is None and not file.name.lower().endswith(_COMPRESSIONS)
    return is_plain and file.size_bytes is not None and file.size_bytes <= _MAX_HERE_BYTES


def _read_here(file: FileSource, read: Read, meter: Meter) -> Iterator[Document]:
    n_documents = 0
    stream = file.open(meter)
    try:
        for document in read(stream, file.name):
            n_documents += 1
            yield document
    except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise InputError(
            f"{file.name}: the compressed data is damaged or truncated after {n_documents:,} "
            f"complete documents ({error}); fetch or compress the file again"
        ) from error
    except OSError as error:
        raise InputError(f"{file.name}: reading failed ({error.strerror or error})") from error
    finally:
        if stream is not sys.stdin.buffer:
            with contextlib.suppress(OSError):
                stream.close()
    if n_documents == 0:
        name = "standard input" if file.name == "-" else file.name
        raise InputError(f"{name}: is empty; leave it out, or add text to it")


class _Metered(io.RawIOBase):
    """A file that reports how much of it was read."""

    def __init__(self, file: IO[bytes], meter: Meter) -> None:
        self._file = file
        self._meter = meter

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._file.read(len(view))
        view[: len(data)] = data
        self._meter(len(data))
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _is_of_project(path: str) -> bool:
    return path.endswith(".scrivx") or (path.endswith(".rtf") and "/Files/" in path)


def _expand(source: str) -> list[FileSource]:
    filesystem, path = open_filesystem(source)
    prefix = source.partition("://")[0] + "://" if "://" in source else ""
    try:
        if not prefix and os.path.isfile(source):
            return [FileSource(source, filesystem.info(path).get("size"), filesystem, source)]
        if source.rstrip("/").endswith(PROJECT) and filesystem.isdir(path):
            return [_project(filesystem, path, source.rstrip("/"))]
        if not prefix and os.path.isdir(source):
            return _walk(filesystem, path, source, prefix)
        if any(mark in source for mark in "*?[") and not source.startswith("http"):
            return [
                FileSource(_display(hit, source, prefix), info.get("size"), filesystem, hit)
                for hit, info in sorted(filesystem.glob(path, detail=True).items())
                if info["type"] == "file" and not PurePosixPath(hit).name.startswith(".")
            ]
        info = filesystem.info(path)
        if info["type"] == "directory":
            return _walk(filesystem, path, source, prefix)
        if info["type"] != "file":
            # Opening a pipe or a device may block for ever.
            raise InputError(f"{source}: not a regular file; pipe its text in, and use - for it")
        return [FileSource(source, info.get("size"), filesystem, path)]
    except FileNotFoundError as error:
        raise InputError(f"{source}: no such file or folder") from error
    except PermissionError as error:
        raise InputError(f"{source}: permission denied; check its permissions") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: cannot be reached ({error})") from error


def open_filesystem(source: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of an address, and the path in it. Raises `InputError`."""
    import fsspec

    scheme = source.partition("://")[0] if "://" in source else "file"
    if scheme.rpartition("::")[2] not in _READ:
        raise InputError(
            f"{source}: {scheme}:// is not read; name a file, a folder, or an address with "
            "https://, s3:// or gs://"
        )
    try:
        filesystem, path = fsspec.core.url_to_fs(source)
    except ImportError as error:
        package = _INSTALL.get(scheme, "the fsspec backend for it")
        raise InputError(f"{source}: {scheme}:// needs {package}; install it") from error
    except ValueError as error:
        raise InputError(f"{source}: {error}") from error
    return filesystem, path


PROJECT = ".scriv"
"""A folder with this suffix is a Scrivener project."""


def _project(filesystem: fsspec.AbstractFileSystem, path: str, name: str) -> FileSource:
    entries = filesystem.find(path, detail=True).items()
    sizes = [info["size"] or 0 for hit, info in entries if _is_of_project(hit)]
    return FileSource(name, sum(sizes), filesystem, path)


def _walk(
    filesystem: fsspec.AbstractFileSystem, path: str, source: str, prefix: str
) -> list[FileSource]:
    files = []
    projects: set[str] = set()
    for hit, info in sorted(filesystem.find(path, detail=True).items()):
        inside = hit[len(path.rstrip("/")) + 1 :]
        if f"{PROJECT}/" in inside:
            # A project is one text, whatever files it contains.
            folder = hit[: len(hit) - len(inside)] + inside.partition(f"{PROJECT}/")[0] + PROJECT
            if folder not in projects:
                projects.add(folder)
                files.append(_project(filesystem, folder, _display(folder, source, prefix)))
            continue
        if info["type"] != "file" or any(part.startswith(".") for part in inside.split("/")):
            continue
        file = FileSource(_display(hit, source, prefix), info.get("size"), filesystem, hit)
        if file.format in READERS:
            files.append(file)
    return files


def _display(hit: str, source: str, prefix: str) -> str:
    """A file's name as the user would write it: relative if the source was relative."""
    if prefix:
        return prefix + hit.removeprefix(prefix)
    return hit if os.path.isabs(source) else os.path.relpath(hit)


def check_documents(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield the documents. Raises `InputError` if they are anything else.

    It is raised at once for a string, a path, None, a table, a mapping, or a sequence with an
    element that is not a `Document`; in a stream, when that element is reached.
    """
    items: Any = documents
    # Tables of pandas, Polars and Arrow are recognised by their attributes, without an import.
    is_named = isinstance(items, dict) or hasattr(items, "columns")
    if isinstance(items, str | bytes | Document) or is_named or not hasattr(items, "__iter__"):
        raise InputError(f"{_WANTED}; got {_named(items)}")

    def checked() -> Iterator[Document]:
        for k, document in enumerate(items, 1):
            if not isinstance(document, Document):
                raise InputError(f"{_WANTED}; number {k} is {_named(document)}")
            yield document

    return iter(list(checked())) if isinstance(items, Sequence) else checked()


def _named(value: Any) -> str:
    if isinstance(value, str):
        shown = value if len(value) <= 40 else f"{value[:40]}..."
        return f"the string {shown!r}"
    named = "None" if value is None else f"of type {type(value).__name__}"
    if isinstance(value, Document):
        return f"{named}; put it in a list"
    is_table = hasattr(value, "columns")
    return named + "; use Document(row.id, row.text) for each of its rows" * is_table


def check_ids(documents: Iterable[Document]) -> None:
    """Raise `InputError` if two documents share an id: their results would be mixed up."""
    seen: set[str] = set()
    for document in check_documents(documents):
        if document.id in seen:
            raise InputError(
                f"two texts have the id {document.id!r}; give each its own, or set the id field "
                "with `id_field`"
            )
        seen.add(document.id)


def in_batches(documents: Iterable[Document], n_chars: int) -> Iterator[list[Document]]:
    """Batches of at least `n_chars` characters, which depend only on the documents."""
    batch: list[Document] = []
    total = 0
    for document in documents:
        batch.append(document)
        # An empty document counts too, or a million of them would be one batch.
        total += len(document.text) + 1
        if total >= n_chars:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
