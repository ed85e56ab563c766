"""What a job gives back: fields that print, convert, and can be saved by themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fabula.core.errors import InputError

if TYPE_CHECKING:
    from fabula.core.provenance import Recording
    from fabula.jobs.given import FrameKind
    from fabula.show.sheet import Block

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """How a result of a call from Python was made."""

    call: str
    """`fabula.judge`."""
    settings: dict[str, Any]
    sources: tuple[str, ...]
    """The settings that are files or folders on this machine."""
    noted: Recording


class Result:
    """The base of all results. A class says what it has: `rows`, `tables`, `lines`, `to_json`."""

    __slots__ = ("_kind", "_made")
    _made: Made
    _kind: FrameKind | None
    names_settings: ClassVar[bool] = True
    """Whether words in backticks in its tables are settings; False if they may quote a text."""

    def lines(self) -> Sequence[str]:
        """What was done, if there are no tables to show."""
        return ()

    def tables(self) -> list[Block]:
        """The tables, with the lines between them."""
        return list(self.lines())

    def sheets(self) -> list[Block]:
        """The tables as they are written to files."""
        return self.tables()

    def records(self) -> Sequence[Block]:
        """The content of CSV files, if it is not that of the tables as they are shown."""
        return ()

    def rows(self) -> list[Row]:
        """A row for each thing that was measured or made, as in files (.jsonl)."""
        return []

    def compared_rows(self) -> list[Row]:
        """The rows by whose numbers `compare` compares texts."""
        return self.rows()

    def frame_rows(self) -> list[Row]:
        """The rows of `frame`: one level of names."""
        return [flat(row) for row in self.rows()]

    def to_json(self) -> Any:
        """Everything as plain values, as the command prints it for JSON."""
        return self.rows()

    def notices(self) -> Sequence[str]:
        """What a reader of the numbers should know, besides the tables."""
        return ()

    def written(self) -> Sequence[Path]:
        """Files that the job wrote and no setting names."""
        return ()

    def lacking(self) -> str | None:
        """What is missing of what was asked for, for the exit code 1; empty if tables say it."""
        return None

    @property
    def made(self) -> Made | None:
        """How it was made: the call with its settings, for the records of saved files."""
        return getattr(self, "_made", None)

    def frame(self, kind: FrameKind | None = None) -> Any:
        """The rows as a frame: of the kind that the texts came in, or pandas, polars or arrow."""
        from fabula.jobs.given import frame_of

        return frame_of(self.frame_rows(), kind or getattr(self, "_kind", None))

    def save(self, path: str | Path) -> None:
        """Write the result: rows (.jsonl), all values (.json), tables (.csv, .tex).

        Some have a page too (.html), or a picture (.svg, .pdf, .png). A record of how it was made
        is written beside the file. Raises `InputError` for an ending that this result has not.
        """
        from fabula.core.provenance import recording
        from fabula.core.store import dump_json, write_rows, write_whole
        from fabula.jobs.shared_settings import TableFiles

        path, made, writers = Path(path), self.made, self.writers()
        with recording() as noted:
            if path.suffix in writers:
                writers[path.suffix](path)
            elif path.suffix == ".jsonl" and has(type(self), "rows"):
                write_rows(path, self.rows(), are_results=True)
            elif path.suffix == ".json":
                write_whole(path, (dump_json(self.to_json()) + "\n").encode(errors="replace"))
            elif path.suffix in (".csv", ".tex") and has(type(self), "tables"):
                files = TableFiles(**{"csv" if path.suffix == ".csv" else "latex": path})
                if not files.write(self.sheets(), self.records()):
                    raise InputError(f"{path}: cannot be written, since this result has no tables")
            else:
                raise InputError(
                    f"{path}: cannot be written; the endings of this result are "
                    f"{', '.join(self.endings())}"
                )
        if made is not None:
            noted.models |= made.noted.models
            noted.inputs |= made.noted.inputs
            noted.started_ns, noted.ended_ns = made.noted.started_ns, made.noted.ended_ns
            noted.keep(made.call, {**made.settings, "saved": True}, {"path": path}, made.sources)

    def writers(self) -> dict[str, Any]:
        """Functions that write other files, by ending."""
        return {}

    def endings(self) -> list[str]:
        """The endings of the files that it can be saved to."""
        endings = [".jsonl"] if has(type(self), "rows") else []
        endings += [".csv", ".tex"] if has(type(self), "tables") else []
        return list(dict.fromkeys([*endings, ".json", *self.writers()]))

    def __str__(self) -> str:
        from fabula.show.sheet import render

        return render(*self.tables())

    def __repr__(self) -> str:
        n, frame = "", ""
        if has(type(self), "rows"):
            n, frame = f" of {len(self):,} rows", ".frame(), "
        return f"<{type(self).__name__}{n}: print it, or see {frame}.to_json(), .save(path)>"

    def _repr_html_(self) -> str:
        from fabula.show.sheet import html_of

        return html_of(self.tables())

    def __len__(self) -> int:
        return len(self.rows())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __getitem__(self, place: int) -> Row:
        return self.rows()[place]


def has(kind: type[Result], method: str) -> bool:
    """Whether a class of results has something of its own to say."""
    return getattr(kind, method) is not getattr(Result, method)


def picked(thing: object, *names: str) -> dict[str, Any]:
    """The attributes of these names, by name."""
    return {name: getattr(thing, name) for name in names}


def single_values(row: Row, but: Collection[str] = ()) -> Row:
    """The fields of a row that are neither lists nor dicts, without those named in `but`."""
    return {k: v for k, v in row.items() if k not in but and not isinstance(v, dict | list | tuple)}


def nested(row: Row) -> Row:
    """The row of scores that `flat` made this of: `uniqueness_5` goes back into `uniqueness`."""
    begin = "uniqueness_"
    levels = {name.removeprefix(begin): row[name] for name in row if name.startswith(begin)}
    others = {name: value for name, value in row.items() if not name.startswith(begin)}
    return others | ({"uniqueness": levels} if levels else {})


def flat(row: Row, before: str = "") -> Row:
    """A row with one level: `uniqueness` of {5: 0.1} becomes `uniqueness_5`; lists stay."""
    fields: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            fields |= flat(value, f"{before}{name}_")
        else:
            fields[f"{before}{name}"] = value
    return fields
