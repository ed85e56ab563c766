"""Which words of a text are quoted speech."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import rows_of

from fabula.text import read_documents
from fabula.text.speech import flags_within, quotations_of, speech_spans

GOLDEN = Path(__file__).parents[1] / "golden" / "speech.jsonl"
"""Short texts of all conventions, with their speech marked by hand. The reader was made with one
half; the other, `held_out`, was looked at only when it was done."""
CASES = rows_of(GOLDEN)
WORD = re.compile(r"\w+(?:['’]\w+)*")
SHARES = {
    # By hand, for stories in which an apostrophe stood where a quotation may open.
    "hanna-15-human": 0.0, "hanna-25-human": 0.0, "hanna-35-human": 0.0, "hanna-59-human": 0.0,
    "hanna-66-human": 0.0, "hanna-82-human": 0.0, "hanna-24-human": 0.009,
    "hanna-34-human": 0.0, "hanna-46-human": 0.009, "hanna-52-human": 0.008,
    "hanna-48-human": 0.197, "hanna-55-human": 0.268, "hanna-72-human": 0.19,
    "hanna-78-human": 0.075, "hanna-27-human": 0.0, "hanna-77-human": 0.66, "hanna-31-human": 0.76,
}  # fmt: skip


def spoken(text: str, spans: list[tuple[int, int]]) -> list[str]:
    words = list(WORD.finditer(text))
    flags = flags_within((word.start() for word in words), spans)
    return [word[0] for word, inside in zip(words, flags, strict=True) if inside]


def share(text: str) -> float:
    return len(spoken(text, speech_spans(text))) / len(WORD.findall(text))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {case['held_out']}")
def test_speech_is_read_as_people_read_it(case: dict[str, Any]):
    text = case["text"]
    expected = [(start, end) for start, end in case["speech"]]
    assert spoken(text, speech_spans(text)) == spoken(text, expected)


@pytest.mark.parametrize("story", SHARES)
def test_apostrophes_of_people_are_no_speech(story: str, shared_data: Path):
    """Up to 94 % of these stories by people counted as speech for an apostrophe."""
    [text] = [
        document.text
        for document in read_documents(
            [str(shared_data / "human_vs_machine" / "hanna_writingprompts.jsonl")]
        )
        if document.id == story
    ]
    assert share(text) == pytest.approx(SHARES[story], abs=0.025)


def test_marks_belong_to_a_quotation_and_narration_does_not():
    text = '"I am," he said, "tired."'
    assert [text[a:b] for a, b in speech_spans(text)] == ['"I am,"', '"tired."']


def test_scare_quotes_are_quotations_and_no_speech():
    text = 'His "castle" was a hut.'
    [found] = quotations_of(text)
    assert (text[found.start : found.end], found.is_speech) == ('"castle"', False)


def test_a_mark_without_its_partner_takes_no_more_than_its_sentence():
    text = 'She came. "I know this place. ' + "He had been there before. " * 40
    [found] = quotations_of(text)
    assert text[found.start : found.end] == '"I know this place.'
    assert not found.is_closed


def test_the_last_speech_of_a_text_that_is_cut_reaches_to_its_end():
    said = '"Now?" he asked. "Now," she said. "And then?" he asked. '
    last = '"Then we go home. It is late. I have been'
    assert (said + last)[slice(*speech_spans(said + last)[-1])] == last
    ended = f"{said}{last} here."
    assert ended[slice(*speech_spans(ended)[-1])] == '"Then we go home.'


def test_sentences_of_a_passage_may_begin_and_end_within_speech():
    text = 'I went home." She nodded. "Then what? You never told me.'
    assert [text[a:b] for a, b in speech_spans(text, has_paragraphs=False)] == [
        'I went home."', '"Then what? You never told me.',
    ]  # fmt: skip


PLAIN = "the old man sat by the sea and looked at grey water until it was night"
ODD = [
    "don't", "it's", "they'd've", "'twas", "'Twas", "'em", "'cause", "rock 'n' roll", "o'clock",
    "cookin'", "th'", "o'", "the boys' hats", "James' hat", "in '69", "the '20s", "6'", "I 'm",
    "the king 's son", "ma'am", "'til", "'bout",
]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 14), st.sampled_from(ODD)), max_size=8))
def test_contractions_and_elisions_make_no_speech(inserted: list[tuple[int, str]]):
    words = PLAIN.split()
    for place, odd in inserted:
        words.insert(place, odd)
    narrated = " ".join(words) + "."
    assert speech_spans(narrated) == []
    text = f'"Come in," said Ann. {narrated} "I will."'
    assert [text[a:b] for a, b in speech_spans(text)] == ['"Come in,"', '"I will."']


SENTENCE = st.lists(st.sampled_from([*PLAIN.split(), "don't", "it's"]), min_size=4, max_size=9).map(
    lambda words: " ".join(words).capitalize()
)


@st.composite
def told(draw: st.DrawFn, marks: tuple[str, str]) -> tuple[str, list[str]]:
    """A text of speech and narration in turn, and what is said in it."""
    opening, closing = marks
    parts: list[str] = []
    said: list[str] = []
    for sentence in draw(st.lists(SENTENCE, min_size=1, max_size=6)):
        if draw(st.booleans()):
            said.append(f"{opening}{sentence}.{closing}")
            parts.append(said[-1])
        else:
            parts.append(f"{sentence}.")
    space = st.sampled_from([" ", "\n\n"])
    return "".join(part + draw(space) for part in parts), said


@pytest.mark.parametrize(
    "marks", ['""', "“”", "''", "‘’", "«»", "»«", "„“", "„”", "‹›", ("``", "''"), ("“", '"')]
)
@given(data=st.data())
def test_speech_is_read_whatever_the_marks(data: st.DataObject, marks: Any):
    text, said = data.draw(told(tuple(marks)))
    assert [text[a:b] for a, b in speech_spans(text)] == said


@given(text=told(("'", "'")).map(lambda pair: pair[0]))
def test_straight_and_curly_forms_hold_the_same_speech(text: str):
    curly = re.sub(r"(?<![\w.,!?])'", "‘", text).replace("'", "’")
    assert speech_spans(curly) == speech_spans(text)


@given(st.text(st.sampled_from(" \n.,!?—-\"'‘’“”«»`„abcSIn0")), st.booleans())
def test_spans_are_in_order_and_apart_in_any_text(text: str, has_paragraphs: bool):
    found = quotations_of(text, has_paragraphs=has_paragraphs)
    edges = [edge for one in found for edge in (one.start, one.end)]
    assert edges == sorted(edges)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
