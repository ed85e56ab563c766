"""The server without a browser: what it takes, what it refuses, what it never loses."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from starlette.testclient import TestClient
from tests.commands import write_rows
from tests.studies_data import feedback_rows, story_rows

from fabula.studies.app import create_app
from fabula.studies.database import Store, answers, assignments, audit, participants
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.exporting import export
from fabula.studies.participants import invite
from fabula.studies.study_engine import open_store
from fabula.studies.units import Unit, read_units
from fabula.studies.views import current_answers


@dataclass
class Running:
    """A study in this process."""

    design: StudyDesign
    units: list[Unit]
    store: Store
    app: Any

    def visitor(self) -> TestClient:
        """Somebody who was invited, with their cookie."""
        with self.store.writing() as connection:
            (token,) = invite(connection, 1, "test")
        client = TestClient(self.app, follow_redirects=True, raise_server_exceptions=False)
        assert client.get(f"/i/{token}").status_code == 200
        return client

    def reader(self) -> TestClient:
        """Somebody who agreed."""
        client = self.visitor()
        page = client.get("/")
        page = client.post("/consent", data={"csrf": csrf(page)})
        if "quiz-1" in page.text:
            right = {f"quiz-{k}": q.answer for k, q in enumerate(self.design.quiz, 1)}
            client.post("/quiz", data={"csrf": csrf(page), **right})
        return client

    def given(self) -> dict[tuple[str, str], Any]:
        with self.store.reading() as connection:
            units = {unit.key: unit for unit in self.units}
            found = list(export(connection, self.design, units, unfinished=True))
        return {(one.document_id, one.item): one.value for one in found if one.value is not None}


def csrf(page: httpx.Response) -> str:
    match = re.search(r'name="csrf" value="(\w+)"', page.text)
    assert match, page.text
    return match[1]


def hidden(page: httpx.Response) -> dict[str, str]:
    """The form's own fields."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text))


def make(
    folder: Path, kind: Any, rows: list[dict[str, Any]], url: str | None = None,
    change: Callable[[str], str] = str,
) -> Running:  # fmt: skip
    """A study whose file is changed before it is read."""
    data = write_rows(folder / "documents.jsonl", rows)
    file = folder / "study.toml"
    file.unlink(missing_ok=True)
    new_study(file, kind, data)
    file.write_text(change(file.read_text()))
    design = load_study(file)
    units = read_units(design)
    store = open_store(design, units, url)
    return Running(design, units, store, create_app(design, units, store, password="secret"))


@pytest.fixture
def ttcw(running: Running) -> Running:
    return running


@pytest.fixture
def feedback(opened: Callable[..., Running]) -> Running:
    return opened("feedback", feedback_rows())


ENDING = "1:narrative_ending"


def test_only_the_invited_get_in_and_only_their_own_forms_count(ttcw: Running):
    stranger = TestClient(ttcw.app, raise_server_exceptions=False)
    for path in ("/", "/page/story-1", "/i/guess", "/join?PROLIFIC_PID=x"):
        found = stranger.get(path)
        assert found.status_code == 403
        assert "Traceback" not in found.text
    assert stranger.post("/save", data={}).status_code == 403
    reader = ttcw.reader()
    page = reader.get("/page/story-1")
    form = hidden(page) | {ENDING: "Yes"}
    for wrong in ("", "x", csrf(page)[::-1], csrf(ttcw.reader().get("/page/story-1"))):
        assert reader.post("/save", data=form | {"csrf": wrong}).status_code == 403
    assert ttcw.given() == {}
    assert reader.post("/save", data=form).json()["problems"] == {}
    assert list(ttcw.given().values()) == [1.0]


