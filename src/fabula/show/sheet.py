"""One table format for every output: the terminal, LaTeX, CSV and HTML.

A result is a list of sheets and of lines between them. The same list is shown in a terminal
(`render`), and written as LaTeX (`latex_of`) and as CSV (`csv_of`).
"""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fabula.core.errors import as_text, without_controls
from fabula.core.types import Contrast, Estimate, Rubric
from fabula.stats.contrasts import Omnibus
from fabula.stats.resampling import MIN_UNITS
from fabula.web import visible

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    # Symbols in our own tables that the fonts of plain LaTeX have only as commands.
    "<": r"\textless{}", ">": r"\textgreater{}", "†": r"\dag{}", "‡": r"\ddag{}", "§": r"\S{}",
    "¶": r"\P{}", "‖": r"$\|$", "◊": r"$\diamond$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """The text as LaTeX shows it, on one line, without control characters."""
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return "".join(_SPECIAL.get(character, character) for character in line)


_WIDEST = 10_000
_MAX_ROWS = 40
_MIN_NAME_CHARS = 12
_PIECE_CHARS = 18
"""Where a table is too wide, longer names are split at punctuation into pieces up to this long."""
_AFTER_MARK = re.compile(r"(?<=[-/.@:])")
LATEX_BEGIN = "% Fabula"
"""The header of a file of tables."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A cell without a value, and why, in readable form."""

    reason: str = ""


@runtime_checkable
class CustomCell(Protocol):
    """A custom cell, such as a number next to the one that a paper prints."""

    def shown(self) -> str:
        """The readable form."""

    def record(self, field: str) -> dict[str, object]:
        """Its part of a record for CSV, under the name of its column."""


@dataclass(frozen=True, slots=True)
class Displayed:
    """A value that is displayed as this text; CSV has the value itself."""

    value: str | float
    text: str

    def shown(self) -> str:
        return self.text

    def record(self, field: str) -> dict[str, object]:
        return {field: self.value}


Cell = str | float | Estimate | Missing | CustomCell | None
"""The content of a cell; None if there is nothing to show."""


def known(value: float | None, reason: str = "") -> Cell:
    """A number as a cell, or `Missing` for that reason."""
    return Missing(reason) if value is None else value


@dataclass(frozen=True, slots=True)
class Column:
    """The type of a column's cells.

    `form` is the format of its numbers (`.3f`, `+.1%`); a column without one is text. A column of
    estimates `with_interval` shows their intervals in an adjacent column. `name` is its name in
    CSV, if not its title. Text that is `cut` is truncated where a terminal is narrow; other texts
    take several lines.
    """

    title: str
    form: str = ""
    with_interval: bool = False
    name: str = ""
    cut: bool = False
    once: bool = False
    """Whether a value equal to that of the row above is not repeated."""
    of: str | Callable[[Any], Cell] = ""
    """How a row's thing gives the cell: the path of an attribute or a key, by default `field`.
    Where something on the path is None, the cell is missing."""

    def cell(self, thing: Any) -> Cell:
        """The cell about a thing."""
        if callable(self.of):
            return self.of(thing)
        for name in (self.of or self.field).split("."):
            if thing is not None:
                thing = thing[name] if isinstance(thing, Mapping) else getattr(thing, name)
        cell: Cell = thing
        return cell

    @property
    def field(self) -> str:
        """Its name in CSV."""
        return self.name or "_".join("".join(c if c.isalnum() else " " for c in self.title).split())

    def record(self, cell: Cell) -> dict[str, object]:
        """The cell's part of a record for CSV."""
        if isinstance(cell, CustomCell):
            return cell.record(self.field)
        if isinstance(cell, Missing):
            cell = None
        value = cell.value if isinstance(cell, Estimate) else cell
        more = ("low", "high", "n", "n_units") if self.with_interval else ()
        ends = {f"{self.field}_{name}": getattr(cell, name, None) for name in more}
        return {self.field: value} | ends


