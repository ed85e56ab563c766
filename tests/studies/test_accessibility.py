"""What everybody can read and use: axe, the keyboard, small screens, hostile stories."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.barriers import axe, barriers, emulate
from tests.study_browsing import (
    BRANCHES,
    BROWSER,
    QUESTION,
    Served,
    all_of,
    begin,
    choose,
    find,
    item_of,
    judge,
    press,
    rank_stories,
    saved,
    serving,
    tale,
    until,
)

pytestmark = BROWSER


def every_page(driver: Any, ttcw: Served, feedback: Served) -> Iterator[str]:
    """Each page of a study in turn."""
    driver.get(ttcw.link())
    yield "welcome"
    press(driver, "I agree, go on")
    yield "instructions"
    press(driver, "Begin")
    find(driver, f"{QUESTION} input").click()
    find(driver, "summary").click()
    yield "story"
    # While an answer is being saved, the browser asks before it leaves the page.
    saved(driver)
    for number in (2, 3, 4):
        driver.get(f"{ttcw.url}/page/story-{number}")
    driver.get(f"{ttcw.url}/page/group")
    yield "all stories"
    press(driver, "Hand in")
    yield "all stories, marked"
    rank_stories(driver)
    press(driver, "Hand in")
    yield "open list"
    driver.get(f"{ttcw.url}/nowhere")
    yield "message"
    driver.get(f"{ttcw.url}/organise/login")
    yield "login"
    find(driver, "#password").send_keys("secret")
    press(driver, "Log in")
    press(driver, "Make links")
    yield "organiser"
    driver.get(feedback.link())
    press(driver, "I agree, go on")
    yield "quiz"
    begin(driver, feedback)
    while BRANCHES[tale(driver)][0] == "original":
        judge(driver, with_script=True)
    find(driver, "textarea").send_keys("n/a")
    press(driver, "Go on")
    for _ in range(6):
        for question in all_of(driver, f"{QUESTION}:not(:has(:checked))"):
            choose(question, BRANCHES["C"][1][item_of(question)])
            saved(driver)
            break
    yield "feedback"
    press(driver, "Go on")
    assert driver.current_url.endswith("/change")
    yield "last page"


def test_no_page_has_a_barrier_or_sticks_out(scripted: Any, ttcw: Served, feedback: Served):
    script = axe()
    found = {name: barriers(scripted, script) for name in every_page(scripted, ttcw, feedback)}
    assert len(found) == 12
    assert {name: some for name, some in found.items() if some} == {}


def test_a_story_is_read_and_answered_by_keyboard_alone(scripted: Any, ttcw: Served):
    from selenium.webdriver.common.keys import Keys

    begin(scripted, ttcw)

    def tab_to(css: str) -> Any:
        for _ in range(30):
            scripted.switch_to.active_element.send_keys(Keys.TAB)
            if scripted.switch_to.active_element in all_of(scripted, css):
                return scripted.switch_to.active_element
        raise AssertionError(css)

    reading = tab_to(".reading")
    reading.send_keys(Keys.PAGE_DOWN)
    until(scripted, lambda: scripted.execute_script("return arguments[0].scrollTop", reading) > 0)
    radio = tab_to(f"{QUESTION} input")
    radio.send_keys(Keys.SPACE)
    radio.send_keys(Keys.ARROW_RIGHT)
    assert find(scripted, f"{QUESTION} input:checked").get_attribute("value") == "No"
    saved(scripted)
    scripted.switch_to.active_element.send_keys(Keys.TAB)
    scripted.switch_to.active_element.send_keys("By keyboard, all of it.")
    saved(scripted)
    scripted.refresh()
    assert find(scripted, "textarea").get_attribute("value") == "By keyboard, all of it."


HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"></p>"
    "</article><form action=//evil><button>Win</button>",
    "x" * 100_000,
    "\u202eflipped \u2066 and \u2067 never closed\0 \x07 \ud800 &amp; {{ csrf }} \u0300" * 3,
    "</textarea><textarea autofocus onfocus=alert(1)>Tale",
)


def test_hostile_stories_show_as_text_and_break_nothing(scripted: Any, tmp_path: Path):
    rows = [{"id": f"{k}", "author": "a", "group": "g", "text": f"Tale {k} {text}"}
            for k, text in enumerate(HOSTILE)]  # fmt: skip
    with serving(tmp_path, "ttcw", rows) as served:
        begin(scripted, served)
        seen = set()
        for number in range(1, 5):
            scripted.get(f"{served.url}/page/story-{number}")
            seen.add(tale(scripted))
            shown = find(scripted, ".story p").text
            text = HOSTILE[int(tale(scripted))]
            assert text[:80].replace("\0", "\ufffd").split()[0] in shown
            assert len(all_of(scripted, ".story *")) == 2, "a heading and a paragraph"
            assert_undisturbed(scripted)
        assert seen == set("0123")
        find(scripted, "textarea").send_keys(HOSTILE[0])
        saved(scripted)
        scripted.refresh()
        assert find(scripted, "textarea").get_attribute("value") == HOSTILE[0]
        assert_undisturbed(scripted)
        scripted.get(f"{served.url}/page/group")
        assert len(all_of(scripted, ".begins")) == 4
        assert not all_of(scripted, ".begins *")
        assert_undisturbed(scripted)


def assert_undisturbed(driver: Any) -> None:
    assert driver.title != "owned"
    assert len(all_of(driver, "form")) == 1
    assert not all_of(driver, "img, script:not([src])")
    for width in (1400, 390):
        emulate(driver, width, 844)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    emulate(driver, 1400, 900)
    assert not [entry for entry in driver.get_log("browser") if "Policy" in entry["message"]]
