"""Editors' answers in the styles of many models, with the points that a person reads in them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.feedback.answer_lines import QuotableText
from fabula.feedback.points import read_answer
from fabula.feedback.written_faults import moved_places

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "advice.json").read_text(encoding="utf-8")
)
DRAFT = GOLDEN["draft"]
QUOTED = QuotableText.of(DRAFT)


@pytest.mark.parametrize("row", GOLDEN["answers"], ids=lambda row: row["answer"][:40])
def test_every_line_is_of_a_point_or_counted(row: dict[str, Any]):
    reading = read_answer(row["answer"], 0, QUOTED)
    found = [(DRAFT[r.start : r.end], len(r.places)) for r in reading.remarks]
    assert found == [(words, n) for words, n, _ in row["points"]]
    for remark, (_, _, said) in zip(reading.remarks, row["points"], strict=True):
        assert remark.text.startswith(said)
        assert not set("*`#|") & set(remark.text), "what is shown holds no Markdown"
    assert dict(reading.dropped) == row["dropped"]
    assert dict(reading.other_lines) == row["other"]


@given(st.lists(st.sampled_from([
    "- ", "1. ", "**2.** ", "  - ", "> ", "### ", "", "\n", '"The rain began": ', "too slow by far",
    "'sits on the wall' ", "`by chance` ", "**Pacing**", "Overall, good.", "|", "---",
]), max_size=14))  # fmt: skip
def test_any_answer_is_read_and_places_lie_in_the_draft(parts: list[str]):
    reading = read_answer("\n".join("".join(parts).split("\n")), 0, QUOTED)
    for remark in reading.remarks:
        for start, end in remark.places:
            assert 0 <= start < end <= len(DRAFT)


def test_no_more_points_are_taken_than_were_asked_for():
    answer = '- "sits on the wall": wrong tense here.\n- "by chance": much too easy for her.'
    reading = read_answer(answer, 0, QUOTED, n_most=1)
    assert (len(reading.remarks), dict(reading.dropped)) == (1, {"beyond": 1})


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (DRAFT, "sits on the wall"),
        (DRAFT.replace("The rain began at noon. ", ""), "sits on the wall"),
        (DRAFT.replace("sits on the wall", "sat on the wall"), "sat on the wall"),
        (DRAFT.replace("sits on the wall", "leaned over the rail"), "leaned over the rail"),
        (DRAFT.replace(" and sits on the wall", ""), None),
        ("sits on the wall. " + DRAFT.replace("sits", "sat"), "sat on the wall"),
    ],
)
def test_a_place_is_followed_into_the_next_draft(after: str, expected: str | None):
    start = DRAFT.index("sits on the wall")
    (found,) = moved_places([(start, start + len("sits on the wall"))], DRAFT, after)
    assert (found and after[slice(*found)]) == expected
