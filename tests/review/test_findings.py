"""What to look at first in a draft, and what became of it in the next."""

import re
from dataclasses import asdict
from pathlib import Path

import docx
import pytest

from fabula.core.types import Document, Measurement
from fabula.reference.search import Reference
from fabula.review.findings import (
    Finding,
    compare_noted,
    findings_of,
    followed,
    marked_findings,
    noted_of_rows,
)
from fabula.review.job import ReportSettings
from fabula.review.page import page_of, write_review_page
from fabula.review.reviewer import Reviewer
from fabula.review.tables import review_json, review_tables
from fabula.show.norms import comparable
from fabula.show.parts import Review, TextReview
from fabula.show.sheet import render
from fabula.stats.norms import GroupBook, measure_group
from fabula.style.lines import LINE_KINDS, LineNote, LineReview
from fabula.text import read_documents
from fabula.text.chapters import chapters_of

PLANTED = {
    "passage": "My grandmother kept the ferry house for thirty-one years, and in all that time she "
    "never once learned to swim.",
    "name": "Katharine looked up at Kathrine's window.",
    "spelling": "They did not recieve the letter until spring.",
    "echo": "His gnarled hand held the gnarled vellum to the window.",
    "sentence": "Nobody had lived there since the fire.",
}


def review_of(text: str, reference: Path | None = None, *without: str) -> Review:
    references = (str(reference),) if reference else ()
    with_ = () if "echo" in without else ("echo",)
    with Reviewer(ReportSettings(references, without=without, with_=with_, n_jobs=1)) as reviewer:
        return reviewer.run([Document("draft", text)])


@pytest.fixture(scope="module")
def draft(examples: Path) -> str:
    """A story with a fault of each kind in a paragraph of its own, late and far apart."""
    story = (examples / "the-count.txt").read_text().strip().split("\n\n")
    names = "Katharine came back at noon. Katharine sat down. “Here,” said Katharine."
    story.insert(1, f"{names} {PLANTED['sentence']}")
    for k, planted in enumerate(PLANTED.values()):
        story.insert(3 + 2 * k, planted)
    return "\n\n".join(story)


