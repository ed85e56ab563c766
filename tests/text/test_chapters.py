"""Chapters and scenes: what parts a book, and what does not."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.epubs import write_epub

from fabula.core.types import Document
from fabula.text import read_documents
from fabula.text.chapters import (
    chapters_of,
    is_heading,
    parts_of,
    sections_of,
    where_of,
    without_headings,
)

PROSE = (
    "The lamp was lit at dusk, and nobody had rowed over for a week. She counted the turns of "
    "the stair, as her father had, and wrote the number down.\n\n"
    "“Run,” he said. “They are at the gate, and the tide is out.”"
)


def book(*headings: str, before: str = "", body: str = PROSE) -> Document:
    return Document("d", before + "".join(f"{one}\n\n{body}\n\n" for one in headings))


def titles(document: Document) -> list[str]:
    return [one.title for one in chapters_of(document)]


@pytest.mark.parametrize(
    "headings",
    [
        ["CHAPTER I", "CHAPTER II", "CHAPTER III"],
        ["Chapter One", "Chapter Two", "Chapter Twenty-One"],
        ["Chapter 1. The River", "Chapter 2. The Road"],
        ["CHAPTER I. DOWN THE HOLE", "CHAPTER THE LAST"],
        ["STAVE I: MARLEY'S GHOST", "STAVE II: THE FIRST OF THE THREE SPIRITS"],
        ["Letter 1", "Letter 2", "Chapter 1"],
        ["I", "II", "III"],
        ["1", "2", "3"],
        ["I. The Period", "II. The Mail", "III. The Wine-shop"],
        ["Prologue", "1", "2", "Epilogue"],
        ["Part One", "Part Two"],
        ["THE FIRST PART", "THE SECOND PART"],
        ["# The Sea", "# The Land"],
        # One number may be misprinted or missed.
        ["I.", "II.", "III.", "VI.", "V.", "VI.", "VIII.", "IX."],
    ],
)
def test_headings_as_books_are_set_part_chapters(headings: list[str]):
    expected = [one.lstrip("# ") for one in headings]
    assert titles(book(*headings)) == expected


@pytest.mark.parametrize("line", ["I", "Part One: The Sea", "Book the First", "THE END"])
def test_a_heading_is_one_by_itself(line: str):
    assert is_heading(line)


@pytest.mark.parametrize(
    "line",
    [
        "Chapter two,” said Cecil, yawning. “Find me chapter two.”", "Part of him wanted to leave.",
        "Letter in hand, she ran.", "I know.", "Book in hand he went", "NO!", "Act now!", "Mix it.",
        "Ill!", "civil",
    ],
)  # fmt: skip
def test_prose_that_begins_like_a_heading_parts_nothing(line: str):
    assert not is_heading(line)
    found = chapters_of(book("Chapter 1", "Chapter 2", body=f"{PROSE}\n\n{line}\n\n{PROSE}"))
    assert [one.title for one in found] == ["Chapter 1", "Chapter 2"]


HEADINGS = ["Chapter 1. The Sea", "Chapter 2. The Land", "Chapter 3. The Sky"]


@pytest.mark.parametrize(
    "contents",
    [
        "\n\n".join(["CONTENTS", *HEADINGS, ""]),
        "\n  ".join(["CONTENTS\n", *HEADINGS]) + "\n\n",
        "\n\n".join(["CONTENTS", "PREFACE", *HEADINGS, "PREFACE", PROSE, ""]),
    ],
)
def test_a_table_of_contents_is_no_chapters(contents: str):
    document = book(*HEADINGS, before=contents)
    assert titles(document) == HEADINGS
    assert document.text[: chapters_of(document)[0].start].strip() == contents.strip()


def test_parts_name_the_chapters_below_them_and_are_none():
    headings = ["BOOK ONE/I./THE EVE", "II./THE STAR", "BOOK TWO/I./UNDER FOOT", "II./THE RUIN"]
    document = book(*(heading.replace("/", "\n\n") for heading in headings))
    found = chapters_of(document)
    assert [(one.part, one.title) for one in found] == [
        ("BOOK ONE", "I. THE EVE"), ("BOOK ONE", "II. THE STAR"),
        ("BOOK TWO", "I. UNDER FOOT"), ("BOOK TWO", "II. THE RUIN"),
    ]  # fmt: skip
    assert all(document.text[one.body :].startswith("The lamp was lit") for one in found)


@pytest.mark.parametrize("line", ["* * *", "***", "#", "---", "⁂", "~"])
def test_a_line_without_words_parts_scenes(line: str):
    found = chapters_of(book("Chapter 1", "Chapter 2", body=f"{PROSE}\n\n{line}\n\n{PROSE}"))
    assert [len(one.scenes) for one in found] == [2, 2]


def test_more_room_than_usual_parts_scenes():
    body = f"{PROSE}\n\n{PROSE}\n\n\n\n{PROSE}"
    document = book("Chapter 1", "Chapter 2", body=body)
    first, second = chapters_of(document)
    assert [document.text[a:b] for a, b in first.scenes] == [f"{PROSE}\n\n{PROSE}", PROSE]
    assert len(second.scenes) == 2


def test_headings_of_word_part_chapters_whatever_they_say(tmp_path: Path):
    word = docx.Document()
    word.add_heading("A Novel", 0)
    for part, names in {"The Sea": ["Salt", "The Lamp"], "The Land": ["Dust"]}.items():
        word.add_heading(part, 1)
        for name in names:
            word.add_heading(name, 2)
            for paragraph in PROSE.split("\n\n"):
                word.add_paragraph(paragraph)
    word.save(str(tmp_path / "draft.docx"))
    (document,) = read_documents([str(tmp_path / "draft.docx")])
    found = chapters_of(document)
    assert [(one.part, one.title) for one in found] == [
        ("The Sea", "Salt"), ("The Sea", "The Lamp"), ("The Land", "Dust"),
    ]  # fmt: skip
    assert {document.text[one.body : one.end].strip() for one in found[:1]} == {PROSE}


def test_a_place_is_named_by_its_chapter_and_where_there_are_lines_by_its_line():
    plain = book("Prologue", "CHAPTER I", "CHAPTER II. The River")
    paged = replace(plain, meta={"headings": []})
    starts = [m.start() for m in re.finditer("The lamp", plain.text)]
    expected = ["chapter 1, Prologue", "chapter 2, CHAPTER I", "chapter 3, The River"]
    assert [where_of(paged, start) for start in starts] == expected
    assert where_of(plain, starts[1]) == "chapter 2, CHAPTER I, line 9"
    counted = book("Chapter 1", "Chapter 2")
    assert where_of(counted, counted.text.rindex("“Run")) == "chapter 2, line 11"
    short = Document("d", "A.\n\nB.")
    assert where_of(short, 4) == "line 3"
    assert where_of(replace(short, meta={"headings": []}), 4) == ""


def test_headings_of_epub_part_chapters_whatever_they_say(tmp_path: Path):
    paragraphs = "".join(f"<p>{paragraph}</p>" for paragraph in PROSE.split("\n\n"))
    names = ["Salt<br/>and <i>sand</i>", "The Lamp", "Dust"]
    write_epub(tmp_path / "b.epub", [f"<h2>{name}</h2>{paragraphs}" for name in names])
    (document,) = read_documents([str(tmp_path / "b.epub")])
    assert titles(document) == ["Salt and sand", "The Lamp", "Dust"]
    # Headings that no longer fit their text are not used.
    meta = {"headings": [[0, 1, "Salt"], [30, 1, "Dust"]]}
    assert chapters_of(Document("d", f"Other words.\n\n{PROSE}", meta=meta)) == []


LINES = ["Chapter 1", "CHAPTER II", "I.", "1", "Part One", "# A", "Prologue", "THE SEA"]
LINES += ["* * *", "Contents", "It was so.", PROSE]
GAPS = st.sampled_from(["\n", "\n\n", "\n\n\n"])


@settings(max_examples=60)
@given(st.lists(st.sampled_from(LINES), max_size=14), GAPS)
def test_chapters_are_apart_in_order_and_hold_their_scenes(parts: list[str], gap: str):
    text = gap.join(parts)
    found = chapters_of(Document("d", text))
    place = 0
    for number, one in enumerate(found, 1):
        assert one.number == number
        assert place <= one.start < one.body <= one.scenes[0][0]
        for start, end in one.scenes:
            assert place <= start < end <= one.end <= len(text)
            place = end
    assert len(found) != 1


def test_sections_are_all_of_a_text():
    text = "\n\n".join([PROSE] * 9)
    assert sections_of("\n\n", 500) == []
    found = sections_of(text, 500)
    assert len(found) > 2
    assert [one.start for one in found] == [0, *(one.end for one in found[:-1])]
    assert found[-1].end == len(text)


def test_parts_to_edit_are_chapters_or_sections_and_together_the_whole_text():
    chapters = "\n\n".join(["A word before.", *(f"CHAPTER {k}\n\n{PROSE}" for k in (1, 2))])
    long = "\n\n".join([PROSE] * 20)
    for text, labels in ((chapters, ["chapter 1", "chapter 2"]), ("", [""]), (PROSE, [""]),
                         (f"{chapters}\n\n{long}", ["chapter 1", "chapter 2 (1)"]),
                         (long, ["section 1", "section 2"])):  # fmt: skip
        parts = parts_of(Document("", text), 5 * len(PROSE))
        assert [label for label, *_ in parts][:2] == labels
        edges = [0, *(end for _, _, end in parts)]
        assert [(a, b) for _, a, b in parts] == list(pairwise(edges))
        assert edges[-1] == len(text)


def test_headings_are_blank_and_all_else_stays_at_its_place():
    book = "\n\n".join(f"CHAPTER {one}\n\n{PROSE}" for one in ("I", "II", "III"))
    marked = f"# The River\n\n{PROSE}\n\n### Human: Oh! And then you went on to write all of it."
    for text in (book, marked):
        blank = without_headings(Document("d", text))
        assert len(blank) == len(text)
        assert all(a in (b, " ") for a, b in zip(blank, text, strict=True))
    assert "CHAPTER" not in without_headings(Document("d", book))
    assert "River" not in without_headings(Document("d", marked))
    # A paragraph that Markdown marks is none, one line in capitals is no book.
    assert "Human" in without_headings(Document("d", marked))
    assert without_headings(Document("d", f"CHAPTER I\n\n{PROSE}")) == f"CHAPTER I\n\n{PROSE}"
    given = Document("d", f"Home\n\n{PROSE}", meta={"headings": [[0, 1, "Home"]]})
    assert without_headings(given).split()[0] == PROSE.split()[0]
