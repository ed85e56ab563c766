"""What commands that ask judges print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.printing import print_written

if TYPE_CHECKING:
    from fabula.judging.session import Spent
    from fabula.types import Measurement

__all__ = ["exit_where_calls_failed", "print_end"]


def exit_where_calls_failed(measurements: Sequence[Measurement]) -> None:
    """If calls failed, exit with the code for partial results, and say why."""
    failed = [one for one in measurements if one.missing_reason == "failed"]
    if not failed:
        return
    why = next((str(one.details["note"]) for one in failed if "note" in one.details), "")
    click.echo(
        f"{len(failed):,} of {len(measurements):,} answers are missing, since calls "
        f"failed{f' ({why})' if why else ''}; run the same command again to retry them",
        err=True,
    )
    click.get_current_context().exit(1)


def print_end(spent: list[Spent], written: list[Path | None], *, quiet: bool) -> None:
    from fabula.presentation.judging_tables import spent_lines

    for line in spent_lines(spent):
        click.echo(line, err=quiet)
    print_written(written, as_json=quiet)
