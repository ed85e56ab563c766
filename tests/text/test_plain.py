"""Texts without their layout: what typing and collecting leave in them tells nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.novelty.scores import plain_text
from fabula.text import TextSettings

PLAIN = "It can't be - it's so. He said, \"no!\" And left..."


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "It can't be - it's so.\n\nHe said, \"no!\"\r\n\r\nAnd left...\n",
        "It can’t be — it’s so. He said, “no!” And left…",
        "It ca n't be -- it 's so . He said , ``no ! '' And left ...",
        "  It can't be–it's so.\tHe said, «no!»\u00a0And left. . .",
        "## It can't be - it's so.\n\n---\n\nHe said, **“no!”** _And_ left....",
        'It can\'t be - it\u2019s so. He said, "no!" And\u200b left...',
    ],
)
def test_layout_and_typing_leave_nothing(text: str):
    assert plain_text(text) == PLAIN


@given(st.text(alphabet=" \n\t.,-–*#_\"'“”‘’«»`an’t!…", max_size=40))
def test_applying_it_twice_changes_nothing(text: str):
    once = plain_text(text)
    assert plain_text(once) == once
    assert "\n" not in once
    assert "  " not in once


@given(st.lists(st.sampled_from(["The", "café", "don't", "3.14", "and", "I"]), max_size=20))
def test_words_stay(words: list[str]):
    text = "\n".join(words)
    assert TextSettings().words(plain_text(text)) == TextSettings().words(text)
