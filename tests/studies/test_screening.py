"""What stands before the first unit, what people are told on their way, and how they stop."""

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.commands import invoke, rows_of
from tests.studies.running import ENDING, Make, Running, answer_all, hidden, save, send, tales

from fabula.studies import database as db
from fabula.studies.quality import MOST_MS, Checks, Event, _events, spent_ms, standings

CODES = """
[codes]
done = "https://platform.example/done"
declined = "N0"
failed = "FA1L"
withdrawn = "ST0P"
attention = "ASLEEP"
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
ATTENTION = """
[[attention]]
question = "Please choose No here."
answer = "No"
at = 2
"""


def test_who_does_not_agree_is_asked_nothing_and_may_read_the_text_again(opened: Make):
    running = opened("ttcw", more=CODES)
    client = running.visitor()
    page = client.get("/")
    assert "I do not agree" in page.text
    page = send(client, "/consent", page, agree="no")
    assert "N0" in page.text
    assert client.get("/page/story-1").url.path == "/"
    page = send(client, "/consent", page)
    assert "I agree, go on" in page.text
    # Consent to another text than holds now does not count.
    page = send(client, "/consent", page, agree="yes", version="0" * 8)
    assert "I agree, go on" in page.text
    page = send(client, "/consent", page, agree="yes")
    assert "Begin" in page.text
    said, texts = running.rows(db.consents), running.rows(db.consent_texts)
    assert [row.what for row in said] == ["declined", "agreed"]
    assert {row.version for row in said} == {row.version for row in texts}
    assert [row.text for row in texts] == [running.design.texts.consent]
    assert all(row.at_ms for row in said)


def test_the_quiz_has_two_tries_and_one_sent_twice_counts_once(opened: Make):
    running = opened("feedback", more=CODES)
    right = running.quiz_answers()
    wrong = {f"quiz-{k}": next(o for o in q.options if o != q.answer)
             for k, q in enumerate(running.design.quiz, 1)}  # fmt: skip
    one, other = running.visitor(), running.visitor()
    page = send(one, "/consent", one.get("/"), agree="yes")
    assert "twice" in page.text
    first = hidden(page)
    again = one.post("/quiz", data=first | wrong)
    assert "0 of 3 answers were right" in again.text
    assert "once more" in again.text
    # A double click sends the first try again.
    assert "once more" in one.post("/quiz", data=first | wrong).text
    assert "task is clear" in send(one, "/quiz", again, **right).text
    page = send(other, "/consent", other.get("/"), agree="yes")
    for _ in range(2):
        page = send(other, "/quiz", page, **wrong)
    assert "FA1L" in page.text
    assert "it ends here for you" in page.text
    assert "FA1L" in send(other, "/quiz", other.get("/withdraw"), **right).text
    assert other.get("/page/story", follow_redirects=False).status_code == 303
    assert running.every(db.participants.c.state) == ["ready", "failed"]
    tries = running.rows(db.quiz_tries)
    assert [(row.participant_id, row.n_right) for row in tries] == [(1, 0), (1, 3), (2, 0), (2, 0)]
    assert json.loads(tries[1].given) == list(right.values())


@pytest.mark.parametrize("kind", ["feedback", "ttcw"])
def test_the_tutorial_comes_first_and_can_be_read_again(opened: Make, kind: str):
    client = opened(kind, more=TUTORIAL).visitor()
    page = send(client, "/consent", client.get("/"), agree="yes")
    assert "A fox slept." in page.text
    assert "The fox is." in page.text
    assert "quiz-1" not in page.text
    page = send(client, "/tutorial", page)
    if kind == "ttcw":
        assert page.url.path == "/page/story-1", "there is no quiz"
    else:
        assert "quiz-1" in page.text
        assert "A fox slept." in client.get("/tutorial").text


def test_questions_about_people_are_checked_and_kept_once(opened: Make):
    running = opened("ttcw", more=ABOUT)
    client = running.visitor()
    page = send(client, "/consent", client.get("/"), agree="yes")
    page = send(client, "/about", page, **{"about:age": "7"})
    assert "Please answer this question." in page.text
    assert "a number from 18 to 99" in page.text
    assert 'value="7"' in page.text
    form = hidden(page) | {"about:expertise": "No", "about:age": ""}
    assert "Begin" in client.post("/about", data=form).text
    client.post("/about", data=form | {"about:expertise": "Yes", "about:age": "30"})
    assert running.rows(db.about_answers.c.item, db.about_answers.c.value) == [("expertise", "No")]


@pytest.mark.parametrize("choice", ["keep", "delete"])
def test_who_stops_gives_the_place_back_and_decides_on_their_answers(opened: Make, choice: str):
    running = opened("ttcw", more=CODES)
    client = running.reader()
    page = client.get("/page/story-1")
    assert "p0001" in page.text
    assert "Stop taking part" in page.text
    save(client)
    send(client, "/withdraw", client.get("/withdraw"))
    assert client.get("/page/story-1").url.path == "/page/story-1", "without a choice nothing stops"
    page = send(client, "/withdraw", client.get("/withdraw"), do=choice)
    assert "ST0P" in page.text
    columns = (db.participants.c.state, db.assignments.c.state, db.answers.c.value)
    kept = [running.every(column) for column in (*columns, db.consents.c.what)]
    if choice == "keep":
        assert kept == [["withdrawn"], ["returned"], ["Yes"], ["agreed", "withdrawn"]]
        assert client.get("/page/story-1").url.path == "/"
    else:
        assert kept == [["forgotten"], [], [], []]
        assert client.get("/").status_code == 403


def test_who_comes_again_goes_on_and_the_end_has_a_link_back_to_the_platform(opened: Make):
    running = opened("ttcw", more=CODES)
    first, again = TestClient(running.app), TestClient(running.app)
    address = f"/join?PROLIFIC_PID={7:024x}&SESSION_ID=s"
    send(first, "/consent", first.get(address), agree="yes")
    save(first)
    again.get(address)
    assert 'value="Yes" checked' in again.get("/page/story-1").text
    assert 'href="https://platform.example/done"' in answer_all(again).text


@pytest.fixture
def study(opened: Make) -> Running:
    return opened("ttcw", tales(2, 2), per_participant=2)


def test_everybody_knows_where_they_are_and_how_long_it_takes(study: Running):
    reader = study.reader()
    page = reader.get("/page/story-1").text
    # 2 stories of 14 questions at 45 seconds, 2 of 3 at 15: 22.5 minutes; and a few words.
    where = "Story 1 of 2, Group 1 of 2 at most, about 25 minutes left"
    assert f'<p class="where">{where}</p>' in page
    assert "Your reason, in 4 words or more" in page
    assert "Hand in" not in page
    reader.get("/page/story-2")
    group = reader.get("/page/group")
    assert "Once you hand in, you can no longer change anything." in group.text
    assert "Handed in. This is the next one." in answer_all(reader).text
    assert "Group 2 of 2 at most" in reader.get("/page/story-1").text
    assert "You have finished" in answer_all(reader).text


def test_in_feedback_nothing_tells_how_many_questions_come(opened: Make):
    reader = opened("feedback").reader()
    page = reader.get("/page/story")
    assert '<p class="where">Story 1 of 2 at most</p>' in page.text
    assert "stays as it is" not in page.text
    page = send(reader, "/page/story", page, go="next", **{"unit:own_feedback": "n/a"})
    assert "Once you continue, you can no longer change your answers on this page." in page.text
    assert reader.get("/open").url.path == "/page/feedback"


def test_a_short_reason_is_told_at_its_page_and_once(study: Running):
    reader = study.reader()
    page = reader.get("/page/story-1")
    given = {ENDING: "Yes", f"{ENDING}.why": "So it is."}
    told = "please give your reason, at least 4 words"
    kept = send(reader, "/page/story-1", page, go="", **given)
    assert told in kept.text
    assert "So it is." in kept.text
    assert ">Saved.<" in kept.text, "saved all the same"
    stopped = send(reader, "/page/story-1", page, go="story-2", **given)
    assert told in stopped.text
    assert "Press the button again" in stopped.text
    assert "not answered yet" not in stopped.text, "what is open is nobody's fault yet"
    assert send(reader, "/page/story-1", stopped, go="story-2").url.path == "/page/story-2"
    # Where each answer is sent by itself, a reason is told to be short once it was left.
    form = hidden(reader.get("/page/story-1")) | {f"{ENDING}.why": "It is."}
    assert reader.post("/save", data=form).json()["short"] == {}
    left = reader.post("/save", data=form | {"ended": f"{ENDING}.why"}).json()
    assert told in left["short"][f"{ENDING}.why"]
    assert left["problems"] == {}


def test_the_list_of_what_is_open_leads_to_each_gap_and_back(study: Running):
    reader = study.reader()
    for name in ("story-1", "story-2"):
        page = reader.get(f"/page/{name}")
    assert "/open" not in page.text
    listed = reader.get("/open")
    assert "Nearly done" in listed.text
    assert 'href="/page/story-2?from=open#q-2:narrative_ending"' in listed.text
    page = reader.get("/page/story-2?from=open")
    assert "Back to what is open" in page.text
    field = "2:narrative_ending"
    answered = {field: "No", f"{field}.why": "It ends too soon."}
    back = send(reader, "/page/story-2", page, go="open", **answered)
    assert back.url.path == "/open"
    assert "#q-2:narrative_ending" not in back.text
    done = answer_all(reader, "open")
    assert "Everything is answered" in done.text
    assert "Handed in" in send(reader, "/page/group", done, go="finish").text


def test_time_is_counted_by_page_and_no_gap_is_left_out(study: Running, tmp_path: Path):
    reader = study.reader()
    page = reader.get("/page/story-1")
    reader.get("/page/story-2")
    send(reader, "/save", page, **{ENDING: "Yes"})
    # A minute before the first page, an hour on it, two minutes on the second, and the answer on
    # the first: by hand, the hour counts ten minutes.
    with study.store.writing() as connection:
        start = 1_000_000
        connection.execute(db.assignments.update().values(given_ms=start))
        for number, at in ((1, 60_000), (2, 3_660_000)):
            view = db.page_views.c.id == number
            connection.execute(db.page_views.update().where(view).values(at_ms=start + at))
        connection.execute(db.answers.update().values(saved_ms=start + 3_780_000))
    with study.store.reading() as connection:
        ((_, events),) = _events(connection, {})
    assert sum(spent_ms(events).values()) == 60_000 + MOST_MS + 120_000
    assert spent_ms([Event(5, "a")]) == {}
    times = tmp_path / "t.jsonl"
    invoke("study", "export", study.design.path, "--out", tmp_path / "o.jsonl", "--times", times)
    names = ("rater", "page", "seconds", "n_opened", "n_saved")
    assert [tuple(row[name] for name in names) for row in rows_of(times)] == [
        ("p0001", "story-1", 600.0, 1, 1), ("p0001", "story-2", 120.0, 1, 0),
    ]  # fmt: skip


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
    seen, page = running.read_all(good, check="No")
    assert "platform.example/done" in page.text
    assert [("Please choose No here." in one, 'name="again:' in one) for one in seen] == [
        (False, False), (True, False), (False, True), (False, False),
    ]  # fmt: skip
    tale = re.compile(r"Tale 0\d")
    assert tale.findall(seen[2]) == tale.findall(seen[0])
    _, page = running.read_all(bad, check="Yes", again="No")
    assert "ASLEEP" in page.text
    assert checks_of(running) == [Checks(1, 1, 1, 1), Checks(1, 0, 1, 0)]
    shown = running.organiser().get("/organise").text
    assert "1 of 1" in shown
    assert "Attention items right" in shown


def test_of_pairs_the_first_is_shown_again_in_the_same_order(opened: Make):
    running = opened("pairs", tales(2, 2), repeat=["overall"], more=ATTENTION)
    seen, _ = running.read_all(running.reader(), check="No", again="Story 2")
    assert len(seen) == 3
    assert ["Please choose No here." in one for one in seen] == [False, True, False]
    stories = [re.findall(r"Tale (\d\d):", one) for one in seen]
    assert stories[2] == stories[0] != stories[1]
    assert checks_of(running) == [Checks(1, 1, 1, 0)]
    assert len(running.given()) == 2 * 3


def test_of_feedback_the_first_piece_is_shown_again(opened: Make):
    running = opened("feedback", repeat=["sanity"], more=ATTENTION)
    seen, page = running.read_all(running.reader(), check="Yes")
    assert "You have finished" in page.text
    again = [one for one in seen if 'name="again:sanity"' in one]
    assert len(again) == 1
    assert re.findall(r"Point \d", again[0]) == re.findall(r"Point \d", seen[1])
    assert sum("Please choose No here." in one for one in seen) >= 1
    assert checks_of(running) == [Checks(1, 0, 1, 1)]


def test_a_wrong_answer_that_is_let_pass_costs_nothing(opened: Make):
    running = opened("ttcw", attention_wrong=1, more=ATTENTION + CODES)
    _, page = running.read_all(running.reader(), check="Yes")
    assert "platform.example/done" in page.text
