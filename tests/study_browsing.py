"""A browser, a study that is served to it, and what a participant does with both."""

import re
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fabula.core.types import Measurement
from tests.studies.running import Running, make

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_SHELLS = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
)
_SHELL = next((path for name in _SHELLS if (path := shutil.which(name))), None)
"""The same engine without the browser's own windows, for a third of the processor time. It cannot
be told to leave scripts out. Debian's command of that name is a script that waits for the shell:
the driver would end the script, and leave the shell."""
Row = dict[str, Any]
QUESTION = "fieldset.question"
BROWSER = pytest.mark.browser


def story_rows() -> list[Row]:
    """A group of four stories; whatever participants may not know holds ZQX."""
    return [
        {"id": f"ZQXID{k}", "author": f"ZQXAUTHOR{k}", "group": "ZQXGROUP", "other": "ZQXOTHER",
         "text": "\n\n".join(f"Tale {k}, part {n}: she went to sea, and came back older, with a "
                             "parrot that knew all her songs but one." for n in range(30))}
        for k in range(4)
    ]  # fmt: skip


BRANCHES = {
    "A": ("original", {"sanity": "No feedback"}),
    "B": ("original", {"sanity": "Only feedback", "feedback_type": "Good as it is",
                       "perfect_agree": "No"}),
    "C": ("ZQXMETHOD", {"sanity": "Feedback and other matter", "feedback_type": "Suggestions",
                        "correctness": "Some of it", "error_detection": "Yes", "specificity": "No",
                        "relevance": "In part"}),
    "D": ("ZQXMETHOD", {"sanity": "Only feedback", "feedback_type": "Both", "perfect_agree": "Yes",
                        "correctness": "All of it", "error_detection": "The story has no big "
                        "problem", "specificity": "Yes", "relevance": "No"}),
    "E": ("original", {"sanity": "Only feedback", "feedback_type": "Suggestions",
                       "correctness": "None of it", "error_detection": "No",
                       "specificity": "Yes"}),
}  # fmt: skip
"""What was done to each story, and what is answered to the feedback on it."""


def feedback_rows() -> list[Row]:
    return [
        {"id": f"ZQXID{k}", "story_id": f"ZQXSTORY{k}", "method": method, "prompt": "ZQXPROMPT",
         "shots": 2, "model": f"ZQXMODEL{k}", "feedback": f"Feedback {k}: say who the old man is.",
         "missing_reason": None, "signature": "ZQXSIGNATURE",
         "story": f"Tale {k}. The old man swept the steps. He sat down and waited.",
         "original": f"Tale {k} as it was. The old man sat down, and then he swept the steps.",
         "change": {"edits": [], "note": "ZQXCHANGE"}}
        for k, (method, _) in BRANCHES.items()
    ]  # fmt: skip


@dataclass
class Served(Running):
    """A study, where it is served, and all that participants' browsers were sent."""

    url: str = ""
    sent: list[bytes] = field(default_factory=list)

    def link(self) -> str:
        """One that asks nothing, though somebody else has used the browser before."""
        return f"{self.url}/i/{self.invited()[0]}?change=yes"

    def recording(self, app: Any) -> Any:
        """The application, with everything that it sends to participants kept."""

        async def recorded(scope: Any, receive: Any, send: Any) -> None:
            async def keep(message: Any) -> None:
                if not scope["path"].startswith("/organise"):
                    self.sent.append(repr(message.get("headers")).encode())
                    self.sent.append(message.get("body", b""))
                await send(message)

            await app(scope, receive, keep if scope["type"] == "http" else send)

        return recorded


@contextmanager
def on_loopback(app: Any) -> Iterator[str]:
    """The address of an application that is served from a thread of this process."""
    import uvicorn

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


@contextmanager
def serving(folder: Path, kind: Any, rows: list[Row]) -> Iterator[Served]:
    served = Served(**vars(make(folder, kind, rows, name=f"ZQX{kind}", raters=50)))
    with closing(served.store), on_loopback(served.recording(served.app)) as served.url:
        yield served


@contextmanager
def chrome(downloads: Path, *, with_script: bool = True, width: int = 1400) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.common.exceptions import TimeoutException

    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = str((with_script and _SHELL) or CHROMIUM)
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", f"--window-size={width},900",
    ):  # fmt: skip
        options.add_argument(argument)
    prefs: dict[str, Any] = {"download.default_directory": str(downloads)}
    if not with_script:
        prefs["profile.managed_default_content_settings.javascript"] = 2
    options.add_experimental_option("prefs", prefs)
    options.set_capability("unhandledPromptBehavior", "ignore")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER))) as driver:
        get = driver.get

        def get_surely(url: str) -> None:
            # On a busy machine Chromium sometimes never sends the request for a page.
            driver.set_page_load_timeout(15)
            try:
                get(url)
            except TimeoutException:
                driver.set_page_load_timeout(100)
                get(url)
            driver.set_page_load_timeout(300)

        driver.get = get_surely
        yield driver


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chrome(tmp_path_factory.mktemp("downloads")) as driver:
        yield driver


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chrome(tmp_path_factory.mktemp("downloads"), with_script=False) as driver:
        yield driver


def find(driver: Any, css: str) -> Any:
    return driver.find_element("css selector", css)


def all_of(driver: Any, css: str) -> list[Any]:
    return driver.find_elements("css selector", css)


