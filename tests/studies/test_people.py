"""Invitations by number, new links, and what is done about many people at once."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from starlette.testclient import TestClient
from tests.commands import invoke
from tests.studies.running import ENDING, Running, csrf, save, send

from fabula.studies.database import answers, assignments, participants, visits


@pytest.fixture
def organiser(running: Running) -> TestClient:
    return running.organiser()


def run(running: Running, command: str, *more: str) -> Result:
    # As somebody types it, with the password that a URL may have.
    url = running.store.engine.url.set(drivername=running.store.engine.dialect.name)
    place = ["--database", url.render_as_string(hide_password=False)]
    arguments = ["study", *command.split(), str(running.design.path), *place, *more]
    return invoke(*arguments, code=None)


def noted(links: str) -> list[tuple[str, str]]:
    return [(row["participant"], row["note"]) for row in csv.DictReader(io.StringIO(links))]


def test_each_invitation_has_a_number_and_a_note_of_its_own(running: Running, tmp_path: Path):
    notes, out = tmp_path / "notes.txt", tmp_path / "links.csv"
    notes.write_text("Ann\n\n=Ben\n", encoding="utf-8")
    done = run(running, "invite", "--notes", str(notes), "--csv", str(out), "--url",
               "https://s.example/")  # fmt: skip
    assert done.exit_code == 0, done.stdout
    told = re.findall(r"(?m)^(p\d+)  https://s.example/i/\S+  (\S+)$", done.stdout)
    assert told == [("p0001", "Ann"), ("p0002", "=Ben")]
    # No spreadsheet takes a note for a formula.
    assert noted(out.read_text(encoding="utf-8")) == [("p0001", "Ann"), ("p0002", "'=Ben")]
    links = re.findall("https://s.example/i/[^,\r\n]+", out.read_text(encoding="utf-8"))
    assert links == re.findall(r"https://s.example/i/\S+", done.stdout)
    assert out.stat().st_mode & 0o777 == 0o600
    people = running.rows(participants.c.note, participants.c.state)
    assert people == [("Ann", "invited"), ("=Ben", "invited")]
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


def test_the_page_makes_a_link_for_each_note_or_a_file(running: Running, organiser: TestClient):
    page = organiser.get("/organise")
    form = {"csrf": csrf(page), "n": "1", "notes": "Ann\r\n\r\nBen\r\n"}
    page = organiser.post("/organise/invite", data=form)
    links = re.findall(r'id="link-(\d)" readonly value="http://testserver/i/([\w-]+)"', page.text)
    assert [number for number, _ in links] == ["1", "2"]
    assert TestClient(running.app).get(f"/i/{links[0][1]}").status_code == 200
    sent = organiser.post("/organise/invite", data={**form, "as": "csv"})
    assert "attachment" in sent.headers["content-disposition"]
    assert noted(sent.text) == [("p0003", "Ann"), ("p0004", "Ben")]
    page = organiser.post("/organise/reissue", data={"csrf": csrf(page), "id": "1"})
    assert "Make a new link for p0001?" in page.text
    page = send(organiser, "/organise/reissue", page)
    assert len(re.findall('readonly value="http://testserver/i/', page.text)) == 1
    assert TestClient(running.app).get(f"/i/{links[0][1]}").status_code == 403


def test_what_is_counted_of_people_is_the_same_in_either_database(
    running: Running, organiser: TestClient, tmp_path: Path
):
    for answer in ("Yes", "No"):
        reader = running.reader()
        page = reader.get("/page/story-1")
        given = {ENDING: answer, f"{ENDING}.why": "She comes back home."}
        send(reader, "/save", page, **given)
    running.visitor()
    running.set(assignments, state="done", done_ms=1)
    assert re.search(r"p0003.*invited", organiser.get("/organise").text, re.DOTALL)
    out = [tmp_path / f"{name}.csv" for name in ("answers", "people", "times")]
    done = run(running, "export", "--out", str(out[0]), "--people", str(out[1]),
               "--times", str(out[2]))  # fmt: skip
    assert done.exit_code == 0, done.output

    def found(path: Path, *names: str) -> list[tuple[str, ...]]:
        rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        return [tuple(row[name] for name in names) for row in rows]

    answered = [row for row in found(out[0], "rater", "value") if row[1]]
    assert answered == [("p0001", "1"), ("p0002", "0")]
    assert found(out[1], "rater", "state", "n_done") == [
        ("p0001", "ready", "1"), ("p0002", "ready", "1"), ("p0003", "invited", "0"),
    ]  # fmt: skip
    assert found(out[2], "rater", "page", "n_opened", "n_saved") == [
        ("p0001", "story-1", "1", "2"), ("p0002", "story-1", "1", "2"),
    ]  # fmt: skip


def test_many_are_removed_or_forgotten_when_it_is_sure(running: Running, organiser: TestClient):
    def states() -> list[str]:
        return running.every(participants.c.state)

    readers = [running.reader() for _ in range(3)]
    for reader in readers:
        save(reader)
    token = csrf(organiser.get("/organise"))
    chosen = {"csrf": token, "chosen_1": "yes", "chosen_3": "yes"}
    page = organiser.post("/organise/remove", data=chosen)
    assert "Remove 2 people?" in page.text
    assert "p0001, p0003" in page.text
    assert states() == ["ready"] * 3
    send(organiser, "/organise/remove", page)
    assert states() == ["removed", "ready", "removed"]
    assert "Your part in this study has ended" in readers[0].get("/").text
    page = organiser.post("/organise/forget", data={"csrf": token, "id": "2"})
    assert "Delete all answers of p0002?" in page.text
    send(organiser, "/organise/forget", page)
    assert states() == ["removed", "forgotten", "removed"]
    assert len(set(running.every(answers.c.assignment_id))) == 2
    assert set(running.every(assignments.c.participant_id)) == {1, 3}
    wrong = {"csrf": token, "chosen_x": "y"}
    assert organiser.post("/organise/remove", data=wrong).status_code == 422
    unknown = {"csrf": token, "chosen_1": "yes", "chosen_99": "yes", "sure": "yes"}
    assert organiser.post("/organise/forget", data=unknown).status_code == 404
    # One who is not there: nothing is done to anybody.
    assert states() == ["removed", "forgotten", "removed"]


def test_those_whom_the_platform_says_returned_are_removed_by_their_status(running: Running):
    assert run(running, "invite", "3").exit_code == 0
    with running.store.writing() as connection:
        for id_, status in ((1, "RETURNED"), (2, "APPROVED"), (3, "RETURNED"), (3, "ACTIVE")):
            connection.execute(visits.insert().values(
                participant_id=id_, platform="prolific", study="s", session=f"{id_}{status}",
                address="", at_ms=1, status=status,
            ))  # fmt: skip
    for whom, removed in ((("--status", "returned"), "p0001"), (("p0002",), "p0002")):
        done = run(running, "people --remove", *whom, "--yes", "--json")
        assert json.loads(done.stdout)["removed"] == [removed]
    assert running.every(participants.c.state) == ["removed", "removed", "invited"]
    assert run(running, "people --remove").exit_code == 2


def test_what_people_write_shows_as_text_to_the_organiser(running: Running, organiser: TestClient):
    hostile = "</td></textarea><script>a()</script><img src=x onerror=b()> javascript:c()"
    send(organiser, "/organise/invite", organiser.get("/organise"), n="1", note=hostile)
    page = organiser.get("/organise")
    assert "&lt;script&gt;" in page.text
    assert "<script>a" not in page.text
    assert "<img" not in page.text
    assert "unsafe" not in page.headers["content-security-policy"]
