"""A book by its chapters: the numbers of each, its people, and what comes back."""

import json
from pathlib import Path

import pytest
from tests.commands import invoke

import fabula as fb
from fabula.core.types import Document
from fabula.linguistic.cast import cast_of
from fabula.show.page import cut_text
from fabula.style.book import Book, BookInstrument, measure_book
from fabula.style.book_page import chapters_to_fold, folds_of
from fabula.text import count_words
from fabula.text.reading import Reading

SLOW = (
    "Mr. Ansel Hale walked along the quay, past the nets and the long low sheds that his father "
    "had built, and he looked for the lamp that Ruth Moon had promised to light for the boats. "
)
FAST = "“Where is Ruth?” asked Ansel. “Gone,” said Mrs. Hale. “Run!” He ran. "
AGAIN = "The water rose as high as the third stair of the old house."


def novel() -> Document:
    """Six chapters; the fourth is slow, and a sentence of the first stands in the last again."""
    parts = []
    for number in range(1, 7):
        body = SLOW * 12 if number == 4 else "\n\n".join([FAST * 3] * 9)
        again = AGAIN if number in (1, 6) else f"Nothing happened on day {number}."
        parts.append(f"CHAPTER {number}\n\n{body}\n\n* * *\n\n{again}")
    return Document("novel", "\n\n".join(parts))


@pytest.fixture(scope="module")
def measured() -> Book:
    found = measure_book(novel())
    assert found is not None
    return found


def test_a_chapter_has_the_numbers_of_its_own_text(measured: Book):
    # Counted by hand: 12 words in a FAST, of which 5 are in quotation marks.
    first = measured.chapters[0]
    assert (first.n_words, first.n_scenes) == (27 * 12 + 13, 2)
    assert first.dialogue == pytest.approx(27 * 5 / first.n_words)
    assert first.repeated == pytest.approx(1.0)
    assert measured.chapters[3].repeated == 0
    assert measured.value("n_chapters") == 6
    assert measured.value("n_scenes") == 12


def test_headings_are_no_sentences_and_no_words(measured: Book):
    slow = measured.chapters[3]
    assert slow.n_sentences == 13
    assert slow.n_words == 12 * len(SLOW.split()) + 5


def test_the_slow_chapter_is_named_in_a_sentence(measured: Book):
    (number, said), *others = measured.findings
    assert number == 4
    assert said.startswith("Chapter 4 is slower than the rest: ")
    assert not others
    assert max(one.pace or 0 for one in measured.chapters) < 1


def test_what_stands_in_two_chapters_is_found_with_its_places(measured: Book):
    text = novel().text
    (found,) = [one for one in measured.repeated if "third stair" in one.words]
    assert found.chapters == (1, 6)
    assert all("third stair" in text[a:b] for a, b in found.places)


def test_people_are_counted_by_chapter(measured: Book):
    people = {one.name: one for one in measured.characters}
    assert "Ruth Moon" in people["Ruth"].forms
    assert measured.chapters[3].characters["Ruth"] == 12
    assert measured.chapters[0].characters["Ruth"] == 27


NAMES = (
    "Elizabeth Bennet walked with Mr. Darcy along the river, and Jane followed them slowly. "
    "“I see that Miss Darcy plays,” said Elizabeth. Mr. Fitzwilliam Darcy bowed, and then Darcy "
    "smiled at Jane Bennet. Mrs. Bennet called for Jane, and Elizabeth saw that Mr. Darcy left. "
    "They had all met in London, and London was where Miss Darcy lived with Mr. Darcy. "
)


def test_forms_of_a_name_are_joined_and_different_people_are_not():
    people = {one.name: set(one.forms) for one in cast_of(Reading(NAMES * 6))}
    assert people["Elizabeth"] == {"Elizabeth", "Elizabeth Bennet"}
    assert people["Mr. Darcy"] == {"Mr. Darcy", "Mr. Fitzwilliam Darcy", "Darcy"}
    assert people["Jane"] == {"Jane", "Jane Bennet"}
    assert people["Miss Darcy"] == {"Miss Darcy"}
    assert people["Mrs. Bennet"] == {"Mrs. Bennet"}
    assert not any("London" in name for name in people)


def test_a_wife_who_is_called_by_her_husbands_name_is_another_person():
    text = (
        "Mr. Joe Gargery went to the forge with Pip. Joe Gargery said that Mrs. Joe Gargery was "
        "out. Then Mr. Gargery laughed, and Pip saw how Mrs. Joe Gargery looked at Joe Gargery. "
    )
    people = [set(one.forms) for one in cast_of(Reading(text * 6))]
    assert {"Mrs. Joe Gargery"} in people
    assert any({"Mr. Joe Gargery", "Joe Gargery"} <= forms for forms in people)


def test_a_short_text_without_chapters_has_nothing_of_it():
    assert list(BookInstrument().measure([Document("a", SLOW), Document("b", "")])) == [(), ()]


