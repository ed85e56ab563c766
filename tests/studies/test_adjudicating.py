"""Where people disagree the organiser decides, beside the answers and not over them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from tests.studies.test_app import Running, hidden, make
from tests.studies_data import feedback_rows, story_rows

from fabula.cli.main import cli
from fabula.studies.adjudicating import ADJUDICATED, adjudicated, disagreements, read_resolutions
from fabula.studies.exporting import export
from fabula.studies.participants import invite
from fabula.types import Measurement


def organiser(running: Running) -> TestClient:
    client = TestClient(running.app, raise_server_exceptions=False)
    assert client.post("/organise/login", data={"password": "secret"}).status_code == 200
    return client


def read_pair(running: Running, answers: dict[str, str]) -> None:
    reader = running.reader()
    page = reader.get("/page/pair")
    done = reader.post("/page/pair", data=hidden(page) | answers | {"go": "finish"})
    assert "You have finished" in done.text


def measured(running: Running) -> tuple[list[Measurement], list[Measurement]]:
    """The answers, and what was decided."""
    units = {unit.key: unit for unit in running.units}
    with running.store.reading() as connection:
        found = list(export(connection, running.design, units))
        decided = read_resolutions(connection)
    return found, adjudicated(found, running.design, units, decided)


def test_a_decision_stands_beside_the_answers_and_the_newest_counts(tmp_path: Path) -> None:
    running = make(tmp_path, "pairs", story_rows(1, 2))
    for overall in ("Story 1", "Story 1"):
        # The two are shown in the two orders, so the same place is another story.
        other = {f"unit:{item}": "Story 1" for item in ("creativity", "prose")}
        read_pair(running, {"unit:overall": overall} | other)
    client = organiser(running)
    page = client.get("/organise/disagreements")
    assert "3 of 3 questions that people answered differently are open" in page.text
    assert "GPT4" not in page.text
    assert "NewYorker" not in page.text
    assert page.text.count("<td>Story 1</td>") == page.text.count("<td>Story 2</td>") == 3
    before = measured(running)[0]
    form = hidden(page)
    # The last question of the page is the last of the rubric.
    refused = client.post("/organise/resolve", data=form | {"answer": "Story 2", "note": " "})
    assert "Please write a note" in refused.text
    assert "<option selected>Story 2</option>" in refused.text
    for wrong in ({"answer": "Story 3", "note": "x"}, {"key": "x", "note": "x"}):
        client.post("/organise/resolve", data=form | wrong)
    assert measured(running)[1] == []
    client.post("/organise/resolve", data=form | {"answer": "Story 1", "note": "=Tighter."})
    page = client.post("/organise/resolve", data=form | {"answer": "Story 2", "note": "Reread."})
    assert "2 of 3 questions" in page.text
    assert "Reread." not in page.text
    assert "Reread." in client.get("/organise/disagreements?show=all").text
    after, (one,) = measured(running)
    assert after == before
    assert (one.rater, one.item, one.rationale) == (ADJUDICATED, "prose", "Reread.")
    assert one.value == one.document_id.split(" : ")[1]
    assert set(one.details["answers"]) == {"p0001", "p0002"}
    assert one.signature.endswith("|adjudicated:organiser")
    running.store.close()
    out, decided = tmp_path / "o.jsonl", tmp_path / "d.csv"
    run = CliRunner().invoke(cli, [
        "study", "export", str(running.design.path), "--out", str(out), "--adjudicated",
        str(tmp_path / "d.jsonl"),
    ])  # fmt: skip
    assert "1 disagreements decided" in run.output, run.exception
    assert json.loads((tmp_path / "d.jsonl").read_text())["value"] == one.value
    assert ADJUDICATED not in out.read_text()
    assert not decided.exists()


def test_nobody_but_the_organiser_decides(tmp_path: Path) -> None:
    running = make(tmp_path, "pairs", story_rows(1, 2))
    reader = running.reader()
    for client in (reader, TestClient(running.app)):
        shown = client.get("/organise/disagreements")
        assert 'name="password"' in shown.text
    client = organiser(running)
    assert "Nothing is open." in client.get("/organise/disagreements?page=99&show=all").text
    assert client.post("/organise/resolve", data={"csrf": "x", "key": "y"}).status_code == 403
    running.store.close()


@pytest.mark.parametrize("kind", ["ttcw", "feedback"])
def test_what_differs_is_found_and_shown_with_its_text(tmp_path: Path, kind: Any) -> None:
    rows = story_rows(1, 2) if kind == "ttcw" else feedback_rows()[:1]
    running = make(tmp_path, kind, rows)
    item = "1:narrative_ending" if kind == "ttcw" else "unit:sanity"
    said = ("Yes", "No") if kind == "ttcw" else ("Only feedback", "No feedback")
    for answer in said:
        reader = running.reader()
        page = reader.get("/page/story-1" if kind == "ttcw" else "/page/story")
        if kind == "feedback":
            page = reader.post(
                "/page/story", data=hidden(page) | {"unit:own_feedback": "n/a", "go": "next"}
            )
        reader.post("/save", data=hidden(page) | {item: answer, f"{item}.why": "It is so."})
    with running.store.reading() as connection:
        units = {unit.key: unit for unit in running.units}
        found = list(export(connection, running.design, units, unfinished=True))
    (one,) = disagreements(found, running.design) or [None]
    if kind == "ttcw":
        # Each reader began with another story, so there is nothing on which both spoke.
        assert one is None
        running.store.close()
        return
    assert one is not None
    assert [opinion.answer for opinion in one.opinions] == list(said)
    assert one.clean("No feedback") == "No feedback"
    assert one.clean("") == ""
    with running.store.writing() as connection:
        invite(connection, 1, "test")
    running.store.close()
    assert re.fullmatch(r"[0-9a-f]{16}", one.key)


def test_what_people_write_shows_as_text_to_the_organiser(tmp_path: Path) -> None:
    hostile = "</td></textarea><script>a()</script><img src=x onerror=b()> javascript:c()"
    running = make(tmp_path, "pairs", story_rows(1, 2))
    said = {f"unit:{item}": "Story 1" for item in ("creativity", "prose", "overall")}
    whys = {f"{name}.why": f"{hostile} It is so, in many words, and more." for name in said}
    for _ in range(2):
        read_pair(running, said | whys)
    client = organiser(running)
    page = client.get("/organise")
    page = client.post("/organise/invite", data=hidden(page) | {"n": "1", "note": hostile})
    differing = client.get("/organise/disagreements")
    sent = {"answer": "", "note": hostile}
    refused = client.post("/organise/resolve", data=hidden(differing) | sent)
    assert "&lt;script&gt;" in page.text
    for shown in (page, differing, refused):
        assert shown.status_code == 200
        assert "<script>a" not in shown.text
        assert "<img" not in shown.text
        assert "unsafe" not in shown.headers["content-security-policy"]
    assert "&lt;script&gt;" in differing.text
    running.store.close()
