"""The desk in a real browser, wide and on a phone, with and without JavaScript."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests import study_browsing as web
from tests.barriers import axe, barriers, emulate
from tests.writer.test_desk import KEY
from tests.writer.test_desk import STORY as SHORT
from tests.writer.test_desk import books as books

from fabula.writer.start import create_app
from fabula.writer.work import Desk

pytestmark = web.BROWSER

STORY = f"{SHORT}\n\n" + "The sea was calm that night. " * 40


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, books: str) -> Iterator[str]:
    with (
        Desk(tmp_path_factory.mktemp("desk"), (books,)) as desk,
        web.on_loopback(create_app(desk, key=KEY)) as url,
    ):
        yield url


scripted, bare = web.scripted, web.bare


def when_over(driver: Any) -> None:
    """The report has all its parts; a page without scripts renews itself."""
    web.until(driver, lambda: web.find(driver, "nav.bar").get_attribute("data-over") == "yes")


def measure(driver: Any, text: str) -> None:
    driver.execute_script("document.querySelector('#draft').value = arguments[0]", text)
    web.press(driver, "Measure it")
    when_over(driver)


def follow_to(driver: Any, text: str) -> None:
    web.follow(driver, next(a for a in web.all_of(driver, "a") if a.text == text))


@pytest.mark.parametrize("kind", ["scripted", "bare"])
def test_a_writer_drops_a_draft_reads_mends_and_compares(
    kind: str, address: str, tmp_path: Path, request: pytest.FixtureRequest
):
    browser = request.getfixturevalue(kind)
    (tmp_path / "lamp.txt").write_text(STORY)
    browser.get(f"{address}/open?given={KEY}")
    web.find(browser, "form.drop summary").click()
    before = web.find(browser, "html")
    web.find(browser, ".drop input[type=file]").send_keys(str(tmp_path / "lamp.txt"))
    if kind == "bare":
        web.press(browser, "Measure it")
    # With scripts the file is all that is wanted.
    web.until(browser, lambda: web.loaded(browser, before))
    when_over(browser)
    assert web.find(browser, "h1").text == "lamp"
    web.until(browser, lambda: web.all_of(browser, "#profile"))
    # A click on a span leads to its source, and from there back.
    web.find(browser, "mark sup a").click()
    assert browser.current_url.endswith("#s1-1")
    assert "The Bell" in web.find(browser, "tr:target").text
    web.find(browser, "tr:target a").click()
    assert "put out her hand" in web.find(browser, "mark:target").text
    web.follow(browser, web.find(browser, "nav.bar .button.main"))
    area = web.find(browser, "textarea")
    assert area.get_attribute("value").startswith("The lamp went round.")
    area.clear()
    area.send_keys("The lamp went out. She counted ten, and then she held her breath.")
    web.press(browser, "Measure this version")
    when_over(browser)
    web.until(browser, lambda: "version 2" in web.find(browser, "nav.bar").text)
    assert not web.all_of(browser, "mark"), "nothing is borrowed any more"
    follow_to(browser, "What changed")
    assert "Words" in web.find(browser, "table").text
    assert "gone" in web.find(browser, ".changes .said").text
    assert "round" in " ".join(one.text for one in web.all_of(browser, "del"))
    assert "out" in " ".join(one.text for one in web.all_of(browser, "ins"))
    browser.get(address)
    assert "2 versions" in web.find(browser, ".pieces").text


def test_every_keystroke_is_there_again_and_marked_while_one_writes(scripted: Any, address: str):
    """A click away, a desk that does not answer, and the findings of what was just typed."""
    browser = scripted
    browser.get(f"{address}/open?given={KEY}")
    measure(browser, STORY)
    report = browser.current_url
    browser.get(f"{report}/edit")
    web.until(browser, lambda: "still there" in web.find(browser, ".check").text)
    area = web.find(browser, "#draft")
    area.send_keys("Wait.")
    browser.get(f"{address}/")
    browser.get(f"{report}/edit")
    assert web.find(browser, "#draft").get_attribute("value").endswith("Wait.")

    def says_so() -> bool:
        browser.get(f"{report}/edit")
        return any("not measured yet" in notice.text for notice in web.all_of(browser, ".notice"))

    # The last words may reach the desk after the page was asked for; the browser has them then.
    web.until(browser, says_so)
    assert web.find(browser, "#draft").get_attribute("value").endswith("Wait.")
    # The desk does not answer: the browser keeps the words until it does.
    refused = "window.fetch = async () => { throw new TypeError('refused'); };"
    browser.execute_script(f"{refused}navigator.sendBeacon = () => false;")
    web.find(browser, "#draft").send_keys(" Then teh end.")
    web.until(browser, lambda: "is not responding" in web.find(browser, ".saved").text)
    browser.get(f"{report}/edit")
    web.until(browser, lambda: "Saved on the desk" in web.find(browser, ".saved").text)
    assert "Then teh end." in web.find(browser, "#draft").get_attribute("value")
    web.until(browser, lambda: "“teh” is in neither" in web.find(browser, ".check").text)
    marks = web.all_of(browser, ".under mark")
    assert "teh" in [mark.get_attribute("textContent") for mark in marks]
    follow_to(browser, "Versions")
    assert len(web.all_of(browser, "tbody tr")) >= 2


def test_a_chapter_is_edited_with_its_findings_and_the_others_stay(scripted: Any, address: str):
    said = "It was dark \U0001f3ee.", "She did not recieve it.", "And teh keeper slept."
    chapters = [f"CHAPTER {k}\n\nThe lamp went round. {one}" for k, one in enumerate(said, 1)]
    scripted.get(f"{address}/open?given={KEY}")
    measure(scripted, "\n\n".join(chapters))
    scripted.get(f"{scripted.current_url}/edit#part-2")

    def listed() -> list[str]:
        return [one.text for one in web.all_of(scripted, ".chapters button")]

    web.until(scripted, lambda: listed() == ["chapter 1", "chapter 2 1", "chapter 3 1"])
    area = web.find(scripted, "#draft")
    assert area.get_attribute("value") == chapters[1]
    assert "0 gone, 0 new, 1 still there" in web.find(scripted, ".check").text
    area.send_keys(" Then she held teh lamp.")
    web.until(scripted, lambda: "1 new, 1 still there" in web.find(scripted, ".check").text)
    web.all_of(scripted, ".chapters button")[2].send_keys("\ue007")
    web.until(scripted, lambda: "0 new, 1 still there" in web.find(scripted, ".check").text)
    assert area.get_attribute("value") == chapters[2]
    web.all_of(scripted, ".check .to")[0].send_keys("\ue007")
    selected = "return area.value.slice(area.selectionStart, area.selectionEnd)"
    assert scripted.execute_script(selected) == "teh"
    web.all_of(scripted, ".check [name=here]")[0].send_keys("\ue007")
    web.until(scripted, lambda: listed()[2] == "chapter 3")
    web.press(scripted, "Measure this version")
    when_over(scripted)
    follow_to(scripted, "Edit")
    text = "return document.querySelector('#draft').defaultValue"
    chapters[1] += " Then she held teh lamp."
    assert scripted.execute_script(text) == "\n\n".join(chapters)


FAULTY = "And teh keeper did not recieve it.\n\nShe put teh lamp out, and did not recieve it again."


@pytest.mark.parametrize("kind", ["scripted", "bare"])
def test_a_finding_is_dismissed_by_keyboard_and_taken_back(
    kind: str, address: str, request: pytest.FixtureRequest
):
    browser = request.getfixturevalue(kind)
    browser.get(f"{address}/open?given={KEY}")
    web.find(browser, "#draft").send_keys(FAULTY)
    web.press(browser, "Measure it")
    when_over(browser)
    report = browser.current_url

    def places() -> list[Any]:
        return web.all_of(browser, "#findings > ol > li")

    def enter(selector: str) -> None:
        """Press Enter on it; the page may be replaced meanwhile, so try again."""
        from selenium.common.exceptions import WebDriverException

        def entered() -> bool:
            with suppress(WebDriverException):
                web.find(browser, selector).send_keys("\ue007")
                return True
            return False

        web.until(browser, entered)

    web.until(browser, lambda: len(places()) == 4)
    button = web.find(browser, "#findings [name=here]")
    assert button.accessible_name.startswith("Dismiss here: Spelling, ")
    button.send_keys("\ue007")
    web.until(browser, lambda: len(places()) == 3)
    if kind == "scripted":
        focused = browser.switch_to.active_element
        assert focused.find_element("xpath", "..").get_attribute("class") == "decide"
    enter("#findings [name=useful]")
    web.until(browser, lambda: web.all_of(browser, "#findings [aria-pressed=true]"))
    enter("#findings [name=everywhere]")
    web.until(browser, lambda: len(places()) < 3)
    enter(".own > a")
    web.until(browser, lambda: "were useful" in web.find(browser, "main").text)
    n_left = len(web.all_of(browser, "[name=number]"))
    enter("[name=number]")
    web.until(browser, lambda: len(web.all_of(browser, "[name=number]")) == n_left - 1)
    browser.get(report)
    assert len(places()) == 3


BEHIND = """
const real = window.fetch;
let edition = 100;
window.fetch = async (...asked) => String(asked[0]).endsWith("/state")
  ? Response.json({stage: "", done: 0, total: null, edition: edition++, question: "", over: false})
  : real(...asked);