def test_every_answer_is_a_safe_one(ttcw: Running):
    found = ttcw.reader().get("/page/story-1")
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert found.headers["referrer-policy"] == "no-referrer"
    assert found.headers["cache-control"] == "no-store"
    assert "server" not in found.headers
    client = TestClient(ttcw.app, base_url="https://study", raise_server_exceptions=False)
    with ttcw.store.writing() as connection:
        (token,) = invite(connection, 1, "test")
    cookie = client.get(f"/i/{token}", follow_redirects=False).headers["set-cookie"]
    for flag in ("HttpOnly", "Secure", "SameSite=lax"):
        assert flag in cookie
    for path in ("/static/", "/static/../app.py", "/static/%2e%2e%2fapp.py", "/openapi.json"):
        assert client.get(path).status_code in (403, 404)
    assert client.get("/static/study.css").status_code == 200


def test_too_much_is_refused(ttcw: Running):
    reader = ttcw.reader()
    form = hidden(reader.get("/page/story-1"))
    assert reader.post("/save", data=form | {ENDING: "x" * 300_000}).status_code == 413
    long = reader.post("/save", data=form | {f"{ENDING}.why": "word " * 2_000}).json()
    assert "at most" in long["problems"][f"{ENDING}.why"]
    wrong = reader.post("/save", data=form | {ENDING: "Perhaps", "9:x": "y", "nonsense": "z"})
    assert set(wrong.json()["problems"]) == {ENDING}
    assert ttcw.given() == {}


def test_a_stale_page_does_not_undo_newer_answers(ttcw: Running):
    reader = ttcw.reader()
    old = hidden(reader.get("/page/story-1"))
    other = "1:scene_vs_summary"
    # One tab answers two questions, and thinks better of one of them.
    reader.post("/save", data=old | {ENDING: "Yes"})
    newer = reader.post("/save", data=old | {other: "Yes"}).json()["revision"]
    reader.post("/save", data=old | {"revision": str(newer), ENDING: "No"})
    # The other tab, which knows nothing of that, sends its whole form with one answer changed.
    page = reader.post("/page/story-1", data=old | {other: "No", f"{ENDING}.why": "", "go": ""})
    assert page.status_code == 200
    values = {item: value for (_, item), value in ttcw.given().items()}
    assert values == {"narrative_ending": 0.0, "scene_vs_summary": 0.0}
    # Sent twice, by a double click or a retry, it is kept once.
    reader.post("/page/story-1", data=old | {other: "No", "go": ""})
    with ttcw.store.reading() as connection:
        history = connection.execute(select(answers.c.item, answers.c.value)).all()
    assert [tuple(row) for row in history] == [
        ("narrative_ending", "Yes"), ("scene_vs_summary", "Yes"),
        ("narrative_ending", "No"), ("scene_vs_summary", "No"),
    ]  # fmt: skip


def answer_all(reader: TestClient, names: list[str]) -> httpx.Response:
    """Fill in every page as a browser without JavaScript does, and hand in."""
    page = reader.get("/page/story-1")
    for k, name in enumerate(names):
        page = reader.get(f"/page/{name}")
        form = hidden(page)
        for field, value in re.findall(r'type="radio" name="([^"]+)" value="([^"]*)"', page.text):
            form.setdefault(field, value)
            if field.endswith(":preference"):
                form[field] = field.partition(":")[0]
        for field in re.findall(r'<textarea[^>]* name="([^"]+)"', page.text):
            form[field] = "For these reasons I say so."
        go = names[k + 1] if k + 1 < len(names) else "finish"
        page = reader.post(f"/page/{name}", data=form | {"go": go})
    return page


def test_a_group_is_handed_in_only_when_all_is_answered(ttcw: Running):
    reader = ttcw.reader()
    names = ["story-1", "story-2", "group"]
    assert reader.get("/page/group").url.path == "/page/story-1", "not before all were opened"
    early = reader.get("/page/group")
    assert early.url.path == "/page/story-2"
    assert "Please open every story first" in early.text
    form = hidden(reader.get("/page/group"))
    early = reader.post("/page/group", data=form | {"go": "finish"})
    assert "not answered yet" in early.text
    assert "You have finished" in answer_all(reader, names).text
    assert "You have finished" in reader.get("/page/story-1").text, "handed in is handed in"
    late = reader.post("/save", data=form | {ENDING: "No"}, follow_redirects=False)
    assert late.status_code == 303
    given = ttcw.given()
    assert len(given) == 2 * 14 + 2 * 4
    ranks = sorted(value for (_, item), value in given.items() if item == "preference")
    assert ranks == [1.0, 2.0]


