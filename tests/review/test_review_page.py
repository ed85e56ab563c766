"""The page of a review: it shows what was found, marks nothing else, and nothing on it acts."""

import base64
import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.barriers import axe, barriers
from tests.study_browsing import BROWSER, painted
from tests.study_browsing import scripted as scripted

from fabula.core.types import Document, Measurement, Signature
from fabula.feedback.advising import Advice
from fabula.feedback.points import Point, Remark
from fabula.models.surprisal import TokenSurprisal
from fabula.reference.chance import least_bits
from fabula.reference.search import Reference
from fabula.review.job import ReportSettings
from fabula.review.page import page_of, write_review_page
from fabula.review.reviewer import Reviewer
from fabula.review.tables import review_json, review_sheets
from fabula.show.norms import Dot, scatter
from fabula.show.page import Borrowed, Listed, Note, cut_text
from fabula.show.parts import Review, numbers_of_review
from fabula.show.sheet import csv_of, latex_of
from fabula.stats.norms import GroupBook, measure_group
from fabula.style.fluency import Fluency, SpanSurprisal

HOSTILE = (
    "<script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> "
    "one two three four five six \"'&lt; \u202eright to left\u202c \x00\x07 {{ 7*7 }} <!--bar--> "
    "</mark></p></main><style>body{display:none}</style>\n\nA second\nparagraph. \ud800"
)
STORY = (
    "One two three four five six went out. Nobody came back. The blue went sideways, quartz."
    "\n\nEnd."
)


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, list[Borrowed], list[Note], list[Listed]]:
    """A text of words, spaces and breaks with everything marked, overlapping as it likes.

    No character but space occurs twice, so that each is known wherever it is shown.
    """
    gaps = draw(st.lists(st.sampled_from(["", "", " ", "\n", "\n\n"]), max_size=40))
    text = "".join(f"{chr(0x4E00 + k)}{gap}" for k, gap in enumerate(gaps))
    n = len(text)
    place = st.tuples(st.integers(0, n), st.integers(1, 9)).map(lambda p: (p[0], min(n, sum(p))))
    spans, end = [], 0
    for k, (a, b) in enumerate(sorted(set(draw(st.lists(place, max_size=5)))), 1):
        if b > max(a, end):
            spans.append(Borrowed(k, a, b, b - a))
            end = b
    starts = [span.start for span in spans]
    spans = [span for k, span in enumerate(spans) if starts.count(span.start) == 1 or not k]
    spans = [s for k, s in enumerate(spans) if not k or s.start > spans[k - 1].start]
    notes = [
        Note(str(k), "", "", 0.5, [], tuple(p for p in places if p[0] < p[1]))
        for k, places in enumerate(draw(st.lists(st.lists(place, max_size=2), max_size=3)))
    ]
    listed = [
        Listed(a, b, b - a, "", str(k))
        for k, (a, b) in enumerate(draw(st.lists(place, max_size=6)))
        if b > a
    ]
    return text, spans, notes, listed


@given(marked())
def test_every_character_is_shown_once_with_all_that_marks_it(
    given_: tuple[str, list[Borrowed], list[Note], list[Listed]],
):
    text, spans, notes, listed = given_
    paragraphs = cut_text(text, spans, notes, listed)
    pieces = [piece for paragraph in paragraphs for piece in paragraph]
    shown = "".join(piece.text for piece in pieces)
    assert "".join(shown.split()) == "".join(text.split())
    # Against the plain definition, character by character.
    for piece in pieces:
        for at in (text.index(character) for character in piece.text if not character.isspace()):
            over = [s for s in spans if s.start <= at < s.end]
            longest = max(over, key=lambda s: (s.n_words, -s.number)) if over else None
            assert piece.borrowed is longest
            mine = {n.name for n in notes if any(a <= at < b for a, b in n.places)}
            assert {n.name for n in piece.notes} == mine
            phrases = [one for one in listed if one.start <= at < one.end]
            best = max(phrases, key=lambda one: (one.n_words, -one.start), default=None)
            assert piece.listed is best
    firsts = [note.name for piece in pieces for note in piece.first_notes]
    assert len(firsts) == len(set(firsts)), "a point stands in the margin once"


