"""Measurements as tables for other libraries: Arrow, pandas, Polars. Missing stays missing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from fabula.core.errors import InputError
from fabula.core.packages import needing
from fabula.core.packages import pyarrow as load_pyarrow
from fabula.core.types import Measurement

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


@runtime_checkable
class Measured(Protocol):
    """A result made of measurements, such as `Originality`, `Profile` or `Advice`."""

    def measurements(self) -> Iterable[Measurement]: ...


_COLUMNS = {
    "document_id": "string", "rubric": "string", "item": "string", "rater": "string",
    "value": "number", "answer": "string", "missing_reason": "string", "rationale": "string",
    "evidence": "spans", "signature": "string", "details": "string",
}  # fmt: skip
Measurements: TypeAlias = Measured | Iterable[Measurement | Measured]
"""What can become a table: a result, or results and measurements in any order."""


def to_arrow(measurements: Measurements) -> pyarrow.Table:
    """One row per measurement, in order.

    Columns: `document_id`, `rubric`, `item`, `rater`; `value` (float64), null if missing or not a
    number; `answer` (string), if the value is words; `missing_reason`, null if there is a value;
    `rationale`; `evidence`, a list of `start` and `end` in characters of the document
    (half-open); `signature`; `details`, as JSON. Raises `InputError` for anything else, and if
    PyArrow (extra `[tables]`) is not installed.
    """
    pa = load_pyarrow(what="an Arrow table")
    kinds = {
        "string": pa.string(),
        "number": pa.float64(),
        "spans": pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())])),
    }
    schema = pa.schema({name: kinds[kind] for name, kind in _COLUMNS.items()})
    rows = list(map(_row, _each(measurements)))
    made: pyarrow.Table = pa.Table.from_pylist(rows, schema=schema)
    return made


def to_pandas(measurements: Measurements) -> pandas.DataFrame:
    """Like `to_arrow`; missing is NaN in `value` and None elsewhere.

    Raises `InputError` if pandas is not installed.
    """
    pd = needing("pandas", "a pandas table needs pandas; run: pip install pandas")
    rows = [_row(measurement) for measurement in _each(measurements)]
    made: pandas.DataFrame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return made.astype({"value": "float64"})


def to_polars(measurements: Measurements) -> polars.DataFrame:
    """Like `to_arrow`; missing is null.

    Raises `InputError` if Polars is not installed.
    """
    pl = needing("polars", "a Polars table needs Polars; run: pip install polars")
    kinds = {
        "string": pl.String,
        "number": pl.Float64,
        "spans": pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64})),
    }
    schema = {name: kinds[kind] for name, kind in _COLUMNS.items()}
    made: polars.DataFrame = pl.DataFrame(list(map(_row, _each(measurements))), schema=schema)
    return made


def _each(measurements: Measurements) -> Iterator[Measurement]:
    items = [measurements] if isinstance(measurements, Measured) else measurements
    if not isinstance(items, Iterable):
        raise InputError(f"a table needs measurements or results, not {_kind(items)}")
    for item in items:
        if isinstance(item, Measurement):
            yield item
        elif isinstance(item, Measured):
            yield from item.measurements()
        else:
            raise InputError(f"a table needs measurements or results, not {_kind(item)}")


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"


def _row(measurement: Measurement) -> dict[str, Any]:
    answer = measurement.value if isinstance(measurement.value, str) else None
    number = None if isinstance(measurement.value, str) else measurement.value
    return {name: None if name == "answer" else getattr(measurement, name) for name in _COLUMNS} | {
        # NaN is not a value, but Arrow and Polars would count it as one.
        "value": None if number is None or math.isnan(number) else number,
        "answer": answer,
        "evidence": [{"start": span.start, "end": span.end} for span in measurement.evidence],
        "details": json.dumps(dict(measurement.details), ensure_ascii=False, default=str),
    }
