"""Reading the plots that stories are written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fabula.errors import InputError
from fabula.store import read_rows
from fabula.tasks.story_writing import Plot
from fabula.text import check_documents
from fabula.types import Document

_DEFAULT_WORDS = "set the length with `words`, or n_words in the row"


def read_plots(
    path: Path, *, n_words: int | None = None, verified_only: bool = False
) -> tuple[list[Plot], int]:
    """Return the plots of a file, and how many no person has verified. Raises `InputError`.

    Rows without a plot (a model gave none) are skipped.
    """
    plots: list[Plot] = []
    n_unverified = 0
    for number, row in enumerate(read_rows(path, is_edited=True), 1):
        where = f"{path}, line {number}"
        if "id" not in row or "plot" not in row:
            raise InputError(f"{where}: needs an id and a plot")
        if not row["plot"]:
            continue
        verified = row.get("verified") is True
        if verified_only and not verified:
            continue
        length = n_words or row.get("n_words")
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise InputError(f"{where}: no length; {_DEFAULT_WORDS}")
        n_unverified += not verified
        plots.append(Plot(str(row["id"]), str(row["plot"]), length))
    if not plots:
        raise InputError(f"{path}: contains no plots" + " that are verified" * verified_only)
    if len({plot.id for plot in plots}) < len(plots):
        raise InputError(f"{path}: two plots have the same id; give each its own")
    return plots, n_unverified


def check_output(out: Path, inputs: Sequence[Path]) -> None:
    """Raise `InputError` if the finished stories would overwrite another file."""
    if out.resolve() in {path.resolve() for path in inputs}:
        raise InputError(f"{out}: is an input of this command; choose another `out`")
    if not out.exists():
        return
    for row in read_rows(out, is_edited=True):
        if not {"plot", "prompt_id", "author", "text"} <= row.keys():
            raise InputError(f"{out}: contains no stories of this command; choose another `out`")


def by_line(documents: Sequence[Document]) -> list[Document]:
    """One document per line, for texts with several lines: a file of first sentences."""
    found = []
    for document in check_documents(documents):
        lines = [line.strip() for line in document.text.splitlines() if line.strip()]
        if len(lines) == 1:
            found.append(replace(document, text=lines[0]))
            continue
        found += [
            replace(document, id=f"{document.id}:{number}", text=line)
            for number, line in enumerate(lines, 1)
        ]
    return found
