"""What stands before the first unit, and how somebody stops."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from starlette.testclient import TestClient
from tests.commands import write_rows
from tests.studies.test_app import Running, csrf, hidden
from tests.studies_data import feedback_rows, story_rows

from fabula.core.errors import InputError
from fabula.studies.database import (
    about_answers,
    answers,
    assignments,
    consent_texts,
    consents,
    participants,
    quiz_tries,
)
from fabula.studies.design import AboutQuestion, load_study, new_study

CODES = """
[codes]
done = "https://platform.example/done"
declined = "N0"
failed = "FA1L"
withdrawn = "ST0P"
"""
TUTORIAL = """
[[tutorial]]
text = "Story: A fox slept."
question = "Is anybody asleep?"
answer = "Yes"
why = "The fox is."
"""
ABOUT = """
[[about]]
id = "expertise"
question = "Have you published fiction?"
options = ["Yes", "No"]
required = true

[[about]]
id = "age"
question = "How old are you?"
low = 18
high = 99
"""
Make = Callable[..., Running]


@pytest.fixture
def made(opened: Make) -> Make:
    """Makes a study of a kind whose file has more at its end."""

    def make(kind: Any, more: str, url: str | None = None) -> Running:
        rows = story_rows(1, 2) if kind == "ttcw" else feedback_rows()
        return opened(kind, rows, url, lambda text: text + more)

    return make


def say(client: TestClient, path: str, page: httpx.Response, **fields: str) -> httpx.Response:
    return client.post(path, data=hidden(page) | fields)


def test_who_does_not_agree_is_asked_nothing_and_may_read_the_text_again(made: Make):
    running = made("ttcw", CODES)
    client = running.visitor()
    page = client.get("/")
    assert "I do not agree" in page.text
    page = say(client, "/consent", page, agree="no")
    assert "N0" in page.text
    assert client.get("/page/story-1").url.path == "/"
    page = say(client, "/consent", page)
    assert "I agree, go on" in page.text
    page = say(client, "/consent", page, agree="yes")
    assert "Begin" in page.text
    with running.store.reading() as connection:
        said = connection.execute(select(consents).order_by(consents.c.id)).all()
        texts = connection.execute(select(consent_texts)).all()
    assert [row.what for row in said] == ["declined", "agreed"]
    assert {row.version for row in said} == {row.version for row in texts}
    assert [row.text for row in texts] == [running.design.texts.consent]
    assert all(row.at_ms for row in said)


def test_consent_to_another_text_than_holds_now_does_not_count(made: Make):
    running = made("ttcw", "")
    client = running.visitor()
    page = client.get("/")
    again = client.post("/consent", data=hidden(page) | {"version": "0" * 8, "agree": "yes"})
    assert "I agree, go on" in again.text
    with running.store.reading() as connection:
        assert connection.execute(select(consents)).all() == []


def test_the_quiz_has_two_tries_and_one_sent_twice_counts_once(made: Make):
    running = made("feedback", CODES)
    wrong = {
        f"quiz-{k}": next(o for o in q.options if o != q.answer)
        for k, q in enumerate(running.design.quiz, 1)
    }
    right = {f"quiz-{k}": q.answer for k, q in enumerate(running.design.quiz, 1)}
    one, other = running.visitor(), running.visitor()
    page = say(one, "/consent", one.get("/"), agree="yes")
    assert "twice" in page.text
    first = hidden(page)
    again = one.post("/quiz", data=first | wrong)
    assert "0 of 3 answers were right" in again.text
    assert "once more" in again.text
    # A double click sends the first try again.
    assert "once more" in one.post("/quiz", data=first | wrong).text
    assert "task is clear" in one.post("/quiz", data=hidden(again) | right).text
    page = say(other, "/consent", other.get("/"), agree="yes")
    page = other.post("/quiz", data=hidden(page) | wrong)
    page = other.post("/quiz", data=hidden(page) | wrong)
    assert "FA1L" in page.text
    assert "FA1L" in other.post("/quiz", data={"csrf": csrf(other.get("/withdraw")), **right}).text
    with running.store.reading() as connection:
        states = connection.execute(select(participants.c.state).order_by(participants.c.id))
        assert list(states.scalars()) == ["ready", "failed"]
        tries = connection.execute(select(quiz_tries).order_by(quiz_tries.c.id)).all()
    assert [(row.participant_id, row.n_right) for row in tries] == [(1, 0), (1, 3), (2, 0), (2, 0)]
    assert json.loads(tries[1].given) == list(right.values())


def test_the_tutorial_comes_first_and_can_be_read_again(made: Make):
    running = made("feedback", TUTORIAL)
    client = running.visitor()
    page = say(client, "/consent", client.get("/"), agree="yes")
    assert "A fox slept." in page.text
    assert "The fox is." in page.text
    assert "quiz-1" not in page.text
    page = say(client, "/tutorial", page)
    assert "quiz-1" in page.text
    assert "A fox slept." in client.get("/tutorial").text


def test_without_a_quiz_the_tutorial_stands_before_the_first_unit(made: Make):
    running = made("ttcw", TUTORIAL)
    client = running.visitor()
    page = say(client, "/consent", client.get("/"), agree="yes")
    assert "A fox slept." in page.text
    assert say(client, "/tutorial", page).url.path == "/page/story-1"


def test_questions_about_people_are_checked_and_kept_once(made: Make):
    running = made("ttcw", ABOUT)
    client = running.visitor()
    page = say(client, "/consent", client.get("/"), agree="yes")
    page = client.post("/about", data=hidden(page) | {"about:age": "7"})
    assert "Please answer this question." in page.text
    assert "a number from 18 to 99" in page.text
    assert 'value="7"' in page.text
    form = hidden(page) | {"about:expertise": "No", "about:age": ""}
    assert "Begin" in client.post("/about", data=form).text
    client.post("/about", data=form | {"about:expertise": "Yes", "about:age": "30"})
    with running.store.reading() as connection:
        kept = connection.execute(select(about_answers)).all()
    assert [(row.item, row.value) for row in kept] == [("expertise", "No")]


@pytest.mark.parametrize("choice", ["keep", "delete"])
def test_who_stops_gives_the_place_back_and_decides_on_their_answers(made: Make, choice: str):
    running = made("ttcw", CODES)
    client = running.reader()
    page = client.get("/page/story-1")
    assert "p0001" in page.text
    assert "Stop taking part" in page.text
    client.post("/save", data=hidden(page) | {"1:narrative_ending": "Yes"})
    page = say(client, "/withdraw", client.get("/withdraw"), do=choice)
    assert "ST0P" in page.text
    with running.store.reading() as connection:
        (state,) = connection.execute(select(participants.c.state)).scalars()
        held = list(connection.execute(select(assignments.c.state)).scalars())
        n = len(connection.execute(select(answers)).all())
        said = [row.what for row in connection.execute(select(consents))]
    if choice == "keep":
        assert (state, held, n, said) == ("withdrawn", ["returned"], 1, ["agreed", "withdrawn"])
        assert client.get("/page/story-1").url.path == "/"
    else:
        assert (state, held, n, said) == ("forgotten", [], 0, [])
        assert client.get("/").status_code == 403


def test_a_form_about_stopping_without_a_choice_stops_nothing(made: Make):
    running = made("ttcw", "")
    client = running.reader()
    say(client, "/withdraw", client.get("/withdraw"))
    assert client.get("/page/story-1").url.path == "/page/story-1"


def test_the_end_has_a_link_back_to_the_platform(made: Make):
    running = made("ttcw", CODES)
    client = TestClient(running.app)
    page = client.get(f"/join?PROLIFIC_PID={7:024x}")
    say(client, "/consent", page, agree="yes")
    client.get("/page/story-1")
    with running.store.writing() as connection:
        connection.execute(assignments.update().values(state="done", done_ms=1))
    assert 'href="https://platform.example/done"' in client.get("/").text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[codes]\ndone = 'http://platform.example'\n", "codes: done: .* begins with https://"),
        (ABOUT.replace('"age"', '"expertise"'), "two questions have this id"),
        (ABOUT.replace('["Yes", "No"]', '["Yes"]'), "about: expertise: a choice needs"),
        (ABOUT.replace("high = 99", ""), "about: age: a number needs low and high"),
        ("[codes]\nfinished = 'X'\n", "codes.finished"),
    ],
)
def test_what_cannot_be_asked_is_said_with_its_field(tmp_path: Path, more: str, words: str):
    data = write_rows(tmp_path / "documents.jsonl", story_rows(1, 2))
    new_study(tmp_path / "study.toml", "ttcw", data)
    file = tmp_path / "study.toml"
    file.write_text(file.read_text() + more)
    with pytest.raises(InputError, match=words):
        load_study(file)


def test_questions_about_participants_are_part_of_a_study_s_digest(made: Make):
    design = made("ttcw", CODES).design
    about = (AboutQuestion(id="age", question="Old?"),)
    asked = replace(design, people=design.people.model_copy(update={"about": about}))
    assert asked.digest != design.digest
