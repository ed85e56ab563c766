"""Lists of phrases: what is written is read back, and where they stand in a text."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.groups import phrase_list
from fabula.groups.key_phrases import KeynessPlan, find_key_phrases
from fabula.text import TextSettings


def listed(tmp_path: Path, *phrases: object) -> phrase_list.PhraseList:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(phrases))
    return phrase_list.read_phrases(path)


def test_what_is_written_is_read_back(tmp_path: Path):
    said = ("one more lamp", "the Dark Tower")
    texts = [Document(str(k), f"{said[k % 2]} x{k} y{k} z{k}") for k in range(40)]
    plan = KeynessPlan(n_words=4, settings=TextSettings(case="keep"))
    found = find_key_phrases(("tall", texts[1::2]), ("small", texts[::2]), plan)
    phrase_list.write_key_phrases(tmp_path / "p.jsonl", found, "2026-01-02")
    read = phrase_list.read_phrases(tmp_path / "p.jsonl")
    assert (read.name, read.against, read.n_texts) == ("tall", "small", (20, 20))
    assert (read.date, read.settings) == ("2026-01-02", plan.settings)
    # Phrases of the other group are in the file, and not what the list is of.
    assert [one.phrase for one in read.phrases] == ["the Dark Tower"]
    shown = "tall 250.00, small 0.00 in 1,000 words; in 20 of 20 and 0 of 20 texts"
    assert read.phrases[0].said == shown
    header = json.loads((tmp_path / "p.jsonl").read_text().split("\n")[0])
    assert header["a"]["n_texts"] == 20
    assert header["signature"].startswith("phrases|words:4|texts:20|")


def test_lists_from_elsewhere_are_phrases_or_phrases_with_counts(tmp_path: Path):
    found = listed(tmp_path, "a tapestry of", ["barely a whisper"], ["Shivers, down", 12])
    phrases = [one.phrase for one in found.phrases]
    assert phrases == ["a tapestry of", "barely a whisper", "Shivers, down"]
    document = Document("d", "He felt shivers (down his spine).")
    ((measured,),) = phrase_list.PhraseInstrument(found).measure([document])
    assert measured.value == pytest.approx(1000 / 6)
    (span,) = measured.evidence
    assert document.text[span.start : span.end] == "shivers (down"


@pytest.mark.parametrize(
    "text",
    ["", "[]", '["a", 3]', '[["a", "b"]]', '[["a", 1, 2]]', "[1", '{"a": 1}', "Once upon a time",
     '{"fabula_phrases":1}\n', '{"fabula_phrases":1}\nnothing', '{"fabula_phrases":9}\n'],
)  # fmt: skip
def test_another_file_is_refused_in_a_sentence(tmp_path: Path, text: str):
    path = tmp_path / "list"
    path.write_text(text)
    with pytest.raises(InputError, match="list"):
        phrase_list.read_phrases(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        phrase_list.read_phrases(path)


WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


@given(WORDS, st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1))
def test_all_places_are_found_that_lie_in_no_other(words: list[str], phrases: list[list[str]]):
    ends = itertools.combinations(range(len(words) + 1), 2)
    places = {(a, b) for a, b in ends if words[a:b] in phrases}
    within = {(a, b) for a, b in places for c, d in places - {(a, b)} if c <= a and b <= d}
    rows = [phrase_list.ListedPhrase(" ".join(one)) for one in phrases]
    given_ = phrase_list.PhraseList("mine", "", None, "", TextSettings(), rows, "")
    found = phrase_list.PhraseInstrument(given_).find(words)
    assert {(k, k + n) for k, n, _ in found} == places - within


def test_uses_tell_how_often_and_where(tmp_path: Path):
    found = phrase_list.PhraseInstrument(listed(tmp_path, "once upon", "upon a time", "time"))
    texts = [Document("d", "Once upon a time. Time and time again."), Document("e", "...")]
    (measured,), (nothing,) = found.measure(texts)
    assert (nothing.value, nothing.missing_reason) == (None, "no_words")
    uses = {use.phrase: use.places for use in phrase_list.uses_of(measured)}
    assert uses == {"once upon": ((0, 9),), "upon a time": ((5, 16),), "time": ((18, 22), (27, 31))}
    assert measured.value == pytest.approx(1000 * 4 / 8)
