"""The server without a browser: what it takes, what it refuses, what it never loses."""

import re
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.studies.running import ENDING, Make, Running, answer_all, csrf, hidden, save, send, tales

from fabula.studies.app import create_app
from fabula.studies.database import answers, assignments, audit, participants
from fabula.studies.views import current_answers


@pytest.fixture
def feedback(opened: Make) -> Running:
    return opened("feedback")


def test_only_the_invited_get_in_and_only_their_own_forms_count(study: Running):
    stranger = TestClient(study.app, raise_server_exceptions=False)
    for path in ("/", "/page/story-1", "/i/guess", "/join?PROLIFIC_PID=x"):
        found = stranger.get(path)
        assert found.status_code == 403
        assert "Traceback" not in found.text
    reader = study.reader()
    page = reader.get("/page/story-1")
    for wrong in ("", csrf(page)[::-1], csrf(study.reader().get("/page/story-1"))):
        assert send(reader, "/save", page, csrf=wrong, **{ENDING: "Yes"}).status_code == 403
    assert study.given() == {}
    assert send(reader, "/save", page, **{ENDING: "Yes"}).json()["problems"] == {}
    assert list(study.given().values()) == [1.0]


def test_every_answer_is_a_safe_one(study: Running):
    found = study.reader().get("/page/story-1")
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert found.headers["referrer-policy"] == "no-referrer"
    assert found.headers["cache-control"] == "no-store"
    client = TestClient(study.app, base_url="https://study", raise_server_exceptions=False)
    found = client.get(f"/i/{study.invited()[0]}", follow_redirects=False)
    cookie = found.headers["set-cookie"]
    for flag in ("HttpOnly", "Secure", "SameSite=lax"):
        assert flag in cookie
    for path in ("/static/", "/static/../app.py", "/static/%2e%2e%2fapp.py", "/openapi.json"):
        assert client.get(path).status_code in (403, 404)
    assert client.get("/static/study.css").status_code == 200


def test_too_much_is_refused(study: Running):
    reader = study.reader()
    form = hidden(reader.get("/page/story-1"))
    assert reader.post("/save", data=form | {ENDING: "x" * 300_000}).status_code == 413
    long = reader.post("/save", data=form | {f"{ENDING}.why": "word " * 2_000}).json()
    assert "at most" in long["problems"][f"{ENDING}.why"]
    wrong = reader.post("/save", data=form | {ENDING: "Perhaps", "9:x": "y", "nonsense": "z"})
    assert set(wrong.json()["problems"]) == {ENDING}
    assert study.given() == {}


def test_a_stale_page_does_not_undo_newer_answers(running: Running):
    reader = running.reader()
    old = hidden(reader.get("/page/story-1"))
    other = "1:scene_vs_summary"
    # One tab answers two questions, and thinks better of one of them.
    reader.post("/save", data=old | {ENDING: "Yes"})
    newer = reader.post("/save", data=old | {other: "Yes"}).json()["revision"]
    reader.post("/save", data=old | {"revision": str(newer), ENDING: "No"})
    # The other tab, which knows nothing of that, sends its whole form with one answer changed.
    page = reader.post("/page/story-1", data=old | {other: "No", f"{ENDING}.why": "", "go": ""})
    assert page.status_code == 200
    values = {item: value for (_, item), value in running.given().items()}
    assert values == {"narrative_ending": 0.0, "scene_vs_summary": 0.0}
    # Sent twice, by a double click or a retry, it is kept once.
    reader.post("/page/story-1", data=old | {other: "No", "go": ""})
    assert running.rows(answers.c.item, answers.c.value) == [
        ("narrative_ending", "Yes"), ("scene_vs_summary", "Yes"),
        ("narrative_ending", "No"), ("scene_vs_summary", "No"),
    ]  # fmt: skip


def test_a_group_is_handed_in_only_when_all_is_answered(running: Running):
    reader = running.reader()
    assert reader.get("/page/group").url.path == "/page/story-1", "not before all were opened"
    early = reader.get("/page/group")
    assert early.url.path == "/page/story-2"
    assert "Please open every story first" in early.text
    form = hidden(reader.get("/page/group"))
    early = reader.post("/page/group", data=form | {"go": "finish"})
    assert "not answered yet" in early.text
    assert "You have finished" in answer_all(reader).text
    assert "You have finished" in reader.get("/page/story-1").text, "handed in is handed in"
    late = reader.post("/save", data=form | {ENDING: "No"}, follow_redirects=False)
    assert late.status_code == 303
    given = running.given()
    assert len(given) == 2 * 14 + 2 * 4
    ranks = sorted(value for (_, item), value in given.items() if item == "preference")
    assert ranks == [1.0, 2.0]


def test_answers_are_of_the_story_that_was_shown(running: Running):
    for _ in range(running.design.raters):
        reader = running.reader()
        page = reader.get("/page/story-1")
        shown = next(d.id for d in running.units[0].documents if d.text[:7] in page.text)
        send(reader, "/save", page, **{ENDING: "Yes", f"{ENDING}.why": f"Of {shown}"})
    said = [one for one in running.measured(unfinished=True) if one.rationale]
    assert [one.rationale for one in said] == [f"Of {one.document_id}" for one in said] != []


