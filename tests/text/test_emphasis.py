"""The marks of Markdown: what they are, and what is left of a text without them."""

import pytest

from fabula.show.page import cut_text
from fabula.text import count_words
from fabula.text.emphasis import emphasis_of, unmarked


@pytest.mark.parametrize(
    ("text", "shown", "italics"),
    [
        ("## The *Lamp* ##\n\nIt *so\ngot*.", "The Lamp\n\nIt so\ngot.", ["Lamp", "so\ngot"]),
        ("“*No,*” **he** was ***mad***; _so_.", "“No,” he was mad; so.", ["No,", "mad", "so"]),
        ("* * *\n\nA f*ck, a sh*t, snake_case, 2 * 3 * 4", None, []),
        ("\\*no\\*, *not\n\nthis* #5", None, []),
        ("a *b", None, []),
    ],
)  # fmt: skip
def test_marks_are_not_shown_and_change_no_words(text: str, shown: str | None, italics: list[str]):
    plain = unmarked(text, 0, len(text))
    assert plain == (shown or text)
    assert [text[a:b] for a, b in emphasis_of(text)[1]] == italics
    assert count_words(plain) == count_words(text)
    pieces = [piece for paragraph in cut_text(text) for piece in paragraph]
    slanted = " ".join(piece.text for piece in pieces if piece.is_italic and piece.text)
    assert slanted == " ".join(italics).replace("\n", " ")


def test_a_part_of_a_text_has_no_half_of_a_mark():
    text = "She **really *went* home** then."
    assert unmarked(text, 4, text.index(" home")) == "really went"
    assert unmarked(text, 5, 6) == ""