def test_answers_are_of_the_story_that_was_shown(ttcw: Running):
    for _ in range(ttcw.design.raters):
        reader = ttcw.reader()
        page = reader.get("/page/story-1")
        shown = next(d.id for d in ttcw.units[0].documents if d.text[:7] in page.text)
        reader.post("/save", data=hidden(page) | {ENDING: "Yes", f"{ENDING}.why": f"Of {shown}"})
    with ttcw.store.reading() as connection:
        units = {unit.key: unit for unit in ttcw.units}
        for one in export(connection, ttcw.design, units, unfinished=True):
            if one.rationale:
                assert one.rationale == f"Of {one.document_id}"


def walk_feedback(reader: TestClient, chosen: dict[str, str]) -> list[str]:
    """The questions that come, in order, when these answers are given (else the first one)."""
    asked = []
    page = reader.get("/")
    for _ in range(12):
        form = hidden(page)
        fields = dict(
            re.findall(r'type="radio" name="unit:(\w+)" value="([^"]*)"', page.text)[::-1]
        )
        if "own_feedback" in page.text:
            form["unit:own_feedback"] = "n/a"
        for item, first in fields.items():
            form[f"unit:{item}"] = chosen.get(item, first)
        before = page
        page = reader.post(page.url.path, data=form | {"go": "next"})
        asked += [item for item in fields if item not in asked]
        if form.get("page") == "feedback" and 'name="page" value="story"' in page.text:
            break
        if before.url.path == "/page/change" or "You have finished" in page.text:
            break
    return asked


def test_the_last_question_comes_for_changed_stories_and_locks_what_was_before(feedback: Running):
    reader = feedback.reader()
    suggestions = {"feedback_type": "Suggestions"}
    for _ in range(2):
        page = reader.get("/")
        is_changed = "CHANGED" in page.text
        asked = walk_feedback(reader, suggestions)
        assert ("relevance" in asked) == is_changed
    values = feedback.given()
    assert len({document for document, _ in values}) == 2
    assert sum(item == "relevance" for _, item in values) == 1


def test_what_was_answered_before_the_reveal_stays(feedback: Running):
    for _ in range(2):
        reader = feedback.reader()
        if "CHANGED" not in reader.get("/").text:
            continue
        page = reader.get("/page/story")
        reader.post("/page/story", data=hidden(page) | {"unit:own_feedback": "n/a", "go": "next"})
        early = reader.get("/page/change")
        assert "WHOLE" not in early.text, "not before the other questions are answered"
        page = reader.get("/page/feedback")
        for item, value in (("sanity", "Only feedback"), ("feedback_type", "Suggestions"),
                            ("correctness", "All of it"), ("error_detection", "Yes"),
                            ("specificity", "Yes")):  # fmt: skip
            found = reader.post("/save", data=hidden(page) | {f"unit:{item}": value})
            assert found.json()["problems"] == {}
        reader.post("/save", data=hidden(page) | {"unit:sanity": "No feedback"})
        with feedback.store.reading() as connection:
            now, _ = current_answers(connection, 1)
            assert ("unit", "correctness") not in now, "retired"
        for item, value in (("sanity", "Only feedback"), ("feedback_type", "Suggestions"),
                            ("correctness", "All of it"), ("error_detection", "Yes"),
                            ("specificity", "Yes")):  # fmt: skip
            page = reader.get("/page/feedback")
            reader.post("/save", data=hidden(page) | {f"unit:{item}": value})
        assert "WHOLE" in reader.get("/page/change").text
        page = reader.get("/page/feedback")
        found = reader.post("/save", data=hidden(page) | {"unit:correctness": "None of it"})
        assert "no longer" in found.json()["problems"]["unit:correctness"]
        return
    pytest.fail("nobody was given the changed story")


