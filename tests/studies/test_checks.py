"""Attention items and questions that are asked again: who is asked what, and what is made of it."""

import re

import httpx
from starlette.testclient import TestClient
from tests.studies.running import Make, Running, filled, onward
from tests.studies.test_pairs import ITEMS
from tests.studies_data import story_rows

from fabula.studies.quality import Checks, standings

ATTENTION = """
[[attention]]
question = "Please choose No here."
answer = "No"
at = 2
"""
CODES = """
[codes]
done = "GOOD"
attention = "ASLEEP"
"""


def read_all(reader: TestClient, **other: str) -> tuple[list[str], httpx.Response]:
    """All that somebody is given who answers some parts so; the pages, and the last one."""
    seen, page = [], reader.get("/")
    while len(seen) < 40:
        if ">Begin</a>" in page.text:
            page = reader.get(re.findall(r'button main" href="([^"]+)"', page.text)[0])
        if 'name="unit"' not in page.text:
            return seen, page
        seen.append(page.text)
        page = reader.post(page.url.path, data=filled(page, **other) | onward(page))
    raise AssertionError(page.text)


def checks_of(running: Running) -> list[Checks]:
    found = running.measured()
    assert {one.item for one in found} <= {
        *(item.id for item in running.design.rubric.items), "own_feedback",
        *("preference", "origin", "familiar", "remarks"),
    }  # fmt: skip
    assert len({(one.rater, one.document_id, one.item) for one in found}) == len(found)
    with running.store.reading() as connection:
        return [one.facts.checks for one in standings(connection, running.design, found)]


def test_stories_have_an_attention_item_and_the_first_is_asked_about_again(opened: Make):
    running = opened("ttcw", repeat=["narrative_ending"], more=ATTENTION + CODES)
    good, bad = running.reader(), running.reader()
    seen, page = read_all(good, check="No")
    assert "GOOD" in page.text
    assert [("Please choose No here." in one, 'name="again:' in one) for one in seen] == [
        (False, False), (True, False), (False, True), (False, False),
    ]  # fmt: skip
    tale = re.compile(r"Tale 0\d")
    assert tale.findall(seen[2]) == tale.findall(seen[0])
    _, page = read_all(bad, check="Yes", again="No")
    assert "ASLEEP" in page.text
    assert checks_of(running) == [Checks(1, 1, 1, 1), Checks(1, 0, 1, 0)]
    shown = running.organiser().get("/organise").text
    assert "1 of 1" in shown
    assert "Attention items right" in shown


def test_of_pairs_the_first_is_shown_again_in_the_same_order(opened: Make):
    running = opened("pairs", story_rows(2, 2), repeat=["overall"], more=ATTENTION)
    seen, _ = read_all(running.reader(), check="No", again="Story 2")
    assert len(seen) == 3
    assert ["Please choose No here." in one for one in seen] == [False, True, False]
    stories = [re.findall(r"Tale (\d\d):", one) for one in seen]
    assert stories[2] == stories[0] != stories[1]
    assert checks_of(running) == [Checks(1, 1, 1, 0)]
    assert len(running.given()) == 2 * len(ITEMS)


def test_of_feedback_the_first_piece_is_shown_again(opened: Make):
    running = opened("feedback", repeat=["sanity"], more=ATTENTION)
    seen, page = read_all(running.reader(), check="Yes")
    assert "You have finished" in page.text
    again = [one for one in seen if 'name="again:sanity"' in one]
    assert len(again) == 1
    assert re.findall(r"Point \d", again[0]) == re.findall(r"Point \d", seen[1])
    assert sum("Please choose No here." in one for one in seen) >= 1
    assert checks_of(running) == [Checks(1, 0, 1, 1)]


def test_a_wrong_answer_that_is_let_pass_costs_nothing(opened: Make):
    running = opened("ttcw", attention_wrong=1, more=ATTENTION + CODES)
    _, page = read_all(running.reader(), check="Yes")
    assert "GOOD" in page.text
