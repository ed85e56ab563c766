import math
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import if_installed

from fabula.core.errors import explain
from fabula.core.types import Document
from fabula.linguistic.metrics import TextTools
from fabula.linguistic.profile import (
    PROFILE_METRICS,
    Profile,
    _occurring_again,
    profile_text,
    profile_texts,
)
from fabula.text import count_words

TEXT = """The old man sat by the sea. "I am tired," he said. He sat by the sea again.

"We sat by the sea," said his wife, and she laughed."""


@pytest.fixture(scope="module")
def tools() -> TextTools:
    return if_installed(TextTools)


def profile(tools: TextTools, text: str) -> Profile:
    return profile_text(tools, Document("t", text))


def test_profile_by_hand(tools: TextTools):
    found = profile(tools, TEXT)
    values = found.values
    assert "dialogue:marks-and-dashes-1" in found.signature
    # The old man sat by the sea (7). I am tired he said (5). He sat by the sea again (6).
    # We sat by the sea said his wife and she laughed (11).
    assert values["n_words"] == 29
    assert values["n_sentences"] == 4
    assert values["sentence_length"] == pytest.approx(29 / 4)
    mean = 29 / 4
    squares = sum((n - mean) ** 2 for n in (7, 5, 6, 11))
    assert values["sentence_length_sd"] == pytest.approx(math.sqrt(squares / 3))
    # I am tired; We sat by the sea
    assert values["dialogue_share"] == pytest.approx((3 + 5) / 29)
    # the old man sat by sea i am tired he said again we his wife and she laughed: 18 types
    assert values["type_token_ratio"] == pytest.approx(18 / 29)
    # "sat by the sea" stands in the third and the fourth sentence again
    assert values["repeated_share"] == pytest.approx((4 + 4) / 29)


def test_words_are_counted_as_everywhere(tools: TextTools):
    text = "# The Well-Known Sea\n\nI don't know it. We can't and we cannot go; she's gone."
    assert profile(tools, text).values["n_words"] == count_words(text) == 16


def test_headings_are_neither_sentences_nor_repeated(tools: TextTools):
    parts = [f"{TEXT}\n\nThey {verb} it." for verb in ("recieve", "take")]
    book = "\n\n".join(f"CHAPTER {k}. Home\n\n{part}" for k, part in enumerate(parts, 1))
    found, plain = profile(tools, book), profile(tools, "\n\n".join(parts))
    del found.values["n_words"], plain.values["n_words"]
    assert (found.values, found.repeated) == (plain.values, plain.repeated)
    # Errors are where they stand in the text with its headings.
    assert [book[one.start : one.end] for one in found.errors] == ["recieve"]


def test_repeated_phrases_are_the_longest_and_counted(tools: TextTools):
    found = profile(tools, TEXT).repeated
    assert [(r.phrase, r.count) for r in found] == [("sat by the sea", 3)]
    # A sentence that comes again is one repetition.
    line = "The old grey king of the far cold northern sea sat all day by his window and wept. "
    assert len(profile(tools, line + "A bird flew by. " + line).repeated) == 1


def test_repeated_phrases_are_of_whole_words(tools: TextTools):
    text = (
        "“Don’t look at me,” she said. He said, “You don't look at Mr. Hale’s well-known house.” "
    )
    text += "We cannot go there. They looked at Mr. Hale's well-known garden and cannot go on."
    phrases = {one.phrase for one in profile(tools, text).repeated}
    assert phrases == {"don't look at", "at mr hale's well known"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_words"), ("?! ...", "no_words"),
        ("Er ging nach Hause und schlief lange.", "not English: looks like German"),
        ("No", None), ("word " * 5000, None), ("a\x00b \ud800 c", None), ("<b>x</b> & y.", None),
    ],
)  # fmt: skip
def test_every_number_is_finite_or_says_why(tools: TextTools, text: str, reason: str | None):
    found = profile(tools, text)
    if reason is not None:
        assert set(found.missing.values()) == {reason}
        assert all(value in (None, 0) for value in found.values.values())
    for metric in PROFILE_METRICS:
        value = found.values[metric.item]
        if value is None:
            assert explain(found.missing[metric.item])
        else:
            assert math.isfinite(value)
    assert [m.item for m in found.measurements()] == [m.item for m in PROFILE_METRICS]


def test_two_processes_give_what_one_gives(tools: TextTools, examples: Path):
    paths = sorted((examples / "library").iterdir())
    texts = [Document(path.name, path.read_text(encoding="utf-8")) for path in paths]
    one, two = (list(profile_texts(texts, "none", n_jobs=n)) for n in (1, 2))
    assert [p.to_row() for p in one] == [p.to_row() for p in two]
    assert [p.document.id for p in one] == [text.id for text in texts]


def test_phrases_occur_again_as_often_as_by_counting_all():
    rng = random.Random(1)
    for _ in range(200):
        some = range(rng.randrange(8))
        sentences = [tuple(rng.choices("abc", k=rng.randrange(25))) for _ in some]
        spans = [(s, k, n) for s in sentences for n in range(3, 13) for k in range(len(s) - n + 1)]
        counts = Counter(words[k : k + n] for words, k, n in spans)
        expected = {phrase: count for phrase, count in counts.items() if count > 1}
        assert _occurring_again(sentences) == expected
