"""Results as tables of other libraries and in notebooks: what is missing stays missing."""

import json
import math
import re
import sys
from pathlib import Path

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import NEVER_CHECKED, InputError
from fabula.core.frames import to_arrow, to_pandas, to_polars
from fabula.core.types import Document, Measurement, Span
from fabula.judging.summary import ItemSummary, JudgeSummary
from fabula.novelty.measure import OriginalityMeasure
from fabula.reference.search import Reference
from fabula.rubrics.load import load_rubric
from fabula.text import read_documents
from fabula.web import notebook_table

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


def test_frames_leave_out_of_a_mean_what_is_missing():
    frame, other = to_pandas([*ALL, MISSING]), to_polars(ALL)
    assert (str(frame["value"].dtype), frame["value"].isna().sum()) == ("float64", 3)
    assert frame["value"].mean() == other["value"].mean() == 0.5
    assert frame["answer"].dropna().tolist() == ["Only feedback"]
    assert other["evidence"].to_list()[0] == [{"start": 3, "end": 9}]
    assert to_pandas([MISSING])["value"].isna().all()
    assert to_polars([MISSING])["value"].null_count() == 1


@given(st.lists(st.none() | st.floats() | st.text()))
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


def test_results_go_in_as_they_are(reference: Reference, examples: Path):
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


HOSTILE = "<script>alert('x')</script>&\"\x00<img src=x onerror=y>"


def shown(html: str) -> str:
    """The text of what a notebook shows, which has few kinds of elements and no scripts."""
    elements = [*(page := lxml.html.fromstring(html)).iter()]
    assert {one.tag for one in elements} <= {"div", "b", "table", "tr", "th", "td", "span"}
    assert {name for one in elements for name in one.attrib} <= {"style"}
    return page.text_content()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Reference:
    path = tmp_path_factory.mktemp("notebook") / "library.ref"
    return Reference.build(read_documents(sorted((examples / "library").iterdir())), path)


def test_everything_is_escaped_and_stands_there():
    lines = [(HOSTILE, HOSTILE, None), ("a", None, HOSTILE)]
    page = shown(notebook_table(HOSTILE, lines, HOSTILE))
    assert page.count("<script>alert('x')</script>&\"\ufffd<img src=x onerror=y>") == 5


def test_numbers_and_what_is_missing():
    lines = [("n", 12345, None), ("x", 0.12345, None), ("zero", 0.0, None),
             ("none", None, "too_short"), ("unsaid", None, None)]  # fmt: skip
    html = notebook_table("t", lines)
    text = shown(html)
    assert [*re.findall(r">([^<>]+)</t[dh]>", html)] == ["n", "12,345", "x", "0.123", "zero",
                                                         "0.000", "none", "unsaid"]  # fmt: skip
    assert "missing: too_short" in text
    assert "missing: no reason given" in text
    assert "color:#" not in html, "what surrounds it may be light or dark"


def test_originality_of_a_hostile_and_of_a_short_text(reference: Reference):
    long = Document(HOSTILE, "A ferry came over the water in the morning and nobody was aboard it.")
    whole, short = OriginalityMeasure(reference).measure([long, Document("s", "Too short.")])
    page = shown(whole._repr_html_())
    assert str(whole.signature) in page
    assert f"{whole.creativity_index:.3f}" in page
    assert shown(short._repr_html_()).count("missing: too_short") == 9


def test_a_verdict_is_never_shown_without_its_trust():
    first, second, third = load_rubric("ttcw").items[:3]
    items = (
        ItemSummary(first, (1.0, 1.0, 0.0, 1.0), 0.7, {}, None),
        ItemSummary(second, (0.0, 1.0, 0.0), None, {"refused": 1}, None),
        ItemSummary(third, (), None, {"cut": 4}, None),
    )
    summary = JudgeSummary(HOSTILE, "judge|v:1", items, {}, 0, 0, None, {}, None)
    text = shown(summary._repr_html_())
    assert f"3 of 4 Yes ({NEVER_CHECKED})" in text
    assert f"1 of 3 Yes; missing: refused 1 ({NEVER_CHECKED})" in text
    assert "missing: cut 4" in text
    assert "0 of 0" not in text


def test_it_is_small_enough_to_stay_in_a_notebook(reference: Reference):
    (result,) = OriginalityMeasure(reference).measure([Document("d", "word " * 20_000)])
    assert len(json.dumps(result._repr_html_())) < 10_000