def test_after_the_last_try_at_the_quiz_nothing_is_open(feedback: Running):
    client = feedback.visitor()
    page = client.post("/consent", data={"csrf": csrf(client.get("/"))})
    wrong = {f"quiz-{k}": q.options[-1] for k, q in enumerate(feedback.design.quiz, 1)}
    for _ in range(feedback.design.people.quiz_tries):
        found = client.post("/quiz", data={"csrf": csrf(page), **wrong})
    assert "it ends here for you" in found.text
    right = {f"quiz-{k}": q.answer for k, q in enumerate(feedback.design.quiz, 1)}
    assert "it ends here" in client.post("/quiz", data={"csrf": csrf(page), **right}).text
    assert client.get("/page/story", follow_redirects=False).status_code == 303


def test_crowd_workers_come_back_to_what_they_began(tmp_path: Path):
    running = make(tmp_path, "ttcw", story_rows(1, 2))
    design = replace(running.design, completion_code="C0DE")
    app = create_app(design, running.units, running.store)
    for number in range(2):
        client = TestClient(app, raise_server_exceptions=False)
        page = client.get("/join?PROLIFIC_PID=0123456789abcdef01234567&SESSION_ID=s")
        if number == 0:
            page = client.post("/consent", data={"csrf": csrf(page)})
            client.post("/save", data=hidden(client.get("/page/story-1")) | {ENDING: "Yes"})
    assert 'value="Yes" checked' in client.get("/page/story-1").text
    assert "C0DE" in answer_all(client, ["story-1", "story-2", "group"]).text
    running.store.close()


def test_organisers_need_the_password_and_leave_a_trace(ttcw: Running):
    client = TestClient(ttcw.app, raise_server_exceptions=False)
    assert "Password" in client.get("/organise").text
    assert client.post("/organise/invite", data={"n": "1"}).url.path == "/organise/login"
    assert client.post("/organise/login", data={"password": "guess"}).status_code == 401
    page = client.post("/organise/login", data={"password": "secret"})
    assert "Nobody is invited yet" in page.text
    assert client.post("/organise/invite", data={"n": "2"}).status_code == 403
    page = client.post("/organise/invite", data={"n": "2", "csrf": csrf(page), "note": "<b>x"})
    links = re.findall(r"http://testserver(/i/[\w-]+)", page.text)
    assert len(links) == 2
    assert "&lt;b&gt;x" in page.text
    assert ttcw.reader().get("/page/story-1").status_code == 200
    client.post("/organise/pause", data={"csrf": csrf(page), "pause": "yes"})
    assert "The study is paused" in ttcw.reader().get("/").text
    page = client.post("/organise/remove", data={"csrf": csrf(page), "id": "3"})
    assert "Remove p0003?" in page.text
    page = client.post("/organise/remove", data=hidden(page))
    assert "p0003: " not in page.text
    assert (
        client.post(
            "/organise/remove", data={"csrf": csrf(page), "id": "99", "sure": "yes"}
        ).status_code
        == 404
    )
    assert client.get("/organise/export.jsonl").status_code == 200
    codes = [client.post("/organise/login", data={"password": "x"}).status_code for _ in range(12)]
    assert codes[-1] == 429
    with ttcw.store.reading() as connection:
        done = {row.what for row in connection.execute(select(audit))}
    assert {"login", "login refused", "invite", "pause", "remove", "export"} <= done


def test_answers_to_pages_that_were_not_shown_are_not_taken(feedback: Running):
    for _ in range(2):
        reader = feedback.reader()
        page = reader.get("/")
        form = hidden(page)
        for item in ("sanity", "feedback_type", "relevance"):
            rubric_item = feedback.design.rubric.item(item)
            found = reader.post("/save", data=form | {f"unit:{item}": rubric_item.scale.options[0]})
            assert found.json()["revision"] == 0
    assert feedback.given() == {}


