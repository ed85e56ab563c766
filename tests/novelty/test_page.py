"""The page shows what the rows say, marked by rank, and nothing in a text can act."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.barriers import emulate
from tests.study_browsing import CHROMIUM, DRIVER, chrome

from fabula.core.types import Document
from fabula.novelty.measure import Levels, OriginalityMeasure
from fabula.novelty.part import borrowed_of, commonplaces_of, passages_of, write_page
from fabula.novelty.scores import to_row
from fabula.reference.search import Reference
from fabula.show.page import Borrowed, segments_of

HOSTILE = (
    "<script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> "
    "one two three four five six \"'&lt; \u202eright to left\u202c \x00\x07 {{ 7*7 }} "
    "</mark></p></main><style>body{display:none}</style>\n\nA second\nparagraph."
)


def make_page(folder: Path, *texts: Document, held: str = "one two three four five six") -> Path:
    source = Document("s<b>", f"before {held} after", author="<i>Bob</i>",
                      meta={"title": "<script>document.title='owned'</script>"})  # fmt: skip
    reference = Reference.build([source], folder / "ref")
    results = OriginalityMeasure(reference, levels=Levels(5, 7)).measure(texts)
    pairs = [(result.document, to_row(result)) for result in results]
    write_page(folder / "page.html", pairs, len(pairs), reference.size)
    return folder / "page.html"


def test_everything_that_a_text_brings_is_escaped_and_nothing_is_fetched(tmp_path: Path):
    page = make_page(tmp_path, Document("<h1>id", HOSTILE)).read_text(encoding="utf-8")
    for tag in ("<script", "<img", "<i>", "<h1>id", "</mark></p></main><style"):
        assert tag not in page.replace("<i></i>", "")
    assert "{{ 7*7 }}" in page
    assert "default-src 'none'" in page
    assert not re.search("[\x00-\x08]", page)
    # The page is one file.
    plain = make_page(tmp_path / "plain", Document("a", "one two three four five")).read_text()
    assert not re.search(r"""(src|href)=["'](?!#)""", plain)
    assert not any(said in plain for said in ("url(", "@import"))


def test_missing_is_shown_as_missing_and_each_text_has_its_own_notes(tmp_path: Path):
    texts = [Document("short", "one two"), Document("none", "")]
    texts += [Document(f"t{k}", "one two three four five six " * 4) for k in range(3)]
    page = make_page(tmp_path, *texts).read_text()
    assert page.count("missing: the text is too short") == 1
    assert page.count("missing: no words in the text") == 1
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {*re.findall(r'aria-describedby="([^"]+)"', page)} <= {*ids}


@st.composite
def maximal(draw: st.DrawFn) -> list[Borrowed]:
    """Spans of which none contains another, over one character a word."""
    starts = sorted(draw(st.sets(st.integers(0, 60), max_size=10)))
    spans, end = [], 0
    for k, start in enumerate(starts, 1):
        end = max(end + 1, start + draw(st.integers(1, 12)))
        spans.append(Borrowed(k, start, end, end - start))
    return spans


@given(maximal())
def test_each_character_is_shaded_by_the_longest_span_over_it(spans: list[Borrowed]):
    owner = {i: span for a, b, span in segments_of(spans) for i in range(a, b)}
    for i in range(80):
        over = [s for s in spans if s.start <= i < s.end]
        expected = max(over, key=lambda s: (s.n_words, -s.number)) if over else None
        assert owner.get(i) is expected


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["one", "two", "three", "four", "five", "six", "\n", "\n\n", "<x>",
                                 "after", "before"]), max_size=60))  # fmt: skip
def test_no_character_of_the_text_is_lost(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
):
    text = " ".join(parts)
    page = make_page(tmp_path_factory.mktemp("p"), Document("a", text)).read_text()
    body = page.partition('aria-label="The text"')[2].partition("</section>")[0]
    body = re.sub(r'<figure.*?</figure>|<span class="(tip|note)".*?</span>|<sup.*?</sup>|'
                  r'<div class="key".*?</div>', "", body, flags=re.S)  # fmt: skip
    shown = re.sub(r"<[^>]*>", " ", body.partition(">")[2])
    assert shown.replace("&lt;", "<").replace("&gt;", ">").split() == text.split()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    with chrome(tmp_path_factory.mktemp("downloads"), width=1280) as opened:
        yield opened


def test_hostile_text_shows_as_text_nothing_executes_or_sticks_out(tmp_path: Path, browser: Any):
    texts = [Document(f"t{k}", "one two three four five six " * 9) for k in range(2)]
    hostile = Document("a", HOSTILE, meta={"title": HOSTILE})
    browser.get(make_page(tmp_path, hostile, *texts).as_uri())
    assert browser.title != "owned"
    body = browser.find_element("css selector", ".text")
    assert "<script>document.title='owned'</script>" in body.text
    assert body.is_displayed()
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
    for width in (360, 800, 1280):
        emulate(browser, width, 900)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_span_tells_its_source_by_keyboard_and_in_the_margin(tmp_path: Path, browser: Any):
    from selenium.webdriver.common.keys import Keys

    text = "She counted: one, two, three, four, five, six! Then she slept."
    browser.get(make_page(tmp_path, Document("a", text)).as_uri())
    mark = browser.find_element("css selector", "mark")
    tip = browser.find_element("css selector", ".tip")
    assert mark.text.startswith("one, two, three, four, five, six")
    assert not tip.is_displayed()
    note = browser.find_element("css selector", ".note")
    assert note.is_displayed()
    assert note.location["x"] > mark.location["x"] + mark.size["width"]
    browser.switch_to.active_element.send_keys(Keys.TAB, Keys.TAB)
    assert browser.switch_to.active_element == mark
    assert tip.is_displayed()
    assert "…before one two three four five six after…" in tip.text