@pytest.fixture(scope="module")
def library(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("findings") / "library.ref"
    pages = sorted((examples / "library").glob("*.md"))
    Reference.build((Document(page.stem, page.read_text()) for page in pages), path).close()
    return path


@pytest.fixture(scope="module")
def review(draft: str, library: Path) -> Review:
    return review_of(draft, library)


def test_what_was_planted_stands_among_the_first_ten(draft: str, review: Review):
    found = findings_of(review.texts[0])
    assert len(found) <= 10
    for kind, planted in PLANTED.items():
        start = draft.rindex(planted)
        here = [one for one in found if start <= one.start < start + len(planted)]
        assert kind in {one.kind for one in here}, kind
    (ours,) = (one for one in found if draft[one.start :].startswith("My grandmother"))
    assert found[0].kind == "passage"
    assert ours.why == "21 words, word for word; also found in the-ferry-house."
    assert ours.line == draft.count("\n", 0, ours.start) + 1


def test_a_second_borrowed_passage_comes_before_errors(draft: str, library: Path):
    second = "She would not carry a priest on a Friday or a fiddle without its case."
    text = f"{draft}\n\nThey did not recieve it.\n\n{second}"
    kinds = [one.kind for one in findings_of(review_of(text, library).texts[0])]
    _, again, *_ = (k for k, kind in enumerate(kinds) if kind == "passage")
    assert "spelling" in kinds[again:]


def test_page_terminal_and_json_have_the_same_findings_with_their_places(
    review: Review, tmp_path: Path
):
    write_review_page(tmp_path / "page.html", review)
    page = (tmp_path / "page.html").read_text()
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    (view,) = page_of(review)["texts"]
    first = view["findings"]["first"]
    assert all(one["href"] in ids for one in first)
    (row,) = review_json(review)["texts"]
    assert [f"line {one['line']}" for one in row["findings"]["first"]] == [
        one["where"] for one in first
    ]
    shown = render(*review_tables(review))
    assert shown.index("passages to check") < shown.index("Creativity Index")
    assert row["lines"]["n_notes"]["spelling"] == 1


def test_a_note_inside_another_mark_can_still_be_led_to(tmp_path: Path):
    text = "One two three four five six seven eight."
    whole = LineNote("sentence", 0, len(text), "Again.", 0.9)
    within = LineNote("echo", text.index("four"), text.index(" five"), "Again.", 0.8)
    lines = LineReview(8, (whole, within), "lines|rules:1")
    review = Review((TextReview(Document("d", text), {"lines": lines}),), (), GroupBook([]))
    write_review_page(tmp_path / "page.html", review)
    page = (tmp_path / "page.html").read_text()
    assert page.count('id="l1-1"') == page.count('id="l1-2"') == 1
    assert re.search(r'three </a><span class="anchor" id="l1-2">', page)


def test_a_kind_of_note_that_is_left_out_is_nowhere(draft: str):
    review = review_of(draft, None, "echo", "profile")
    text = review.texts[0]
    assert {note.kind for note in text.results["lines"].notes} >= {"spelling", "name"}
    assert "echo" not in {one.item for one in text.measurements()}
    assert "|without:echo" in review.signatures["lines"]
    assert "lines" not in review_of(draft, None, "lines", "profile").signatures


def test_each_kind_of_note_is_a_measurement_with_its_places(review: Review):
    text = review.texts[0]
    measured = {one.item: one for one in text.measurements() if one.rubric == "lines"}
    # Without the model, wrong words are not searched for.
    is_proofread = "|proofreading:" in review.signatures["lines"]
    assert list(measured) == [kind for kind in LINE_KINDS if kind != "confused" or is_proofread]
    one = measured["spelling"]
    assert one.value == len(one.evidence) == 1
    (place,) = one.evidence
    assert text.document.text[place.start : place.end] == "recieve"


def test_a_text_that_is_not_english_has_no_notes_and_says_why():
    text = "Der alte Mann ging am Abend durch den Wald nach Hause und fand die Tür offen. " * 4
    review = review_of(text, None)
    lines = review.texts[0].results["lines"]
    assert lines.missing_reason is not None
    assert all(one.value is None for one in lines.measurements("draft"))
    assert findings_of(review.texts[0]) == []
    (view,) = page_of(review)["texts"]
    assert next(part["view"] for part in view["parts"] if part["id"] == "lines")["missing"]


def test_what_depends_on_length_is_compared_with_texts_of_like_length_only():
    values = [
        Measurement(f"d{k}", "profile", item, "fabula", value, None, (), None, "profile|v:1")
        for k in range(20)
        for item, value in (("n_words", 500.0 + k), ("repeated_share", 0.1), ("mattr", 0.8))
    ]
    groups = measure_group("g", "people", "people", values)
    for item, n_words, n in (
        ("repeated_share", 600, 1), ("repeated_share", 900, 0), ("repeated_share", None, 0),
        ("mattr", 100_000, 1), ("n_words", 510, 0),
    ):  # fmt: skip
        assert len(comparable(groups, item, n_words)) == n


def test_a_finding_has_its_context_and_in_a_book_its_chapter(tmp_path: Path):
    chapters = [
        f"# Chapter {k}\n\n"
        + " ".join(f"The boat came at noon on day {60 * k + n}." for n in range(60))
        for k in range(1, 4)
    ]
    misspelt = "recieve seocnd wihsper lanetrn harobur brigde whsitle gadren capatin anwser"
    misspelt += " forgien pepole knwoledge"
    chapters[1] += "".join(f"\n\nThey did not {one} the letter." for one in misspelt.split())
    review = review_of("\n\n".join(chapters))
    (view,) = page_of(review)["texts"]
    first = next(one for one in view["findings"]["first"] if one["title"] == "Spelling")
    assert first["where"] == "chapter 2, line 9"
    assert first["around"] == ("They did not ", " the letter.")
    assert len(view["findings"]["first"]) == 10
    write_review_page(tmp_path / "page.html", review)
    n_all = len(marked_findings(review.texts[0]))
    assert n_all >= 11
    assert f"These are the first 10 of {n_all} places." in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("titles", "spelt", "repeated"),
    [
        (("The River", "The Sea"), "chapter 2, The Sea", " in chapter 1, The River."),
        (("", ""), "", ", after “She went to the house.”."),
    ],
)
def test_places_in_a_word_file_are_chapters_and_words_but_no_lines(
    tmp_path: Path,
    titles: tuple[str, str],
    spelt: str,
    repeated: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("COLUMNS", "200")
    word = docx.Document()
    for title, verb in zip(titles, ("get", "recieve"), strict=True):
        if title:
            word.add_heading(title)
        word.add_paragraph(f"They did not {verb} the letter.")
        word.add_paragraph("She went to the house. Nobody had lived there since the fire.")
    word.save(str(tmp_path / "draft.docx"))
    with Reviewer(ReportSettings(n_jobs=1)) as reviewer:
        review = reviewer.run(list(read_documents([str(tmp_path / "draft.docx")])))
    (view,) = page_of(review)["texts"]
    first = {one["title"]: one for one in view["findings"]["first"]}
    assert first["Spelling"]["where"] == spelt
    assert first["Spelling"]["around"] == ("They did not ", " the letter.")
    assert first["Repeated sentence"]["why"] == f"The same sentence already occurs{repeated}"
    write_review_page(tmp_path / "page.html", review)
    table = render(*review_tables(review))
    assert (spelt or "They did not recieve the letter.") in table
    assert not re.search(r"\bline \d", (tmp_path / "page.html").read_text() + table)


def test_marks_of_markdown_and_italics_of_word_are_italics_on_the_page(tmp_path: Path):
    review = review_of("# The Lamp\n\nShe *did* not *recieve* it. **Nobody** had.")
    (view,) = page_of(review)["texts"]
    (first,) = view["findings"]["first"]
    assert (first["quote"], first["around"]) == ("recieve", ("She did not ", " it. Nobody had."))
    write_review_page(tmp_path / "page.html", review)
    page = (tmp_path / "page.html").read_text().partition("</head>")[2]
    assert "She <em>did</em> not" in page
    assert 'role="heading" aria-level="2"><strong>The Lamp</strong>' in page.replace("\n", "")
    assert "*" not in page
    (tmp_path / "draft.md").write_text(
        "# The *Lamp*\n\nShe did.\n\n## *One*\n\nAnd so.\n\n## Two\n\nIt was."
    )
    (plain,) = read_documents([str(tmp_path / "draft.md")])
    assert (plain.title, chapters_of(plain)[0].title) == ("The Lamp", "One")
    assert "# The" not in page
    word = docx.Document()
    word.add_heading("The Lamp")
    word.add_paragraph("She ").add_run("did").italic = True
    word.save(str(tmp_path / "draft.docx"))
    with Reviewer(ReportSettings(n_jobs=1)) as reviewer:
        review = reviewer.run(list(read_documents([str(tmp_path / "draft.docx")])))
    write_review_page(tmp_path / "page.html", review)
    page = (tmp_path / "page.html").read_text().replace("\n", "")
    assert "She <em>did</em>" in page
    assert "<strong>The Lamp</strong>" in page


FIRST = (
    "The lamp went round. She felt teh cold.\n\nShe counted nine lamps, and one, and then she "
    "held it still.\n\nNobody woke.\n\nThe end was very near to them."
)
SIGNED = {"lines": "a", "originality": "b", "feedback": "c"}


def noted(text: str, words: str, kind: str = "spelling", why: str = "", nth: int = 0) -> Finding:
    start = [m.start() for m in re.finditer(re.escape(words), text)][nth]
    return Finding(kind, kind.title(), start, start + len(words), text.count("\n", 0, start) + 1,
                 why, words)  # fmt: skip


def kinds(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.kind, one.words) for one in found]


