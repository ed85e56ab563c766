"""Output at the end of commands: tables, and the files written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from fabula.cli.derived import in_options

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block


class JsonRows:
    """Rows printed as they arrive: one array (`json`), one per line (`jsonl`), or nothing.

    If an error stops them, the array is left unclosed, so that a partial result is not mistaken for
    a complete one.
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

    # A model may produce a lone surrogate, which no terminal can display.
    return dump_json(content).encode(errors="replace").decode()


def print_json(content: object) -> None:
    click.echo(_shown(content))


def print_rows(rows: Iterable[Any], form: str | None) -> None:
    """Print a complete list of rows as `JsonRows` does."""
    with JsonRows(form) as printed:
        for row in rows:
            printed.print(row)


def print_tables(parts: Sequence[Block], *, names_settings: bool = True) -> None:
    """Print tables; words in backticks are shown as options where they are settings."""
    from fabula.presentation.sheet import render

    shown = render(*parts)
    click.echo(in_options(shown) if names_settings else shown, nl=False)


def print_written(paths: Iterable[Path | None], *, as_json: bool = False) -> None:
    """Print a line for each file, never mixed into the JSON."""
    for path in paths:
        if path is not None:
            click.echo(f"written: {path}", err=as_json)
