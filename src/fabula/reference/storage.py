"""The folder of a corpus; and corpora at an address, which are fetched once and opened here.

    CACHE/references/KEY/NAME/     a corpus from an address (`layout`); KEY stands for the address

A file is fetched if it is not there as the manifest says; the manifest is read each time.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabula.cached_results import cache_folder
from fabula.errors import CorpusError, FabulaError
from fabula.store import checksum, fresh_folder, publish_folder, write_whole, writer_lock

HELD_OUT = "held_out.jsonl"
"""Beside a corpus: scores of its own documents, one line for each way to measure."""
_MANIFEST = "manifest.json"


def is_address(spec: str | Path) -> bool:
    """Whether it is the address of a corpus's files: s3://, gs:// or https://.../manifest.json."""
    if not isinstance(spec, str) or "://" not in spec:
        return False
    return not spec.startswith(("http://", "https://")) or spec.endswith(f"/{_MANIFEST}")


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of a corpus, which need not exist. `name` is a file's path inside it."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if it does not exist."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file atomically."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, data)

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its contents; does nothing if it does not exist."""
        place = self.path / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted; empty if it does not exist."""
        place = self.path / folder
        return sorted(entry.name for entry in place.iterdir()) if place.is_dir() else []

    def checksum(self, name: str) -> str | None:
        """A file's SHA-256 in hexadecimal; None if it does not exist."""
        file = self.path / name
        return checksum(file) if file.exists() else None

    def n_bytes(self, folder: str) -> int:
        """The total size of all files in a folder."""
        return sum(f.stat().st_size for f in (self.path / folder).rglob("*") if f.is_file())

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """An empty folder that becomes the folder `name` on exit, atomically."""
        aside = fresh_folder(self.path / name)
        yield aside
        publish_folder(aside, self.path / name)

    @contextmanager
    def lock(self, folder: str = "", *, waits: bool = False) -> Iterator[None]:
        """Hold the exclusive right to write there.

        If another process holds it, wait, or raise `BusyError`.
        """
        place = self.path / folder
        with writer_lock(place / ".lock", str(place), waits=waits):
            # The process that wrote these was killed: the lock excludes other writers.
            for left in place.glob(".*.part"):
                left.unlink(missing_ok=True)
            yield


def open_home(spec: str | Path | Home) -> Home:
    """The folder that a user names; it need not exist. Raises `CorpusError` for an address."""
    if isinstance(spec, Home):
        return spec
    if "://" in str(spec):
        raise CorpusError(
            f"{spec}: a corpus is built and changed in a folder; copy the folder there afterwards, "
            "with the tools of the store"
        )
    return Home(Path(spec))


def fetch_corpus(spec: str | Path, report: Callable[[str], None] = lambda stage: None) -> Path:
    """The folder of the corpus: of one at an address, a copy whose files are all checked.

    Raises `CorpusError` if there is no corpus, if a file is not as its manifest says, or if the
    store does not give it.
    """
    if not is_address(spec):
        return Path(spec)
    from fabula.reference.checksums import check_files
    from fabula.reference.layout import Manifest

    address = str(spec).removesuffix(_MANIFEST).rstrip("/")
    key = hashlib.sha256(address.encode()).hexdigest()[:16]
    folder = cache_folder() / "references" / key / address.rpartition("/")[2]
    # Processes that want the same copy wait, then find it.
    with _Store(address) as store, writer_lock(folder / ".lock", str(folder), waits=True):
        data = store.read(_MANIFEST)
        if data is None:
            raise CorpusError(f"{address}: not a reference corpus (no {_MANIFEST})")
        manifest = Manifest.parse(data, f"{address}/{_MANIFEST}")
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
        write_whole(folder / _MANIFEST, data)
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
        finally:
            aside.unlink(missing_ok=True)

    def _failed(self, error: Exception) -> CorpusError:
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return CorpusError(
            f"{self.address}: cannot be fetched ({said}); check the address and who may read it, "
            "and run the same command again"
        )
