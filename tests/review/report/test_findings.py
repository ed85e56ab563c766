"""What to look at first: what is wrong with a draft stands on the first screen, each kind of it."""

import re
from pathlib import Path

import pytest

from fabula.core.types import Document, Measurement
from fabula.reference import Reference
from fabula.reference.norms import GroupBook, measure_group
from fabula.review.findings import findings_of, marked_findings, said_of
from fabula.review.job import ReportSettings
from fabula.review.page import page_of, write_review_page
from fabula.review.parts import Review, TextReview, comparable
from fabula.review.reviewer import Reviewer
from fabula.review.tables import review_json, review_tables
from fabula.show.sheet import render
from fabula.style.lines import LINE_KINDS, LineNote, LineReview

PLANTED = {
    "passage": "My grandmother kept the ferry house for thirty-one years, and in all that time she "
    "never once learned to swim.",
    "name": "Katharine looked up at Kathrine's window.",
    "spelling": "They did not recieve the letter until spring.",
    "echo": "A lantern hung from the beam. Somebody had left the lantern burning.",
    "sentence": "Nobody had lived there since the fire.",
}


def review_of(text: str, reference: Path | None = None, *without: str) -> Review:
    plan = ReportSettings(
        references=(str(reference),) if reference else (),
        without=without,
        with_=() if "echo" in without else ("echo", "stock"),
        n_jobs=1,
    )
    with Reviewer(plan) as reviewer:
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


def test_a_second_borrowed_passage_comes_before_points_of_style(draft: str, library: Path):
    second = "She would not carry a priest on a Friday or a fiddle without its case."
    tag, stock = "“I never saw it,” she smiled.", "He fell head over heels."
    text = "\n\n".join([draft, tag, stock, second])
    review = review_of(text, library)
    kinds = [one.kind for one in findings_of(review.texts[0])]
    _, again, *_ = (k for k, kind in enumerate(kinds) if kind == "passage")
    assert {"tag", "stock"} <= set(kinds[again:])


def test_the_first_sentences_count_what_is_marked(review: Review):
    text = review.texts[0]
    said = [one.sentence for one in said_of(text)]
    ranked = text.originality.ranked if text.originality else None
    n = len(ranked.passages)
    word = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight"][n]
    assert said[0].startswith(f"{word} passages to check")
    assert "One name in two spellings." in said
    assert "One possible error of spelling or grammar." in said


def test_every_finding_leads_to_its_place_on_the_page(review: Review, tmp_path: Path):
    write_review_page(tmp_path / "page.html", review)
    page = (tmp_path / "page.html").read_text()
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    led = set(re.findall(r'href="#([^"]+)"', page))
    assert led <= set(ids)
    (view,) = page_of(review)["texts"]
    assert all(one["href"] in ids for one in view["findings"]["first"])


def test_a_note_inside_another_mark_can_still_be_led_to(tmp_path: Path):
    text = "One two three four five six seven eight."
    whole = LineNote("long", 0, len(text), "Long.", 0.9)
    within = LineNote("echo", text.index("four"), text.index(" five"), "Again.", 0.8)
    lines = LineReview(8, (whole, within), "lines|rules:1")
    review = Review((TextReview(Document("d", text), lines=lines),), (), GroupBook([]))
    write_review_page(tmp_path / "page.html", review)
    page = (tmp_path / "page.html").read_text()
    assert page.count('id="l1-1"') == page.count('id="l1-2"') == 1
    assert re.search(r'three </a><span class="anchor" id="l1-2">', page)


def test_terminal_and_json_have_the_same_findings_as_the_page(review: Review):
    (view,) = page_of(review)["texts"]
    (row,) = review_json(review)["texts"]
    assert [f"line {one['line']}" for one in row["findings"]["first"]] == [
        one["where"] for one in view["findings"]["first"]
    ]
    shown = render(*review_tables(review))
    assert shown.index("passages to check") < shown.index("Creativity Index")
    assert row["lines"]["n_notes"]["spelling"] == 1


def test_a_kind_of_note_that_is_left_out_is_nowhere(draft: str):
    review = review_of(draft, None, "echo", "profile")
    text = review.texts[0]
    assert {note.kind for note in text.lines.notes} >= {"spelling", "name"}
    assert "echo" not in {one.item for one in text.measurements()}
    assert review.signatures["lines"].endswith("|without:echo+long+stock")
    assert "lines" not in review_of(draft, None, "lines", "profile").signatures


def test_each_kind_of_note_is_a_measurement_with_its_places(review: Review):
    text = review.texts[0]
    measured = {one.item: one for one in text.measurements() if one.rubric == "lines"}
    assert list(measured) == [kind for kind in LINE_KINDS if kind != "long"]
    one = measured["spelling"]
    assert one.value == len(one.evidence) == 1
    (place,) = one.evidence
    assert text.document.text[place.start : place.end] == "recieve"


def test_a_text_that_is_not_english_has_no_notes_and_says_why():
    text = "Der alte Mann ging am Abend durch den Wald nach Hause und fand die Tür offen. " * 4
    review = review_of(text, None)
    lines = review.texts[0].lines
    assert lines.missing_reason is not None
    assert all(one.value is None for one in lines.measurements("draft"))
    assert findings_of(review.texts[0]) == []
    (view,) = page_of(review)["texts"]
    assert view["lines"]["missing"]


def test_what_depends_on_length_is_compared_with_texts_of_like_length_only():
    def one(k: int, item: str, value: float) -> Measurement:
        return Measurement(f"d{k}", "profile", item, "fabula", value, None, (), None, "profile|v:1")

    values = [one(k, "n_words", 500.0 + k) for k in range(20)]
    values += [one(k, "repeated_share", 0.1) for k in range(20)]
    values += [one(k, "mattr", 0.8) for k in range(20)]
    groups = measure_group("g", "people", "people", values)
    assert len(comparable(groups, "repeated_share", 900)) == 1
    assert comparable(groups, "repeated_share", 100_000) == ()
    assert comparable(groups, "repeated_share", None) == ()
    assert len(comparable(groups, "mattr", 100_000)) == 1


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
    assert first["where"] == "chapter 2"
    assert first["around"] == ("They did not ", " the letter.")
    assert len(view["findings"]["first"]) == 10
    write_review_page(tmp_path / "page.html", review)
    n_all = len(marked_findings(review.texts[0]))
    assert n_all >= 11
    assert f"These are the first 10 of {n_all} places." in (tmp_path / "page.html").read_text()