def test_findings_are_followed_by_place_and_meaning():
    """Gone where the words were mended, still there where they moved or stayed, new otherwise."""
    after = (
        "Nobody woke.\n\nThe lamp went round. She felt the cold, and htat was all.\n\nA new "
        "paragraph.\n\nShe counted nine lamps, and two, and then she held it still.\n\n"
        "The end was very near to them."
    )
    old = [
        noted(FIRST, "teh"), noted(FIRST, "Nobody woke", "sentence"),
        noted(FIRST, "counted nine lamps, and one, and then", "passage"),
        noted(FIRST, "The end", "point", "The ending comes too early for what is at stake."),
    ]  # fmt: skip
    new = [
        noted(after, "htat"), noted(after, "Nobody woke", "sentence"),
        noted(after, "counted nine lamps, and two, and then", "near"),
        noted(after, "The end", "point", "For what is at stake the ending comes too early."),
    ]  # fmt: skip
    found = compare_noted((FIRST, old, SIGNED), (after, new, SIGNED))
    assert kinds(found.gone) == [("spelling", "teh")]
    assert kinds(found.new) == [("spelling", "htat")]
    assert [kind for kind, _ in kinds(found.still)] == ["sentence", "near", "point"]


def test_another_point_at_the_same_place_is_new():
    old, new = (noted(FIRST, "The end", "point", why) for why in (
        "The ending comes too early.", "Who are they? Name the people on the boat."))  # fmt: skip
    found = compare_noted((FIRST, [old], SIGNED), (FIRST, [new], SIGNED))
    assert (len(found.gone), len(found.new), len(found.still)) == (1, 1, 0)


