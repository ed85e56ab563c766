"""How long jobs resume: which rows of their file are reused.

A job's file holds one row per thing that the job makes. Rows are found by key (`id` and `model`,
say) and reused if they were made from the same inputs in the same way; a row made from anything
else is an error, and never silently replaced. Rows whose call failed, or whose model refused, are
made again. New rows are appended as they arrive; at the end each key occurs once.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

from fabula.core.errors import InputError
from fabula.core.store import RowWriter, read_rows
from fabula.core.types import Signature

Row = dict[str, Any]
_Key = tuple[Any, ...]
T = TypeVar("T")

_MADE_AGAIN = ("failed", "refused", "lookup_failed")
_TEXTS = ("text_digest", "digest", "context_digest", "text", "story", "original")
_START_OVER = "choose another `out`, or start over with `restart`"


@dataclass(frozen=True, slots=True)
class Share:
    """One of `n` shares of a job's texts, or of a corpus's shards: each `n`-th of them.

    Any scheduler can start the shares, on one machine or several. When all are done, the same job
    without a share joins them.
    """

    number: int
    """From 1."""
    n: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The share written as `3/8`. Raises `InputError`."""
        number, _, n = text.partition("/")
        if number.isdecimal() and n.isdecimal() and 1 <= int(number) <= int(n):
            return cls(int(number), int(n))
        raise InputError(f"`share` {text}: must be I/N, with I from 1 to N, as in 3/8")

    @property
    def name(self) -> str:
        return f"{self.number}-of-{self.n}"

    def has(self, k: int) -> bool:
        """Whether it has the k-th thing, counted from 0."""
        return k % self.n == self.number - 1

    def of(self, things: Iterable[T]) -> Iterator[T]:
        return (item for k, item in enumerate(things) if self.has(k))

    def beside(self, path: Path) -> Path:
        """The file of this share's rows, for a job whose rows are in the file `path`."""
        return path.with_name(f"{path.name}.{self.name}")


@dataclass(slots=True)
class Ledger:
    """What the calls of a run that writes `out` cost, in dollars, a line each, in `OUT.cost`."""

    out: Path
    is_new: bool = False
    """Whether the run starts over: the first call that costs something replaces the file."""

    @property
    def path(self) -> Path:
        return self.out.with_name(f"{self.out.name}.cost")

    def spent(self) -> float:
        """What earlier runs spent. Raises `InputError` if the file is another's."""
        if self.is_new or not self.path.exists():
            return 0.0
        try:
            # The last line is empty, or was cut off by a crash.
            return math.fsum(map(float, self.path.read_text().split("\n")[:-1]))
        except ValueError as error:
            raise InputError(
                f"{self.path}: not what a run spent, in dollars, call by call; remove it, and "
                f"earlier runs do not count towards the limit"
            ) from error

    def add(self, cost: float) -> None:
        with self.path.open("w" if self.is_new else "a") as file:
            file.write(f"{cost!r}\n")
        self.is_new = False


def has_failed(row: Mapping[str, Any]) -> bool:
    """Whether a row records a failure that a retry may fix."""
    return row.get("missing_reason") in _MADE_AGAIN


@dataclass(frozen=True, slots=True)
class RowKind:
    """The kind of rows that a file holds."""

    what: str
    """What a row holds, for error messages: `the score`."""
    key: tuple[str, ...]
    """The fields that identify a row, unique within a run."""
    fields: tuple[str, ...] = ("missing_reason",)
    """Other fields that every row has."""
    is_made_again: Callable[[Mapping[str, Any]], bool] = has_failed
    in_order: bool = False
    """Whether the run is a stream: existing rows must be its beginning, row by row."""

    def check(self, row: Mapping[str, Any], where: str) -> None:
        """Raise `InputError` if a row is of another kind."""
        lacking = sorted({*self.key, *self.fields} - row.keys())
        if lacking or not all(isinstance(row[name], str | int) for name in self.key):
            lacks = f" (it lacks {', '.join(lacking)})" if lacking else ""
            raise InputError(f"{where}: not a row of this command{lacks}; choose another `out`")