LEVELS = {str(level): 0.95 for level in range(5, 13)}


def ranked(
    start: int, n_words: int, count: int = 1, similarity: float | None = None, **more: Any
) -> dict[str, Any]:
    """A passage of words of four characters, from the word `start` on."""
    place = {"start": 4 * start, "end": 4 * (start + n_words) - 1, "n_words": n_words}
    run = place if similarity is None else place | {"similarity": similarity}
    return {
        **place, "n_verbatim": 0 if similarity else n_words, "bits": 9.6 * n_words,
        "over_chance": 60.0, "count": count, "n_documents": count, "runs": [run], **more,
    }  # fmt: skip


def source(id_: str) -> dict[str, Any]:
    return {"id": id_, "title": f"Title {id_}", "author": "Ann", "year": 1900, "start": 0,
            "end": 3, "before": "b ", "text": "t", "after": " a"}  # fmt: skip


def row_of(passages: list[dict[str, Any]], common: list[dict[str, Any]], **more: Any) -> Any:
    return {
        "n_words": 200, "n_known_words": 200, "uniqueness": LEVELS, "creativity_index": 7.6,
        "missing_reason": None, "excluded": [], "signature": "s", "longest_run": 21,
        "n_reference_words": 10**9, "word_counts": "reference",
        "passages": [{"sources": [source(f"d{k}")]} | one for k, one in enumerate(passages)],
        "commonplaces": common,
        "covered": [
            {**one, "kind": "verbatim", "sources": [source("c")]} for one in (*passages, *common)
        ],
    } | more  # fmt: skip


DOCUMENT = Document("d", " ".join(f"w{k % 100:02}" for k in range(200)))


def page_of(folder: Path, row: Any) -> str:
    write_page(folder / "page.html", [(DOCUMENT, row)], 1, "much")
    return (folder / "page.html").read_text(encoding="utf-8")


def test_common_phrases_are_counted_and_hidden_without_a_script(tmp_path: Path):
    row = row_of([ranked(0, 21)], [ranked(30 + 6 * k, 5, 12) for k in range(3)])
    page = page_of(tmp_path, row)
    for said in (
        "3 common phrases<", '<input type="checkbox"',
        "5 words, word for word, 48 bits, found 12 times in 12 documents",
    ):  # fmt: skip
        assert said in page
    assert (page.count('<span class="common">'), page.count("<mark ")) == (3, 1)
    assert "<script" not in page
    assert page.index('type="checkbox"') < page.index("<mark"), "its state styles what follows"


def test_marks_are_as_many_as_can_be_read(tmp_path: Path):
    # 20 in a thousand words are 4 of 200; no text has fewer than 5.
    page = page_of(tmp_path, row_of([ranked(12 * k, 9) for k in range(12)], []))
    assert page.count("<mark ") == 5
    assert page.count('<li value="') == 12, "all are listed"
    assert "7 more passages" in page
    targets, ids = re.findall('href="#([^"]+)"', page), set(re.findall(' id="([^"]+)"', page))
    assert set(targets) <= ids


def test_marks_do_not_overlap_and_word_for_word_comes_before_near():
    near = ranked(0, 20, similarity=0.9)
    within = {"start": 16, "end": 39, "n_words": 6}
    near |= {"n_verbatim": 6, "runs": [*near["runs"], within]}
    row, text = row_of([near, ranked(15, 10)], [ranked(22, 5)]), DOCUMENT.text
    marks = borrowed_of(row, text, passages_of(row, text), commonplaces_of(row, text))
    shown = [(m.start // 4, (m.end + 1) // 4, m.number, m.is_near, m.is_common) for m in marks]
    assert shown == [
        (0, 4, 1, True, False), (4, 10, 1, False, False), (10, 20, 1, True, False),
        (20, 25, 2, False, False), (25, 27, 0, False, True),
    ]  # fmt: skip
    assert marks[1].shade > marks[0].shade
    assert marks[0].reason.startswith("20 words, 6 of them word for word, ")


@pytest.mark.parametrize(
    ("n_reference_words", "passages", "is_said"),
    [(5_000_000, [], True), (None, [], False), (10**9, [], False), (5_000_000, [1], False)],
)
def test_a_library_too_small_to_tell_says_so_in_place_of_a_curve(
    tmp_path: Path, n_reference_words: int | None, passages: list[int], is_said: bool
):
    found = [ranked(0, 21) for _ in passages]
    page = page_of(tmp_path, row_of(found, [], n_reference_words=n_reference_words))
    assert ("the library is too small to" in page) == is_said
    assert ("<polyline" in page) != is_said