def test_what_was_measured_otherwise_or_once_is_not_compared():
    old = [noted(FIRST, "lamp", "passage"), noted(FIRST, "teh"), noted(FIRST, "end", "point")]
    after = {"lines": "a", "originality": "another"}
    found = compare_noted((FIRST, old, SIGNED), (FIRST, [], after))
    assert kinds(found.gone) == [("spelling", "teh")]
    assert found.not_compared.keys() == {"originality", "feedback"}


@pytest.mark.parametrize(
    ("words", "after", "there"),
    [
        ("lamps, and one", FIRST.replace("and one", "and perhaps one"), "lamps, and perhaps one"),
        ("woke", FIRST.replace("Nobody woke.\n\n", ""), None),
        ("end was", "More.\n\n" * 3 + FIRST, "end was"),
        ("cold.\n\nShe counted", FIRST.replace("teh", "the"), "cold.\n\nShe counted"),
    ],
)
def test_places_are_followed_from_draft_to_draft(words: str, after: str, there: str | None):
    start = FIRST.index(words)
    (place,) = followed([(start, start + len(words))], FIRST, after)
    assert (place and after[slice(*place)]) == there


def test_long_texts_are_followed_in_a_short_time():
    """A novel in one paragraph, or in many, is compared without all of its pairs."""
    one = "the lamp went round and round " * 2_000
    assert followed([(4, 8)], one, one[:500] + "x" + one[500:]) == [None]
    many = "".join(f"Line {k}.\n" for k in range(20_000))
    place = many.index("Line 5000.")
    after = many.replace("Line 7.", "Line seven.")
    assert followed([(place, place + 4)], many, after) == [(place + 4, place + 8)]


def test_rows_that_cannot_be_read_are_left_out():
    one = noted(FIRST, "teh")
    assert noted_of_rows(
        [asdict(one), {}, 7, asdict(one) | {"start": "1"}, asdict(one) | {"kind": "gone"}]
    ) == [one]
    assert noted_of_rows(None) == []
