"""A started study stays as participants were given it; before, everything can be edited."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.commands import refused
from tests.studies.test_app import Running, hidden
from tests.studies_data import story_rows

from fabula.core.errors import InputError
from fabula.core.types import Measurement
from fabula.studies.app import create_app
from fabula.studies.design import load_study, new_study
from fabula.studies.exporting import export
from fabula.studies.study_engine import back_up, open_store, restore
from fabula.studies.units import read_units


@dataclass
class Files:
    """The files of a study, to be changed."""

    folder: Path
    url: str
    rows: list[dict[str, Any]]

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

    def open(self) -> Running:
        design = load_study(self.file)
        units = read_units(design)
        store = open_store(design, units, self.url)
        return Running(design, units, store, create_app(design, units, store))

    def answers(self) -> list[Measurement]:
        running = self.open()
        units = {unit.key: unit for unit in running.units}
        with running.store.reading() as connection:
            found = list(export(connection, running.design, units, unfinished=True))
        running.store.close()
        return [one for one in found if one.value is not None]


@pytest.fixture
def files(tmp_path: Path, database: str) -> Files:
    """Two groups of two stories."""
    files = Files(tmp_path, database, story_rows(2, 2))
    files.write()
    new_study(files.file, "ttcw", tmp_path / "documents.jsonl")
    return files


@pytest.fixture
def started(files: Files) -> tuple[Files, TestClient]:
    """One of the stories has been given to somebody, who has answered a question about it."""
    running = files.open()
    reader = running.reader()
    form = hidden(reader.get("/page/story-1")) | {"1:narrative_ending": "Yes"}
    assert reader.post("/save", data=form).json()["problems"] == {}
    running.store.close()
    return files, reader


CHANGES: dict[str, tuple[Callable[[Files], object], str]] = {
    "thanks": (lambda s: s.edit('# thanks = "Thank', 'thanks = "We thank'), "texts.thanks from"),
    "consent": (lambda s: s.edit("under a number,", "under a code,"), "texts.consent from"),
    "reasons": (lambda s: s.edit("reason_words = 4", "reason_words = 9"), "reason_words from"),
    "order": (lambda s: s.edit("seed = 0", "seed = 1"), "seed from"),
    "rubric": (lambda s: s.edit('rubric = "ttcw"', 'rubric = "comparison"'), "rubric from"),
    "an author": (lambda s: s.rows[0].update(author="Somebody"), "document [^,]+ from"),
    "a slip": (lambda s: s.rows[1].update(text=s.rows[1]["text"] + " x"), "document [^,]+ from"),
    "all stories": (
        lambda s: [row.update(text="Another.") for row in s.rows],
        "document .*, document .*, document .* and 1 more from",
    ),
    "one fewer": (lambda s: s.rows.pop(0), "document .*, the groups of documents from"),
    "a group more": (
        lambda s: s.rows.extend(
            {"id": f"new{k}", "author": k, "group": "new", "text": "A new tale."} for k in "ab"
        ),
        "the groups of documents, document newa, document newb from",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_file_is_refused_in_a_sentence_that_names_what_differs(
    started: tuple[Files, TestClient], what: str
):
    files, _ = started
    before = files.answers()
    kept = files.file.read_text(), json.dumps(files.rows)
    change, named = CHANGES[what]
    change(files)
    files.write()
    with pytest.raises(InputError, match=f"differs in {named} the study that part") as caught:
        files.open()
    assert "put it back, or copy it under another name with a new database" in str(caught.value)
    assert "\n" not in str(caught.value)
    # Put back, it has all its answers; the changed file with another database is a new study.
    changed = files.file.read_text()
    (files.folder / "copy").mkdir()
    copy = Files(files.folder / "copy", f"sqlite:///{files.folder / 'copy.db'}", files.rows)
    copy.write()
    copy.file.write_text(changed)
    assert copy.answers() == []
    files.rows = json.loads(kept[1])
    files.file.write_text(kept[0])
    files.write()
    assert files.answers() == before
    assert len(before) == 1


def test_what_nobody_sees_may_change_after_the_start(started: tuple[Files, TestClient]):
    files, _ = started
    before = files.answers()
    files.edit("raters = 3", "raters = 5")
    assert "completion_code = " in files.file.read_text()
    files.edit("title = ", 'title = "Another" # ')
    assert files.answers() == before


def test_until_somebody_has_a_text_everything_can_be_edited(files: Files):
    files.open().store.close()
    for change, _ in CHANGES.values():
        change(files)
        files.write()
        files.open().store.close()


def test_a_server_that_shows_the_old_file_gives_out_nothing_once_the_new_one_is_started(
    files: Files,
):
    old = files.open()
    late = old.visitor()
    page = late.get("/")
    files.edit('# thanks = "Thank', 'thanks = "We thank')
    new = files.open()
    new.reader().get("/page/story-1")
    answer = late.post("/consent", data=hidden(page) | {"agree": "yes"})
    assert answer.status_code == 503
    assert "being changed" in answer.text
    for one in (old, new):
        one.store.close()


def test_a_backup_is_as_frozen_as_its_study(started: tuple[Files, TestClient], tmp_path: Path):
    files, _ = started
    running = files.open()
    back_up(running.store, tmp_path / "copy.db")
    running.store.close()
    files.url = f"sqlite:///{tmp_path / 'other.db'}"
    other = files.open()
    restore(other.store, other.design, other.units, tmp_path / "copy.db")
    other.store.close()
    assert len(files.answers()) == 1
    CHANGES["thanks"][0](files)
    with pytest.raises(InputError, match=r"differs in texts\.thanks"):
        files.open()
    files.url = f"sqlite:///{tmp_path / 'third.db'}"
    third = files.open()
    with pytest.raises(InputError, match=r"differs in texts\.thanks"):
        restore(third.store, third.design, third.units, tmp_path / "copy.db")
    third.store.close()


def test_every_command_says_so(started: tuple[Files, TestClient], tmp_path: Path):
    files, _ = started
    CHANGES["order"][0](files)
    more = {"export": ["--out", str(tmp_path / "o.jsonl")], "invite": ["3"], "serve": []}
    for command, words in more.items():
        given = ["study", command, str(files.file), *words, "--database", files.url]
        assert "differs in seed from the study that participants were given" in refused(*given)
