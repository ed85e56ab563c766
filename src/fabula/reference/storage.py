"""Opening corpora: in folders, or at addresses, from which they are fetched once.

    CACHE/references/KEY/NAME/     a corpus from an address (`layout`); KEY stands for the address

A file is fetched if it is not there as the manifest says; the manifest is read each time. Files are
compared with their checksums when a corpus is first opened, and again only after they change; those
of a small folder, each time.
"""

from __future__ import annotations

import errno
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from fabula.cached_results import CachedResults, cache_folder
from fabula.errors import CorpusError, FabulaError
from fabula.reference.layout import MANIFEST, Manifest, Shard
from fabula.reference.parts import About, LocalPart
from fabula.store import checksum, write_whole, writer_lock
from fabula.workers import default_jobs

HELD_OUT = "held_out.jsonl"
"""Beside a corpus: scores of its own documents, one line for each way to measure."""
_SMALL_BYTES = 4 << 20
"""Folders up to this size are compared each time; that takes milliseconds."""
_MANY_BYTES = 1 << 30
"""Above this size, progress is reported."""
_SETTLED_NS = 2 * 10**9
"""A file written more recently may change again within the same tick of the clock."""

Report = Callable[[str], None]


def is_address(spec: str | Path) -> bool:
    """Whether it is the address of a corpus's files: s3://, gs:// or https://.../manifest.json."""
    if not isinstance(spec, str) or "://" not in spec:
        return False
    return not spec.startswith(("http://", "https://")) or spec.endswith(f"/{MANIFEST}")


def corpus_folder(spec: str | Path) -> Path:
    """The folder that a user names; it need not exist. Raises `CorpusError` for an address."""
    if "://" in str(spec):
        raise CorpusError(
            f"{spec}: a corpus is built and changed in a folder; copy the folder there afterwards, "
            "with the tools of the store"
        )
    return Path(spec)


def open_corpora(places: Iterable[str | Path], report: Report = lambda stage: None) -> LocalPart:
    """Open the corpora at these paths and addresses as one; one found twice counts once.

    Raises `CorpusError` if there is none, a damaged one, or one with other settings.
    """
    corpora: dict[str, tuple[Path, Manifest]] = {}
    for place in dict.fromkeys(places):
        folder = fetch_corpus(place, report)
        manifest = Manifest.read(folder)
        corpora.setdefault(manifest.fingerprint, (folder, manifest))
    abouts, shards = [], []
    for fingerprint, (folder, manifest) in corpora.items():
        removed = np.zeros(sum(info.n_documents for info in manifest.shards), np.bool_)
        removed[manifest.read_removed(folder)] = True
        abouts.append(
            About(
                name=folder.resolve().name,
                fingerprint=fingerprint,
                settings=manifest.settings,
                n_documents=manifest.n_documents,
                n_words=manifest.n_words,
                written_by=manifest.written_by,
                removed=removed,
                age=manifest.age,
            )
        )
        shards += [(folder / "shards" / info.name, info) for info in manifest.shards]
    about = abouts[0]
    if len(abouts) > 1:
        about = About.joined([str(folder) for folder, _ in corpora.values()], abouts)
    check_files([(folder, info.files) for folder, info in shards], report)
    return LocalPart(about, [Shard(folder, info) for folder, info in shards])


def check_files(
    folders: Sequence[tuple[Path, Mapping[str, str]]], report: Report = lambda stage: None
) -> None:
    """Compare the SHA-256 of the files of these folders, except those already compared.

    folders: each with its checksums by file name. Raises `CorpusError` that names the first file
    that is missing or changed.
    """
    expected: dict[Path, str] = {}
    stamps: dict[Path, list[int]] = {}
    keys: dict[Path, bytes] = {}
    for folder, digests in folders:
        files = {folder / name: digest for name, digest in digests.items()}
        expected |= files
        stamps |= {file: _stamp(file) for file in files}
        if sum(stamps[file][0] for file in files) > _SMALL_BYTES:
            for file, digest in files.items():
                key = f"checked\n{folder.resolve() / file.name}\n{stamps[file]}\n{digest}"
                keys[file] = key.encode(errors="surrogateescape")
    known: set[Path] = set()
    if keys:
        compared = zip(keys, CachedResults().find(list(keys.values())), strict=True)
        known = {file for file, result in compared if result is not None}
    new = [file for file in stamps if file not in known]
    n_all, n_done, lock = sum(stamps[file][0] for file in new), 0, threading.Lock()

    def check(file: Path) -> None:
        nonlocal n_done
        if checksum(file) != expected[file]:
            raise CorpusError(
                f"{file}: damaged (changed since it was written); restore it from a copy, or build "
                "it again (`fabula reference info --check` checks all files)"
            )
        with lock:
            n_done += stamps[file][0]
            if n_all > _MANY_BYTES:
                report(f"checking files (once): {n_done / 1e9:.1f} of {n_all / 1e9:.1f} GB")

    if new:
        with ThreadPoolExecutor(min(default_jobs(), len(new))) as pool:
            list(pool.map(check, new))
    before = time.time_ns() - _SETTLED_NS
    settled = (file for file in new if file in keys and stamps[file][2] < before)
    same = {keys[file]: b"same" for file in settled if _stamp(file) == stamps[file]}
    if same:
        CachedResults().keep(same)


