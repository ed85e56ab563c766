"""A server that dies or is stopped while people answer loses nothing that it acknowledged."""

from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the extra [remote] is not installed")

from tests.forking import fabula_command
from tests.studies.running import ENDING, Running, hidden
from tests.studies.simulation import Load, simulate, write_study


def test_what_was_acknowledged_is_there_once_after_crashes(tmp_path: Path, database: str):
    file = write_study(tmp_path, 4, n_groups=1, n_stories=2)
    load = Load(n_participants=4, n_kills=4, seconds=1, n_stories=2)
    outcome = simulate(file, database, load, [fabula_command()])
    assert (outcome.n_kills, outcome.n_stops) == (2, 2)
    assert outcome.n_copies == (2 if database.startswith("sqlite") else 0)
    assert outcome.n_acknowledged >= 4 * 62
    assert outcome.disturbed_s, "people were answering when the server was gone"
    assert outcome.lost == []
    assert outcome.twice == []
    assert not outcome.errors


def test_a_change_back_counts_after_a_lost_acknowledgement(study: Running):
    reader = study.reader()
    form = hidden(reader.get("/page/story-1"))
    first = reader.post("/save", data=form | {ENDING: "Yes"}).json()
    form["revision"] = str(first["revision"])
    # Committed, but the browser never hears of it, and so keeps its revision.
    reader.post("/save", data=form | {ENDING: "No"})
    # Before it tries again, the participant goes back to the first answer.
    assert reader.post("/save", data=form | {ENDING: "Yes"}).json()["problems"] == {}
    assert list(study.given().values()) == [1.0]