def reviewed(folder: Path, *texts: Document) -> Review:
    source = Document("s<b>", "before One two three four five six after", author="<i>Bob</i>",
                      meta={"title": "<script>document.title='owned'</script>"})  # fmt: skip
    Reference.build([source], folder / "books.ref").close()
    plan = ReportSettings(references=(str(folder / "books.ref"),), n_jobs=1)
    with Reviewer(plan) as reviewer:
        return reviewer.run(texts)


def page_in(folder: Path, review: Review) -> str:
    write_review_page(folder / "page.html", review)
    return (folder / "page.html").read_text(encoding="utf-8")


def shown_of(text: Mapping[str, Any], part: str) -> Any:
    (view,) = (shown["view"] for shown in text["parts"] if shown["id"] == part)
    return view


def with_advice(review: Review, words: str, said: str) -> Review:
    """The review with a point about these words, said in 2 of 3 readings."""
    (text,) = review.texts
    start = text.document.text.index(words)
    remark = Remark(0, 0, said, start, start + len(words))
    point = Point((remark, remark))
    advice = Advice(text.document, "m@1", (point,), 3, 0, 0, {}, {}, "advice|model:m")
    return replace(
        review, texts=(text.having("feedback", (advice,)),),
        signatures={**review.signatures, "feedback": "advice|model:m|times:3"},
    )  # fmt: skip


def with_fluency(review: Review, *bits: float | None) -> Review:
    """The review with its sentences as surprising as is said, among people's 1 to 10 bits."""
    signature = Signature.of("fluency", model="m")
    (text,) = review.texts
    edges = [m.end() for m in re.finditer(r"[.\n]+", text.document.text)][: len(bits)]
    spans = [
        SpanSurprisal(a, b, 4, value, None if value is not None else "not_finite")
        for a, b, value in zip([0, *edges], edges, bits, strict=False)
    ]
    nothing = np.zeros(0, np.int64)
    tokens = TokenSurprisal(nothing, nothing, np.zeros(0, np.float32))
    fluency = Fluency(text.document, 12, 6.5, tuple(spans), None, signature, tokens)
    of_people = [
        Measurement(
            f"{k}", "fluency", item, "fabula", 1 + 9 * k / 99, None, (), None, str(signature)
        )
        for k in range(100)
        for item in ("sentence_bits_per_word", "bits_per_word")
    ]
    groups = GroupBook(measure_group("p", "people", "100 texts by people", of_people))
    return replace(
        review, texts=(text.having("fluency", fluency),), groups=groups,
        signatures={**review.signatures, "fluency": str(signature)},
    )  # fmt: skip


def test_hostile_text_is_escaped_everywhere(tmp_path: Path):
    document = Document("<h1>id", HOSTILE, author="<b>who</b>", meta={"title": "<i>t</i>"})
    review = with_advice(reviewed(tmp_path, document), "one two", "<script>mend</script>")
    page = page_in(tmp_path, with_fluency(review, 50.0))
    for tag in ("<script", "<img", "<h1>id", "<b>who", "<i>t<", "<!--bar-->", "</main><style"):
        assert tag not in page, tag
    assert "{{ 7*7 }}" in page
    assert "default-src 'none'" in page
    assert not re.search("[\x00-\x08]", page)
    assert not re.search(r"""(src|href)=["'](?!#)""", page)


def test_surprisal_is_for_researchers_and_sources_are_linked(tmp_path: Path):
    review = with_fluency(reviewed(tmp_path, Document("d", STORY)), 5.0, None, 99.9)
    (view,) = page_of(review)["texts"]
    # The sentence without a figure is no dot at 0.
    assert len(shown_of(view, "fluency")["picture"]["dots"]) == 2
    assert not any("surpris" in one["sentence"] for one in view["findings"]["said"])
    page = page_in(tmp_path, review)
    for said in (
        '<section id="fluency" class="for-research">', "6.50 bits a word", '<a href="#s1-1"',
        'id="s1-1"', 'href="#m1-1"',
    ):  # fmt: skip
        assert said in page


def test_where_originality_is_missing_nothing_is_drawn_as_new(tmp_path: Path):
    review = with_fluency(reviewed(tmp_path, Document("d", "He ran. Home.")), 5.0, 5.0)
    (view,) = page_of(review)["texts"]
    assert shown_of(view, "originality")["index"] is None
    assert shown_of(view, "fluency")["picture"] is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=5))
def test_the_axes_hold_whatever_surprises(bits: list[float]):
    picture = scatter([Dot(1.0, b, f"{b}") for b in bits], (), "i")
    assert 1 <= len(picture["ticks_y"]) <= 20
    assert all(0 <= dot["y"] <= picture["height"] for dot in picture["dots"])


