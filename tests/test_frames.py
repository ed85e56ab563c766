"""Measurements as tables of other libraries: what is missing stays missing."""

import json
import math
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import InputError
from fabula.core.frames import to_arrow, to_pandas, to_polars
from fabula.core.types import Document, Measurement, Span
from fabula.novelty.measure import OriginalityMeasure
from fabula.reference.search import Reference
from fabula.text import read_documents

NUMBER = Measurement(
    "d1", "ttcw-1@ab", "ending", "model", 0.5, None, (Span("d1", 3, 9),), "So.", "judge|v:1",
    details={"p": 0.25, "who": "Zoë"},
)  # fmt: skip
MISSING = Measurement("d2", "ttcw-1@ab", "ending", "model", None, "refused", (), None, "judge|v:1")
WORDS = Measurement("d3", "feedback-1@cd", "sanity", "p0001", "Only feedback", None, (), None, "s")
ALL = [NUMBER, MISSING, WORDS]


def test_arrow_has_a_row_for_each_measurement():
    table = to_arrow(ALL)
    assert table.schema.field("value").type == "double"
    assert table.schema.field("answer").type == "string"
    assert table["value"].to_pylist() == [0.5, None, None]
    assert table["value"].null_count == 2
    assert table["answer"].to_pylist() == [None, None, "Only feedback"]
    assert table["missing_reason"].to_pylist() == [None, "refused", None]
    assert table["evidence"].to_pylist() == [[{"start": 3, "end": 9}], [], []]
    assert json.loads(table["details"][0].as_py()) == {"p": 0.25, "who": "Zoë"}
    assert table["document_id"].to_pylist() == ["d1", "d2", "d3"]
    assert table["rationale"].to_pylist() == ["So.", None, None]
    assert to_arrow([]).schema == table.schema


def test_pandas_leaves_out_of_a_mean_what_is_missing():
    frame = to_pandas([*ALL, MISSING])
    assert str(frame["value"].dtype) == "float64"
    assert frame["value"].isna().tolist() == [False, True, True, True]
    assert frame["value"].mean() == 0.5
    assert frame["answer"].dropna().tolist() == ["Only feedback"]
    assert to_pandas([MISSING])["value"].isna().all()


def test_polars_leaves_out_of_a_mean_what_is_missing():
    frame = to_polars([*ALL, MISSING])
    assert frame["value"].to_list() == [0.5, None, None, None]
    assert frame["value"].mean() == 0.5
    assert frame["evidence"].to_list()[0] == [{"start": 3, "end": 9}]
    assert to_polars([MISSING])["value"].null_count() == 1


values = st.none() | st.floats() | st.text()


@given(st.lists(values))
def test_a_value_is_there_exactly_where_a_number_was_measured(given: list[object]):
    found = [
        Measurement("d", "r", "i", "m", value, "no" if value is None else None, (), None, "s")  # type: ignore[arg-type]
        for value in given
    ]
    expected = [v if isinstance(v, float) and not math.isnan(v) else None for v in given]
    assert to_arrow(found)["value"].to_pylist() == expected
    assert to_polars(found)["value"].to_list() == expected
    shown = [None if math.isnan(v) else v for v in to_pandas(found)["value"].astype(float)]
    assert shown == expected


def test_results_go_in_as_they_are(tmp_path: Path, examples: Path):
    reference = Reference.build(
        read_documents(sorted((examples / "library").iterdir())), tmp_path / "library.ref"
    )
    short = Document("short", "Too few words.")
    story = next(iter(read_documents([examples / "the-count.txt"])))
    results = list(OriginalityMeasure(reference).measure([story, short]))
    table = to_arrow(results)
    assert table.num_rows == 18, "an index and eight levels each"
    frame = to_pandas(results)
    index = frame[frame["item"] == "creativity_index"].set_index("document_id")["value"]
    assert index[story.id] == results[0].creativity_index
    assert math.isnan(index["short"])
    assert to_arrow(results[0]).num_rows == 9
    assert to_arrow([results[1], MISSING]).num_rows == 10


@pytest.mark.parametrize("wrong", [3, [3], "text", None])
def test_what_is_no_measurement_is_refused(wrong: object):
    with pytest.raises(InputError, match="needs measurements or results"):
        to_arrow(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "make"), [("pandas", to_pandas), ("polars", to_polars)])
def test_a_library_that_is_not_installed_is_named(
    name: str, make: object, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=f"pip install {name}"):
        make(ALL)  # type: ignore[operator]
