"""Whole sessions in a real browser, with and without JavaScript, against a server on loopback."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests import study_browsing as web
from tests.barriers import axe, barriers, emulate

pytestmark = web.BROWSER


def test_a_reader_loses_nothing_by_reloading_and_in_two_tabs(scripted: Any, ttcw: web.Served):
    from selenium.webdriver import ActionChains

    web.begin(scripted, ttcw)
    question = web.all_of(scripted, web.QUESTION)[0]
    web.choose(question, web.opinion(web.tale(scripted), web.item_of(question)))
    web.saved(scripted)
    web.find(question, "textarea").send_keys(web.reason(web.tale(scripted), web.item_of(question)))
    web.saved(scripted)
    assert web.find(scripted, "li[aria-current] small").text == "1 of 14"
    scripted.refresh()
    question = web.all_of(scripted, web.QUESTION)[0]
    expected = web.reason(web.tale(scripted), web.item_of(question))
    assert web.find(question, "textarea").get_attribute("value") == expected
    assert len(web.all_of(question, "input:checked")) == 1
    web.answer_story(scripted)
    web.press(scripted, "Next: Story 2")
    web.answer_story(scripted)
    web.saved(scripted)
    scripted.back()
    web.until(scripted, lambda: len(web.all_of(scripted, "input:checked")) == 14)
    assert {area.get_attribute("value") for area in web.all_of(scripted, "textarea")} != {""}
    scripted.forward()
    web.until(scripted, lambda: web.find(scripted, "h1").text == "Story 2")
    assert len(web.all_of(scripted, "input:checked")) == 14
    forward = [b for b in web.all_of(scripted, "button") if b.text == "Next: Story 3"]
    ActionChains(scripted).double_click(*forward).perform()
    web.until(scripted, lambda: web.find(scripted, "h1").text == "Story 3")
    answer_in_two_tabs(scripted)
    web.answer_story(scripted)
    web.press(scripted, "Next: Story 4")
    web.answer_story(scripted)
    web.press(scripted, "Next: All stories")
    web.rank_stories(scripted)
    ranks = web.all_of(scripted, ".ranks label")
    again = next(label for label in ranks[4:] if label.text == "1")
    ranks[0].click()
    again.click()
    web.press(scripted, "Hand in")
    assert "the same place" in web.find(scripted, "main").text
    web.rank_stories(scripted)
    web.saved(scripted)
    hand_in = [b for b in web.all_of(scripted, "button") if b.text == "Hand in"]
    ActionChains(scripted).double_click(*hand_in).perform()
    web.until(scripted, lambda: web.find(scripted, "h1").text == "You have finished")
    web.check_stories(web.of_newest(ttcw))
    assert b"zqx" not in b"".join(ttcw.sent).lower()


def answer_in_two_tabs(driver: Any) -> None:
    """The page before the reader, in two tabs at once: the newest of each answer wins."""
    story, first = web.tale(driver), driver.current_window_handle
    address = driver.current_url
    driver.switch_to.new_window("tab")
    driver.get(address)
    second = driver.current_window_handle
    item, other_item = (web.item_of(question) for question in web.all_of(driver, web.QUESTION)[:2])
    driver.switch_to.window(first)
    both, mine = web.all_of(driver, web.QUESTION)[:2]
    web.choose(both, {"Yes": "No", "No": "Yes"}[web.opinion(story, item)])
    web.saved(driver)
    web.choose(mine, web.opinion(story, other_item))
    web.find(mine, "textarea").send_keys(web.reason(story, other_item))
    web.saved(driver)
    driver.switch_to.window(second)
    web.choose(web.all_of(driver, web.QUESTION)[0], web.opinion(story, item))
    web.saved(driver)
    # The second tab shows nothing of what the first one saved; sending all of it undoes nothing.
    web.press(driver, "Next: Story 4")
    driver.get(address)
    both, mine = web.all_of(driver, web.QUESTION)[:2]
    for question, of in ((both, item), (mine, other_item)):
        assert web.find(question, "input:checked").get_attribute("value") == web.opinion(story, of)
    assert web.find(mine, "textarea").get_attribute("value") == web.reason(story, other_item)
    driver.close()
    driver.switch_to.window(first)
    driver.refresh()


@pytest.mark.parametrize("with_script", [True, False])
def test_the_questions_on_feedback_follow_from_the_answers(
    with_script: bool, feedback: web.Served, request: pytest.FixtureRequest
):
    driver = request.getfixturevalue("scripted" if with_script else "bare")
    web.begin(driver, feedback)
    for _ in web.BRANCHES:
        web.judge(driver, with_script=with_script)
    assert web.find(driver, "h1").text == "You have finished"
    found = web.of_newest(feedback)
    given: dict[str, dict[str, object]] = {}
    for one in found:
        if one.value is not None:
            given.setdefault(one.document_id[5], {})[one.item] = one.value
    for story, (_, answers) in web.BRANCHES.items():
        assert given[story] == {"own_feedback": f"Tell me more of {story}."} | answers
    assert {one.missing_reason for one in found} == {None, "not_asked"}
    assert b"zqx" not in b"".join(feedback.sent).lower()


def test_what_is_typed_last_survives_leaving_and_a_lost_connection(scripted: Any, ttcw: web.Served):
    web.begin(scripted, ttcw)
    area = web.find(scripted, "textarea")
    area.send_keys("The last words.")
    web.follow(scripted, web.find(scripted, '[data-step="story-2"] a'))
    assert web.find(scripted, "h1").text == "Story 2"
    scripted.back()
    web.until(scripted, lambda: web.find(scripted, "h1").text == "Story 1")
    assert web.find(scripted, "textarea").get_attribute("value") == "The last words."

    def connect(speed: int) -> None:
        network = {"offline": not speed, "latency": 0, "downloadThroughput": speed}
        scripted.execute_cdp_cmd("Network.enable", {})
        scripted.execute_cdp_cmd("Network.emulateNetworkConditions",
                                 network | {"uploadThroughput": speed})  # fmt: skip

    connect(0)
    web.find(scripted, "textarea").send_keys(" And more.")
    web.until(scripted, lambda: "Trying again" in web.find(scripted, "#status").text)
    web.find(scripted, "button.main").click()
    web.until(scripted, lambda: "Trying again" in web.find(scripted, "#status").text)
    assert web.find(scripted, "h1").text == "Story 1"
    connect(-1)
    web.saved(scripted)
    scripted.refresh()
    assert web.find(scripted, "textarea").get_attribute("value") == "The last words. And more."


BEGINNINGS = "return [...document.querySelectorAll('.story p:first-of-type')].map(e => e.innerText)"
IN_SIGHT = """
const box = arguments[0].getBoundingClientRect();
return box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
"""


@pytest.mark.parametrize(("browser", "kind"), [("scripted", "pairs"), ("bare", "best-worst")])
def test_stories_side_by_side_are_compared_on_a_phone(
    browser: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
):
    driver = request.getfixturevalue(browser)
    emulate(driver, 390, 844, "dark" if browser == "bare" else "light")
    rows = web.story_rows()[: 4 if kind == "best-worst" else 2]
    with web.serving(tmp_path, kind, rows) as served:
        web.begin(driver, served)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        shown = [text.split()[1][0] for text in driver.execute_script(BEGINNINGS)]
        web.press(driver, "Hand in")
        # On a phone the text comes first; what is wrong is in sight all the same.
        wrong = web.all_of(driver, ".question.wrong")
        assert len(wrong) == (6 if kind == "best-worst" else 3)
        seen = wrong[0] if browser == "scripted" else web.find(driver, "#wrong")
        web.until(driver, lambda: driver.execute_script(IN_SIGHT, seen), 15)
        if browser == "scripted":
            assert barriers(driver, axe()) == []
            emulate(driver, 390, 844)
        for number in range(len(wrong)):
            web.choose(web.all_of(driver, web.QUESTION)[number], f"Story {1 + number % 2}")
        web.press(driver, "Hand in")
        assert web.find(driver, "h1").text == "You have finished"
        found = web.of_newest(served)
        assert b"zqx" not in b"".join(served.sent).lower()
    emulate(driver, 1400, 900)
    wins = Counter(str(one.value)[-1] for one in found if one.item == "creativity")
    first, second, *rest = shown
    if kind == "pairs":
        # The second question of three: the story that was shown as the second one.
        assert wins == {second: 1}
    else:
        # The best beats the three others, and two of these beat the worst.
        assert wins == {first: 3, rest[0]: 1, rest[1]: 1}
        assert not any(one.missing_reason for one in found)
