"""What everybody can read and use: axe, the keyboard, small screens, hostile stories."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import study_browsing as web
from tests.barriers import axe, barriers, emulate
from tests.studies.conftest import served_study

pytestmark = web.BROWSER
# Two stories, and a piece of feedback that is asked about to the last page.
ttcw = served_study("ttcw", web.story_rows()[:2])
feedback = served_study("feedback", web.feedback_rows()[2:3])


def every_page(driver: Any, ttcw: web.Served, feedback: web.Served) -> Iterator[str]:
    driver.get(ttcw.link())
    yield "welcome"
    web.press(driver, "I agree, go on")
    yield "instructions"
    web.press(driver, "Begin")
    web.find(driver, f"{web.QUESTION} input").click()
    web.find(driver, "summary").click()
    yield "story"
    # While an answer is being saved, the browser asks before it leaves the page.
    web.saved(driver)
    for name in ("story-2", "group"):
        driver.get(f"{ttcw.url}/page/{name}")
    yield "all stories"
    web.press(driver, "Hand in")
    yield "all stories, marked"
    web.rank_stories(driver)
    web.press(driver, "Hand in")
    yield "open list"
    for path in ("nowhere", "organise/login"):
        driver.get(f"{ttcw.url}/{path}")
        yield path
    web.find(driver, "#password").send_keys("secret")
    web.press(driver, "Log in")
    web.press(driver, "Make links")
    yield "organiser"
    driver.get(feedback.link())
    web.press(driver, "I agree, go on")
    yield "quiz"
    web.begin(driver, feedback)
    web.find(driver, "textarea").send_keys("n/a")
    web.press(driver, "Go on")
    while open_ := web.all_of(driver, f"{web.QUESTION}:not(:has(:checked))"):
        web.choose(open_[0], web.BRANCHES["C"][1][web.item_of(open_[0])])
        web.saved(driver)
    yield "feedback"
    web.press(driver, "Go on")
    assert driver.current_url.endswith("/change")
    yield "last page"


def test_no_page_has_a_barrier_or_sticks_out(scripted: Any, ttcw: web.Served, feedback: web.Served):
    script = axe()
    found = {name: barriers(scripted, script) for name in every_page(scripted, ttcw, feedback)}
    assert len(found) == 12
    assert {name: some for name, some in found.items() if some} == {}


def test_a_story_is_read_and_answered_by_keyboard_alone(scripted: Any, ttcw: web.Served):
    from selenium.webdriver.common.keys import Keys

    web.begin(scripted, ttcw)

    def type_in(*keys: str) -> Any:
        for key in keys:
            scripted.switch_to.active_element.send_keys(key)
        return scripted.switch_to.active_element

    def tab_to(css: str) -> Any:
        for _ in range(30):
            if (here := type_in(Keys.TAB)) in web.all_of(scripted, css):
                return here
        raise AssertionError(css)

    reading = tab_to(".reading")
    type_in(Keys.PAGE_DOWN)
    moved = "return arguments[0].scrollTop > 0"
    web.until(scripted, lambda: scripted.execute_script(moved, reading))
    tab_to(f"{web.QUESTION} input")
    type_in(Keys.SPACE, Keys.ARROW_RIGHT)
    assert web.find(scripted, f"{web.QUESTION} input:checked").get_attribute("value") == "No"
    web.saved(scripted)
    type_in(Keys.TAB, "By keyboard, all of it.")
    web.saved(scripted)
    scripted.refresh()
    assert web.find(scripted, "textarea").get_attribute("value") == "By keyboard, all of it."


HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"></p>"
    "</article><form action=//evil><button>Win</button>",
    "x" * 5_000,
    "\u202eflipped \u2066 and \u2067 never closed\0 \x07 \ud800 &amp; {{ csrf }} \u0300" * 3,
    "</textarea><textarea autofocus onfocus=alert(1)>Tale",
)


def test_hostile_stories_show_as_text_and_break_nothing(scripted: Any, tmp_path: Path):
    rows = [{"id": f"{k}", "author": "a", "group": "g", "text": f"Tale {k} {text}"}
            for k, text in enumerate(HOSTILE)]  # fmt: skip
    with web.serving(tmp_path, "ttcw", rows) as served:
        web.begin(scripted, served)
        seen = set()
        for number in range(1, 5):
            scripted.get(f"{served.url}/page/story-{number}")
            seen.add(web.tale(scripted))
            shown = web.find(scripted, ".story p").text
            text = HOSTILE[int(web.tale(scripted))]
            assert text[:80].replace("\0", "\ufffd").split()[0] in shown
            assert len(web.all_of(scripted, ".story *")) == 2, "a heading and a paragraph"
            assert_undisturbed(scripted)
        assert seen == set("0123")
        web.find(scripted, "textarea").send_keys(HOSTILE[0])
        web.saved(scripted)
        scripted.refresh()
        assert web.find(scripted, "textarea").get_attribute("value") == HOSTILE[0]
        assert_undisturbed(scripted)
        scripted.get(f"{served.url}/page/group")
        assert len(web.all_of(scripted, ".begins")) == 4
        assert not web.all_of(scripted, ".begins *")
        assert_undisturbed(scripted)


def assert_undisturbed(driver: Any) -> None:
    assert driver.title != "owned"
    assert len(web.all_of(driver, "form")) == 1
    assert not web.all_of(driver, "img, script:not([src])")
    for width in (1400, 390):
        emulate(driver, width, 844)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    emulate(driver, 1400, 900)
    assert not [entry for entry in driver.get_log("browser") if "Policy" in entry["message"]]