def item_column(rubric: Rubric) -> Column:
    """The names of rows; those that are items of the rubric by their titles."""
    titles = {item.id: f"{item.index} {item.title}" for item in rubric.items}
    return Column("", name="row", cut=True, of=lambda row: titles.get(row.name, row.name))


@dataclass(frozen=True, slots=True)
class Shown:
    """A sheet as displayed: for each column its title and whether it contains numbers."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    are_numbers: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows under columns. `name` distinguishes its CSV file from those of the other sheets.

    Sheets with the same name go into one file, distinguished by `about`: the judge, the system or
    the group that a sheet is about.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    about: tuple[str, str] | None = None
    """The name of a field and its value, as in ("judge", "openai/gpt-5")."""
    forms: Sequence[str] = ()
    """For each row the format of its numbers, if formats vary by row instead of by column."""
    many: str = ""
    """What the rows are called if a terminal shows only the first 40; else it shows all."""

    @classmethod
    def of(cls, name: str, things: Iterable[Any], columns: Sequence[Column], **more: Any) -> Sheet:
        """A row for each thing, whose cells the columns take from it."""
        return cls(name, columns, [[c.cell(thing) for c in columns] for thing in things], **more)

    def estimates(self) -> Iterator[Estimate]:
        """All cells that have an interval next to them."""
        for row in self.rows:
            for column, cell in zip(self.columns, row, strict=True):
                if column.with_interval and isinstance(cell, Estimate):
                    yield cell

    def with_notes(self, units: str) -> list[Block]:
        """The sheet, and below it why some of its estimates have no interval."""
        return [self, *interval_notes(self.estimates(), units)]

    def shown(self, n_rows: int | None = None) -> Shown:
        """All rows as displayed, or the first `n_rows`, with the columns of intervals."""
        titles, are_numbers = [], []
        for column in self.columns:
            titles.append(column.title)
            are_numbers.append(bool(column.form))
            if column.with_interval:
                titles.append("95 % interval")
                are_numbers.append(True)
        rows = []
        for place, cells in enumerate(self.rows[:n_rows]):
            shown = []
            for k, (column, cell) in enumerate(zip(self.columns, cells, strict=True)):
                is_again = column.once and place > 0 and cell == self.rows[place - 1][k]
                form = self.forms[place] if self.forms and column.form else column.form
                shown.append("" if is_again else cell_shown(cell, form))
                if column.with_interval:
                    shown.append(interval_shown(cell, form) if isinstance(cell, Estimate) else "")
            rows.append(shown)
        if len(rows) < len(self.rows):
            more = f"and {len(self.rows) - len(rows):,} more {self.many}"
            rows.append([more, *[""] * (len(titles) - 1)])
        return Shown(titles, rows, are_numbers)

    def records(self) -> Iterator[dict[str, object]]:
        """A record for each row, for CSV."""
        reasons = [
            any(isinstance(row[k], Missing) for row in self.rows) for k in range(len(self.columns))
        ]
        for row in self.rows:
            record: dict[str, object] = dict([self.about] if self.about else [])
            for column, cell, has_reasons in zip(self.columns, row, reasons, strict=True):
                record |= column.record(cell)
                if has_reasons:
                    reason = cell.reason if isinstance(cell, Missing) else None
                    record[f"{column.field}_missing"] = reason
            yield record


Block = Sheet | str
"""Part of a result: a table, or a line between tables."""


def cell_shown(cell: Cell, form: str) -> str:
    """A value as displayed; `-` if there is none."""
    if isinstance(cell, Missing):
        return f"missing: {cell.reason}" if cell.reason else "missing"
    if isinstance(cell, CustomCell):
        return cell.shown()
    value = cell.value if isinstance(cell, Estimate) else cell
    return value if isinstance(value, str) else number(value, form)


def number(value: float | None, form: str) -> str:
    """A number, or `-` if there is none; one that rounds to 0 has no sign."""
    if value is None:
        return "-"
    shown = f"{value:{form}}"
    return shown.removeprefix("-") if not shown.strip("-0.,%") else shown


def interval_shown(estimate: Estimate, form: str) -> str:
    """`0.12 to 0.34`, `- (n 5)` if there are too few units for one, or `-`."""
    if estimate.low is None or estimate.high is None:
        return f"- (n {estimate.n_units})" if _is_of_few(estimate) else "-"
    return f"{number(estimate.low, form)} to {number(estimate.high, form)}"


def _is_of_few(estimate: Estimate) -> bool:
    """Whether it has no interval because there are too few units."""
    n_units = estimate.n_units
    return estimate.value is not None and n_units is not None and n_units < MIN_UNITS


def interval_notes(estimates: Iterable[Estimate], units: str) -> list[str]:
    """Why some of these have no interval, for below a table; `units` names what they are over."""
    estimates = list(estimates)
    notes = []
    if any(_is_of_few(estimate) for estimate in estimates):
        notes.append(f"- (n ...): no interval from fewer than {MIN_UNITS} {units}")
    valued = [e for e in estimates if e.value is not None and e.n_units is not None]
    if any(e.low is None and not _is_of_few(e) for e in valued):
        notes.append(
            "-: no interval where nothing varies, or an answer is too rare to tell how far others "
            "would differ"
        )
    return notes


def terminal_width() -> int:
    """Columns of the terminal; 100 if there is none."""
    return max(60, shutil.get_terminal_size((100, 40)).columns)


def render(*parts: Block) -> str:
    """Tables and lines as the terminal shows them."""
    out = io.StringIO()
    console = Console(file=out, width=terminal_width(), highlight=False)
    for part in parts:
        if isinstance(part, str):
            # A signature must be copied whole; sentences are to be read.
            console.print(Text(part), soft_wrap="|" in part)
            continue
        table = _terminal_table(part)
        # A terminal that is too narrow wraps lines; digits are never truncated.
        least = Measurement.get(console, console.options.update(width=_WIDEST), table).minimum
        console.print(table, width=max(least, console.width), crop=False)
    # Escape titles and authors from users' files: they must not reach the terminal as commands.
    return without_controls(out.getvalue(), keep_lines=True)


def _terminal_table(sheet: Sheet) -> Table:
    table = Table(box=None, pad_edge=False)
    cells = sheet.shown(_MAX_ROWS if sheet.many else None)
    # The rows; if they are too wide for the terminal, with long names on several lines.
    widths = [max(map(len, column)) for column in zip(cells.titles, *cells.rows, strict=True)]
    if sum(2 + n_chars for n_chars in widths) - 2 <= terminal_width():
        rows = cells.rows
    else:
        are_names = [not is_number for is_number in cells.are_numbers]
        are_names[0] &= not sheet.columns[0].cut
        rows = [
            [_split(s) if is_name else s for s, is_name in zip(row, are_names, strict=True)]
            for row in cells.rows
        ]
    # The minimum width of a column: its numbers on one line, its title split at words, and a title
    # that is a file name in several pieces.
    widths = [
        max(
            *(min(len(word), _MIN_NAME_CHARS) for word in title.split() or [""]),
            *(len(line) for row in rows for line in row[k].split("\n")),
            1,
        )
        for k, title in enumerate(cells.titles)
    ]
    for k, (title, is_number) in enumerate(zip(cells.titles, cells.are_numbers, strict=True)):
        if is_number:
            table.add_column(Text(title), justify="right", min_width=widths[k], overflow="fold")
        elif sheet.columns[0].cut and k == 0:
            room = terminal_width() - sum(2 + n_chars for n_chars in widths[1:])
            table.add_column(
                Text(title), no_wrap=True, overflow="ellipsis", max_width=max(14, min(40, room))
            )
        else:
            # A name keeps at least a few letters per line, or it is unreadable.
            is_split = any("\n" in row[k] for row in rows)
            least = min(_PIECE_CHARS if is_split else _MIN_NAME_CHARS, widths[k])
            table.add_column(Text(title), overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _split(text: str) -> str:
    """A text whose long words are split after punctuation: `local/smollm2-`, `135m-instruct`."""
    words = []
    for word in text.split(" "):
        pieces = [""]
        for part in _AFTER_MARK.split(word):
            if pieces[-1] and len(pieces[-1]) + len(part) > _PIECE_CHARS:
                pieces.append("")
            pieces[-1] += part
        words.append("\n".join(pieces))
    return " ".join(words)


def latex_of(parts: Sequence[Block]) -> str:
    """The tables as booktabs-style tabulars; lines between them are comments."""
    lines = [LATEX_BEGIN]
    for part in parts:
        if isinstance(part, str):
            lines += [f"% {without_controls(line)}" for line in part.splitlines() if line]
            continue
        cells = part.shown()
        layout = "".join("r" if is_number else "l" for is_number in cells.are_numbers)
        lines += [rf"\begin{{tabular}}{{{layout}}}", r"\toprule"]
        # The braces keep text in brackets from being read as an option of the previous line.
        lines += ["{}" + " & ".join(map(escape_latex, cells.titles)) + r" \\", r"\midrule"]
        for row in cells.rows:
            shown = ["--" if cell == "-" else escape_latex(cell) for cell in row]
            lines.append("{}" + " & ".join(shown) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join([*lines, ""])


def html_of(parts: Sequence[Block]) -> str:
    """The tables and lines as escaped HTML without scripts and style sheets."""
    html = ""
    for part in parts:
        if isinstance(part, str):
            html += f"<p>{escape(visible(part))}</p>" if part else ""
            continue
        cells = part.shown()
        head = "".join(f'<th scope="col">{escape(visible(title))}</th>' for title in cells.titles)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(visible(cell))}</td>" for cell in row) + "</tr>"
            for row in cells.rows
        )
        html += f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return html


def csv_of(parts: Sequence[Block]) -> dict[str, str]:
    """The sheets of each name as one CSV, by that name: raw values, not as displayed.

    A column of estimates has columns for the ends of its interval, n and its units. A cell without
    a value is empty; missing values have their reason in a separate column. Text that a spreadsheet
    would take for a formula gets an apostrophe before it.
    """
    records: dict[str, list[dict[str, object]]] = {}
    for part in parts:
        if isinstance(part, Sheet):
            records.setdefault(part.name, []).extend(part.records())
    files = {}
    for name, rows in records.items():
        out = io.StringIO()
        fields = dict.fromkeys(field for row in rows for field in row)
        writer = csv.DictWriter(out, list(fields), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {field: as_text(cell) if isinstance(cell, str) else cell for field, cell in row.items()}
            for row in rows
        )
        files[name] = out.getvalue()
    return files


NUMBER = Column("number", once=True)


def contrast_sheet(
    name: str,
    contrasts: Sequence[Contrast],
    form: str,
    *,
    number: Column | None = NUMBER,
    more: Sequence[Column] = (),
    p: str | Column = "p",
    adjusted: bool = True,
) -> Sheet:
    """A row for each contrast: A, B and A - B in this form, `more` of their columns, p."""
    columns = [
        *([] if number is None else [number]),
        Column("A", name="a"),
        Column("B", name="b"),
        Column("A - B", form, with_interval=True, name="difference"),
        *more,
        *([p] if isinstance(p, Column) else [Column(p, ".2g", name="p")] if p else []),
        *([Column("p (Holm)", ".2g", name="p_adjusted")] if adjusted else []),
    ]
    return Sheet.of(name, contrasts, columns)


def omnibus_lines(omnibus: Omnibus | None, number: str = "") -> list[str]:
    """Whether several groups differ at all; for two the test of the pair says so."""
    if omnibus is None or omnibus.n_groups < 3:
        return []
    unit = "clusters" if omnibus.is_clustered else "texts"
    p = f"no p from {omnibus.n_units:,} {unit}" if omnibus.p is None else f"p = {omnibus.p:.2g}"
    statistic = "infinite" if omnibus.statistic is None else f"{omnibus.statistic:.2f}"
    what = f" in {number}" if number else ""
    return [
        f"all {omnibus.n_groups:,} groups alike{what}: {omnibus.test} = {statistic} over "
        f"{omnibus.n_units:,} {unit}, {p}"
    ]
