"""Servers end in order on every signal that asks for it: nothing is left beside the files."""

import json
import re
import shutil
import signal
from pathlib import Path

import httpx
import pytest
from tests.running_commands import run, running

from fabula.reference import Reference
from fabula.studies.design import new_study
from fabula.types import Document

HIDDEN = re.compile(r'name="(csrf|page|unit|revision|shown)" value="([^"]*)"')


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_copy_of_a_stopped_study_holds_every_answer(tmp_path: Path, name: str) -> None:
    rows = [{"id": f"s{k}", "text": f"Story {k}. It ends.", "group": "g"} for k in range(2)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = tmp_path / "study.toml"
    new_study(study, "ttcw", tmp_path / "s.jsonl")
    invitation = run("study", "invite", str(study), "1").stdout.strip().rpartition("/")[2]
    with running("study", "serve", str(study), "--port", "0") as (process, url):
        with httpx.Client(base_url=url, follow_redirects=True) as browser:
            form = dict(HIDDEN.findall(browser.get(f"/i/{invitation}").text))
            browser.post("/consent", data=form)
            form = dict(HIDDEN.findall(browser.get("/page/story-1").text))
            saved = browser.post("/save", data=form | {"1:narrative_ending": "Yes"})
            assert saved.json()["problems"] == {}
        process.send_signal(signal.Signals[name])
        assert process.wait(60) == 0
    assert not (tmp_path / "study.db-wal").exists()
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in ("study.toml", "s.jsonl", "study.db"):
        shutil.copy(tmp_path / file, copy / file)
    out = copy / "answers.jsonl"
    run("study", "export", str(copy / "study.toml"), "--unfinished", "--out", str(out))
    values = [json.loads(line)["value"] for line in out.read_text().splitlines()]
    assert [value for value in values if value is not None] == [1.0]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_the_desk_ends_in_order(tmp_path: Path, name: str) -> None:
    desk = ("desk", "--port", "0", "--dir", str(tmp_path), "--no-open")
    with running(*desk) as (process, _):
        process.send_signal(signal.Signals[name])
        assert process.wait(60) == 0


def test_a_served_reference_ends_in_order(tmp_path: Path) -> None:
    Reference.build([Document("d", "the sea was calm")], tmp_path / "r.ref").close()
    service = ("reference", "serve", str(tmp_path / "r.ref"), "--port", "0")
    with running(*service) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
