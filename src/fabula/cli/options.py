"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.jobs.result_files import is_folder

if TYPE_CHECKING:
    from fabula.jobs.result_files import TableFiles


class CorpusType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """The folder of a corpus."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if problem := is_folder(value):
            self.fail(problem, param, ctx)
        return Path(str(value))


def check_outputs(
    outputs: Iterable[Path | None], inputs: Iterable[Path | None], files: TableFiles | None = None
) -> None:
    """Raise `UsageError` if an output is an input, or two outputs are one file.

    Table files are outputs too, and are checked likewise. Creates the folders of the outputs.
    """
    tables = [] if files is None else [files.csv, files.latex]
    taken = {path.resolve() for path in inputs if path is not None}
    for path in [*outputs, *tables]:
        if path is None:
            continue
        if path.is_dir():
            raise click.UsageError(f"{path} is a folder; name a file")
        if path.resolve() in taken:
            raise click.UsageError(
                f"{path} is already read or written by this command; name another file"
            )
        taken.add(path.resolve())
        # Fail now, not after everything is computed.
        path.parent.mkdir(parents=True, exist_ok=True)
    if files is not None:
        files.check_files()