"""


def test_a_report_that_is_whole_is_not_put_anew_under_its_reader(scripted: Any, address: str):
    """The page may be newer than the state that led to it."""
    from selenium.common.exceptions import TimeoutException

    added = scripted.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": BEHIND})
    try:
        scripted.get(f"{address}/open?given={KEY}")
        measure(scripted, "She counted nine, and held it still.")
        read = web.find(scripted, "main")
        with pytest.raises(TimeoutException):
            web.until(scripted, lambda: web.find(scripted, "main") != read, seconds=2)
    finally:
        scripted.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_no_page_of_the_desk_has_a_barrier_or_sticks_out(scripted: Any, address: str):
    browser, script = scripted, axe()
    browser.get(f"{address}/open?given={KEY}")
    for text in (STORY, "x" * 3000 + " and then she put out her hand and held it still."):
        browser.get(address)
        measure(browser, text)
    last = browser.current_url.split("/piece/")[1].split("/")[0]
    first = f"{int(last) - 1:04d}"
    browser.get(f"{address}/piece/{first}/1/edit")
    web.find(browser, "#draft").send_keys("Then teh end.")
    web.until(browser, lambda: "“teh” is in neither" in web.find(browser, ".check").text)
    pages = ("1", "1/edit", "versions", "record", "states/1", "1/remove", "dismissed")
    for path in ("/", f"/piece/{last}/1", *(f"/piece/{first}/{page}" for page in pages),
                 f"/beside?left={first}-1&right={last}-1", "/models", "/nowhere"):  # fmt: skip
        browser.get(f"{address}{path}")
        assert barriers(browser, script) == [], path
    emulate(browser, 1400, 900)
    errors = [one for one in browser.get_log("browser") if "404" not in one["message"]]
    assert errors == []
