"""Output files of a result: its tables, its page and its pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.resume import Share
from fabula.settings import Described, Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block


WRITTEN = (
    "out", "csv", "latex", "html", "plot", "comments", "details", "answers", "points_file",
    "people_file", "times",
)  # fmt: skip
"""The settings, by the last part of their names, whose files a job writes."""


def is_output(described: Described) -> bool:
    """Whether a setting names a file that the job writes."""
    return (
        described.path[-1] in WRITTEN
        and described.field.unit != "DIR"
        and (described.type == Path or described.type == Path | None)
    )


def is_folder(place: object) -> str | None:
    """Why a corpus cannot be written to a place; None if it can."""
    if ":/" not in str(place):
        return None
    return (
        f"{place}: name a folder; a corpus at an address, or one that is served, is built and "
        "changed in its folder, and copied from there"
    )


def _is_page(path: Path) -> None:
    from fabula.presentation.page_file import check_page_path

    check_page_path(path)


def _is_plot(path: Path) -> None:
    from fabula.presentation.charts import check_plot_path

    check_plot_path(path)


def page_setting(help: str, default_text: str = "") -> Any:  # noqa: A002 (click's word)
    """A field for the page of a result. It refuses to overwrite files not written by Fabula."""
    return setting(None, help=help, unit="PAGE", check=_is_page, default_text=default_text)


def plot_setting(help: str) -> Any:  # noqa: A002
    """A field for a picture; an unknown suffix, or no matplotlib, raises `InputError`."""
    return setting(None, help=help, check=_is_plot)


def restart_setting() -> Any:
    """A field for starting over."""
    return setting(False, help="Start over, ignoring what is there.", tunes="running")


def share_setting() -> Any:
    """A field for the share of a job whose rows are in the file `out`; see `share_of`."""
    return setting(
        None,
        help="Do only the I-th of N shares, as in 3/8, on any machine; when all are done, the same "
        "command without this option joins them.",
        unit="I/N",
        shared="running",
    )


def share_of(share: str | None, out: object) -> Share | None:
    """The share that a job's settings ask for. Raises `InputError`, `SettingsError`."""
    if share is None:
        return None
    if out is None:
        raise SettingsError("share", "needs `out`, which all shares have in common")
    return Share.parse(share)


def rows_file(share: str | None, out: Path) -> Path:
    """The file of the rows of a job with this `out`; a share has its own beside it."""
    found = share_of(share, out)
    return out if found is None else found.beside(out)


def _ends_with(ending: str, path: Path) -> str | None:
    """Check the suffix, so that a typo does not overwrite a draft with a table."""
    return None if path.suffix == ending else f"must end with {ending}, got {path.name!r}"


def check_kept(outputs: Mapping[str, Path | None], kept: Iterable[Path]) -> None:
    """Raise `SettingsError` if an output, by its setting, is a file that must be kept.

    Creates the folders of the outputs.
    """
    taken = {path.resolve() for path in kept}
    for name, path in outputs.items():
        if path is not None and path.resolve() in taken:
            raise SettingsError(name, f"{path} is already read or written; name another file")
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True)
class TableFiles(Settings):
    """The files for the tables that a command prints."""

    csv: Path | None = setting(
        None,
        help="Write the first table here (.csv), and each further table beside it, with its name "
        "before the ending.",
        check=partial(_ends_with, ".csv"),
        shared="output",
    )
    latex: Path | None = setting(
        None,
        help="Write the tables for LaTeX here (.tex).",
        check=partial(_ends_with, ".tex"),
        shared="output",
    )

    def check_files(self) -> None:
        """Raise `InputError` if the LaTeX file was not written by Fabula."""
        from fabula.presentation.sheet import LATEX_BEGIN

        if self.latex is not None and self.latex.exists() and self.latex.stat().st_size:
            with self.latex.open("rb") as file:
                if not file.read(64).startswith(LATEX_BEGIN.encode()):
                    raise InputError(
                        f"{self.latex}: was not written by Fabula; choose another name"
                    )

    def write(self, parts: Sequence[Block], records: Sequence[Block] = ()) -> list[Path]:
        """Write the requested files; returns their paths.

        `records` are the contents of the CSV, if they differ from the tables as shown.
        """
        from fabula.presentation.sheet import csv_of, latex_of
        from fabula.store import write_whole

        texts: dict[Path, str] = {}
        if self.csv is not None:
            for k, (name, text) in enumerate(csv_of(records or parts).items()):
                texts[self.csv.with_suffix(f".{name}.csv") if k else self.csv] = text
        if self.latex is not None:
            texts[self.latex] = latex_of(parts)
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode(errors="replace"))
        return list(texts)
