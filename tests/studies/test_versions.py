"""What may be corrected while a study runs, what may not, and who was shown which version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import delete, select, text
from starlette.testclient import TestClient
from tests.studies.test_app import Running, hidden
from tests.studies_data import feedback_rows, story_rows

from fabula.cli.main import cli
from fabula.errors import InputError
from fabula.studies.app import create_app
from fabula.studies.backups import back_up, restore
from fabula.studies.database import page_views
from fabula.studies.design import load_study, new_study
from fabula.studies.exporting import export
from fabula.studies.organiser_tables import versions
from fabula.studies.people_facts import facts_of_all
from fabula.studies.study_engine import open_store
from fabula.studies.units import read_units
from fabula.studies.versions import amend, read_versions
from fabula.types import Measurement

Row = dict[str, Any]
LONG = " ".join(f"word{k}" for k in range(100))


@dataclass
class Begun:
    """A study that somebody has begun to read: its files, to be changed."""

    folder: Path
    url: str
    rows: list[Row]

    @property
    def file(self) -> Path:
        return self.folder / "study.toml"

    def write(self) -> None:
        data = "".join(json.dumps(row) + "\n" for row in self.rows)
        (self.folder / "documents.jsonl").write_text(data)

    def edit(self, old: str, new: str) -> None:
        content = self.file.read_text()
        assert old in content
        self.file.write_text(content.replace(old, new, 1))

    def open(self, *, amends: bool = False) -> Running:
        design = load_study(self.file)
        units = read_units(design)
        store = open_store(design, units, self.url, amends=amends)
        return Running(design, units, store, create_app(design, units, store))

    def amend(self, why: str) -> list[str]:
        running = self.open(amends=True)
        try:
            return [c.line() for c in amend(running.store, running.design, running.units, why)]
        finally:
            running.store.close()

    def answers(self) -> list[Measurement]:
        running = self.open()
        units = {unit.key: unit for unit in running.units}
        with running.store.reading() as connection:
            found = list(export(connection, running.design, units, unfinished=True))
        running.store.close()
        return [one for one in found if one.value is not None]


def begin(folder: Path, url: str, kind: Any, rows: list[Row]) -> tuple[Begun, Running, TestClient]:
    study = Begun(folder, url, rows)
    study.write()
    new_study(study.file, kind, folder / "documents.jsonl")
    running = study.open()
    return study, running, running.reader()


@pytest.fixture
def begun(tmp_path: Path, database: str) -> tuple[Begun, Running, TestClient]:
    """Two groups of two stories, one of which somebody has answered a question about."""
    rows = story_rows(2, 2)
    for row in rows:
        row["text"] += "\n\n" + LONG
    study, running, reader = begin(tmp_path, database, "ttcw", rows)
    page = reader.get("/page/story-1")
    form = hidden(page) | {"1:narrative_ending": "Yes"}
    assert reader.post("/save", data=form).json()["problems"] == {}
    running.store.close()
    return study, running, reader


def given_group(study: Begun) -> str:
    (answer,) = study.answers()
    return str(answer.details["unit"])


def test_a_changed_author_is_noticed_and_counts_once_it_is_recorded(
    begun: tuple[Begun, Running, TestClient],
) -> None:
    study, *_ = begun
    for row in study.rows:
        row["author"] = {"NewYorker": "Somebody"}.get(row["author"], row["author"])
    study.write()
    with pytest.raises(InputError, match="fabula study amend"):
        study.open()
    changed = study.amend("the magazine is no author")
    assert changed[0].endswith("author: `NewYorker` becomes `Somebody`")
    running = study.open()
    authors = {one.author for unit in running.units for one in unit.documents}
    running.store.close()
    assert "Somebody" in authors


CHANGES: dict[str, tuple[Callable[[Begun], None], str]] = {
    "thanks": (
        lambda s: s.edit('# thanks = "Thank', 'thanks = "We thank'),
        "texts.thanks: `Thank` becomes `We thank`",
    ),
    "contact": (
        lambda s: s.edit('# contact = "the person who invited you"', 'contact = "ada@example.org"'),
        "texts.contact: `the person who invited you` becomes `ada@example.org`",
    ),
    "consent": (lambda s: s.edit("under a number,", "under a code,"), "texts.consent"),
    "a slip in a story": (
        lambda s: s.rows[0].update(text=s.rows[0]["text"].replace("word7 ", "word-seven ")),
        "text: `word7` becomes `word-seven`",
    ),
    "a further group": (
        lambda s: s.rows.extend(
            {"id": f"new{k}", "author": a, "group": "new", "text": "A new tale."}
            for k, a in enumerate("ab")
        ),
        "new0: new",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_may_be_corrected_is_refused_until_it_is_recorded(
    begun: tuple[Begun, Running, TestClient], what: str
) -> None:
    study, *_ = begun
    before = study.answers()
    change, line = CHANGES[what]
    change(study)
    study.write()
    with pytest.raises(InputError, match="undo the change, or record it"):
        study.open()
    assert any(line in one for one in study.amend(""))
    with pytest.raises(InputError, match="undo the change, or record it"):
        study.open()
    assert any(line in one for one in study.amend("a slip"))
    assert study.amend("again") == []
    running = study.open()
    with running.store.reading() as connection:
        first, second = read_versions(connection)
    running.store.close()
    assert (first.number, first.changes) == (1, [])
    assert (second.number, second.why) == (2, "a slip")
    assert any(line in one.line() for one in second.changes)
    # What was answered is what it was; only the version is said beside it.
    (was,), (is_now,) = before, study.answers()
    assert is_now.details == {**was.details, "version": 1}
    assert (is_now.value, is_now.signature) == (was.value, was.signature)


REFUSED: dict[str, tuple[Callable[[Begun], None], str]] = {
    "a question's reason": (
        lambda s: s.edit("reason_words = 4", "reason_words = 9"),
        "reason_words was changed",
    ),
    "the order": (lambda s: s.edit("seed = 0", "seed = 1"), "seed was changed"),
    "another rubric": (lambda s: s.edit('rubric = "ttcw"', 'rubric = "comparison"'), "rubric"),
    "another story": (
        lambda s: [r.update(text="Another tale.") for r in s.rows] and None,  # type: ignore[func-returns-value]
        "words differ, which is more than a slip",
    ),
    "a story fewer": (lambda s: s.rows.pop(0) and s.rows.pop(1) and None, "put them back"),
    "a group fewer": (lambda s: s.rows.clear() or s.rows.extend(story_rows(9, 2)[4:]), "put them"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_decides_the_answers_is_refused_with_a_reason_or_without(
    begun: tuple[Begun, Running, TestClient], what: str
) -> None:
    study, *_ = begun
    change, why = REFUSED[what]
    change(study)
    study.write()
    for attempt in (study.open, lambda: study.amend("I want to")):
        with pytest.raises(InputError, match=why):
            attempt()


def test_facts_that_decide_what_is_asked_stay(tmp_path: Path) -> None:
    study, running, reader = begin(
        tmp_path, f"sqlite:///{tmp_path / 's.db'}", "feedback", feedback_rows()
    )
    reader.get("/")
    running.store.close()
    for row in study.rows:
        row["method"] = {"original": "swap", "swap": "original"}[row["method"]]
    study.write()
    with pytest.raises(InputError, match="decides what people were asked"):
        study.amend("the methods were exchanged")


def test_a_server_that_runs_gives_out_nothing_of_an_earlier_version(
    begun: tuple[Begun, Running, TestClient],
) -> None:
    study, *_ = begun
    old = study.open()
    late = old.visitor()
    page = late.get("/")
    study.edit('# thanks = "Thank', 'thanks = "We thank')
    study.amend("warmer")
    answer = late.post("/consent", data=hidden(page) | {"agree": "yes"})
    assert answer.status_code == 503
    assert "being changed" in answer.text
    old.store.close()


def test_every_page_view_and_every_person_says_which_version_was_shown(
    begun: tuple[Begun, Running, TestClient],
) -> None:
    study, *_ = begun
    first_slip, second_slip = CHANGES["a slip in a story"][0], CHANGES["thanks"][0]
    first_slip(study)
    study.write()
    study.amend("a slip")
    running = study.open()
    reader = running.reader()
    page = reader.get("/page/story-1")
    assert "word-seven" in page.text or "word7 " in page.text
    reader.post("/save", data=hidden(page) | {"1:narrative_ending": "No"})
    second_slip(study)
    running.store.close()
    study.amend("warmer")
    running = study.open()
    reader_again = TestClient(running.app, cookies=dict(reader.cookies))
    page = reader_again.get("/page/story-2")
    reader_again.post("/save", data=hidden(page) | {"2:narrative_ending": "No"})
    with running.store.reading() as connection:
        seen = [row.version for row in connection.execute(select(page_views))]
        facts = facts_of_all(connection, running.design)
    running.store.close()
    assert set(seen) == {1, 2, 3}
    assert [facts[id_].versions for id_ in sorted(facts)] == ["1", "2, 3"]
    by_version = {(a.rater, a.details["place"]): a.details["version"] for a in study.answers()}
    assert sorted(by_version.values()) == [1, 2, 3]


def test_a_database_from_before_there_were_versions_begins_with_what_it_holds(
    begun: tuple[Begun, Running, TestClient],
) -> None:
    study, *_ = begun

    def forget_versions() -> None:
        store = study.open(amends=True).store
        with store.writing() as connection:
            connection.execute(delete(versions))
            connection.execute(text("UPDATE page_views SET version = NULL"))
        store.close()

    forget_versions()
    kept = study.file.read_text()
    study.edit('# thanks = "Thank', 'thanks = "We thank')
    with pytest.raises(InputError, match=r"the questions of .* were changed since"):
        study.open()
    with pytest.raises(InputError, match="run `fabula study serve` once"):
        study.amend("warmer")
    study.file.write_text(kept)
    assert [one.details.get("version") for one in study.answers()] == [None]
    study.edit('# thanks = "Thank', 'thanks = "We thank')
    study.amend("warmer")
    assert [one.details["version"] for one in study.answers()] == [1]


def test_until_somebody_has_a_text_everything_can_be_edited(tmp_path: Path) -> None:
    study = Begun(tmp_path, f"sqlite:///{tmp_path / 's.db'}", story_rows(1, 2))
    study.write()
    new_study(study.file, "ttcw", tmp_path / "documents.jsonl")
    study.open().store.close()
    study.edit("reason_words = 4", "reason_words = 9")
    running = study.open()
    with running.store.reading() as connection:
        (only,) = read_versions(connection)
    assert only.digest == running.design.digest
    running.store.close()
    with pytest.raises(InputError, match="can be edited freely"):
        study.amend("why not")


def test_versions_go_into_a_backup_and_come_back(
    begun: tuple[Begun, Running, TestClient], tmp_path: Path
) -> None:
    study, *_ = begun
    CHANGES["thanks"][0](study)
    study.amend("warmer")
    running = study.open()
    back_up(running.store, tmp_path / "copy.db")
    with running.store.reading() as connection:
        before = read_versions(connection)
    running.store.close()
    study.url = f"sqlite:///{tmp_path / 'other.db'}"
    other = study.open()
    restore(other.store, other.design, other.units, tmp_path / "copy.db")
    with other.store.reading() as connection:
        assert read_versions(connection) == before
    other.store.close()


def test_the_command_shows_first_and_records_with_a_reason(
    begun: tuple[Begun, Running, TestClient],
) -> None:
    study, *_ = begun
    CHANGES["a slip in a story"][0](study)
    study.write()
    database = ["--database", study.url]

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, ["study", "amend", str(study.file), *arguments])
        assert done.exit_code == 0, done.output
        return done.output

    shown = run(*database)
    assert "`word7` becomes `word-seven`" in shown
    assert "nothing was recorded" in shown
    recorded = json.loads(run(*database, "--why", "a slip", "--json"))
    assert recorded["recorded"] is True
    assert [one["number"] for one in recorded["versions"]] == [1, 2]
    assert re.search(r"version 2, \d{4}-\d\d-\d\dT\d\d:\d\dZ: a slip", run(*database))