def test_files_of_tables_hold_every_borrowed_passage_with_what_ranks_it(tmp_path: Path):
    phrase = "one two three four five six seven eight"
    source = Document("s", f"{phrase} " * 128 + "rare seldom " * 64, meta={"title": "Numbers"})
    Reference.build([source], tmp_path / "books.ref").close()
    plan = ReportSettings(references=(str(tmp_path / "books.ref"),), without=("profile",), n_jobs=1)
    run = " ".join(["rare seldom"] * 40)
    with Reviewer(plan) as reviewer:
        review = reviewer.run([Document("a", f"He said {run}."), Document("b", STORY)])
    parts = review_sheets(review)
    [row] = csv.DictReader(io.StringIO(csv_of(parts)["passages"]))
    assert (row["text"], row["rank"], row["n_words"], row["n_verbatim"]) == ("a", "1", "80", "80")
    assert (row["passage"], row["source"], row["n_documents"]) == (run, "Numbers", "1")
    assert row["count"] == "25"
    # Of words that come again, each counts a bit at most.
    assert 80 < (bits := float(row["bits"])) < 110
    assert float(row["over_chance"]) == pytest.approx(bits - least_bits(1152), abs=0.01)
    # A line of LaTeX cannot break.
    assert " ".join(["rare seldom"] * 5) + " ... & 80 & 80 & 106" in latex_of(parts)


def test_many_texts_stand_side_by_side_and_missing_stays_missing(tmp_path: Path):
    texts = [Document(f"t{k}", STORY * 3, author="ab"[k % 2]) for k in range(4)]
    short = Document("short", "One.", author="a"), Document("none", "", author="b")
    review = reviewed(tmp_path, *texts, *short)
    assert page_in(tmp_path, review).count("<details id=") == 6
    *_, first, second = numbers_of_review(review)[1]
    assert first["creativity_index"] is second["creativity_index"] is second["mtld"] is None
    assert page_of(review)["table"]["rows"][4]["cells"][0] == "missing"
    latex = latex_of(review_sheets(review))
    assert latex.startswith("% Fabula")
    assert "short & missing" in latex
    missing = review_json(review)["texts"][4]["originality"]
    assert (missing["creativity_index"], missing["missing_reason"]) == (None, "too_short")


@BROWSER
def test_the_page_has_no_barrier_and_nothing_on_it_acts(scripted: Any, tmp_path: Path):
    script = axe()
    text = f"{STORY} {HOSTILE} " + "x" * 5_000
    one = with_advice(reviewed(tmp_path, Document("d", text)), "two three", "Say who they are.")
    write_review_page(tmp_path / "one.html", with_fluency(one, 5.0, 9.9))
    texts = [Document(f"t{k}", STORY * 3, author="ab"[k % 2]) for k in range(2)]
    many = reviewed(tmp_path / "many", *texts)
    write_review_page(tmp_path / "many.html", many)
    found = {}
    for name in ("one", "many"):
        scripted.get((tmp_path / f"{name}.html").as_uri())
        assert scripted.title != "owned"
        found[name] = barriers(scripted, script)
        scripted.find_element("id", "view-research").click()
        assert scripted.find_element("id", "methods").is_displayed()
        found[name] += barriers(scripted, script)
    assert found == {"one": [], "many": []}


@BROWSER
def test_a_writer_prints_findings_and_the_text_if_it_is_asked_for(scripted: Any, tmp_path: Path):
    """The text itself takes more than ten sheets."""
    unlike = "".join(f"\n\nW{k}x walked." for k in range(400))
    write_review_page(tmp_path / "one.html", reviewed(tmp_path, Document("d", STORY + unlike)))
    scripted.get((tmp_path / "one.html").as_uri())

    def n_sheets() -> int:
        painted(scripted)
        sheets = base64.b64decode(scripted.execute_cdp_cmd("Page.printToPDF", {})["data"])
        return len(re.findall(rb"/Type\s*/Page\b", sheets))

    n_short = n_sheets()
    scripted.find_element("id", "print-text").click()
    n_long = n_sheets()
    scripted.find_element("id", "print-text").click()
    scripted.find_element("id", "view-research").click()
    assert n_short <= 6
    assert n_long >= n_short + 10
    assert n_sheets() > n_long