def test_what_was_answered_before_the_reveal_stays(feedback: Running):
    reader = next(one for one in (feedback.reader(), feedback.reader())
                  if "CHANGED" in one.get("/").text)  # fmt: skip
    send(
        reader, "/page/story", reader.get("/page/story"), go="next", **{"unit:own_feedback": "n/a"}
    )
    early = reader.get("/page/change")
    assert "WHOLE" not in early.text, "not before the other questions are answered"
    given = {"sanity": "Only feedback", "feedback_type": "Suggestions", "correctness": "All of it",
             "error_detection": "Yes", "specificity": "Yes"}  # fmt: skip

    def answer(item: str, value: str) -> Any:
        saved = send(reader, "/save", reader.get("/page/feedback"), **{f"unit:{item}": value})
        return saved.json()["problems"]

    assert [answer(*one) for one in given.items()] == [{}] * 5
    answer("sanity", "No feedback")
    with feedback.store.reading() as connection:
        now, _ = current_answers(connection, feedback.rows(assignments.c.id)[-1][0])
    assert ("unit", "correctness") not in now, "retired"
    for one in given.items():
        answer(*one)
    assert "WHOLE" in reader.get("/page/change").text
    assert "no longer" in answer("correctness", "None of it")["unit:correctness"]


def test_organisers_need_the_password_and_leave_a_trace(running: Running):
    client = TestClient(running.app, raise_server_exceptions=False)
    assert "Password" in client.get("/organise").text
    assert client.post("/organise/invite", data={"n": "1"}).url.path == "/organise/login"
    assert client.post("/organise/login", data={"password": "guess"}).status_code == 401
    page = client.post("/organise/login", data={"password": "secret"})
    assert "Nobody is invited yet" in page.text
    assert client.post("/organise/invite", data={"n": "2"}).status_code == 403
    page = client.post("/organise/invite", data={"n": "2", "csrf": csrf(page)})
    for name in ("invite", "pause", "remove", "logout"):
        assert f'action="/organise/{name}"' in page.text
    assert "You have finished" in answer_all(running.reader()).text
    exported = client.get(re.findall(r'href="(/organise/export[^"]*)"', page.text)[0])
    assert len(exported.text.splitlines()) == len(running.measured()) > 0
    client.post("/organise/pause", data={"csrf": csrf(page), "pause": "yes"})
    assert "The study is paused" in running.reader().get("/").text
    page = client.post("/organise/remove", data={"csrf": csrf(page), "id": "3"})
    assert "Remove p0003?" in page.text
    page = send(client, "/organise/remove", page)
    assert "p0003: " not in page.text
    unknown = {"csrf": csrf(page), "id": "99", "sure": "yes"}
    assert client.post("/organise/remove", data=unknown).status_code == 404
    codes = [client.post("/organise/login", data={"password": "x"}).status_code for _ in range(12)]
    assert codes[-1] == 429
    done = {"login", "login refused", "invite", "pause", "remove", "export"}
    assert done <= set(running.every(audit.c.what))


def test_who_reads_longer_than_the_hours_still_hands_in(running: Running):
    reader = running.reader()
    form = hidden(reader.get("/page/story-1"))
    running.set(assignments, seen_ms=0)
    assert running.reader().get("/").status_code == 200
    assert running.every(assignments.c.state) == ["returned", "open"]
    page = reader.post("/page/story-1", data=form | {ENDING: "Yes", "go": ""})
    assert "Saved" in page.text
    assert list(running.given().values()) == [1.0]


def test_who_finds_nothing_to_read_gets_no_code(opened: Make):
    running = opened("ttcw", more='[codes]\ndone = "C0DE"\n', raters=1)
    first, second, again = (TestClient(running.app) for _ in range(3))
    send(first, "/consent", first.get(f"/join?PROLIFIC_PID={0:024x}"))
    # The place is taken from consent on: who comes now is not asked for theirs.
    page = second.get(f"/join?PROLIFIC_PID={1:024x}")
    assert "I agree" not in page.text
    assert "C0DE" not in page.text
    assert "Nothing is left to read" in page.text
    # A second click on the platform's link does not shut out the tab of the first.
    again.get(f"/join?PROLIFIC_PID={0:024x}")
    save(first)
    for wrong in ("x", "%00", "../../etc", "0" * 400):
        assert TestClient(running.app).get(f"/join?PROLIFIC_PID={wrong}").status_code == 403


