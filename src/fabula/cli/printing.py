"""What commands print at their end: tables, and the files that they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from fabula.cli.derived import in_options

if TYPE_CHECKING:
    from fabula.jobs.result_files import TableFiles
    from fabula.presentation.sheet import Block

__all__ = [
    "JsonRows",
    "print_done",
    "print_json",
    "print_result",
    "print_rows",
    "print_tables",
    "print_tables_or_rows",
    "print_written",
]


class JsonRows:
    """Rows on standard output as they come: one array (`json`), a line each (`jsonl`), or nothing.

    If an error stops them, the array is left open, so that part of a result is not read as all of
    it.
    """

    def __init__(self, form: str | None) -> None:
        self._form = form
        self._n = 0

    def print(self, row: Any) -> None:
        if self._form is None:
            return
        before = "" if self._form == "jsonl" else ",\n" if self._n else "[\n"
        after = "\n" if self._form == "jsonl" else ""
        click.echo(before + _shown(row) + after, nl=False)
        self._n += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._form == "json" and kind is None:
            click.echo("\n]" if self._n else "[]")


def _shown(content: object) -> str:
    from fabula.store import dump_json

    # A model may write half of a surrogate pair, which no terminal can show.
    return dump_json(content).encode(errors="replace").decode()


def print_json(content: object) -> None:
    click.echo(_shown(content))


def print_rows(rows: Iterable[Any], form: str | None) -> None:
    """Rows that are there already, as `JsonRows` prints them."""
    with JsonRows(form) as printed:
        for row in rows:
            printed.print(row)


def print_result(
    parts: Sequence[Block],
    content: object,
    files: TableFiles | None = None,
    *,
    as_json: bool,
    written: Sequence[Path | None] = (),
) -> None:
    """Write the tables where `files` says, print them or `content`, then name what was written."""
    own = [] if files is None else files.write(parts)
    if as_json:
        print_json(content)
    else:
        print_tables(parts)
    print_written([*written, *own], as_json=as_json)


def print_tables_or_rows(
    parts: Sequence[Block], rows: Iterable[Any], files: TableFiles, form: str | None
) -> list[Path]:
    """Write the tables where `files` says, and print them or the rows; returns the files."""
    written = files.write(parts)
    if form is None:
        print_tables(parts)
    else:
        print_rows(rows, form)
    return written


def print_tables(parts: Sequence[Block]) -> None:
    from fabula.presentation.sheet import render

    click.echo(in_options(render(*parts)), nl=False)


def print_done(content: Mapping[str, Any], *lines: str, as_json: bool) -> None:
    """What a command did: one JSON object for machines, or lines for people."""
    if as_json:
        print_json(content)
        return
    for line in lines:
        click.echo(line)


def print_written(paths: Iterable[Path | None], *, as_json: bool = False) -> None:
    """A line for each file, which does not stand among the JSON."""
    for path in paths:
        if path is not None:
            click.echo(f"written: {path}", err=as_json)