def until(driver: Any, holds: Callable[[], object], seconds: float = 120) -> None:
    """Wait until it holds; elements may go away meanwhile."""
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.support.ui import WebDriverWait

    waiting = WebDriverWait(driver, seconds, 0.05, ignored_exceptions=[WebDriverException])
    waiting.until(lambda _: holds())


def saved(driver: Any) -> None:
    until(driver, lambda: find(driver, "#status").text.startswith("Saved"))


def loaded(driver: Any, before: Any) -> bool:
    """Whether another page than the one before is there, to its end."""
    ready = driver.execute_script("return document.readyState") == "complete"
    return ready and find(driver, "html") != before


def painted(driver: Any) -> None:
    """Wait until the page has been painted: before, Chromium may fail to print it."""
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def follow(driver: Any, element: Any) -> None:
    """Click what leads to another page, and wait for it."""
    before = find(driver, "html")
    element.click()
    until(driver, lambda: loaded(driver, before))


def press(driver: Any, words: str) -> None:
    """Click the button or link with these words, and wait for the page after it."""
    named = (
        "return [...document.querySelectorAll('button, a.button')]"
        ".filter(one => one.checkVisibility() && one.innerText.trim() === arguments[0])"
    )
    (button,) = driver.execute_script(named, words)  # In one call: a list may be redrawn.
    follow(driver, button)


def choose(question: Any, answer: str) -> None:
    (label,) = [one for one in all_of(question, ".options label") if one.text == answer]
    label.click()


def item_of(question: Any) -> str:
    return str(question.get_attribute("id")).rpartition(":")[2]


def tale(driver: Any) -> str:
    return re.findall(r"Tale (\w)", find(driver, ".story").text)[0]


def opinion(story: str, item: str) -> str:
    return ("Yes", "No")[zlib.crc32(f"{story} {item}".encode()) % 2]


def reason(story: str, item: str) -> str:
    return f"it is so {zlib.crc32(f'why {story} {item}'.encode()) % 9973} <b>&"


N_BY_HAND = 2
"""Questions of a story that are answered key by key; a browser takes a second for each."""

FILL = """
for (const [answer, field, written] of arguments[0]) {
  document.querySelector(answer).click();
  const area = document.getElementsByName(field)[0];
  if (area.value) continue;
  area.value = written;
  area.dispatchEvent(new InputEvent("input", {bubbles: true}));
  area.dispatchEvent(new Event("change", {bubbles: true}));
}
"""


def answer_story(driver: Any) -> None:
    """All questions on the story before the reader: some by clicking and typing, then the rest."""
    story = tale(driver)
    asked = "return [...document.querySelectorAll('form textarea')].map(e => [e.name, e.value])"
    rest = []
    for number, (name, written) in enumerate(driver.execute_script(asked)):
        item = name.partition(":")[2].removesuffix(".why")
        answered = f'[name="{name.removesuffix(".why")}"][value="{opinion(story, item)}"]'
        if number >= N_BY_HAND:
            rest.append((answered, name, reason(story, item)))
            continue
        find(driver, answered).click()
        if not written:
            find(driver, f'[name="{name}"]').send_keys(reason(story, item))
    driver.execute_script(FILL, rest)


def rank_stories(driver: Any) -> None:
    for part in all_of(driver, "section.part"):
        story = re.findall(r"Tale (\w)", find(part, ".begins").text)[0]
        place, origin, familiar, _ = all_of(part, QUESTION)
        choose(place, str(int(story) + 1))
        choose(origin, ("An experienced writer", "An AI")[int(story) % 2])
        choose(familiar, opinion(story, "familiar"))


def check_stories(found: list[Measurement]) -> None:
    """All of one reader's answers are there, each with its reason."""
    assert len(found) == 4 * 17
    for one in found:
        story = one.document_id[-1]
        expected: object = 1.0 if opinion(story, one.item) == "Yes" else 0.0
        if one.item == "preference":
            expected = int(story) + 1
        elif one.item == "origin":
            expected = ("An experienced writer", "An AI")[int(story) % 2]
        assert one.value == expected, one
        if one.rubric.startswith("ttcw"):
            assert one.rationale == reason(story, one.item)


def of_newest(served: Served) -> list[Measurement]:
    found = served.measured()
    return [one for one in found if one.rater == max(one.rater for one in found)]


def begin(driver: Any, served: Served) -> None:
    """As far as the first page of the first unit."""
    driver.get(served.link())
    press(driver, "I agree, go on")
    if served.design.quiz:
        for section, quiz in zip(all_of(driver, ".quiz"), served.design.quiz, strict=True):
            (label,) = [one for one in all_of(section, "label") if one.text == quiz.answer]
            label.click()
        press(driver, "Answer")
    press(driver, "Begin")


def judge(driver: Any, *, with_script: bool) -> None:
    """The feedback before the reader, question by question, to the end of the unit."""
    story = tale(driver)
    assert "feedback" not in find(driver, ".reading").text.lower()
    find(driver, "textarea").send_keys(f"Tell me more of {story}.")
    press(driver, "Go on")
    answers = BRANCHES[story][1]
    for item, answer in answers.items():
        if item == "relevance" and with_script:
            press(driver, "Go on")
        assert ("relevance" in driver.page_source) == (item == "relevance")
        find(driver, f'[name="unit:{item}"][value="{answer}"]').click()
        if with_script:
            saved(driver)
        elif item != list(answers)[-1]:
            press(driver, "Go on")
    press(driver, "Go on")
