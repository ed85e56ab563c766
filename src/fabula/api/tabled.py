"""A result displayed as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.api.made import Made, recorded_save

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block

__all__ = ["Tabled"]


class Tabled(ABC):
    """A result displayed as tables: printed, in a notebook, in LaTeX and as CSV."""

    __slots__ = ("_made",)
    _made: Made

    @property
    def made(self) -> Made | None:
        """How it was made: the call with its settings, for provenance records of saved files."""
        return getattr(self, "_made", None)

    @abstractmethod
    def tables(self) -> list[Block]:
        """The tables, with the lines between them, as the command prints them."""

    @recorded_save
    def save_tables(self, path: str | Path) -> list[Path]:
        """Write them for LaTeX (.tex), or as CSV (.csv, with each further table in its own file).

        Returns the files. Raises `SettingsError` for another extension.
        """
        from fabula.jobs.result_files import TableFiles

        name = "latex" if str(path).endswith(".tex") else "csv"
        return TableFiles(**{name: Path(path)}).write(self._written())

    def _written(self) -> list[Block]:
        """The tables as they are written to files."""
        return self.tables()

    def __str__(self) -> str:
        from fabula.presentation.sheet import render

        return render(*self.tables())

    def _repr_html_(self) -> str:
        from fabula.presentation.sheet import html_of

        return html_of(self.tables())
