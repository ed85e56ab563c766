"""The desk in a real browser, wide and on a phone, with and without JavaScript."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.barriers import axe, barriers, emulate
from tests.study_browsing import (
    BROWSER,
    all_of,
    chrome,
    find,
    follow,
    loaded,
    on_loopback,
    press,
    until,
)

from fabula.core.types import Document
from fabula.desk.start import create_app
from fabula.desk.work import Desk
from fabula.reference import Reference

pytestmark = BROWSER

KEY = "the-key"
STORY = (
    "The lamp went round. She counted nine, and one, and then she put out her hand and held it "
    "still.\n\nNobody in the harbour woke.\n\n" + "The sea was calm that night. " * 40
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, small_model: Path) -> Iterator[str]:
    """A desk on loopback, served from a thread of this process."""
    folder = tmp_path_factory.mktemp("desk")
    source = Document("b", "Then she put out her hand and held it still until the bell had rung.",
                      meta={"title": "The Bell"})  # fmt: skip
    Reference.build([source], folder / "books.ref").close()
    with (
        pytest.MonkeyPatch.context() as environment,
        Desk(folder / "desk", (str(folder / "books.ref"),)) as desk,
    ):
        # How surprising a sentence is, is not the point here.
        environment.setenv("FABULA_LOCAL_MODEL", str(small_model))
        with on_loopback(create_app(desk, key=KEY)) as url:
            yield url


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chrome(tmp_path_factory.mktemp("downloads"), with_script=True) as driver:
        yield driver


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chrome(tmp_path_factory.mktemp("downloads"), with_script=False) as driver:
        yield driver


def when_over(driver: Any) -> None:
    """The report has all its parts; a page without scripts renews itself."""
    until(driver, lambda: find(driver, "nav.bar").get_attribute("data-over") == "yes")


@pytest.mark.parametrize("kind", ["scripted", "bare"])
def test_a_writer_drops_a_draft_reads_mends_and_compares(
    kind: str, address: str, tmp_path: Path, request: pytest.FixtureRequest
):
    browser = request.getfixturevalue(kind)
    (tmp_path / "lamp.txt").write_text(STORY)
    browser.get(f"{address}/open?given={KEY}")
    find(browser, "form.drop summary").click()
    before = find(browser, "html")
    find(browser, ".drop input[type=file]").send_keys(str(tmp_path / "lamp.txt"))
    if kind == "bare":
        press(browser, "Measure it")
    # With scripts the file is all that is wanted.
    until(browser, lambda: loaded(browser, before))
    when_over(browser)
    assert find(browser, "h1").text == "lamp"
    until(browser, lambda: all_of(browser, "#profile"))
    # A click on a span leads to its source, and from there back.
    find(browser, "mark sup a").click()
    assert browser.current_url.endswith("#s1-1")
    assert "The Bell" in find(browser, "tr:target").text
    find(browser, "tr:target a").click()
    assert "put out her hand" in find(browser, "mark:target").text
    follow(browser, find(browser, "nav.bar .button.main"))
    area = find(browser, "textarea")
    assert area.get_attribute("value").startswith("The lamp went round.")
    area.clear()
    area.send_keys("The lamp went out. She counted ten, and then she held her breath.")
    press(browser, "Measure this version")
    when_over(browser)
    until(browser, lambda: "version 2" in find(browser, "nav.bar").text)
    assert not all_of(browser, "mark"), "nothing is borrowed any more"
    follow(browser, next(a for a in all_of(browser, "nav.bar .button") if a.text == "What changed"))
    assert "Creativity Index" in find(browser, "table").text
    assert "gone" in find(browser, ".changes .said").text
    assert "round" in " ".join(one.text for one in all_of(browser, "del"))
    assert "out" in " ".join(one.text for one in all_of(browser, "ins"))
    browser.get(address)
    assert "2 versions" in find(browser, ".pieces").text


def test_every_keystroke_is_there_again_and_marked_while_one_writes(scripted: Any, address: str):
    """A click away, a desk that does not answer, and the findings of what was just typed."""
    browser = scripted
    browser.get(f"{address}/open?given={KEY}")
    browser.execute_script("document.querySelector('#draft').value = arguments[0]", STORY)
    press(browser, "Measure it")
    when_over(browser)
    report = browser.current_url
    browser.get(f"{report}/edit")
    until(browser, lambda: "still there" in find(browser, ".check").text)
    area = find(browser, "#draft")
    area.send_keys("Wait.")
    browser.get(f"{address}/")
    browser.get(f"{report}/edit")
    assert find(browser, "#draft").get_attribute("value").endswith("Wait.")

    def says_so() -> bool:
        browser.get(f"{report}/edit")
        return any("not measured yet" in notice.text for notice in all_of(browser, ".notice"))

    # The last words may reach the desk after the page was asked for; the browser has them then.
    until(browser, says_so)
    assert find(browser, "#draft").get_attribute("value").endswith("Wait.")
    # The desk does not answer: the browser keeps the words until it does.
    refused = "window.fetch = async () => { throw new TypeError('refused'); };"
    refused += "navigator.sendBeacon = () => false;"
    browser.execute_script(refused)
    find(browser, "#draft").send_keys(" Then teh end.")
    until(browser, lambda: "is not responding" in find(browser, ".saved").text)
    browser.get(f"{report}/edit")
    until(browser, lambda: "Saved on the desk" in find(browser, ".saved").text)
    assert "Then teh end." in find(browser, "#draft").get_attribute("value")
    until(browser, lambda: "“teh” is in neither" in find(browser, ".check").text)
    assert "teh" in [mark.get_attribute("textContent") for mark in all_of(browser, ".under mark")]
    follow(browser, next(a for a in all_of(browser, "a") if a.text == "Versions"))
    assert len(all_of(browser, "tbody tr")) >= 2


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
        find(scripted, "textarea").send_keys("She counted nine, and held it still.")
        press(scripted, "Measure it")
        when_over(scripted)
        read = find(scripted, "main")
        with pytest.raises(TimeoutException):
            until(scripted, lambda: find(scripted, "main") != read, seconds=2)
    finally:
        scripted.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_no_page_of_the_desk_has_a_barrier_or_sticks_out(scripted: Any, address: str):
    browser, script = scripted, axe()
    browser.get(f"{address}/open?given={KEY}")
    for text in (STORY, "x" * 3000 + " and then she put out her hand and held it still."):
        browser.get(address)
        browser.execute_script("document.querySelector('textarea').value = arguments[0]", text)
        press(browser, "Measure it")
        when_over(browser)
    last = browser.current_url.split("/piece/")[1].split("/")[0]
    first = f"{int(last) - 1:04d}"
    found = {}
    browser.get(f"{address}/piece/{first}/1/edit")
    find(browser, "#draft").send_keys("Then teh end.")
    until(browser, lambda: "“teh” is in neither" in find(browser, ".check").text)
    for path in ("/", f"/piece/{last}/1", f"/piece/{first}/1", f"/piece/{first}/1/edit",
                 f"/piece/{first}/versions", f"/piece/{first}/record", f"/piece/{first}/states/1",
                 f"/beside?left={first}-1&right={last}-1", f"/piece/{first}/1/remove",
                 "/models", "/nowhere"):  # fmt: skip
        browser.get(f"{address}{path}")
        found[path] = barriers(browser, script)
    assert {path: some for path, some in found.items() if some} == {}
    emulate(browser, 1400, 900)
    errors = [one for one in browser.get_log("browser") if "404" not in one["message"]]
    assert errors == []