class KeptRows:
    """The rows of a job: existing ones, and a place to add new ones.

    Without a file they are kept in memory only. Raises `InputError` if the file holds rows of
    another kind.
    """

    def __init__(
        self,
        kind: RowKind,
        file: RowWriter | None = None,
        *,
        restart: bool = False,
        shared: Iterable[Row] = (),
    ) -> None:
        """`shared`: rows that shares of the job made, which become part of the file."""
        self.kind, self._file, self._starts_over = kind, file, restart
        self._kept: dict[_Key, Row] = {}
        self._new: dict[_Key, Row] = {}
        self._lines: dict[_Key, int] = {}
        """Of all existing rows, including those made again."""
        rows = [] if file is None else file.kept
        for line, row in enumerate(rows, 1):
            kind.check(row, f"{self._name}, line {line}")
        if restart and file is not None:
            file.clear()
            rows = file.kept
        for line, row in enumerate(rows, 1):
            key = self._key(row)
            # A row that was made again is further down; the last one counts.
            if kind.is_made_again(row):
                self._kept.pop(key, None)
            else:
                self._kept[key] = row
            self._lines.setdefault(key, line)
        self.has_stale = len(self._kept) < len(rows)
        """Whether the file holds superseded rows."""
        self._shared = {
            key: row
            for row in shared
            if (key := self._key(row)) not in self._kept and not kind.is_made_again(row)
        }
        self._ahead = iter(tuple(self._lines) if kind.in_order else ())
        self._has_begun = False

    @property
    def _name(self) -> str:
        return "the run" if self._file is None else str(self._file.path)

    @property
    def ledger(self) -> Ledger | None:
        """What the run's calls of models cost, resumes included; None without a file."""
        return None if self._file is None else Ledger(self._file.path, self._starts_over)

    def __len__(self) -> int:
        """The number of existing rows that are reused."""
        return len(self._kept) + len(self._shared)

    def __contains__(self, key: _Key) -> bool:
        return key in self._kept or key in self._shared

    def kept(self) -> Iterator[Row]:
        """The existing rows that are reused."""
        return chain(self._kept.values(), self._shared.values())

    def _key(self, row: Mapping[str, Any]) -> _Key:
        return tuple(row[name] for name in self.kind.key)

    def find(self, expected: Mapping[str, Any]) -> Row | None:
        """The row with this key, or None if there is none to reuse and it must be made.

        In a stream, `keep` it in its turn.

        `expected` holds the key and everything the row must have been made from. Raises
        `InputError` if it was made from something else.
        """
        key = self._key(expected)
        due = next(self._ahead, key)
        if due != key:
            self._refuse(due, "of another text")
        row = self._new.get(key, self._kept.get(key, self._shared.get(key)))
        if row is None:
            return None
        for name, value in expected.items():
            if row.get(name) != value:
                self._refuse(key, _difference(name, row.get(name), value))
        if self.kind.is_made_again(row):
            return None
        if not self.kind.in_order:
            self.keep(row)
        return row

    def keep(self, row: Row) -> None:
        """Append a row that was found to the file, if a share made it."""
        if self._shared.pop(self._key(row), None) is not None:
            self.add(row)

    def check_only(self, keys: Collection[_Key]) -> None:
        """Raise `InputError` if an existing row does not belong to this run."""
        for key in self._lines:
            if key not in keys:
                raise InputError(
                    f"{self._name}, line {self._lines[key]}: {_shown(key)} does not belong to this "
                    f"run; {_START_OVER}"
                )

    def check_end(self) -> None:
        """Raise `InputError` if a stream ended before the existing rows did."""
        due = next(self._ahead, None)
        if due is not None:
            self._refuse(due, "of another text")

    def _refuse(self, key: _Key, difference: str) -> NoReturn:
        line = self._lines.get(key)
        where = f"a share of {self._name}" if line is None else f"{self._name}, line {line}"
        raise InputError(
            f"{where}: contains {self.kind.what} {difference}: {_shown(key)}; {_START_OVER}"
        )

    def begin(self) -> None:
        """Prepare the file for new rows. Until then it is not changed."""
        if self._file is not None and not self._has_begun:
            self._file.begin()
        self._has_begun = True

    def add(self, row: Row) -> None:
        """Append a row; once this returns, the row survives a crash of this process."""
        self.begin()
        if self._file is not None:
            self._file.write(row)
        if not self.kind.in_order:
            # A stream may be long; its new rows are only in the file.
            self._new[self._key(row)] = row

    def settle(self, rows: Iterable[Row]) -> None:
        """Put these rows in order, after those of other runs, each exactly once.

        If nothing was added and the rows are already in order, the file is not changed.
        """
        if self._file is None:
            return
        by_key = self._kept | self._new
        # A call that failed has no row.
        ours = {self._key(row): row for row in rows if row.keys() >= {*self.kind.key}}
        settled = {key: row for key, row in by_key.items() if key not in ours} | ours
        if self._has_begun:
            is_settled = not self.has_stale and list(settled) == list(by_key)
        else:
            # If a run was killed after the last row but before this, the next run settles its file.
            lacks = self._lines.keys() - self._kept.keys()
            in_order = [key for key in by_key if key in ours] == list(ours)
            is_settled = bool(lacks) or (not self.has_stale and in_order)
        if not is_settled:
            self._file.replace(settled.values())


def _shown(key: _Key) -> str:
    return " ".join(repr(str(part)[:80]) for part in key)


def _difference(name: str, was: object, expected: object) -> str:
    """How a row was made differently, to follow `the score`."""
    if name in _TEXTS:
        return "of another text"
    if name == "prompt_digest":
        return "to another prompt"
    if name == "signature":
        changed = Signature.parse(str(expected)).differences(Signature.parse(str(was)))
        return f"measured or made with other settings ({'; '.join(changed)})"
    return f"measured or made with other settings (another {name})"


@contextmanager
def kept_rows(
    path: Path | None, kind: RowKind, *, restart: bool = False, share: Share | None = None
) -> Iterator[KeptRows]:
    """Open the rows of a file as its only writer; without a path they are kept in memory.

    Those of a `share` are in a file of its own beside it; without one, those of all shares count as
    made. Raises `InputError` if a file holds something else, `BusyError` if another process is
    writing.
    """
    if path is None:
        yield KeptRows(kind)
        return
    if share is not None:
        with RowWriter(share.beside(path), restart=restart) as file:
            yield KeptRows(kind, file, restart=restart)
        return
    shared: list[Row] = []
    for other in sorted(path.parent.glob(f"{glob.escape(path.name)}.*-of-*")):
        for line, row in enumerate([] if restart else read_rows(other), 1):
            kind.check(row, f"{other}, line {line}")
            shared.append(row)
    with RowWriter(path, restart=restart) as file:
        yield KeptRows(kind, file, restart=restart, shared=shared)