def test_a_long_text_without_headings_is_measured_in_sections():
    document = Document("long", "\n\n".join([FAST * 3] * 300))
    (said,) = BookInstrument().measure([document])
    values = {one.item: (one.value, one.missing_reason) for one in said}
    assert values["n_chapters"] == (None, "no_headings")
    assert said[0].details["book"]["unit"] == "section"
    assert len(said[0].details["book"]["chapters"]) > 2


def test_a_section_is_named_with_its_words():
    quick = [FAST * 3] * 260
    text = "\n\n".join([*quick, *[SLOW * 3] * 60, *quick])
    found = measure_book(Document("long", text))
    number, said = found.findings[0]
    slow = found.chapters[number - 1]
    assert SLOW in text[slow.start : slow.end]
    before = count_words(text[: slow.start])
    words = f"words {before + 1:,} to {before + slow.n_words:,}"
    assert said.startswith(f"Section {number} ({words}) is slower than the rest: ")


def test_what_is_not_english_has_no_sentences_and_no_people():
    german = (
        "Der alte Mann saß am Meer und wartete auf seine Frau, die nicht kam, und er wusste nicht, "
        "warum sie ihn verlassen hatte. "
    )
    text = "\n\n".join(f"CHAPTER {k}\n\n{german * 20}" for k in range(1, 5))
    found = measure_book(Document("de", text))
    assert found.missing_reason is not None
    assert found.value("n_characters") is None
    assert all(one.sentence_words is None and one.pace is None for one in found.chapters)
    assert all(one.n_words for one in found.chapters)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("novel.txt").write_text(novel().text, encoding="utf-8")
    return "novel.txt"


def test_the_command_and_the_function_say_the_same(file: str, measured: Book):
    shown = invoke("report", "--only", "book", file, "--csv", "b.csv").stdout
    assert "Chapter 4 is slower than the rest" in shown
    assert "Ruth" in shown
    rows = Path("b.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("id,number,title,words,scenes")
    (row,) = json.loads(invoke("report", "--only", "book", file, "--json").stdout)
    assert [one["n_words"] for one in row["chapters"]] == [one.n_words for one in measured.chapters]
    found = fb.report({"novel": novel().text}, only="book")
    assert found[0]["chapters"] == row["chapters"]
    assert list(found.frame()["number"]) == [1, 2, 3, 4, 5, 6]


def test_a_text_of_ten_thousand_words_folds_by_chapter_and_loses_nothing():
    body = "\n\n".join([FAST * 3] * 40)
    parts = [f"CHAPTER {k}\n\n{body} The end of {k}." for k in range(1, 9)]
    document = Document("long", "\n\n".join(["A title", *parts]))
    chapters = chapters_to_fold(document)
    breaks = [place for one in chapters for place in (one.start, one.body)]
    paragraphs = cut_text(document.text, breaks=breaks)
    before, *folds = folds_of(document, 1, chapters, paragraphs)
    shown = [p for fold in (before, *folds) for p in (*fold.heading, *fold.paragraphs)]
    words = " ".join("".join(piece.text for piece in p) for p in shown).split()
    assert words == document.text.split()
    assert [piece.text for p in before.paragraphs for piece in p] == ["A title"]
    assert ["".join(piece.text for p in one.heading for piece in p) for one in folds] == [
        f"CHAPTER {k}" for k in range(1, 9)
    ]
    assert [one.id for one in folds] == [f"ch1-{k}" for k in range(1, 9)]
    ends = [one.paragraphs[-1][-1].text.rpartition("ran.")[2].strip() for one in folds]
    assert ends == [f"The end of {k}." for k in range(1, 9)]


def test_a_heading_without_a_blank_line_below_is_folded_off_its_text():
    body = "\n".join([FAST * 3] * 40)
    text = "\n".join(f"CHAPTER {k}\n{body}" for k in range(1, 9))
    chapters = chapters_to_fold(Document("lines", text))
    assert len(chapters) == 8
    breaks = [place for one in chapters for place in (one.start, one.body)]
    _, *folds = folds_of(Document("lines", text), 1, chapters, cut_text(text, breaks=breaks))
    assert all(one.heading and one.paragraphs for one in folds)


def test_the_report_shows_it_by_default_with_pictures(file: str):
    without = ["profile", "verdicts", "feedback"]
    invoke("report", file, *[word for one in without for word in ("--without", one)])
    page = Path("report.html").read_text(encoding="utf-8")
    assert "The book, chapter by chapter" in page
    assert "Chapter 4 is slower than the rest" in page
    assert 'aria-label="People by chapter: ' in page
    assert 'aria-label="Pace by chapter, from ' in page
    assert "book|rules:" in page
    # Under 10,000 words the text is not folded, and nothing links to a fold.
    assert 'class="chapter"' not in page
    assert 'href="#ch' not in page