def _stamp(file: Path) -> list[int]:
    """The attributes that change with the file: size, modification and change times, inode."""
    try:
        there = file.stat()
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{file}: missing or unreadable ({error}); restore it from a copy, or build it again "
            "(`fabula reference info --check` checks all files)"
        ) from error
    return [there.st_size, there.st_mtime_ns, there.st_ctime_ns, there.st_ino]


def fetch_corpus(spec: str | Path, report: Report = lambda stage: None) -> Path:
    """The folder of the corpus: of one at an address, a copy whose files are all checked.

    Raises `CorpusError` if there is no corpus, if a file is not as its manifest says, or if the
    store does not give it.
    """
    if not is_address(spec):
        return Path(spec)
    address = str(spec).removesuffix(MANIFEST).rstrip("/")
    key = hashlib.sha256(address.encode()).hexdigest()[:16]
    folder = cache_folder() / "references" / key / address.rpartition("/")[2]
    # Processes that want the same copy wait, then find it.
    with _Store(address) as store, writer_lock(folder / ".lock", str(folder), waits=True):
        data = store.read(MANIFEST)
        if data is None:
            raise CorpusError(f"{address}: not a reference corpus (no {MANIFEST})")
        manifest = Manifest.parse(data, f"{address}/{MANIFEST}")
        parts: dict[str, Mapping[str, str]] = {f"shards/{s.name}": s.files for s in manifest.shards}
        if manifest.removed is not None:
            parts["."] = {manifest.removed: str(manifest.removed_sha256)}
        for k, (place, files) in enumerate(parts.items(), 1):
            report(f"fetching part {k} of {len(manifest.shards) + 1} from {address}")
            try:
                # What was compared before is not read again.
                check_files([(folder / place, files)])
            except CorpusError:
                for name, expected in files.items():
                    file = folder / place / name
                    if not file.exists() or checksum(file) != expected:
                        store.fetch(f"{place}/{name}".removeprefix("./"), file, expected)
        write_whole(folder / HELD_OUT, store.read(HELD_OUT) or b"")
        write_whole(folder / MANIFEST, data)
    return folder


class _Store:
    """An address, reached by fsspec. Each kind of store has its own errors: `CorpusError`."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> _Store:
        from fabula.text import open_filesystem

        self._filesystem, root = open_filesystem(self.address)
        self._filesystem.invalidate_cache()
        self._root = root.rstrip("/")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | FabulaError) or not isinstance(error, Exception):
            return
        raise self._failed(error) from error

    def read(self, name: str) -> bytes | None:
        try:
            data: bytes = self._filesystem.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error) from error
        return data

    def fetch(self, name: str, file: Path, expected: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{file.name}.part")
        try:
            self._filesystem.get_file(f"{self._root}/{name}", str(aside))
            if checksum(aside) != expected:
                raise CorpusError(
                    f"{self.address}/{name}: does not match the manifest; the corpus may be "
                    "changing right now: try again, or copy it there again"
                )
            aside.replace(file)
        except FileNotFoundError as error:
            raise CorpusError(
                f"{self.address}/{name}: missing; copy the corpus there again"
            ) from error
        except OSError as error:
            # What is wrong with this machine's disk is not the address's fault.
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise
            raise self._failed(error) from error
        finally:
            aside.unlink(missing_ok=True)

    def _failed(self, error: Exception) -> CorpusError:
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return CorpusError(
            f"{self.address}: cannot be fetched ({said}); check the address and who may read it, "
            "and run the same command again"
        )