def test_who_reads_longer_than_the_hours_still_hands_in(ttcw: Running):
    reader = ttcw.reader()
    form = hidden(reader.get("/page/story-1"))
    with ttcw.store.writing() as connection:
        connection.execute(assignments.update().values(seen_ms=0))
    other = ttcw.reader()
    assert other.get("/").status_code == 200
    with ttcw.store.reading() as connection:
        states = connection.execute(select(assignments.c.state).order_by(assignments.c.id))
        assert list(states.scalars()) == ["returned", "open"]
    page = reader.post("/page/story-1", data=form | {ENDING: "Yes", "go": ""})
    assert "Saved" in page.text
    assert list(ttcw.given().values()) == [1.0]


def test_a_column_called_story_is_no_story(tmp_path: Path):
    rows = [row | {"story": "GPT-4, corrupted"} for row in story_rows(1, 2)]
    running = make(tmp_path, "ttcw", rows)
    page = running.reader().get("/page/story-1")
    assert "Tale 0" in page.text
    assert "corrupted" not in page.text
    running.store.close()


def test_who_finds_nothing_to_read_gets_no_code(tmp_path: Path):
    running = make(tmp_path, "ttcw", story_rows(1, 2))
    design = replace(running.design, completion_code="C0DE", raters=1)
    app = create_app(design, running.units, running.store)
    first, second = (TestClient(app, raise_server_exceptions=False) for _ in range(2))
    page = first.get(f"/join?PROLIFIC_PID={0:024x}")
    first.post("/consent", data={"csrf": csrf(page)})
    # The place is taken from consent on: who comes now is not asked for theirs.
    page = second.get(f"/join?PROLIFIC_PID={1:024x}")
    assert "I agree" not in page.text
    assert "C0DE" not in page.text
    assert "Nothing is left to read" in page.text
    # A second click on the platform's link does not shut out the tab of the first.
    again = TestClient(app, raise_server_exceptions=False)
    again.get(f"/join?PROLIFIC_PID={0:024x}")
    form = hidden(first.get("/page/story-1"))
    assert first.post("/save", data=form | {ENDING: "Yes"}).status_code == 200
    for wrong in ("x", "%00", "../../etc", "0" * 400):
        assert TestClient(app).get(f"/join?PROLIFIC_PID={wrong}").status_code == 403
    running.store.close()


def test_a_study_that_was_changed_meanwhile_gives_nothing_out(ttcw: Running):
    reader = ttcw.visitor()
    changed = replace(ttcw.design, reason_words=9)
    address = ttcw.store.engine.url.render_as_string(hide_password=False)
    open_store(changed, ttcw.units, address).close()
    page = reader.post("/consent", data={"csrf": csrf(reader.get("/"))})
    assert page.status_code == 503
    assert "being changed" in page.text
    assert "content-security-policy" in page.headers


def test_every_form_needs_its_page_and_every_page_of_the_organiser_a_login(ttcw: Running):
    paths = {
        re.sub(r"{\w+}", "1", path): kinds for path, kinds in ttcw.app.openapi()["paths"].items()
    }
    open_to_all = {"/health", "/static/1", "/favicon.ico", "/organise/login"}
    stranger = TestClient(ttcw.app, follow_redirects=False, raise_server_exceptions=False)
    stranger.cookies.set(f"fabula_organiser_{ttcw.design.id}", "guess")
    reader = ttcw.reader()
    organiser = TestClient(ttcw.app, raise_server_exceptions=False)
    organiser.post("/organise/login", data={"password": "secret"})
    assert len(paths) > 20
    for path in paths.keys() - open_to_all:
        is_organisers = path.startswith("/organise")
        for kind in paths[path]:
            found = stranger.request(kind, path)
            if is_organisers:
                assert found.status_code == 303, path
                assert found.headers["location"] == "/organise/login"
            else:
                assert found.status_code == 403, path
        if "post" in paths[path]:
            known = organiser if is_organisers else reader
            for data in ({}, {"csrf": "guess"}, {"csrf": csrf(reader.get("/page/story-1"))[::-1]}):
                assert known.post(path, data=data).status_code == 403, path


