"""A result in an object store: what it consists of, and the record beside it.

The record of `s3://corpora/books` is `s3://corpora/books.provenance.json`. A bucket itself has
nothing beside it, so a result that fills a bucket has no record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.errors import FabulaError, InputError

if TYPE_CHECKING:
    import fsspec

__all__ = [
    "checksum_stored",
    "digest_stored",
    "is_address",
    "manifest_digest",
    "read_beside",
    "stored_files",
    "write_beside",
]

_MANIFEST = "manifest.json"
_CHUNK_BYTES = 1 << 22


def is_address(place: str | Path) -> bool:
    """Whether a place is an address that fsspec may open: `s3://...`, and not `https://...`."""
    if not isinstance(place, str) or "://" not in place:
        return False
    from fsspec import available_protocols

    schemes = place.partition("://")[0].split("::")
    return all(one in available_protocols() for one in schemes) and schemes[-1][:4] != "http"


def stored_files(address: str) -> dict[str, int]:
    """The sizes of all files of a result, by their names in it; empty if there is none."""
    with _reached(address) as (filesystem, root):
        found = filesystem.find(root, detail=True)
        return {
            path.removeprefix(root).lstrip("/"): int(info["size"] or 0)
            for path, info in sorted(found.items())
        }


def checksum_stored(address: str, name: str) -> str:
    """SHA-256 of a file of a result, which is read whole."""
    digest = hashlib.sha256()
    with (
        _reached(address) as (filesystem, root),
        filesystem.open(f"{root}/{name}", "rb", block_size=_CHUNK_BYTES) as file,
    ):
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def digest_stored(address: str) -> str:
    """The digest of a corpus, as of one on this machine: of its manifest's name and checksum.

    The manifest holds the checksums of the other files.
    """
    line = f"{_MANIFEST} {checksum_stored(address, _MANIFEST)}\n"
    return hashlib.sha256(line.encode()).hexdigest()


def manifest_digest(address: str, since_ns: int) -> str | None:
    """SHA-256 of a corpus's manifest; None for anything else, or if it changed or cannot be read.

    Like for a corpus on this machine, the manifest stands for all files of the corpus.
    """
    try:
        with _reached(address) as (filesystem, root):
            place = f"{root}/{_MANIFEST}"
            if not filesystem.exists(place):
                return None
            changed = filesystem.modified(place)
        changed = changed if changed.tzinfo is not None else changed.replace(tzinfo=UTC)
        if changed > datetime.fromtimestamp(since_ns / 1e9, UTC):
            return None
        return checksum_stored(address, _MANIFEST)
    except (FabulaError, NotImplementedError):
        return None


def read_beside(address: str, ending: str) -> bytes | None:
    """The content of the file beside a result with this ending; None if there is none."""
    with _reached(address) as (filesystem, root):
        if "/" not in root:
            return None
        try:
            data: bytes = filesystem.cat_file(root + ending)
        except FileNotFoundError:
            return None
        return data


def write_beside(address: str, ending: str, data: bytes) -> bool:
    """Write the file beside a result with this ending; False if nothing can be beside it."""
    with _reached(address) as (filesystem, root):
        if "/" not in root:
            return False
        filesystem.pipe_file(root + ending, data)
        return True


@contextmanager
def _reached(address: str) -> Iterator[tuple[fsspec.AbstractFileSystem, str]]:
    """The store's file system, not cached. Raises `InputError` if an operation fails."""
    from fabula.text import open_filesystem

    filesystem, root = open_filesystem(address)
    filesystem.invalidate_cache()
    try:
        yield filesystem, root.rstrip("/")
    except (FabulaError, NotImplementedError):
        raise
    except Exception as error:
        # Each kind of store has its own errors.
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(
            f"{address}: the store did not do what it was asked ({said}); check the address and "
            f"who may read and write there"
        ) from error
