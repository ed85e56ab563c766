"""The page shows what the rows say, in a real browser, and nothing in a text can act."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.study_browsing import CHROMIUM, DRIVER, chrome

from fabula.core.types import Document
from fabula.novelty.measure import Levels, OriginalityMeasure
from fabula.novelty.page import write_page
from fabula.novelty.scores import to_row
from fabula.reference import Reference
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


def test_everything_that_a_text_brings_is_escaped(tmp_path: Path):
    page = make_page(tmp_path, Document("<h1>id", HOSTILE)).read_text(encoding="utf-8")
    for tag in ("<script", "<img", "<i>", "<h1>id", "</mark></p></main><style"):
        assert tag not in page.replace("<i></i>", "")
    assert "{{ 7*7 }}" in page
    assert "default-src 'none'" in page
    assert not re.search("[\x00-\x08]", page)


def test_the_page_is_one_file_that_fetches_nothing(tmp_path: Path):
    page = make_page(tmp_path, Document("a", "one two three four five")).read_text()
    assert not re.search(r"""(src|href)=["'](?!#)""", page)
    assert "url(" not in page
    assert "@import" not in page


def test_missing_is_shown_as_missing(tmp_path: Path):
    texts = [Document("short", "one two"), Document("none", ""), Document("ok", "one " * 20)]
    page = make_page(tmp_path, *texts).read_text()
    assert page.count("missing: the text is too short") == 1
    assert page.count("missing: no words in the text") == 1


def test_a_text_that_is_not_the_first_has_its_own_notes(tmp_path: Path):
    texts = [Document(f"t{k}", "one two three four five six") for k in range(3)]
    page = make_page(tmp_path, *texts).read_text()
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    described = re.findall(r'aria-describedby="([^"]+)"', page)
    assert set(described) <= set(ids)


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


def test_hostile_text_shows_as_text_and_nothing_executes(tmp_path: Path, browser: Any):
    browser.get(make_page(tmp_path, Document("a", HOSTILE, meta={"title": HOSTILE})).as_uri())
    assert browser.title != "owned"
    body = browser.find_element("css selector", ".text")
    assert "<script>document.title='owned'</script>" in body.text
    assert body.is_displayed()
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]


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


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_nothing_sticks_out_at_any_width(tmp_path: Path, browser: Any, width: int):
    texts = [Document(f"t{k}", "one two three four five six " * 9) for k in range(2)]
    page = make_page(tmp_path, *texts)
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width
