"""The desk in a real browser, wide and on a phone, with and without JavaScript."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.barriers import axe, barriers, emulate
from tests.study_browsing import CHROMIUM, DRIVER, all_of, chrome, find, follow, press, until

from fabula.desk import Desk, create_app
from fabula.reference import Reference
from fabula.types import Document

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
    ),
]

KEY = "the-key"
STORY = (
    "The lamp went round. She counted nine, and one, and then she put out her hand and held it "
    "still.\n\nNobody in the harbour woke.\n\n" + "The sea was calm that night. " * 40
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, small_model: Path) -> Iterator[str]:
    """A desk on loopback, served from a thread of this process."""
    import uvicorn

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
        app = create_app(desk, key=KEY)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run)
        thread.start()
        pause = threading.Event()
        while not server.started and thread.is_alive():
            pause.wait(0.01)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


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
) -> None:
    browser = request.getfixturevalue(kind)
    (tmp_path / "lamp.txt").write_text(STORY)
    browser.get(f"{address}/open?given={KEY}")
    find(browser, ".drop input[type=file]").send_keys(str(tmp_path / "lamp.txt"))
    find(browser, "input[name=fluency]").click()
    press(browser, "Measure it")
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
    assert "round" in " ".join(one.text for one in all_of(browser, "del"))
    assert "out" in " ".join(one.text for one in all_of(browser, "ins"))
    browser.get(address)
    assert "2 versions" in find(browser, ".pieces").text


BEHIND = """
const real = window.fetch;
let edition = 100;
window.fetch = async (...asked) => String(asked[0]).endsWith("/state")
  ? Response.json({stage: "", done: 0, total: null, edition: edition++, question: "", over: false})
  : real(...asked);
"""


def test_a_report_that_is_whole_is_not_put_anew_under_its_reader(
    scripted: Any, address: str
) -> None:
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


def test_no_page_of_the_desk_has_a_barrier_or_sticks_out(scripted: Any, address: str) -> None:
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
    for path in ("/", f"/piece/{last}/1", f"/piece/{first}/1", f"/piece/{first}/1/edit",
                 f"/beside?left={first}-1&right={last}-1", f"/piece/{first}/1/remove",
                 "/nowhere"):  # fmt: skip
        browser.get(f"{address}{path}")
        found[path] = barriers(browser, script)
    assert {path: some for path, some in found.items() if some} == {}
    emulate(browser, 1400, 900)
    errors = [one for one in browser.get_log("browser") if "404" not in one["message"]]
    assert errors == []
