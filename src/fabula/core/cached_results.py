"""Results that were computed before: in this process, and in the user's cache folder.

The folder holds one SQLite file. A result is found by its key, which is all that determines it: the
version of Fabula, the tool, and the piece of text or its tokens; the index and the n-gram that was
looked up; the file of a reference, its state and its checksum. The file holds hashes of keys, and
only its owner can read it. Whatever goes wrong with it costs time only: results are computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from fabula.core import __version__
from fabula.core.errors import DAMAGE

K = TypeVar("K")
T = TypeVar("T")

_FILE = "results-2.sqlite3"
_MAX_BYTES = 256_000_000
"""About twenty novels, or four thousand windows of surprisals with as many stories. Beyond it, a
quarter is removed: the results that were not used for longest."""
_BATCH = 500
"""SQLite limits the number of parameters of a statement."""
_BUSY_S = 5
_DAY_S = 24 * 3600
_ID_BYTES, _CHECK_BYTES = 16, 8


def cache_folder() -> Path:
    """The user's cache folder; the environment variable FABULA_CACHE overrides it."""
    from platformdirs import user_cache_path

    folder = os.environ.get("FABULA_CACHE")
    return Path(folder) if folder else user_cache_path("fabula")


class CachedResults:
    """Results by key, in a file that processes share; the default is in the cache folder.

    The file is opened for each call, so that no connection is shared by forked processes; with
    `stays_open` for all calls, from any thread, until `close`.
    """

    def __init__(self, path: Path | None = None, *, stays_open: bool = False) -> None:
        self._path = path
        self._stays_open = stays_open
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        return self._path or cache_folder() / _FILE

    def find(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The result of each key; None if it is not there, or damaged."""
        if not keys or (self._connection is None and not self.path.exists()):
            return [None] * len(keys)
        ids = [_id_of(key) for key in keys]
        data_of: dict[bytes, bytes] = {}

        def find(rows: sqlite3.Connection) -> None:
            today = _today()
            for at in range(0, len(ids), _BATCH):
                part = ids[at : at + _BATCH]
                where = f"id IN ({','.join('?' * len(part))})"
                query = f"SELECT id, data, digest, used FROM results WHERE {where}"
                kept = rows.execute(query, part).fetchall()
                if old := [(today, id_) for id_, _, _, used in kept if used < today]:
                    rows.executemany("UPDATE results SET used = ? WHERE id = ?", old)
                data_of.update(
                    (i, data) for i, data, digest, _ in kept if _digest(i, data) == digest
                )

        if not self._use(find):
            data_of.clear()
        return [data_of.get(id_) for id_ in ids]

    def keep(self, results: Mapping[bytes, bytes]) -> None:
        """Add results, or replace them."""
        ids = {_id_of(key): data for key, data in results.items()}
        new = [(id_, data, _digest(id_, data), _today()) for id_, data in ids.items()]

        def keep(rows: sqlite3.Connection) -> None:
            rows.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", new)
            (n_pages,), (n_free,), (page_bytes,) = (
                rows.execute(f"PRAGMA {name}").fetchone()
                for name in ("page_count", "freelist_count", "page_size")
            )
            if (n_pages - n_free) * page_bytes > _MAX_BYTES:
                rows.execute(
                    "DELETE FROM results WHERE rowid IN (SELECT rowid FROM results ORDER BY used, "
                    "rowid LIMIT (SELECT COUNT(*) / 4 FROM results))"
                )

        if new:
            self._use(keep)

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _use(self, use: Callable[[sqlite3.Connection], None]) -> bool:
        """Call `use` in a transaction on the file, which is created if it does not exist.

        False if there is an error; a damaged file is removed.
        """
        with self._lock:
            try:
                rows = self._connection
                if rows is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    # Readable by its owner only, and so are the files that SQLite puts beside it.
                    os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
                    rows = sqlite3.connect(self.path, timeout=_BUSY_S, check_same_thread=False)
                    self._connection = rows
                    # A power failure may damage the file, which is noticed.
                    rows.execute("PRAGMA synchronous = OFF")
                    rows.execute(
                        "CREATE TABLE IF NOT EXISTS results (id BLOB PRIMARY KEY, data BLOB, "
                        "digest BLOB, used INTEGER)"
                    )
                with rows:
                    use(rows)
            except (OSError, sqlite3.OperationalError):
                # A full disk, a folder that cannot be written, a file that others keep busy.
                self._let_go()
            except sqlite3.DatabaseError:
                self._let_go()
                with contextlib.suppress(OSError):
                    self.path.unlink()
            else:
                return True
            finally:
                if not self._stays_open:
                    self._let_go()
        return False


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """How results are kept for other processes, as JSON in the user's cache folder.

    `name` is all that determines a result besides its piece: what it is, its tool with its version,
    and the number of this form of it.
    """

    name: str
    to_json: Callable[[T], Any]
    from_json: Callable[[str, Any], T]
    """Given the piece, and what `to_json` returned."""

    def find(self, pieces: Sequence[str]) -> dict[str, T]:
        """The results of those pieces that have been kept."""
        results = {}
        stored = CachedResults().find([self._key(piece) for piece in pieces])
        for piece, data in zip(pieces, stored, strict=True):
            if data is not None:
                try:
                    results[piece] = self.from_json(piece, json.loads(data))
                except DAMAGE:
                    # Made again, and replaced.
                    continue
        return results

    def keep(self, results: Mapping[str, T]) -> None:
        """Keep these results."""
        CachedResults().keep(
            {
                self._key(piece): json.dumps(self.to_json(result), separators=(",", ":")).encode()
                for piece, result in results.items()
            }
        )

    def _key(self, piece: str) -> bytes:
        return f"{__version__}|{self.name}\n{piece}".encode(errors="surrogatepass")


class Recent(OrderedDict[K, T], Generic[K, T]):
    """The most recently used values of a total size up to `max_size`, and `at_least` so many."""

    def __init__(self, max_size: int, size: Callable[[K, T], int], at_least: int = 0) -> None:
        super().__init__()
        self._max_size, self._size_of, self._at_least = max_size, size, at_least
        self._size = 0

    def remember(self, key: K, value: T) -> None:
        self._size += self._size_of(key, value)
        if key in self:
            self._size -= self._size_of(key, self[key])
        self[key] = value
        self.move_to_end(key)
        while len(self) > self._at_least and self._size > self._max_size:
            self._size -= self._size_of(*self.popitem(last=False))


class Memo(Generic[T]):
    """Cached results by piece of text: most pieces recur in the next draft.

    A result must depend on its piece alone; threads may share the cache. Beyond `max_chars`
    characters of pieces, the least recently used are evicted. With `kept`, results outlive the
    process.
    """

    def __init__(self, max_chars: int, kept: Kept[T] | None = None) -> None:
        self._kept = kept
        self._known: Recent[str, T] = Recent(max_chars, lambda piece, _: len(piece))
        self._lock = threading.Lock()

    def each(
        self, pieces: Iterable[str], make: Callable[[list[str]], Iterable[T]], n_batch: int
    ) -> Iterator[T]:
        """Yield the result of each piece, in order.

        `make` computes the results of new pieces, up to `n_batch` at a time.
        """
        stream = iter(pieces)
        while batch := list(islice(stream, n_batch)):
            wanted = dict.fromkeys(batch)
            results = self.known(wanted)
            if new := [piece for piece in wanted if piece not in results]:
                made = dict(zip(new, make(new), strict=True))
                if self._kept is not None:
                    self._kept.keep(made)
                results |= made
            with self._lock:
                for piece, result in results.items():
                    self._known.remember(piece, result)
            yield from (results[piece] for piece in batch)

    def known(self, pieces: Iterable[str]) -> dict[str, T]:
        """The results of those pieces that have one."""
        wanted = list(pieces)
        with self._lock:
            known = {piece: self._known[piece] for piece in wanted if piece in self._known}
        new = [piece for piece in wanted if piece not in known]
        return known | self._kept.find(new) if new and self._kept is not None else known


def _today() -> int:
    return int(time.time()) // _DAY_S


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[:_ID_BYTES]


def _digest(id_: bytes, data: bytes) -> bytes:
    # A damaged index may lead to the row of another key.
    return hashlib.sha256(id_ + data).digest()[:_CHECK_BYTES]
