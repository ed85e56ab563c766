"""A result that is shown as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block

__all__ = ["Tabled"]


class Tabled(ABC):
    """A result that is shown as tables: printed, in a notebook, in LaTeX and as CSV."""

    __slots__ = ()

    @abstractmethod
    def tables(self) -> list[Block]:
        """The tables, with the lines between them, as the command prints them."""

    def save_tables(self, path: str | Path) -> list[Path]:
        """Write them for LaTeX (.tex), or as CSV (.csv, each further table in a file beside it).

        Returns the files. Raises `SettingsError` for another ending.
        """
        from fabula.jobs.result_files import TableFiles

        name = "latex" if str(path).endswith(".tex") else "csv"
        return TableFiles(**{name: Path(path)}).write(self._written())

    def _written(self) -> list[Block]:
        """The tables as files hold them."""
        return self.tables()

    def __str__(self) -> str:
        from fabula.presentation.sheet import render

        return render(*self.tables())

    def _repr_html_(self) -> str:
        from fabula.presentation.sheet import html_of

        return html_of(self.tables())
