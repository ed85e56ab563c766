"""Where quoted words stand in a text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.feedback.answer_lines import QuotableText, quoted_parts

DRAFT = "“Run!” cried the Cat.\nThe cat — an old one — ran.  It ran, and didn’t stop... not once."


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
    ],
)  # fmt: skip
def test_what_was_quoted_is_found_as_it_stands(quotation: str, expected: str):
    (start, end), *_ = QuotableText.of(DRAFT).find(quotation)
    assert DRAFT[start:end] == expected


@pytest.mark.parametrize(
    "quotation",
    [
        "the dog", "he cat", "cried the Ca", "ran", "", "...", "“”", "It ran ... The cat",
        "stop stop",
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(quotation: str):
    # A single word that stands there twice says not which one is meant.
    assert QuotableText.of(DRAFT).find(quotation) == []


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
    line = '"purple elephant" in the "green dragon": not explained'
    assert " in the " not in [line[a:b] for a, b in quoted_parts(line)]
    assert {"purple elephant", "green dragon"} <= {line[a:b] for a, b in quoted_parts(line)}
    curly = "“one” and “two”"
    assert [curly[a:b] for a, b in quoted_parts(curly)] == ["one” and “two", "one", "two"]
