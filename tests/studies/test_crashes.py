"""The server dies or is stopped again and again while people answer: nothing that was acknowledged
is lost.
"""

import re
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the extra [remote] is not installed")

from starlette.testclient import TestClient
from tests.forking import fabula_command
from tests.studies.simulation import Load, simulate, write_study

from fabula.studies.app import create_app
from fabula.studies.design import load_study
from fabula.studies.participants import invite
from fabula.studies.study_engine import open_store
from fabula.studies.units import read_units
from fabula.studies.views import current_answers


def test_what_was_acknowledged_is_there_once_after_crashes(tmp_path: Path, database: str):
    file = write_study(tmp_path, 8, n_groups=2, n_stories=2)
    load = Load(n_participants=8, n_kills=4, seconds=1, n_stories=2)
    outcome = simulate(file, database, load, [fabula_command()])
    assert (outcome.n_kills, outcome.n_stops) == (2, 2)
    assert outcome.n_copies == (2 if database.startswith("sqlite") else 0)
    assert outcome.n_acknowledged >= 8 * 62
    assert outcome.disturbed_s, "people were answering when the server was gone"
    assert outcome.lost == []
    assert outcome.twice == []
    assert not outcome.errors


def test_a_change_back_counts_after_a_lost_acknowledgement(tmp_path: Path):
    design = load_study(write_study(tmp_path, 1))
    units = read_units(design)
    store = open_store(design, units)
    try:
        with store.writing() as connection:
            (token,) = invite(connection, 1, "test")
        with TestClient(create_app(design, units, store), follow_redirects=True) as client:
            form = dict(csrf_and_more(client.get(f"/i/{token}").text))
            client.post("/consent", data=form)
            form = dict(csrf_and_more(client.get("/page/story-1").text))
            field = "1:narrative_ending"
            first = client.post("/save", data=form | {field: "Yes"}).json()
            form["revision"] = str(first["revision"])
            # Committed, but the browser never hears of it, and so keeps its revision.
            client.post("/save", data=form | {field: "No"})
            # Before it tries again, the participant goes back to the first answer.
            assert client.post("/save", data=form | {field: "Yes"}).json()["problems"] == {}
        with store.reading() as connection:
            assert current_answers(connection, 1)[0] == {("1", "narrative_ending"): "Yes"}
    finally:
        store.close()


def csrf_and_more(page: str) -> list[tuple[str, str]]:
    """The hidden fields of a page."""
    return re.findall(r'name="(csrf|page|unit|revision|shown)" value="([^"]*)"', page)
