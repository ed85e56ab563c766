"""Backups of a study that runs, and what is put back from them, in databases of both kinds."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.studies.test_app import ENDING, Running, hidden, make
from tests.studies_data import story_rows

from fabula.core.errors import InputError
from fabula.studies.database import Store, answers, audit, metadata, sessions
from fabula.studies.participants import forget, invite
from fabula.studies.study_engine import back_up, open_store, restore


@pytest.fixture(params=["sqlite", "postgresql"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where it is put back: an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'other.db'}"
    made: Callable[[], str] = request.getfixturevalue("new_postgres")
    return made()


def rows_of(store: Store) -> dict[str, list[tuple[object, ...]]]:
    with store.reading() as connection:
        return {
            table.name: sorted(tuple(row) for row in connection.execute(select(table)))
            for table in metadata.sorted_tables
            if table is not sessions
        }


def test_what_was_backed_up_is_put_back_to_the_last_row(
    running: Running, other: str, tmp_path: Path
):
    reader = running.reader()
    form = hidden(reader.get("/page/story-1"))
    reader.post("/save", data=form | {ENDING: "Yes", f"{ENDING}.why": "Ende gut, ünd \x01 'so'"})
    reader.post("/save", data=form | {ENDING: ""})
    with running.store.writing() as connection:
        forget(connection, 1, "test")
    reader = running.reader()
    reader.post("/save", data=hidden(reader.get("/page/story-1")) | {ENDING: "No"})
    done = back_up(running.store, tmp_path / "backup.db")
    assert (done.n_answers, done.n_people) == (1, 2)
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("*backup*")) == ["backup.db"]
    before = (tmp_path / "backup.db").read_bytes()
    store = open_store(running.design, running.units, other)
    try:
        found = restore(store, running.design, running.units, tmp_path / "backup.db")
        assert (found.n_answers, found.n_people, found.lacked_log) == (1, 2, False)
        assert rows_of(store) == rows_of(running.store)
        assert (tmp_path / "backup.db").read_bytes() == before
        # What comes next gets numbers of its own.
        with store.writing() as connection:
            invite(connection, 1, "test")
        with pytest.raises(InputError, match="already contains people"):
            restore(store, running.design, running.units, tmp_path / "backup.db")
    finally:
        store.close()


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


def test_nothing_is_put_over_and_nothing_damaged_is_put_back(tmp_path: Path):
    running = make(tmp_path, "ttcw", story_rows(1, 2))
    reader = running.reader()
    reader.post("/save", data=hidden(reader.get("/page/story-1")) | {ENDING: "Yes"})
    back_up(running.store, tmp_path / "backup.db")
    with pytest.raises(InputError, match="already exists"):
        back_up(running.store, tmp_path / "backup.db")
    whole = (tmp_path / "backup.db").read_bytes()
    store = open_store(running.design, running.units, f"sqlite:///{tmp_path / 'new.db'}")
    (tmp_path / "text").write_text("not a database URL")
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "worn").write_bytes(whole[:4096] + bytes(4096) + whole[8192:])
    try:
        for name in ("text", "half", "worn"):
            with pytest.raises(InputError, match=name):
                restore(store, running.design, running.units, tmp_path / name)
        with store.reading() as connection:
            for table in (answers, audit):
                count = connection.execute(select(func.count()).select_from(table))
                assert count.scalar_one() == 0
    finally:
        store.close()
        running.store.close()


def test_a_file_that_was_copied_without_its_log_can_be_put_back_and_says_so(tmp_path: Path):
    running = make(tmp_path, "ttcw", story_rows(1, 2))
    reader = running.reader()
    form = hidden(reader.get("/page/story-1"))
    reader.post("/save", data=form | {ENDING: "Yes"})
    running.store.checkpoint()
    reader.post("/save", data=form | {"1:scene_vs_summary": "Yes"})
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(tmp_path / "study.db", alone / "study.db")
    running.store.close()
    with pytest.raises(InputError, match="without its log"):
        open_store(running.design, running.units, f"sqlite:///{alone / 'study.db'}")
    store = open_store(running.design, running.units, f"sqlite:///{tmp_path / 'new.db'}")
    try:
        found = restore(store, running.design, running.units, alone / "study.db")
        # What was checkpointed, and not what came after it.
        assert (found.n_answers, found.lacked_log) == (1, True)
    finally:
        store.close()


@pytest.mark.parametrize("size", [3000, 20_000])
def test_a_damaged_study_says_so_and_names_the_backup(tmp_path: Path, size: int):
    running = make(tmp_path, "ttcw", story_rows(1, 2))
    running.visitor()
    path = running.store.file
    running.store.close()
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(InputError, match=r"the file is damaged.*restore your last backup"):
        open_store(running.design, running.units)
