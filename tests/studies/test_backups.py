"""A started study stays as participants were given it, and so do its backups; what is put back."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.commands import write_rows
from tests.studies.running import ENDING, Running, hidden, open_study, save, send, tales

from fabula.core.errors import InputError
from fabula.core.types import Measurement
from fabula.studies.database import answers, audit, metadata, sessions
from fabula.studies.design import new_study
from fabula.studies.participants import forget
from fabula.studies.study_engine import back_up, open_store, restore


def rows_of(running: Running) -> dict[str, list[Any]]:
    return {table.name: running.rows(table) for table in metadata.sorted_tables
            if table is not sessions}  # fmt: skip


@pytest.fixture
def answered(study: Running) -> Running:
    save(study.reader())
    return study


@pytest.fixture
def new(answered: Running, tmp_path: Path) -> Iterator[Running]:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    found = replace(answered, store=open_store(answered.design, answered.units, url))
    yield found
    found.store.close()


def put_back(into: Running, path: Path) -> Any:
    return restore(into.store, into.design, into.units, path)


def test_what_was_backed_up_is_put_back_to_the_last_row(
    running: Running, other: str, tmp_path: Path
):
    backup = tmp_path / "backup.db"
    reader = running.reader()
    save(reader)
    save(reader, "Ende gut, ünd \x01 'so'", f"{ENDING}.why")
    save(reader, "")
    with running.store.writing() as connection:
        forget(connection, 1, "test")
    save(running.reader(), "No")
    done = back_up(running.store, backup)
    assert (done.n_answers, done.n_people) == (1, 2)
    assert backup.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.glob("*backup*")] == ["backup.db"]
    before = backup.read_bytes()
    again = replace(running, store=open_store(running.design, running.units, other))
    try:
        found = put_back(again, backup)
        assert (found.n_answers, found.n_people, found.lacked_log) == (1, 2, False)
        assert rows_of(again) == rows_of(running)
        assert backup.read_bytes() == before
        # What comes next gets numbers of its own.
        again.invited()
        with pytest.raises(InputError, match="already contains people"):
            put_back(again, backup)
    finally:
        again.store.close()


def test_a_backup_is_of_one_moment_while_people_answer(running: Running, tmp_path: Path):
    reader = running.reader()
    form = hidden(reader.get("/page/story-1"))
    over = threading.Event()
    n_saved = 0

    def answer() -> None:
        nonlocal n_saved
        while not over.is_set():
            value = ("Yes", "No")[n_saved % 2]
            assert reader.post("/save", data=form | {ENDING: value}).status_code == 200
            n_saved += 1

    thread = threading.Thread(target=answer)
    thread.start()
    found = []
    for number in range(5):
        at_least = n_saved
        done = back_up(running.store, tmp_path / f"{number}.db")
        found.append((at_least, done.n_answers, n_saved + 1))
    over.set()
    thread.join()
    assert all(low <= n <= high for low, n, high in found), found
    for number, (_, n, _) in enumerate(found):
        with sqlite3.connect(tmp_path / f"{number}.db") as connection:
            assert connection.execute("SELECT count(*) FROM answers").fetchone() == (n,)


def test_no_backup_is_put_over_nor_back_damaged(answered: Running, new: Running, tmp_path: Path):
    back_up(answered.store, tmp_path / "backup.db")
    with pytest.raises(InputError, match="already exists"):
        back_up(answered.store, tmp_path / "backup.db")
    whole = (tmp_path / "backup.db").read_bytes()
    damaged = {"text": b"not a database URL", "half": whole[: len(whole) // 2],
               "worn": whole[:4096] + bytes(4096) + whole[8192:]}  # fmt: skip
    for name, data in damaged.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=name):
            put_back(new, tmp_path / name)
    assert new.rows(answers) == new.rows(audit) == []


def test_a_copy_without_its_log_can_be_put_back(answered: Running, new: Running, tmp_path: Path):
    reader = answered.reader()
    answered.store.checkpoint()
    save(reader, "Yes", "1:scene_vs_summary")
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(tmp_path / "study.db", alone / "study.db")
    answered.store.close()
    with pytest.raises(InputError, match="without its log"):
        open_store(answered.design, answered.units, f"sqlite:///{alone / 'study.db'}")
    found = put_back(new, alone / "study.db")
    # What was checkpointed, and not what came after it.
    assert (found.n_answers, found.lacked_log) == (1, True)


@pytest.mark.parametrize("size", [3000, 20_000])
def test_a_damaged_study_says_so_and_names_the_backup(answered: Running, size: int):
    path = answered.store.file
    answered.store.close()
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(InputError, match=r"the file is damaged.*restore your last backup"):
        open_store(answered.design, answered.units)


@dataclass
class Files:
    """The files of a study, to be changed."""

    folder: Path
    url: str
    rows: list[dict[str, Any]]
    ending: ExitStack

    @property
    def file(self) -> Path:
        return self.folder / "study.toml"

    def edit(self, old: str, new: str) -> None:
        content = self.file.read_text()
        assert old in content
        self.file.write_text(content.replace(old, new, 1))

    def open(self) -> Running:
        """Until the test ends."""
        write_rows(self.folder / "documents.jsonl", self.rows)
        running = open_study(self.file, self.url)
        self.ending.callback(running.store.close)
        return running

    def answers(self) -> list[Measurement]:
        found = self.open().measured(unfinished=True)
        return [one for one in found if one.value is not None]


@pytest.fixture
def files(tmp_path: Path, database: str) -> Iterator[Files]:
    with ExitStack() as ending:
        files = Files(tmp_path, database, tales(2, 2), ending)
        documents = write_rows(tmp_path / "documents.jsonl", files.rows)
        new_study(files.file, "ttcw", documents)
        yield files


@pytest.fixture
def started(files: Files) -> Files:
    """One of the stories has been given to somebody, who has answered a question about it."""
    save(files.open().reader())
    return files


CHANGES: dict[str, tuple[Callable[[Files], object], str]] = {
    "thanks": (lambda s: s.edit('# thanks = "Thank', 'thanks = "We thank'), "texts.thanks from"),
    "consent": (lambda s: s.edit("under a number,", "under a code,"), "texts.consent from"),
    "reasons": (lambda s: s.edit("reason_words = 4", "reason_words = 9"), "reason_words from"),
    "order": (lambda s: s.edit("seed = 0", "seed = 1"), "seed from"),
    "rubric": (lambda s: s.edit('rubric = "ttcw"', 'rubric = "comparison"'), "rubric from"),
    "a question": (
        lambda s: s.edit("[texts]", '[[about]]\nid = "age"\nquestion = "Old?"\n[texts]'),
        "tutorial, about, attention or repeat from",
    ),
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


def test_a_changed_file_is_refused_in_a_sentence_that_names_what_differs(started: Files):
    before, text, rows = started.answers(), started.file.read_text(), deepcopy(started.rows)
    assert len(before) == 1
    for what, (change, named) in CHANGES.items():
        change(started)
        with pytest.raises(InputError, match=f"differs in {named} the study that part") as caught:
            started.open()
        assert "put it back, or copy it under another name with a new database" in str(caught.value)
        assert "\n" not in str(caught.value)
        # With another database it is a new study; put back, it has all its answers.
        assert replace(started, url=f"sqlite:///{started.folder / what}.db").answers() == []
        started.rows = deepcopy(rows)
        started.file.write_text(text)
        assert started.answers() == before


def test_what_nobody_sees_may_change_after_the_start_but_for_the_id(started: Files):
    before = started.answers()
    # The other group first.
    started.rows = started.rows[2:] + started.rows[:2]
    started.edit("raters = 3", "raters = 5")
    started.edit("title = ", 'title = "Another" # ')
    assert started.answers() == before
    started.edit('id = "study"', 'id = "other"')
    with pytest.raises(InputError, match="another study"):
        started.open()


def test_until_somebody_has_a_text_everything_can_be_edited(files: Files):
    files.open()
    for change, _ in CHANGES.values():
        change(files)
        files.open()


def test_a_server_of_the_old_file_gives_nothing_out_once_the_new_one_is_started(files: Files):
    old = files.open()
    late = old.visitor()
    page = late.get("/")
    CHANGES["thanks"][0](files)
    files.open().reader().get("/page/story-1")
    answer = send(late, "/consent", page, agree="yes")
    assert answer.status_code == 503
    assert "being changed" in answer.text


def test_a_backup_is_as_frozen_as_its_study(started: Files, tmp_path: Path):
    back_up(started.open().store, tmp_path / "copy.db")
    started.url = f"sqlite:///{tmp_path / 'other.db'}"
    put_back(started.open(), tmp_path / "copy.db")
    assert len(started.answers()) == 1
    CHANGES["thanks"][0](started)
    started.url = f"sqlite:///{tmp_path / 'third.db'}"
    with pytest.raises(InputError, match=r"differs in texts\.thanks"):
        put_back(started.open(), tmp_path / "copy.db")