def test_a_login_makes_a_session_of_its_own_and_its_end_is_one(ttcw: Running):
    name = f"fabula_organiser_{ttcw.design.id}"
    client = TestClient(ttcw.app, follow_redirects=False, base_url="https://study")
    planted = {"cookie": f"{name}=planted"}
    found = client.post("/organise/login", data={"password": "secret"}, headers=planted)
    for flag in ("HttpOnly", "Secure", "SameSite=strict", "Path=/organise"):
        assert flag in found.headers["set-cookie"]
    first = client.cookies[name]
    assert first != "planted"
    page = client.get("/organise")
    assert page.status_code == 200

    def enters(token: str, app: Any = ttcw.app) -> bool:
        browser = TestClient(app, follow_redirects=False)
        return browser.get("/organise", headers={"cookie": f"{name}={token}"}).status_code == 200

    assert enters(first)
    assert not enters("planted")
    # A session ends with the password by which it began, and at the logout.
    other = create_app(ttcw.design, ttcw.units, ttcw.store, password="another")
    assert not enters(first, other)
    client.post("/organise/logout", data={"csrf": csrf(page)})
    assert not enters(first)


def test_a_form_sets_answers_and_nothing_else(ttcw: Running):
    reader, other = ttcw.reader(), ttcw.reader()
    other.get("/page/story-1")
    form = hidden(reader.get("/page/story-1"))
    more = {"participant_id": "2", "assignment_id": "2", "state": "done", "value": "9",
            "platform_id": "x", "note": "mine", "id": "2", "n_right": "9"}  # fmt: skip
    assert reader.post("/save", data=form | more | {ENDING: "Yes"}).json()["problems"] == {}
    with ttcw.store.reading() as connection:
        held = connection.execute(select(assignments.c.participant_id, assignments.c.state)).all()
        kept = connection.execute(select(answers.c.assignment_id, answers.c.item)).all()
        people = connection.execute(select(participants)).all()
    assert sorted(map(tuple, held)) == [(1, "open"), (2, "open")]
    assert len(kept) == 1
    assert {(one.state, one.note, one.platform_id) for one in people} == {("ready", "", None)}
    # Another unit than one's own cannot be named.
    sent = reader.post("/save", data=form | {"unit": "2", ENDING: "No"}, follow_redirects=False)
    assert sent.status_code == 303


def test_no_word_of_a_request_becomes_a_header_or_a_place_to_go(ttcw: Running):
    evil = "x%0d%0aSet-Cookie:%20a=b"
    reader = ttcw.reader()
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


def test_guesses_of_the_password_from_many_addresses_are_slowed_together(feedback: Running):
    codes = []
    for number in range(40):
        client = TestClient(feedback.app, client=(f"192.0.2.{number}", 5))
        codes += [
            client.post("/organise/login", data={"password": "guess"}).status_code
            for _ in range(10)
        ]
    assert codes[:10] == [401] * 10
    assert codes[-10:] != [401] * 10
    assert set(codes) == {401, 429}


def test_a_hostile_story_shows_as_text(tmp_path: Path):
    hostile = "</p></textarea><script>a()</script><img src=x onerror=b()>{{ 7*7 }}"
    rows = [row | {"text": f"{hostile} {row['text']}"} for row in story_rows(1, 2)]
    running = make(tmp_path, "ttcw", rows)
    reader = running.reader()
    page = reader.get("/page/story-1")
    why = {ENDING: "Yes", f"{ENDING}.why": hostile}
    again = reader.post("/page/story-1", data=hidden(page) | why)
    saved = reader.post("/save", data=hidden(again) | why | {"page": "story-1", "shown": "x"})
    for found in (page.text, again.text, str(saved.json()["html"])):
        assert "<script>a" not in found
        assert "<img" not in found
    assert "&lt;script&gt;" in page.text
    assert "{{ 7*7 }}" in page.text
    running.store.close()
