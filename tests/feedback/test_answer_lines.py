"""Editors' answers in the styles of many models, and where their quoted words stand in a draft."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.feedback.answer_lines import QuotableText, quoted_parts
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


CAT = "“Run!” cried the Cat.\nThe cat — an old one — ran.  It ran, and didn’t stop... not once."


@pytest.mark.parametrize(
    ("quotation", "expected"),
    [
        ("cried the cat", "cried the Cat"), ('"Run!" cried the Cat.', "Run!” cried the Cat"),
        ("run, cried the cat", "Run!” cried the Cat"),
        ("the cat an old one ran", "The cat — an old one — ran"),
        ("The cat - an old one - ran", "The cat — an old one — ran"),
        ("didn't stop", "didn’t stop"), ("Cat. The cat", "Cat.\nThe cat"),
        ("The cat ... It ran", "The cat — an old one — ran.  It ran"),
        ("an old […] not once.", "an old one — ran.  It ran, and didn’t stop... not once"),
        ("stop... not once", "stop... not once"), ("once", "once"),
        # A single word that stands there twice says not which one is meant.
        *((missing, None) for missing in (
            "the dog", "he cat", "cried the Ca", "ran", "", "...", "“”", "It ran ... The cat",
            "stop stop")),
    ],
)  # fmt: skip
def test_what_was_quoted_is_found_as_it_stands_or_not_at_all(quotation: str, expected: str | None):
    found = QuotableText.of(CAT).find(quotation)
    assert [CAT[slice(*place)] for place in found[:1]] == ([] if expected is None else [expected])


def plain_places(text: str, words: list[str]) -> list[tuple[int, int]]:
    """Every place of these words in a row, by comparing the words of the text one by one."""
    found = [(m.group().lower(), m.start(), m.end()) for m in re.finditer(r"\w+", text)]
    n = len(words)
    return [
        (found[k][1], found[k + n - 1][2])
        for k in range(len(found) - n + 1)
        if [word for word, _, _ in found[k : k + n]] == words
    ]


WORDS = st.lists(st.sampled_from(["a", "ab", "b", "ba"]), min_size=2, max_size=3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "AB", "b", "ba"]), st.sampled_from([" ", ", ", "\n", " “", ".” "])
        ),
        max_size=14,
    ),
    WORDS,
)
def test_places_are_those_of_a_comparison_word_by_word(
    parts: list[tuple[str, str]], words: list[str]
):
    text = "".join(word + gap for word, gap in parts)
    assert QuotableText.of(text).find(" ".join(words)) == plain_places(text, words)


@given(st.text(max_size=60), st.text(max_size=12))
def test_any_text_and_quotation_gives_places_within_the_text(text: str, quotation: str):
    for start, end in QuotableText.of(text).find(quotation):
        assert 0 <= start < end <= len(text)


def test_quotations_hold_quotations():
    line = '"“Run!” cried the cat": too loud'
    found = [line[a:b] for a, b in quoted_parts(line)]
    assert found[0] == "“Run!” cried the cat"
    assert "Run!" in found
    assert len(quoted_parts('"' * 5000)) < 100, "hostile lines cost no more"


def test_what_stands_between_two_quotations_is_none():
    line, curly = '"purple elephant" in the "green dragon": not explained', "“one” and “two”"
    found = [line[a:b] for a, b in quoted_parts(line)]
    assert " in the " not in found
    assert {"purple elephant", "green dragon"} <= {*found}
    assert [curly[a:b] for a, b in quoted_parts(curly)] == ["one” and “two", "one", "two"]
