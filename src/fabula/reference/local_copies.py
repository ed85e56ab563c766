"""Local copies of corpora in an object store, so that they can be memory-mapped.

    CACHE/references/KEY/NAME/     as the corpus (`layout`), with the shards that were needed here

KEY stands for the address, NAME is its last part. A file is copied once, verified with its checksum
and kept; the manifest is read each time.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from fabula.errors import CorpusError
from fabula.reference.checksums import check_files, check_seal, parse_row
from fabula.reference.layout import Manifest, check_names
from fabula.reference.storage import StoredHome, is_stored, open_home
from fabula.store import (
    cache_folder,
    checksum,
    fresh_folder,
    publish_folder,
    write_whole,
    writer_lock,
)

__all__ = ["copy_passages", "copy_shards", "folder_of"]

Report = Callable[[str], None]


def folder_of(spec: str | Path) -> Path:
    """The folder of the corpus on this machine, or of its copy."""
    if not is_stored(spec):
        return Path(spec)
    address = open_home(str(spec)).spec
    key = hashlib.sha256(address.encode()).hexdigest()[:16]
    return cache_folder() / "references" / key / address.rpartition("/")[2]


def copy_shards(
    spec: str | Path,
    names: Collection[str] | None = None,
    report: Report = lambda stage: None,
) -> Path:
    """The folder of the corpus, with at least the shards with these names (or all).

    Nothing is copied if the corpus is in a folder already. Raises `CorpusError` if there is no
    corpus, if a copy differs from the manifest, or if the disk is full.
    """
    folder = folder_of(spec)
    if not is_stored(spec):
        return folder
    home = StoredHome(open_home(str(spec)).spec)
    manifest = Manifest.read(home)
    with _alone(folder):
        if manifest.removed is not None and not (folder / manifest.removed).exists():
            write_whole(folder / manifest.removed, home.read(manifest.removed) or b"")
        write_whole(folder / "manifest.json", manifest.to_json())
        wanted = [info for info in manifest.shards if names is None or info.name in names]
        for k, info in enumerate(wanted, 1):
            row = json.dumps(asdict(info)).encode()
            report(f"copying shard {k} of {len(wanted)} from {home.spec}")
            _copy(home, folder, f"shards/{info.name}", info.files, row)
    return folder


def copy_passages(
    spec: str | Path,
    key: str,
    names: Collection[str],
    report: Report = lambda stage: None,
) -> None:
    """Copy the passages of these shards beside their copies, unless they are in place."""
    if not is_stored(spec):
        return
    folder = folder_of(spec)
    home = StoredHome(open_home(str(spec)).spec)
    with _alone(folder):
        for k, name in enumerate(sorted(names), 1):
            row = home.read(f"passages/{key}/{name}/shard.json")
            if row is not None:
                report(f"copying passages {k} of {len(names)} from {home.spec}")
                place = f"passages/{key}/{name}"
                said = parse_row(row, f"{home.spec}/{place}/shard.json")
                check_seal(said, f"{home.spec}/{place}/shard.json")
                _copy(home, folder, place, said["files"], row)


def _alone(folder: Path) -> AbstractContextManager[None]:
    """A lock: processes that want the same copy wait, then find it."""
    return writer_lock(folder / ".lock", str(folder), waits=True)


def _is_there(place: Path, files: Mapping[str, str], row: bytes) -> bool:
    """Whether the copy is of this very folder, and complete: a damaged one is replaced."""
    last = place / "shard.json"
    if not last.exists() or last.read_bytes() != row:
        return False
    try:
        check_files([(place, files)])
    except CorpusError:
        return False
    return True


def _copy(home: StoredHome, folder: Path, name: str, files: Mapping[str, str], row: bytes) -> None:
    """Copy one folder of the corpus, unless it exists: all its files, with `row` last."""
    place = folder / name
    if _is_there(place, files, row):
        return
    check_names(f"{home.spec}/{name}", files)
    aside = fresh_folder(place)
    try:
        for file, expected in files.items():
            home.fetch(f"{name}/{file}", aside / file)
            if checksum(aside / file) != expected:
                raise CorpusError(
                    f"{home.spec}/{name}/{file}: does not match the manifest; the corpus may be "
                    f"changing right now: try again, or run `fabula reference verify {home.spec}`"
                )
        (aside / "shard.json").write_bytes(row)
        if place.exists():
            shutil.rmtree(place)
        publish_folder(aside, place)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise CorpusError(
            f"{folder}: no space left for a copy of {home.spec}; free some, or set FABULA_CACHE "
            "to another location"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
