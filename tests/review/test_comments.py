"""Findings as comments: each at its words, the draft's look and words untouched."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.oxml.ns import qn
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.commands import invoke

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.review.comments import write_comments
from fabula.show.parts import Review, TextReview
from fabula.stats.norms import GroupBook
from fabula.style.lines import LineNote, LineReview
from fabula.text import read_documents

OFFICE = shutil.which("soffice")


def reviewed(text: str, places: list[tuple[int, int]]) -> Review:
    notes = tuple(
        LineNote("echo", a, b, f"Note {k}.", 1 - k / 1000) for k, (a, b) in enumerate(places)
    )
    # So many words that every note is marked.
    lines = LineReview(100 * (len(notes) + 1), notes, "lines|rules:1")
    return Review((TextReview(Document("d", text), {"lines": lines}),), (), GroupBook([]))


def commented(path: Path) -> dict[str, str]:
    """The words that each comment of a Word document is about, by its text: as Word reads them."""
    word = docx.Document(str(path))
    said = {str(c.comment_id): c.text for c in word.comments}
    open_now: set[str] = set()
    words = dict.fromkeys(said, "")
    for k, paragraph in enumerate(word.element.body.iter(qn("w:p"))):
        for id_ in open_now:
            words[id_] += "\n\n" if k else ""
        for element in paragraph.iter():
            id_ = element.get(qn("w:id"), "")
            if element.tag == qn("w:commentRangeStart"):
                open_now.add(id_)
            elif element.tag == qn("w:commentRangeEnd"):
                open_now.discard(id_)
            elif element.tag in {qn(f"w:{name}") for name in ("t", "tab", "br", "noBreakHyphen")}:
                for one in open_now:
                    words[one] += str(element)
    return {said[id_]: found for id_, found in words.items()}


def rich(path: Path) -> str:
    """A document with runs of several looks, a table, a link, a tab and a line break."""
    word = docx.Document()
    first = word.add_paragraph("The lamp was ")
    first.add_run("very").bold = True
    first.add_run(" bright,\tand the ").italic = True
    first.add_run("sea\nwas not.")
    word.add_heading("The second chapter", 1)
    link = etree.SubElement(word.add_paragraph("See ")._p, qn("w:hyperlink"))
    run = etree.SubElement(link, qn("w:r"))
    etree.SubElement(run, qn("w:t")).text = "the harbour book"
    table = word.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left cell", "right cell"
    word.add_paragraph("The end.")
    word.save(str(path))
    (document,) = read_documents([str(path)])
    return document.text


def looks(path: Path) -> list[tuple[str, bool | None, bool | None]]:
    word = docx.Document(str(path))
    return [
        (character, run.bold, run.italic)
        for paragraph in word.paragraphs
        for run in paragraph.runs
        for character in run.text
    ]


@settings(max_examples=15)  # Each writes and reads three documents.
@given(st.lists(st.tuples(st.integers(0, 110), st.integers(1, 40)), max_size=8))
def test_each_comment_is_at_its_words_and_nothing_else_changes(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, int]]
):
    folder = tmp_path_factory.mktemp("comments")
    text = rich(folder / "draft.docx")
    inside = [(a, min(len(text), a + n)) for a, n in places]
    inside = [(a, b) for a, b in inside if text[a:b].strip("\n")]
    review = reviewed(text, inside)
    lost = write_comments(folder / "out.docx", review, folder / "draft.docx")
    assert lost == 0
    found = commented(folder / "out.docx").items()
    # The break between two paragraphs belongs to neither.
    assert {said: words.strip("\n") for said, words in found} == {
        f"Echo. Note {k}.": text[a:b].strip("\n") for k, (a, b) in enumerate(inside)
    }
    (again,) = read_documents([str(folder / "out.docx")])
    assert again.text == text
    assert looks(folder / "out.docx") == looks(folder / "draft.docx")


def test_a_text_that_is_no_word_document_becomes_one(tmp_path: Path):
    text = "One lamp.\nA line of verse\n\n\nTwo \x00lamps \ud800 here.\n"
    places = [(4, 8), (text.index("lamps"), text.index(" \ud800"))]
    write_comments(tmp_path / "out.docx", reviewed(text, places))
    assert list(commented(tmp_path / "out.docx").values()) == ["lamp", "lamps"]


def test_what_is_not_of_fabula_is_never_written_over(tmp_path: Path):
    draft, out = tmp_path / "draft.docx", tmp_path / "out.docx"
    text = rich(draft)
    (tmp_path / "other.docx").write_text("{}")
    review = reviewed(text, [(0, 3), (4, 8)])
    for name, said in (
        ("draft.docx", "not written by Fabula"), ("other.docx", "not written by Fabula"),
        ("out.pdf", r"written to \.docx"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            write_comments(tmp_path / name, review)
    with pytest.raises(InputError, match="has changed"):
        write_comments(out, reviewed(text + "!", [(0, 3)]), draft)
    made = []
    for _ in range(2):
        write_comments(out, review, draft)
        made.append(out.read_bytes())
    assert made[0] == made[1]


def test_the_command_writes_them_into_a_copy_of_the_draft(tmp_path: Path):
    word, copy = docx.Document(), tmp_path / "c.docx"
    word.add_paragraph("They did not recieve the letter until spring, and nobody knew why.")
    word.save(str(tmp_path / "draft.docx"))
    done = invoke("report", tmp_path / "draft.docx", "--without", "profile", "--out",
                  tmp_path / "r.html", "--comments", copy)  # fmt: skip
    assert f"written: {copy}" in done.output
    assert list(commented(copy).values()) == ["recieve"]


@pytest.mark.skipif(OFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_shows_a_hundred_comments_at_the_right_words(tmp_path: Path):
    text = "\n\n".join(" ".join(f"word{10 * p + w}" for w in range(10)) for p in range(10))
    starts = [text.index(f"word{k}") for k in range(100)]
    places = [(start, start + len(f"word{k}")) for k, start in enumerate(starts)]
    write_comments(tmp_path / "c.docx", reviewed(text, places))
    command: list[Any] = [OFFICE, f"-env:UserInstallation=file://{tmp_path}/office", "--headless"]
    command += ["--convert-to", "fodt", "--outdir", tmp_path, tmp_path / "c.docx"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    tree = etree.parse(str(tmp_path / "c.fodt"))
    office = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
    found = {}
    for note in tree.iter(f"{office}annotation"):
        said = "".join(note.itertext())
        found[said[said.index("Note") :].strip()] = (note.tail or "").strip()
    assert found == {f"Note {k}.": f"word{k}" for k in range(100)}
