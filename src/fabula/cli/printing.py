"""What commands print at their end: tables, and the files that they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.derived import in_options

if TYPE_CHECKING:
    from fabula.jobs.tables import TableFiles
    from fabula.presentation.sheet import Part

__all__ = ["print_result", "print_tables", "print_written"]


def print_result(
    parts: Sequence[Part],
    content: object,
    files: TableFiles,
    *,
    as_json: bool,
    written: Sequence[Path | None] = (),
) -> None:
    """Write the tables where `files` says, print them or `content`, then name what was written."""
    from fabula.store import dump_json

    own = files.write(parts)
    if as_json:
        click.echo(dump_json(content))
    else:
        print_tables(parts)
    print_written([*written, *own], as_json=as_json)


def print_tables(parts: Sequence[Part]) -> None:
    from fabula.presentation.sheet import render

    click.echo(in_options(render(*parts)), nl=False)


def print_written(paths: Iterable[Path | None], *, as_json: bool = False) -> None:
    """A line for each file, which does not stand among the JSON."""
    for path in paths:
        if path is not None:
            click.echo(f"written: {path}", err=as_json)