def test_every_form_needs_its_page_and_every_page_of_the_organiser_a_login(study: Running):
    described = study.app.openapi()["paths"]
    paths = {re.sub(r"{\w+}", "1", path): kinds for path, kinds in described.items()}
    open_to_all = {"/health", "/static/1", "/favicon.ico", "/organise/login"}
    stranger = TestClient(study.app, follow_redirects=False, raise_server_exceptions=False)
    stranger.cookies.set(f"fabula_organiser_{study.design.id}", "guess")
    reader, organiser = study.reader(), study.organiser()
    wrong = {"csrf": csrf(reader.get("/page/story-1"))[::-1]}
    assert len(paths) > 20
    for path in paths.keys() - open_to_all:
        is_organisers = path.startswith("/organise")
        refused = (303, "/organise/login") if is_organisers else (403, None)
        for kind in paths[path]:
            found = stranger.request(kind, path)
            assert (found.status_code, found.headers.get("location")) == refused, path
        if "post" in paths[path]:
            known = organiser if is_organisers else reader
            for data in ({}, {"csrf": "guess"}, wrong):
                assert known.post(path, data=data).status_code == 403, path


def test_a_login_makes_a_session_of_its_own_and_its_end_is_one(study: Running):
    name = f"fabula_organiser_{study.design.id}"
    client = TestClient(study.app, follow_redirects=False, base_url="https://study")
    planted = {"cookie": f"{name}=planted"}
    found = client.post("/organise/login", data={"password": "secret"}, headers=planted)
    for flag in ("HttpOnly", "Secure", "SameSite=strict", "Path=/organise"):
        assert flag in found.headers["set-cookie"]
    first = client.cookies[name]
    assert first != "planted"
    page = client.get("/organise")
    assert page.status_code == 200

    def enters(token: str, app: Any = study.app) -> bool:
        browser = TestClient(app, follow_redirects=False)
        return browser.get("/organise", headers={"cookie": f"{name}={token}"}).status_code == 200

    assert enters(first)
    assert not enters("planted")
    # A session ends with the password by which it began, and at the logout.
    other = create_app(study.design, study.units, study.store, password="another")
    assert not enters(first, other)
    client.post("/organise/logout", data={"csrf": csrf(page)})
    assert not enters(first)


def test_a_form_sets_answers_and_nothing_else(running: Running):
    reader, other = running.reader(), running.reader()
    other.get("/page/story-1")
    form = hidden(reader.get("/page/story-1"))
    more = {"participant_id": "2", "assignment_id": "2", "state": "done", "value": "9",
            "platform_id": "x", "note": "mine", "id": "2", "n_right": "9"}  # fmt: skip
    assert reader.post("/save", data=form | more | {ENDING: "Yes"}).json()["problems"] == {}
    held = running.rows(assignments.c.participant_id, assignments.c.state)
    assert sorted(held) == [(1, "open"), (2, "open")]
    assert len(running.rows(answers)) == 1
    people = {(one.state, one.note, one.platform_id) for one in running.rows(participants)}
    assert people == {("ready", "", None)}
    # Another unit than one's own cannot be named.
    sent = reader.post("/save", data=form | {"unit": "2", ENDING: "No"}, follow_redirects=False)
    assert sent.status_code == 303


def test_no_word_of_a_request_becomes_a_header_or_a_place_to_go(study: Running):
    evil = "x%0d%0aSet-Cookie:%20a=b"
    reader = study.reader()
    reader.get("/page/story-1")
    reader.follow_redirects = False
    for path in (f"/?after={evil}", f"/?after=//evil.example&next={evil}", f"/page/{evil}",
                 f"/i/{evil}", f"/join?PROLIFIC_PID={evil}", f"/organise/{evil}",
                 f"/organise?show={evil}"):  # fmt: skip
        found = reader.get(path, headers={"host": "evil.example"})
        assert found.status_code in (303, 403, 404), path
        assert "set-cookie" not in found.headers
        where = found.headers.get("location", "/")
        assert where.startswith("/")
        assert "evil" not in where
        assert "evil.example" not in found.text


def test_guesses_of_the_password_from_many_addresses_are_slowed_together(
    feedback: Running, monkeypatch: pytest.MonkeyPatch
):
    # However long this machine takes, no time passes, in which three more would be let through.
    monkeypatch.setattr("fabula.web.guard.time", SimpleNamespace(monotonic=lambda: 0.0))
    # Of 300 guesses 270 have come from elsewhere.
    _, everybody = feedback.app.state.tries
    assert all(everybody.take("all") for _ in range(270))
    codes = []
    for number in range(4):
        client = TestClient(feedback.app, client=(f"192.0.2.{number}", 5))
        guess = partial(client.post, "/organise/login", data={"password": "guess"})
        codes += [guess().status_code for _ in range(10)]
    assert codes == [401] * 30 + [429] * 10


def test_a_hostile_story_shows_as_text(opened: Make):
    hostile = "</p></textarea><script>a()</script><img src=x onerror=b()>{{ 7*7 }}"
    rows = [row | {"text": f"{hostile} {row['text']}"} for row in tales(1, 2)]
    reader = opened("ttcw", rows).reader()
    page = reader.get("/page/story-1")
    why = {ENDING: "Yes", f"{ENDING}.why": hostile}
    again = send(reader, "/page/story-1", page, **why)
    saved = send(reader, "/save", again, page="story-1", shown="x", **why)
    for found in (page.text, again.text, str(saved.json()["html"])):
        assert "<script>a" not in found
        assert "<img" not in found
    assert "&lt;script&gt;" in page.text
    assert "{{ 7*7 }}" in page.text
