"""What counts as a word, and that each can be shown in its place."""

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from fabula.text import TextSettings
from fabula.text import words as module

FOLD = TextSettings()
PAPER = TextSettings("keep", "keep")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don’t stop", ["don't", "stop"]),
        ("“Quoted,” she said—loudly.", ["quoted", "she", "said", "loudly"]),
        ("well-known fact", ["well", "known", "fact"]),
        ("'Tis the season", ["tis", "the", "season"]),
        ("l’homme 3.14 1,000", ["l'homme", "3.14", "1,000"]),
        ("the dogs' bowls", ["the", "dogs", "bowls"]), ("cafe\u0301 = café", ["café", "café"]),
        ("ﬁne Ｆｕｌｌ", ["fine", "full"]),
        ("co\u00adoperate zero\u200dwidth", ["cooperate", "zerowidth"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("_emphasis_ and **bold**", ["emphasis", "and", "bold"]), ("東京 に", ["東", "京", "に"]),
        ("ok 👍🏽 done", ["ok", "👍🏽", "done"]), ("हिन्दी में", ["हिन्दी", "में"]),
        ("한국어 문장", ["한국어", "문장"]), ("", []), ("... — !", []),
    ],
)  # fmt: skip
def test_words_in_the_default_setting(text: str, words: list[str]):
    assert FOLD.words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don’t stop!", ["Don't", "stop", "!"]),
        ("“Yes,” he said—twice--more.",
         ['"', "Yes", ",", '"', "he", "said", "-", "twice", "-", "more", "."]),
        ("well-known… etc", ["well-known", "...", "etc"]),
        ("well-known... etc", ["well-known", "...", "etc"]),
    ],
)  # fmt: skip
def test_punctuation_is_a_token_where_it_is_kept(text: str, words: list[str]):
    assert PAPER.words(text) == words


@pytest.mark.parametrize("settings", [FOLD, PAPER, TextSettings("fold", "keep")])
@given(text=st.text(max_size=80))
def test_every_word_stands_where_it_is_said_to(settings: TextSettings, text: str):
    found = settings.locate(text)
    raw = [text[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    assert raw == settings.raw_words(text)
    assert found.words == settings.normalise(raw) == settings.words(text)
    assert all(a < b for a, b in zip(found.starts, found.ends, strict=True))
    assert all(b <= a for b, a in zip(found.ends, found.starts[1:], strict=False))


@pytest.mark.parametrize("settings", [FOLD, PAPER])
@given(text=st.text(max_size=60))
def test_normalising_twice_changes_nothing(settings: TextSettings, text: str):
    once = settings.words(text)
    assert settings.normalise(once) == once
    assert all(once)


@pytest.mark.parametrize("punct", ["drop", "keep"])
@given(text=st.text(st.characters(max_codepoint=0x2180), max_size=80))
def test_the_quick_rules_agree_with_all_rules_where_they_are_used(punct: str, text: str):
    if module._needs_all_rules(text):
        return
    quick = module._pattern(punct, False)  # type: ignore[arg-type]
    whole = module._pattern(punct, True)  # type: ignore[arg-type]
    assert quick.findall(text) == whole.findall(text)


def test_no_character_that_needs_all_rules_is_overlooked():
    every = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)
    special = rf"[{module._UNSPACED}\p{{RI}}\p{{Emoji_Presentation}}]"
    found = regex.findall(special, every, regex.V1)
    assert len(found) > 90_000
    assert [c for c in found if not module._needs_all_rules(c)] == []
    assert len(FOLD.words("👩‍👩‍👧 🇫🇷 1️⃣")) == 3, "a family of joined emoji is one token"


@given(st.text(max_size=60), st.integers(0, 12))
def test_the_places_of_the_first_words_are_those_of_all(text: str, n_words: int):
    for settings in (FOLD, PAPER):
        _, starts, ends = settings.locate(text)
        places = settings.places(text, n_words)
        assert places.tolist() == np.column_stack((starts, ends))[:n_words].tolist()
