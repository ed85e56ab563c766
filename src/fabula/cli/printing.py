"""What commands print at their end: tables, and the files that they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.derived import in_options

if TYPE_CHECKING:
    from fabula.presentation.sheet import Part

__all__ = ["print_tables", "print_written"]


def print_tables(parts: Sequence[Part]) -> None:
    from fabula.presentation.sheet import render

    click.echo(in_options(render(*parts)), nl=False)


def print_written(paths: Iterable[Path | None], *, as_json: bool = False) -> None:
    """A line for each file, which does not stand among the JSON."""
    for path in paths:
        if path is not None:
            click.echo(f"written: {path}", err=as_json)
