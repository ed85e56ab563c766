"""Invitations by number, new links, and what is done about many people at once."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from sqlalchemy import select
from starlette.testclient import TestClient
from tests.commands import invoke
from tests.studies.test_app import ENDING, Running, csrf, hidden

from fabula.studies.database import answers, assignments, participants, visits


@pytest.fixture
def organiser(running: Running) -> TestClient:
    client = TestClient(running.app, raise_server_exceptions=False)
    client.post("/organise/login", data={"password": "secret"})
    return client


def run(running: Running, command: str, *more: str) -> Result:
    # As somebody types it, with the password that a URL may have.
    url = running.store.engine.url.set(drivername=running.store.engine.dialect.name)
    place = ["--database", url.render_as_string(hide_password=False)]
    arguments = ["study", *command.split(), str(running.design.path), *place, *more]
    return invoke(*arguments, code=None)


def people(running: Running) -> list[tuple[str, str]]:
    with running.store.reading() as connection:
        rows = connection.execute(select(participants).order_by(participants.c.id))
        return [(row.note, row.state) for row in rows]


def test_each_invitation_has_a_number_and_a_note_of_its_own(running: Running, tmp_path: Path):
    notes, out = tmp_path / "notes.txt", tmp_path / "links.csv"
    notes.write_text("Ann\n\n=Ben\n", encoding="utf-8")
    done = run(
        running, "invite", "--notes", str(notes), "--csv", str(out), "--url", "https://s.example/"
    )
    assert done.exit_code == 0, done.stdout
    assert re.findall(r"(?m)^(p\d+)  https://s.example/i/\S+  (\S+)$", done.stdout) == [
        ("p0001", "Ann"), ("p0002", "=Ben"),
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    # No spreadsheet takes a note for a formula.
    assert [(row["participant"], row["note"]) for row in rows] == [
        ("p0001", "Ann"), ("p0002", "'=Ben"),
    ]  # fmt: skip
    assert all(row["link"] in done.stdout for row in rows)
    assert out.stat().st_mode & 0o777 == 0o600
    assert people(running) == [("Ann", "invited"), ("=Ben", "invited")]
    for wrong, said in (
        ((), "or N must be given"),
        (("2", "--notes", str(notes)), "cannot be used together"),
        (("2", "--url", "s.example"), "write it like https://your.host"),
    ):
        refused = run(running, "invite", *wrong)
        assert refused.exit_code == 2
        assert said in refused.output
    for command in ("people --remove", "people --forget"):
        assert "p0099: no such participant" in str(run(running, command, "p0099").exception)


def test_a_new_link_ends_the_old_one(running: Running):
    old = run(running, "invite", "1").stdout.split()[1]
    done = json.loads(run(running, "people --reissue", "p0001", "--json").stdout)
    assert done["invitations"][0]["participant"] == "p0001"
    client = TestClient(running.app)
    assert client.get("/i/" + old.rpartition("/")[2]).status_code == 403
    assert client.get("/i/" + done["links"][0].rpartition("/")[2]).status_code == 200
    assert "no such participant" in str(run(running, "people --reissue", "p0009").exception)
    assert "they are called p0001" in str(run(running, "people --reissue", "Ann").exception)


def test_the_page_makes_a_link_for_each_note_as_a_table_or_a_file(
    running: Running, organiser: TestClient
):
    page = organiser.get("/organise")
    form = {"csrf": csrf(page), "n": "1", "notes": "Ann\r\n\r\nBen\r\n"}
    page = organiser.post("/organise/invite", data=form)
    links = re.findall(r'id="link-(\d)" readonly value="http://testserver/i/([\w-]+)"', page.text)
    assert [number for number, _ in links] == ["1", "2"]
    assert TestClient(running.app).get(f"/i/{links[0][1]}").status_code == 200
    sent = organiser.post("/organise/invite", data={**form, "as": "csv"})
    assert "attachment" in sent.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(sent.text)))
    assert [(row["participant"], row["note"]) for row in rows] == [
        ("p0003", "Ann"),
        ("p0004", "Ben"),
    ]
    page = organiser.post("/organise/reissue", data={"csrf": csrf(page), "id": "1"})
    assert "Make a new link for p0001?" in page.text
    page = organiser.post("/organise/reissue", data=hidden(page))
    assert len(re.findall('readonly value="http://testserver/i/', page.text)) == 1
    assert TestClient(running.app).get(f"/i/{links[0][1]}").status_code == 403


def test_what_is_counted_of_people_is_the_same_in_either_database(
    running: Running, organiser: TestClient, tmp_path: Path
):
    for answer in ("Yes", "No"):
        reader = running.reader()
        form = hidden(reader.get("/page/story-1"))
        reader.post("/save", data=form | {ENDING: answer, f"{ENDING}.why": "She comes back home."})
    running.visitor()
    with running.store.writing() as connection:
        connection.execute(assignments.update().values(state="done", done_ms=1))
    page = organiser.get("/organise")
    assert re.search(r"p0003.*invited", page.text, re.DOTALL)
    out = [tmp_path / f"{name}.csv" for name in ("answers", "people", "times")]
    done = run(
        running, "export", "--format", "csv", "--out", str(out[0]), "--people", str(out[1]),
        "--times", str(out[2]),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    answered, of_people, times = (
        list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in out
    )
    assert [(one["rater"], one["value"]) for one in answered if one["value"]] == [
        ("p0001", "1"), ("p0002", "0"),
    ]  # fmt: skip
    names = ("rater", "state", "n_done")
    assert [tuple(one[name] for name in names) for one in of_people] == [
        ("p0001", "ready", "1"),
        ("p0002", "ready", "1"),
        ("p0003", "invited", "0"),
    ]
    assert [(one["rater"], one["page"], one["n_opened"], one["n_saved"]) for one in times] == [
        ("p0001", "story-1", "1", "2"), ("p0002", "story-1", "1", "2"),
    ]  # fmt: skip


def test_many_are_removed_or_forgotten_at_once_and_only_when_sure(
    running: Running, organiser: TestClient
):
    for _ in range(3):
        reader = running.reader()
        reader.post("/save", data=hidden(reader.get("/page/story-1")) | {ENDING: "Yes"})
    token = csrf(organiser.get("/organise"))
    chosen = {"csrf": token, "chosen_1": "yes", "chosen_3": "yes"}
    page = organiser.post("/organise/remove", data=chosen)
    assert "Remove 2 people?" in page.text
    assert "p0001, p0003" in page.text
    assert [state for _, state in people(running)] == ["ready"] * 3
    organiser.post("/organise/remove", data=hidden(page))
    assert [state for _, state in people(running)] == ["removed", "ready", "removed"]
    page = organiser.post("/organise/forget", data={"csrf": token, "id": "2"})
    assert "Delete all answers of p0002?" in page.text
    organiser.post("/organise/forget", data=hidden(page))
    assert [state for _, state in people(running)] == ["removed", "forgotten", "removed"]
    with running.store.reading() as connection:
        kept = set(connection.execute(select(answers.c.assignment_id)).scalars())
        held = set(connection.execute(select(assignments.c.participant_id)).scalars())
    assert (len(kept), held) == (2, {1, 3})
    assert (
        organiser.post("/organise/remove", data={"csrf": token, "chosen_x": "y"}).status_code == 422
    )
    unknown = {"csrf": token, "chosen_1": "yes", "chosen_99": "yes", "sure": "yes"}
    assert organiser.post("/organise/forget", data=unknown).status_code == 404
    # One who is not there: nothing is done to anybody.
    assert [state for _, state in people(running)] == ["removed", "forgotten", "removed"]


def test_those_whom_the_platform_says_returned_are_removed_by_their_status(running: Running):
    assert run(running, "invite", "3").exit_code == 0
    with running.store.writing() as connection:
        for id_, status in ((1, "RETURNED"), (2, "APPROVED"), (3, "RETURNED"), (3, "ACTIVE")):
            connection.execute(
                visits.insert().values(
                    participant_id=id_, platform="prolific", study="s", session=f"{id_}{status}",
                    address="", at_ms=1, status=status,
                )
            )  # fmt: skip
    done = run(running, "people --remove", "--status", "returned", "--yes", "--json")
    assert json.loads(done.stdout)["removed"] == ["p0001"]
    assert [state for _, state in people(running)] == ["removed", "invited", "invited"]
    done = run(running, "people --remove", "p0002", "--yes", "--json")
    assert json.loads(done.stdout)["removed"] == ["p0002"]
    assert run(running, "people --remove").exit_code == 2


def test_what_people_write_shows_as_text_to_the_organiser(running: Running, organiser: TestClient):
    hostile = "</td></textarea><script>a()</script><img src=x onerror=b()> javascript:c()"
    form = hidden(organiser.get("/organise")) | {"n": "1", "note": hostile}
    organiser.post("/organise/invite", data=form)
    page = organiser.get("/organise")
    assert "&lt;script&gt;" in page.text
    assert "<script>a" not in page.text
    assert "<img" not in page.text
    assert "unsafe" not in page.headers["content-security-policy"]
