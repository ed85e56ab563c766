"""Whole sessions in a real browser, with and without JavaScript, against a server on loopback."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.barriers import axe, barriers, emulate
from tests.commands import rows_of
from tests.study_browsing import (
    BRANCHES,
    BROWSER,
    QUESTION,
    Served,
    all_of,
    answer_story,
    begin,
    check_stories,
    choose,
    find,
    follow,
    item_of,
    judge,
    of_newest,
    opinion,
    press,
    rank_stories,
    reason,
    saved,
    serving,
    story_rows,
    tale,
    until,
)

pytestmark = BROWSER


def test_a_reader_loses_nothing_by_reloading_going_back_and_two_tabs(scripted: Any, ttcw: Served):
    from selenium.webdriver import ActionChains

    begin(scripted, ttcw)
    question = all_of(scripted, QUESTION)[0]
    choose(question, opinion(tale(scripted), item_of(question)))
    saved(scripted)
    find(question, "textarea").send_keys(reason(tale(scripted), item_of(question)))
    saved(scripted)
    assert find(scripted, "li[aria-current] small").text == "1 of 14"
    scripted.refresh()
    question = all_of(scripted, QUESTION)[0]
    expected = reason(tale(scripted), item_of(question))
    assert find(question, "textarea").get_attribute("value") == expected
    assert len(all_of(question, "input:checked")) == 1
    answer_story(scripted)
    press(scripted, "Next: Story 2")
    answer_story(scripted)
    saved(scripted)
    scripted.back()
    until(scripted, lambda: len(all_of(scripted, "input:checked")) == 14)
    assert {area.get_attribute("value") for area in all_of(scripted, "textarea")} != {""}
    scripted.forward()
    until(scripted, lambda: find(scripted, "h1").text == "Story 2")
    assert len(all_of(scripted, "input:checked")) == 14
    forward = [b for b in all_of(scripted, "button") if b.text == "Next: Story 3"]
    ActionChains(scripted).double_click(*forward).perform()
    until(scripted, lambda: find(scripted, "h1").text == "Story 3")
    answer_in_two_tabs(scripted)
    answer_story(scripted)
    press(scripted, "Next: Story 4")
    answer_story(scripted)
    press(scripted, "Next: All stories")
    rank_stories(scripted)
    ranks = all_of(scripted, ".ranks label")
    again = next(label for label in ranks[4:] if label.text == "1")
    ranks[0].click()
    again.click()
    press(scripted, "Hand in")
    assert "the same place" in find(scripted, "main").text
    rank_stories(scripted)
    saved(scripted)
    hand_in = [b for b in all_of(scripted, "button") if b.text == "Hand in"]
    ActionChains(scripted).double_click(*hand_in).perform()
    until(scripted, lambda: find(scripted, "h1").text == "You have finished")
    check_stories(of_newest(ttcw))
    assert b"zqx" not in b"".join(ttcw.sent).lower()


def answer_in_two_tabs(driver: Any) -> None:
    """The page before the reader, in two tabs at once: the newest of each answer wins."""
    story, first = tale(driver), driver.current_window_handle
    address = driver.current_url
    driver.switch_to.new_window("tab")
    driver.get(address)
    second = driver.current_window_handle
    item = item_of(all_of(driver, QUESTION)[0])
    other = {"Yes": "No", "No": "Yes"}[opinion(story, item)]
    driver.switch_to.window(first)
    both, mine = all_of(driver, QUESTION)[:2]
    choose(both, other)
    saved(driver)
    choose(mine, opinion(story, item_of(mine)))
    find(mine, "textarea").send_keys(reason(story, item_of(mine)))
    saved(driver)
    driver.switch_to.window(second)
    choose(all_of(driver, QUESTION)[0], opinion(story, item))
    saved(driver)
    # The second tab shows nothing of what the first one saved; sending all of it undoes nothing.
    press(driver, "Next: Story 4")
    driver.get(address)
    both, mine = all_of(driver, QUESTION)[:2]
    assert find(both, "input:checked").get_attribute("value") == opinion(story, item)
    assert find(mine, "input:checked").get_attribute("value") == opinion(story, item_of(mine))
    assert find(mine, "textarea").get_attribute("value") == reason(story, item_of(mine))
    driver.close()
    driver.switch_to.window(first)
    driver.refresh()


def test_a_reader_without_javascript_answers_everything(bare: Any, ttcw: Served):
    begin(bare, ttcw)
    question = all_of(bare, QUESTION)[0]
    choose(question, opinion(tale(bare), item_of(question)))
    press(bare, "Save")
    assert find(bare, "#status").text == "Saved."
    assert len(all_of(bare, "input:checked")) == 1
    for number in (2, 3, 4):
        answer_story(bare)
        press(bare, f"Next: Story {number}")
    press(bare, "Next: All stories")
    press(bare, "Hand in")
    assert len(all_of(bare, ".question.wrong")) == 12
    rank_stories(bare)
    press(bare, "Hand in")
    assert find(bare, "h1").text == "Nearly done"
    follow(bare, find(bare, "li a"))
    assert find(bare, "h1").text == "Story 4"
    answer_story(bare)
    press(bare, "Next: All stories")
    press(bare, "Hand in")
    assert find(bare, "h1").text == "You have finished"
    check_stories(of_newest(ttcw))
    assert b"zqx" not in b"".join(ttcw.sent).lower()


@pytest.mark.parametrize("with_script", [True, False])
def test_the_questions_on_feedback_follow_from_the_answers(
    with_script: bool, feedback: Served, request: pytest.FixtureRequest
):
    driver = request.getfixturevalue("scripted" if with_script else "bare")
    begin(driver, feedback)
    for _ in BRANCHES:
        judge(driver, with_script=with_script)
    assert find(driver, "h1").text == "You have finished"
    found = of_newest(feedback)
    given: dict[str, dict[str, object]] = {}
    for one in found:
        if one.value is not None:
            given.setdefault(one.document_id[5], {})[one.item] = one.value
    for story, (_, answers) in BRANCHES.items():
        assert given[story] == {"own_feedback": f"Tell me more of {story}."} | answers
    assert {one.missing_reason for one in found} == {None, "not_asked"}
    assert b"zqx" not in b"".join(feedback.sent).lower()


def test_a_tab_that_was_left_open_answers_nothing_on_the_next_unit(scripted: Any, feedback: Served):
    begin(scripted, feedback)
    first = scripted.current_window_handle
    scripted.switch_to.new_window("tab")
    scripted.get(f"{feedback.url}/page/story")
    judge(scripted, with_script=True)
    second = scripted.current_window_handle
    scripted.switch_to.window(first)
    find(scripted, "textarea").send_keys("On the story before.")
    until(scripted, lambda: not find(scripted, "#status").text.startswith("Saving"))
    scripted.close()
    scripted.switch_to.window(second)
    scripted.refresh()
    assert find(scripted, "textarea").get_attribute("value") == ""


def test_what_is_typed_last_survives_leaving_by_a_link_and_a_lost_connection(
    scripted: Any, ttcw: Served
):
    begin(scripted, ttcw)
    area = find(scripted, "textarea")
    area.send_keys("The last words.")
    follow(scripted, find(scripted, '[data-step="story-2"] a'))
    assert find(scripted, "h1").text == "Story 2"
    scripted.back()
    until(scripted, lambda: find(scripted, "h1").text == "Story 1")
    assert find(scripted, "textarea").get_attribute("value") == "The last words."
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    scripted.execute_cdp_cmd("Network.enable", {})
    scripted.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    find(scripted, "textarea").send_keys(" And more.")
    until(scripted, lambda: "Trying again" in find(scripted, "#status").text)
    find(scripted, "button.main").click()
    until(scripted, lambda: "Trying again" in find(scripted, "#status").text)
    assert find(scripted, "h1").text == "Story 1"
    scripted.execute_cdp_cmd("Network.emulateNetworkConditions",
                             offline | {"offline": False, "downloadThroughput": -1,
                                        "uploadThroughput": -1})  # fmt: skip
    saved(scripted)
    scripted.refresh()
    assert find(scripted, "textarea").get_attribute("value") == "The last words. And more."


def test_the_organiser_invites_pauses_removes_and_exports(
    scripted: Any, ttcw: Served, downloads: Path
):
    scripted.get(f"{ttcw.url}/organise")
    find(scripted, "#password").send_keys("guess")
    press(scripted, "Log in")
    assert "This is not the password." in find(scripted, "main").text
    find(scripted, "#password").send_keys("secret")
    press(scripted, "Log in")
    find(scripted, "#note").send_keys("the <b>poets</b>")
    press(scripted, "Make links")
    link = find(scripted, ".links input").get_attribute("value")
    people = all_of(scripted, "[aria-label='People'] tbody tr")
    row = next(tr for tr in people if "the <b>poets</b>" in tr.text)
    assert "invited" in row.text
    name = row.text.split()[0]
    press(scripted, "Pause")
    reader = scripted.window_handles[0]
    scripted.switch_to.new_window("tab")
    # Somebody else has used the browser, and who comes by the new link is asked.
    scripted.get(ttcw.link())
    scripted.get(link)
    assert find(scripted, "h1").text == "Who is reading?"
    press(scripted, "I am somebody else: use my own link")
    press(scripted, "I agree, go on")
    assert find(scripted, "h1").text == "The study is paused"
    scripted.close()
    scripted.switch_to.window(reader)
    press(scripted, "Go on")
    follow(scripted, find(scripted, f"button[aria-label='Remove {name}']"))
    press(scripted, f"Remove {name}")
    until(scripted, lambda: find(scripted, "h1").text == ttcw.design.title)
    assert not all_of(scripted, f"button[aria-label='Remove {name}']")
    scripted.get(link)
    assert "Your part in this study has ended" in find(scripted, "main").text
    scripted.get(f"{ttcw.url}/organise")
    find(scripted, "a.button").click()
    path = downloads / f"{ttcw.design.id}.jsonl"
    until(scripted, path.exists)
    rows = rows_of(path)
    assert len(rows) == len(ttcw.given())
    press(scripted, "Log out")
    scripted.get(f"{ttcw.url}/organise")
    assert all_of(scripted, "#password")


BEGINNINGS = "return [...document.querySelectorAll('.story p:first-of-type')].map(e => e.innerText)"
IN_SIGHT = """
const box = arguments[0].getBoundingClientRect();
return box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
"""


@pytest.mark.parametrize("browser", ["scripted", "bare"])
@pytest.mark.parametrize("kind", ["pairs", "best-worst"])
def test_stories_side_by_side_are_compared_on_a_phone(
    browser: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
):
    driver = request.getfixturevalue(browser)
    emulate(driver, 390, 844, "dark" if browser == "bare" else "light")
    with serving(tmp_path, kind, story_rows()[: 4 if kind == "best-worst" else 2]) as served:
        begin(driver, served)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        shown = [text.split()[1][0] for text in driver.execute_script(BEGINNINGS)]
        press(driver, "Hand in")
        # On a phone the text comes first; what is wrong is in sight all the same.
        wrong = all_of(driver, ".question.wrong")
        assert len(wrong) == (6 if kind == "best-worst" else 3)
        seen = wrong[0] if browser == "scripted" else find(driver, "#wrong")
        until(driver, lambda: driver.execute_script(IN_SIGHT, seen), 15)
        if browser == "scripted":
            assert barriers(driver, axe()) == []
            emulate(driver, 390, 844)
        for number in range(len(wrong)):
            choose(all_of(driver, QUESTION)[number], f"Story {1 + number % 2}")
        press(driver, "Hand in")
        assert find(driver, "h1").text == "You have finished"
        found = of_newest(served)
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
