"""What a model says instead of a text, or around it, beside stories that read like that."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import rows_of

from fabula.models.texts import unframed
from fabula.text.refusals import is_refusal

GOLDEN = Path(__file__).parents[1] / "golden" / "refusals.jsonl"
ROWS: list[dict[str, Any]] = rows_of(GOLDEN)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"][:40])
def test_refusals_are_known_from_stories_that_speak_like_them(row: dict[str, Any]):
    assert is_refusal(row["text"]) == (row["kind"] == "refusal")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["kind"] != "refusal"], ids=lambda row: row["text"][:40]
)
def test_only_what_the_model_says_around_a_story_is_cut_off(row: dict[str, Any]):
    text, removed = unframed(row["text"])
    assert text == row.get("story", row["text"]).strip()
    assert bool(removed) == (row["kind"] == "framed")


def test_a_title_stays_where_the_text_has_one():
    article = "**Bridge closed**\n\nThe bridge is closed. Nobody knows why."
    assert unframed(article, has_title=True)[0] == article
    assert unframed(article)[1] == ["**Bridge closed**"]


@given(st.text(alphabet="Ia cn'’t\n.\"“”*-#:SurehlpwitsoyHe ", max_size=120))
def test_what_is_cut_off_and_what_is_left_are_the_answer(answer: str):
    text, removed = unframed(answer)
    kept = "".join((*removed, text)).split()
    assert sorted("".join(kept)) == sorted("".join(answer.split()))
    assert unframed(text)[0] == text
    is_refusal(answer)


@pytest.mark.parametrize(
    "word", ["great ", "thanks ", "I'm sorry ", "'", '"', "here is a ", "let me know "]
)
def test_hostile_answers_are_read_in_time_that_grows_with_their_length(word: str):
    # Without a bound on repetition these would take longer than anybody waits.
    is_refusal(word * 3000)
    unframed(word * 3000)
    unframed(f"{word * 300}\n\n{word * 300}")
