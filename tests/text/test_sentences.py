"""Where paragraphs begin and end."""

import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.text import read_documents
from fabula.text.sentences import paragraph_spans, paragraphs_of

PARAGRAPHS = [
    "The old man sat by the sea. He had been there since morning, and nobody had come to ask him "
    "what he was looking at.",
    '"I am tired," he said.',
    '"Then go home," said his wife, who had come down from the house at last.',
    "He did not answer. The water was grey, and over it the gulls hung as if on strings, and far "
    "out a boat was going south with a brown sail.",
]


def test_a_paragraph_a_line_is_a_paragraph_each():
    assert paragraphs_of("\n".join(PARAGRAPHS)) == PARAGRAPHS
    assert paragraphs_of("\n\n".join(PARAGRAPHS)) == PARAGRAPHS
    assert paragraphs_of("\r\n".join(PARAGRAPHS)) == "\r\n".join(PARAGRAPHS).split("\n")


@pytest.mark.parametrize("width", [40, 50, 65, 72, 80, 100])
def test_lines_cut_to_a_width_are_joined(width: int):
    wrapped = [textwrap.fill(paragraph, width) for paragraph in PARAGRAPHS]
    assert paragraphs_of("\n\n".join(wrapped)) == wrapped


@pytest.mark.parametrize(
    ("text", "n_paragraphs"),
    [
        ("—Who is there?\n—Only the wind.\n—Then shut the door.", 3),
        ("The woods are dark,\nthe hills are long,\nand I am gone.", 1),
        ("Shall I compare thee\nto a summer's day?\nThou art more lovely\nand more temperate.", 1),
        ("He went home.\nHe ate.\nhe slept, and so on.", 2),
        ("One line", 1),
    ],
)
def test_verse_stays_whole_and_dialogue_does_not(text: str, n_paragraphs: int):
    assert len(paragraphs_of(text)) == n_paragraphs


def test_books_wrapped_or_with_a_paragraph_a_line(shared_data: Path):
    """The same chapters in both forms have the paragraphs that they had with blank lines."""
    source = str(shared_data / "reference" / "moby_dick.jsonl.gz")
    n_lines = n_right = 0
    for document in list(read_documents([source]))[::6]:
        paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", document.text.strip())]
        wrapped = "\n\n".join(textwrap.fill(paragraph, 70) for paragraph in paragraphs)
        assert len(paragraph_spans(wrapped)) == len(paragraphs)
        n_lines += len(paragraphs)
        n_right += len(set(paragraphs_of("\n".join(paragraphs))) & set(paragraphs))
    assert n_right / n_lines > 0.97


@given(st.text(st.sampled_from(" \n\t\r.,ab\"A'")))
def test_paragraphs_are_in_order_and_lose_no_word(text: str):
    spans = paragraph_spans(text)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    kept = "".join(text[start:end] for start, end in spans)
    assert "".join(kept.split()) == "".join(text.split())
