"""People's labels are read from whatever file holds them, and nothing is guessed."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commands import write_rows
from tests.essay import ESSAY

from fabula.core.errors import InputError
from fabula.core.store import measurement_row
from fabula.core.types import Rubric
from fabula.raters.labels import labels_of, read_labels
from fabula.rubrics.load import load_rubric

TTCW = load_rubric("ttcw")
FIRST, SECOND = TTCW.items[0].id, TTCW.items[1].id


def said(path: Path, rubric: Rubric = TTCW) -> list[tuple[str, str, str, object, str | None]]:
    labels = read_labels(path, rubric)
    return [(m.document_id, m.item, m.rater, m.value, m.missing_reason) for m in labels]


def test_every_form_of_a_table_gives_the_same_labels(tmp_path: Path):
    rows = [
        {"document": "a", "item": FIRST, "rater": "Ann", "value": "Yes", "reason": "it flows"},
        {"document": "a", "item": FIRST, "rater": "Ben", "value": "no", "reason": ""},
        {"document": "b", "item": "2", "rater": "Ann", "value": "", "reason": ""},
    ]
    header = list(rows[0])
    for name, delimiter in (("l.csv", ","), ("l.tsv", "\t"), ("semicolons.csv", ";")):
        lines = [delimiter.join(row) for row in (header, *(row.values() for row in rows))]
        (tmp_path / name).write_text("\r\n".join(lines), encoding="utf-8-sig")
    write_rows(tmp_path / "l.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "l.parquet")
    expected = [("a", FIRST, "Ann", 1.0, None), ("a", FIRST, "Ben", 0.0, None)]
    expected.append(("b", SECOND, "Ann", None, "no_answer"))
    for name in ("l.csv", "l.tsv", "semicolons.csv", "l.jsonl", "l.parquet"):
        assert said(tmp_path / name) == expected
        assert read_labels(tmp_path / name, TTCW)[0].rationale == "it flows"


def test_answers_are_read_by_the_scale_of_their_item(tmp_path: Path):
    path = tmp_path / "l.csv"
    path.write_text(
        "essay,question,annotator,rating,story\n"
        'x,thesis,Ann,TRUE,1\nx,style,Ann,"4,5",1\nx,voice,Ann,borrowed,1\nx,grade,Ben,1.0,1\n'
    )
    assert said(path, ESSAY) == [
        ("1", "thesis", "Ann", 1.0, None),
        ("1", "style", "Ann", 4.5, None),
        ("1", "voice", "Ann", "Borrowed", None),
        ("1", "grade", "Ben", "A", None),
    ]
    path.write_text("doc,item,rater,value\na,thesis,Ann,Yes\n")
    with pytest.raises(InputError, match=r"'document' is missing.*'doc', 'item'"):
        read_labels(path, ESSAY)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("thesis,,Yes", "line 2: the column 'rater' is empty"),
        ("plot,Ann,Yes", "no item 'plot'; its items are thesis, style"),
        ("thesis,Ann,maybe", "'maybe' is not an answer to thesis"),
        ("style,Ann,6", "'6' is not an answer to style; allowed:"),
        ("grade,Ann,0.7", "'0.7' is not an answer to grade"),
        ("style,Ann,4\na,style,Ann,4", "line 3: Ann has a second answer on style of a"),
        ("style,Ann,", "contains no answers to items of essay"),
    ],
)
def test_what_is_not_a_label_gets_a_sentence(tmp_path: Path, rows: str, sentence: str):
    path = tmp_path / "l.csv"
    path.write_text(f"document,item,rater,value\na,{rows}\n")
    with pytest.raises(InputError, match=sentence):
        read_labels(path, ESSAY)


def test_answers_to_another_rubric_of_a_study_are_passed_over(tmp_path: Path):
    given = {"document": "a", "item": FIRST, "rater": "Ann", "value": 1}
    row = measurement_row(labels_of([(given, "row 1")], TTCW, "x")[0])
    other = {**row, "item": "best", "rubric": "rank-1@x"}
    path = write_rows(tmp_path / "l.jsonl", [row, other])
    assert said(path) == [("a", FIRST, "Ann", 1.0, None)]
    write_rows(path, [{**other, "rubric": TTCW.key}])
    with pytest.raises(InputError, match="ttcw has no item 'best'"):
        read_labels(path, TTCW)
