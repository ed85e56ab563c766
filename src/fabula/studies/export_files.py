"""Answers and people as files for other programs: JSON lines, CSV, Parquet, Excel's XLSX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from fabula.control_characters import as_text
from fabula.errors import InputError
from fabula.packages import pyarrow
from fabula.store import dump_json, measurement_row, write_whole
from fabula.studies.participants import Invitation
from fabula.studies.quality import PageTime, Standing
from fabula.types import Measurement

_COLUMNS = (
    "id", "rubric", "item", "rater", "value", "missing_reason", "rationale", "details", "signature",
)  # fmt: skip
_NOT_OWN = ("id", "name", "facts")
Row = dict[str, Any]


def write_measurements(found: Sequence[Measurement], path: Path, format_: str) -> None:
    """Write complete measurements, one per row.

    Outside JSON, details are encoded as JSON; in CSV and Parquet, where a column has one type, a
    value is text.
    """
    rows = [measurement_row(one) for one in found]
    if format_ != "jsonl":
        rows = [row | {"details": dump_json(row["details"])} for row in rows]
    if format_ in ("csv", "parquet"):
        rows = [row | {"value": _text(row["value"])} for row in rows]
    _write(rows, _COLUMNS, path, format_, frozenset({"value", "rationale"}))


def write_wide(found: Sequence[Measurement], path: Path, format_: str) -> None:
    """Write a row for each person and document, with a column for each item and each reason.

    Missing values are empty or null; the reasons are only in the other format.
    """
    rows: dict[tuple[str, str, str], Row] = {}
    items: dict[str, None] = {}
    for one in found:
        details = one.details
        begin = {"rater": one.rater, "unit": details["unit"], "id": one.document_id}
        begin |= {"place": details.get("place"), "state": details["state"]}
        row = rows.setdefault((one.rater, str(details["unit"]), one.document_id), begin)
        items[one.item] = None
        row[one.item] = one.value if format_ == "xlsx" else _text(one.value)
        if one.rationale is not None:
            items[f"{one.item}.why"] = None
            row[f"{one.item}.why"] = one.rationale
    columns = ("rater", "unit", "id", "place", "state", *items)
    _write(list(rows.values()), columns, path, format_, frozenset(items))


def write_people(standings: Sequence[Standing], path: Path, format_: str) -> None:
    """Write a row for each participant: when they came, what they did, how long it took."""
    rows = []
    for one in standings:
        own = {name: getattr(one, name) for name in Standing.__slots__ if name not in _NOT_OWN}
        rows.append({"rater": one.name, **own, **one.facts.row()})
    columns = tuple(dict.fromkeys(name for row in rows for name in row)) or ("rater",)
    words = {"note", *(name for name in columns if name.startswith("about."))}
    _write(rows, columns, path, format_, frozenset(words))


def write_times(times: Sequence[PageTime], path: Path, format_: str) -> None:
    """Write a row for each opened page: how long the participant spent on it."""
    rows = [asdict(one) for one in times]
    _write(rows, tuple(PageTime.__slots__), path, format_, frozenset())


def invitations_csv(invitations: Sequence[Invitation], address: str) -> bytes:
    """Return a CSV row for each invitation: number, note, link to the study at this address."""
    rows: list[Row] = [
        {"participant": one.name, "note": one.note, "link": f"{address}/i/{one.token}"}
        for one in invitations
    ]
    return _csv(rows, ("participant", "note", "link"), frozenset({"note"}))


def _write(
    rows: Sequence[Row], columns: Sequence[str], path: Path, format_: str, words: frozenset[str]
) -> None:
    """words: columns of participants' free text, which no spreadsheet may interpret as formulas.
    All other columns stay unchanged, since escaping would alter ids.
    """
    if format_ == "jsonl":
        data = "".join(dump_json(row) + "\n" for row in rows).encode(errors="replace")
    elif format_ == "csv":
        data = _csv(rows, columns, words)
    elif format_ == "xlsx":
        data = _workbook(rows, columns, path)
    else:
        pa = pyarrow(what=f"{path}: writing .parquet")
        pq = pyarrow("parquet", what=f"{path}: writing .parquet")
        arrays = [pa.array([row.get(name) for row in rows]) for name in columns]
        # A column with no answers is a text column too.
        arrays = [one.cast(pa.string()) if pa.types.is_null(one.type) else one for one in arrays]
        sink = io.BytesIO()
        pq.write_table(pa.table(arrays, names=list(columns)), sink)
        data = sink.getvalue()
    write_whole(path, data, is_private=True)


_MOST_ROWS = 1_048_576
"""Maximum number of rows in a sheet, including the header."""


def _workbook(rows: Sequence[Row], columns: Sequence[str], path: Path) -> bytes:
    """Return a workbook of one sheet: numbers as numbers, all else as text, never formulas."""
    import xlsxwriter

    if len(rows) >= _MOST_ROWS:
        raise InputError(
            f"{path}: a sheet has at most {_MOST_ROWS - 1:,} rows; choose another format"
        )
    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink, {"in_memory": True}) as book:
        # Otherwise the same answers would produce different bytes each time.
        book.set_properties({"created": datetime(2000, 1, 1)})
        sheet = book.add_worksheet("answers")
        lines = [columns, *([row.get(name) for name in columns] for row in rows)]
        for place, cells in enumerate(lines):
            for column, cell in enumerate(cells):
                if isinstance(cell, str):
                    sheet.write_string(place, column, cell.encode(errors="replace").decode())
                elif cell is not None:
                    sheet.write_number(place, column, cell)
        sheet.freeze_panes(1, 0)
    return sink.getvalue()


def _csv(rows: Sequence[Row], columns: Sequence[str], words: frozenset[str]) -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = {name: "" if row.get(name) is None else str(row[name]) for name in columns}
        writer.writerow([as_text(text) if name in words else text for name, text in cells.items()])
    return file.getvalue().encode(errors="replace")


def _text(value: Any) -> str | None:
    return f"{value:g}" if isinstance(value, float) else None if value is None else str(value)
