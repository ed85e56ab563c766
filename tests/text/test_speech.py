"""Which words of a text are quoted speech."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {case['held_out']}")
def test_speech_is_read_as_people_read_it(case: dict[str, Any]):
    text = case["text"]
    expected = [(start, end) for start, end in case["speech"]]
    assert spoken(text, speech_spans(text)) == spoken(text, expected)


def test_apostrophes_of_people_are_no_speech(shared_data: Path):
    """Up to 94 % of these stories by people counted as speech for an apostrophe."""
    documents = read_documents([shared_data / "human_vs_machine" / "hanna_writingprompts.jsonl"])
    texts = {one.id: one.text for one in documents if one.id in SHARES}
    shares = {
        story: len(spoken(text, speech_spans(text))) / len(WORD.findall(text))
        for story, text in texts.items()
    }
    assert shares == pytest.approx(SHARES, abs=0.025)


CUT = '"Now?" he asked. "Now," she said. "And then?" he asked. "Then we go home. It is late. I have'


@pytest.mark.parametrize(
    ("text", "has_paragraphs", "said"),
    [
        # Marks belong to a quotation, and narration does not.
        ('"I am," he said, "tired."', True, ['"I am,"', '"tired."']),
        # A mark without its partner takes no more than its sentence.
        ('She came. "I know it. ' + "He had been there. " * 40, True, ['"I know it.']),
        # But the last speech of a text that is cut reaches to its end.
        (CUT, True, ['"Now?"', '"Now,"', '"And then?"', '"Then we go home. It is late. I have']),
        (f"{CUT} it.", True, ['"Now?"', '"Now,"', '"And then?"', '"Then we go home.']),
        # Sentences of a passage may begin and end within speech.
        ('I went." He sat. "What? You never told.', False, ['I went."', '"What? You never told.']),
    ],
)
def test_speech_ends_where_it_does(text: str, has_paragraphs: bool, said: list[str]):
    spans = speech_spans(text, has_paragraphs=has_paragraphs)
    assert [text[a:b] for a, b in spans] == said


def test_scare_quotes_are_quotations_and_no_speech():
    text = 'His "castle" was a hut. "I know it. ' + "He had been there. " * 40
    scare, open_ = quotations_of(text)
    assert (text[scare.start : scare.end], scare.is_speech) == ('"castle"', False)
    assert (scare.is_closed, open_.is_closed) == (True, False)


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
    text, said = "", []
    for sentence in draw(st.lists(SENTENCE, min_size=1, max_size=6)):
        part = f"{sentence}."
        if draw(st.booleans()):
            part = part.join(marks)
            said.append(part)
        text += part + draw(st.sampled_from([" ", "\n\n"]))
    return text, said


@pytest.mark.parametrize(
    "marks", ['""', "“”", "''", "‘’", "«»", "»«", "„“", "„”", "‹›", ("``", "''"), ("“", '"')]
)
@settings(max_examples=25)
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
