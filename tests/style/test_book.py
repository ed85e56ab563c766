"""A book by its chapters: the numbers of each, its people, and what comes back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands import invoke

import fabula as fb
from fabula.core.types import Document
from fabula.linguistic.cast import Person, Talk, cast_of, speakers_of, talk_of
from fabula.show.page import cut_text
from fabula.style.book import Book, BookInstrument, chapters_to_fold, folds_of, measure_book
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
    first, slow = measured.chapters[0], measured.chapters[3]
    assert (first.n_words, first.n_scenes) == (27 * 12 + 13, 2)
    assert first.dialogue == pytest.approx(27 * 5 / first.n_words)
    assert first.repeated == pytest.approx(1.0)
    assert (first.characters["Ruth"], slow.characters["Ruth"]) == (27, 12)
    # Headings are no sentences and no words.
    assert (slow.repeated, slow.n_sentences) == (0, 13)
    assert slow.n_words == 12 * len(SLOW.split()) + 5
    assert (measured.value("n_chapters"), measured.value("n_scenes")) == (6, 12)
    people = {one.name: one for one in measured.characters}
    assert "Ruth Moon" in people["Ruth"].forms


def test_the_slow_chapter_and_what_stands_in_two_are_found(measured: Book):
    ((number, said),) = measured.findings
    assert number == 4
    assert said.startswith("Chapter 4 is slower than the rest: ")
    assert max(one.pace or 0 for one in measured.chapters) < 1
    text = novel().text
    (found,) = [one for one in measured.repeated if "third stair" in one.words]
    assert found.chapters == (1, 6)
    assert all("third stair" in text[a:b] for a, b in found.places)


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


def test_speakers_and_family_words_used_as_names_are_people_and_nothing_else_is():
    text = (
        "“Well,” said Perks, and he told Mother that Father had written to his Mother from "
        "Stoneyhurst. “Oh, Heavenly Father, and Sir, Mother,” Perks said. “Our Father,” began "
        "Aunt Emma; the Mother of Peter went to Stoneyhurst for Mother and then for Perks. "
        "“No,” said the Story Girl. The Story Girl saw the Story Girl’s hat in the North. "
    )
    people = {one.name: len(one.places) for one in cast_of(Reading(text * 6))}
    named = {"Perks": 18, "Mother": 18, "Father": 6, "Aunt Emma": 6, "Peter": 6}
    assert people == {"the Story Girl": 18} | named


def test_a_wife_who_is_called_by_her_husbands_name_is_another_person():
    text = (
        "Mr. Joe Gargery went to the forge. Joe Gargery said that Mrs. Joe Gargery was out. Then "
        "Mr. Gargery laughed, and we saw how Mrs. Joe Gargery looked at Joe Gargery. "
    )
    people = [set(one.forms) for one in cast_of(Reading(text * 6))]
    assert {"Mrs. Joe Gargery"} in people
    assert any({"Mr. Joe Gargery", "Joe Gargery"} <= forms for forms in people)


def test_a_long_text_without_headings_has_sections_that_are_named_with_their_words():
    quick = [FAST * 3] * 260
    text = "\n\n".join([*quick, *[SLOW * 3] * 60, *quick])
    (values,) = BookInstrument().measure([Document("long", text)])
    reasons = {one.item: (one.value, one.missing_reason) for one in values}
    assert reasons["n_chapters"] == (None, "no_headings")
    assert values[0].details["book"]["unit"] == "section"
    # A short text without chapters has nothing of it.
    assert list(BookInstrument().measure([Document("a", SLOW), Document("b", "")])) == [(), ()]
    found = measure_book(Document("long", text))
    assert len(found.chapters) > 2
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


def test_all_ways_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: Book):
    monkeypatch.chdir(tmp_path)
    Path("novel.txt").write_text(novel().text, encoding="utf-8")
    shown = invoke("report", "--only", "book", "novel.txt", "--csv", "b.csv").stdout
    assert "Chapter 4 is slower than the rest" in shown
    assert "Ruth" in shown
    rows = Path("b.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("id,number,title,words,scenes")
    (row,) = json.loads(invoke("report", "--only", "book", "novel.txt", "--json").stdout)
    assert [one["n_words"] for one in row["chapters"]] == [one.n_words for one in measured.chapters]
    found = fb.report({"novel": novel().text}, only="book")
    assert found[0]["chapters"] == row["chapters"]
    assert list(found.frame()["number"]) == [1, 2, 3, 4, 5, 6]
    # The report has it by default.
    without = ["--without", "profile", "--without", "verdicts", "--without", "feedback"]
    invoke("report", "novel.txt", *without)
    page = Path("report.html").read_text(encoding="utf-8")
    for said in (
        "The book, chapter by chapter", "Chapter 4 is slower than the rest", "book|rules:",
        'aria-label="People by chapter: ', 'aria-label="Pace by chapter, from ',
    ):  # fmt: skip
        assert said in page
    # Under 10,000 words the text is not folded, and nothing links to a fold.
    assert 'class="chapter"' not in page
    assert 'href="#ch' not in page


def folded(document: Document) -> list[Any]:
    chapters = chapters_to_fold(document)
    breaks = [place for one in chapters for place in (one.start, one.body)]
    return folds_of(document, 1, chapters, cut_text(document.text, breaks=breaks))


def test_a_text_of_ten_thousand_words_folds_by_chapter_and_loses_nothing():
    body = "\n\n".join([FAST * 3] * 40)
    parts = [f"CHAPTER {k}\n\n{body} The end of {k}." for k in range(1, 9)]
    document = Document("long", "\n\n".join(["A title", *parts]))
    before, *folds = folded(document)
    shown = [p for fold in (before, *folds) for p in (*fold.heading, *fold.paragraphs)]
    words = " ".join("".join(piece.text for piece in p) for p in shown).split()
    assert words == document.text.split()
    assert [piece.text for p in before.paragraphs for piece in p] == ["A title"]
    headings = ["".join(piece.text for p in one.heading for piece in p) for one in folds]
    assert headings == [f"CHAPTER {k}" for k in range(1, 9)]
    assert [one.id for one in folds] == [f"ch1-{k}" for k in range(1, 9)]
    ends = [one.paragraphs[-1][-1].text.rpartition("ran.")[2].strip() for one in folds]
    assert ends == [f"The end of {k}." for k in range(1, 9)]


def test_a_heading_without_a_blank_line_below_is_folded_off_its_text():
    body = "\n".join([FAST * 3] * 40)
    folds = folded(Document("lines", "\n".join(f"CHAPTER {k}\n{body}" for k in range(1, 9))))[1:]
    assert len(folds) == 8
    assert all(one.heading and one.paragraphs for one in folds)


def told(text: str) -> list[str | None]:
    """The speakers of a text whose people are Anne, Marilla and Mr. Darcy."""
    forms = {"Anne": "Anne(?: Shirley)?", "Marilla": "Marilla", "Mr. Darcy": r"(?:Mr\. )?Darcy"}
    people = [
        Person(name, (name,), tuple(match.span() for match in re.finditer(form, text)))
        for name, form in forms.items()
    ]
    return speakers_of(Reading(text), people)


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ('"I will go there," said Anne.', ["Anne"]),
        ('"I will go there," Anne said.', ["Anne"]),
        ('"I will go there," replied poor Anne Shirley to Marilla.', ["Anne"]),
        ('"You may not go," said Mr. Darcy. "It is too late now."', ["Mr. Darcy", "Mr. Darcy"]),
        ('Marilla said softly, "You may not go there."', ["Marilla"]),
        ('Anne looked up. Marilla cried: "You may not go there."', ["Marilla"]),
        ('"You may not go," she said to Anne.', [None]),
        ('"You may not go," said the aunt of Anne.', [None]),
        ('"You may not go." Anne went all the same.', [None]),
        ('"Anne, may I go there?"\n\n"You may not," said Marilla.', [None, "Marilla"]),
        ('"Do go," said Anne. "No, I will not," said Marilla. "I am too old."',
         ["Anne", "Marilla", None]),
        ('"Do go there," said Anne. "But why not?" I said, and went.', ["Anne", None]),
        ('He met Anne. It was late. "You may not go," said he.', [None]),
    ],
)  # fmt: skip
def test_a_speech_is_of_whoever_is_named_beside_it(text: str, speakers: list[str | None]):
    assert told(text) == speakers


def test_speeches_and_words_are_summed_by_speaker():
    people = [Person(name, (name,), ()) for name in ("Anne", "Marilla", "Ruby")]
    found = talk_of(people, ["Anne", None, "Marilla", "Anne"], [3, 9, 5, 4])
    assert found == {"Anne": Talk(2, 7), "Marilla": Talk(1, 5)}
