"""How every long job goes on where it was: which rows of its file are used again.

A job's file holds a row for each thing that the job makes. A row is found by its key (`id` and
`model`, say), and used again where it was made of the same things in the same way; a row that was
made of something else is an error, and never replaced in silence. A row whose call failed, or whose
model refused, is made again. New rows are appended as they come; in the end each stands there once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from fabula.errors import InputError
from fabula.store import RowWriter
from fabula.types import Signature

__all__ = ["KeptRows", "Row", "RowKind", "has_failed", "kept_rows"]

Row = dict[str, Any]
_Key = tuple[Any, ...]

_MADE_AGAIN = ("failed", "refused", "lookup_failed")
_TEXTS = ("text_digest", "digest", "context_digest", "text", "story", "original")
_START_OVER = "choose another `out`, or start over with `restart`"


def has_failed(row: Mapping[str, Any]) -> bool:
    """Whether a row says that nothing came of it, and that another try may bring something."""
    return row.get("missing_reason") in _MADE_AGAIN


@dataclass(frozen=True, slots=True)
class RowKind:
    """The rows of one kind of file."""

    what: str
    """What a row holds, for an error: `the score`."""
    key: tuple[str, ...]
    """The fields that name a row: no two rows of a run have the same."""
    fields: tuple[str, ...] = ("missing_reason",)
    """What else each row has."""
    is_made_again: Callable[[Mapping[str, Any]], bool] = has_failed
    in_order: bool = False
    """Whether the run is a stream: what is there must be how it begins, row by row."""

    def check(self, row: Mapping[str, Any], where: str) -> None:
        """Raise `InputError` where a row is of another kind."""
        lacking = sorted({*self.key, *self.fields} - row.keys())
        if lacking or not all(isinstance(row[name], str | int) for name in self.key):
            lacks = f" (it lacks {', '.join(lacking)})" if lacking else ""
            raise InputError(f"{where}: not a row of this command{lacks}; choose another `out`")


class KeptRows:
    """The rows of a job: those that are there already, and a place for new ones.

    Without a file they are in memory alone. Raises `InputError` where the file holds rows of
    another kind.
    """

    def __init__(
        self, kind: RowKind, file: RowWriter | None = None, *, restart: bool = False
    ) -> None:
        self.kind, self._file = kind, file
        self._kept: dict[_Key, Row] = {}
        self._new: dict[_Key, Row] = {}
        self._lines: dict[_Key, int] = {}
        """Of all rows that are there, also of those that are made again."""
        rows = [] if file is None else file.kept
        for line, row in enumerate(rows, 1):
            kind.check(row, f"{self._name}, line {line}")
        if restart and file is not None:
            file.clear()
            rows = file.kept
        for line, row in enumerate(rows, 1):
            key = self._key(row)
            # A row that was made again stands further down; the last one counts.
            if kind.is_made_again(row):
                self._kept.pop(key, None)
            else:
                self._kept[key] = row
            self._lines.setdefault(key, line)
        self.has_stale = len(self._kept) < len(rows)
        """Whether the file holds rows that do not count."""
        self._ahead = iter(tuple(self._lines) if kind.in_order else ())
        self._has_begun = False

    @property
    def _name(self) -> str:
        return "the run" if self._file is None else str(self._file.path)

    def __len__(self) -> int:
        """How many rows that were there are used again."""
        return len(self._kept)

    def __contains__(self, key: _Key) -> bool:
        return key in self._kept

    def kept(self) -> Iterator[Row]:
        """The rows that were there and count."""
        return iter(self._kept.values())

    def _key(self, row: Mapping[str, Any]) -> _Key:
        return tuple(row[name] for name in self.kind.key)

    def find(self, expected: Mapping[str, Any]) -> Row | None:
        """The row of this key; None where there is none that counts, and it is to be made.

        `expected` holds the key and all that the row must have been made of. Raises `InputError`
        where it was made of something else.
        """
        key = self._key(expected)
        due = next(self._ahead, key)
        if due != key:
            self._refuse(due, "of another text")
        row = self._new.get(key, self._kept.get(key))
        if row is None:
            return None
        for name, value in expected.items():
            if row.get(name) != value:
                self._refuse(key, _difference(name, row.get(name), value))
        return None if self.kind.is_made_again(row) else row

    def check_only(self, keys: Collection[_Key]) -> None:
        """Raise `InputError` where a row that is there is none of this run's."""
        for key in self._lines:
            if key not in keys:
                raise InputError(
                    f"{self._name}, line {self._lines[key]}: {_shown(key)} does not belong to this "
                    f"run; {_START_OVER}"
                )

    def check_end(self) -> None:
        """Raise `InputError` where a stream has ended before what is there."""
        due = next(self._ahead, None)
        if due is not None:
            self._refuse(due, "of another text")

    def _refuse(self, key: _Key, difference: str) -> NoReturn:
        raise InputError(
            f"{self._name}, line {self._lines.get(key, 0)}: contains {self.kind.what} "
            f"{difference}: {_shown(key)}; {_START_OVER}"
        )

    def begin(self) -> None:
        """Make the file ready for new rows. Until then it stays as it was found."""
        if self._file is not None and not self._has_begun:
            self._file.begin()
        self._has_begun = True

    def add(self, row: Row) -> None:
        """Append a row; it outlives this process when this returns."""
        self.begin()
        if self._file is not None:
            self._file.write(row)
        if not self.kind.in_order:
            # A stream may be long; what is new of it is in the file alone.
            self._new[self._key(row)] = row

    def settle(self, rows: Iterable[Row]) -> None:
        """Put these rows in their order, after those of other runs; each stands there once.

        Where nothing was added, and these stand there in their order, the file stays as it was
        found.
        """
        if self._file is None:
            return
        there = self._kept | self._new
        # A call that failed has no row.
        ours = {self._key(row): row for row in rows if row.keys() >= {*self.kind.key}}
        settled = {key: row for key, row in there.items() if key not in ours} | ours
        if self._has_begun:
            is_settled = not self.has_stale and list(settled) == list(there)
        else:
            # A run that was killed when all was made, and before this, is settled by the next one.
            lacks = self._lines.keys() - self._kept.keys()
            in_order = [key for key in there if key in ours] == list(ours)
            is_settled = bool(lacks) or (not self.has_stale and in_order)
        if not is_settled:
            self._file.replace(settled.values())


def _shown(key: _Key) -> str:
    return " ".join(repr(str(part)[:80]) for part in key)


def _difference(name: str, was: object, expected: object) -> str:
    """In what a row was made otherwise, to read on from `the score`."""
    if name in _TEXTS:
        return "of another text"
    if name == "prompt_digest":
        return "to another prompt"
    if name == "signature":
        found = Signature.parse(str(expected)).differences(Signature.parse(str(was)))
        return f"measured or made with other settings ({'; '.join(found)})"
    return f"measured or made with other settings (another {name})"


@contextmanager
def kept_rows(path: Path | None, kind: RowKind, *, restart: bool = False) -> Iterator[KeptRows]:
    """Open the rows of a file as its only writer; without a path they are kept in memory.

    Raises `InputError` where it holds something else, `BusyError` where another process writes.
    """
    if path is None:
        yield KeptRows(kind)
        return
    with RowWriter(path) as file:
        yield KeptRows(kind, file, restart=restart)
