"""Answers as files for other programs: JSON lines, CSV, Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabula.store import dump_json, measurement_row, write_whole
from fabula.types import Measurement

__all__ = ["write_measurements"]

_COLUMNS = (
    "id", "rubric", "item", "rater", "value", "missing_reason", "rationale", "details", "signature",
)  # fmt: skip


def write_measurements(found: Sequence[Measurement], path: Path, format_: str) -> None:
    """Write them whole. In CSV and Parquet a value is text, and details are JSON."""
    rows = [measurement_row(one) for one in found]
    if format_ == "jsonl":
        data = "".join(dump_json(row) + "\n" for row in rows).encode(errors="replace")
    elif format_ == "csv":
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in rows:
            writer.writerow([_safe(_flat(row)[name]) for name in _COLUMNS])
        data = file.getvalue().encode(errors="replace")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(name, pa.string()) for name in _COLUMNS])
        table = pa.Table.from_pylist([_flat(row) for row in rows], schema=schema)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        data = sink.getvalue()
    write_whole(path, data)


def _flat(row: dict[str, Any]) -> dict[str, str | None]:
    value = row["value"]
    plain = {**row, "details": dump_json(row["details"])}
    plain["value"] = f"{value:g}" if isinstance(value, float) else value
    return {name: plain[name] for name in _COLUMNS}


def _safe(text: str | None) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text and text[0] in "=+-@\t\r" and not _is_number(text) else text or ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
