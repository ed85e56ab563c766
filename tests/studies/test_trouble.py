"""A database that cannot be written for a while: the page keeps the answer, /health says why."""

import contextlib
import html
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.commands import rows_of, write_rows
from tests.running_commands import run, running
from tests.studies_data import story_rows

from fabula.studies.design import new_study

HIDDEN = re.compile(r'type="hidden" name="([^"]+)" value="([^"]*)"')
ENDING = "1:narrative_ending"


@dataclass
class Reader:
    """Somebody who has a story before them, and the server that sent it."""

    process: subprocess.Popen[str]
    browser: httpx.Client
    form: dict[str, str]

    def save(self, **answers: str) -> httpx.Response:
        return self.browser.post("/save", data=self.form | answers)

    def send_page(self, **answers: str) -> httpx.Response:
        return self.browser.post("/page/story-1", data=self.form | {"go": ""} | answers)

    def saved(self) -> str:
        """The page as it is sent anew."""
        return self.browser.get("/page/story-1").text


@contextlib.contextmanager
def reading(folder: Path, database: str) -> Iterator[Reader]:
    documents = write_rows(folder / "s.jsonl", story_rows(1, 2))
    study = folder / "study.toml"
    new_study(study, "ttcw", documents)
    place = (str(study), "--database", database)
    token = run("study", "invite", *place, "1").stdout.strip().rpartition("/")[2]
    with (
        running("study", "serve", *place, "--port", "0") as (process, url),
        httpx.Client(base_url=url, follow_redirects=True, timeout=120) as browser,
    ):
        form = dict(HIDDEN.findall(browser.get(f"/i/{token}").text))
        browser.post("/consent", data=form)
        yield Reader(process, browser, dict(HIDDEN.findall(browser.get("/page/story-1").text)))


@contextlib.contextmanager
def locked(database: str) -> Iterator[None]:
    """Another program that has begun to write, and does not end."""
    if database.startswith("sqlite"):
        other: Any = sqlite3.connect(database.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    else:
        psycopg = pytest.importorskip("psycopg")
        other = psycopg.connect(database)
        other.execute("LOCK TABLE answers, assignments, settings IN ACCESS EXCLUSIVE MODE")
    try:
        yield
    finally:
        other.rollback()
        other.close()


def test_a_lock_stalls_nothing_else_and_the_page_keeps_the_answer(tmp_path: Path, database: str):
    with reading(tmp_path, database) as reader:
        browser = reader.browser
        ended: list[int] = []

        def save() -> None:
            ended.append(reader.save(**{ENDING: "Yes"}).status_code)

        # More than the server has threads for.
        waiting = [threading.Thread(target=save) for _ in range(12)]
        with locked(database):
            for thread in waiting:
                thread.start()
            assert browser.get("/static/study.css").status_code == 200
            health = browser.get("/health")
            assert ended == [], "the saves are still waiting"
            assert health.status_code == 503
            assert health.json() == {
                "ok": False, "problem": "another program is using the study's database",
            }  # fmt: skip
            for thread in waiting:
                thread.join()
            assert ended == [503] * 12
            page = reader.send_page(**{ENDING: "No", f"{ENDING}.why": 'It "stops" & <b>'})
            assert page.status_code == 503
            assert page.headers["retry-after"]
            assert "Not saved yet" in page.text
        # What a browser without JavaScript sends when "Try again" is pressed.
        (action,) = re.findall(r'<form method="post" action="([^"]+)"', page.text)
        kept = {name: html.unescape(value) for name, value in HIDDEN.findall(page.text)}
        assert "Saved" in browser.post(action, data=kept).text
        page_now = reader.saved()
        assert 'value="No" checked' in page_now
        assert "It &#34;stops&#34; &amp; &lt;b&gt;" in page_now
        reader.process.send_signal(signal.SIGTERM)
        assert reader.process.wait(60) == 0


def test_a_save_that_is_let_through_in_time_waits_and_is_taken(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'study.db'}"
    with reading(tmp_path, database) as reader:
        holding = contextlib.ExitStack()
        holding.enter_context(locked(database))
        codes: list[int] = []
        thread = threading.Thread(
            target=lambda: codes.append(reader.save(**{ENDING: "Yes"}).status_code)
        )
        thread.start()
        thread.join(0.5)
        assert thread.is_alive(), "it waits"
        # SQLite's connections belong to the thread that made them.
        holding.close()
        thread.join()
        assert codes == [200]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 12 MB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=12m", "none", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_loses_nothing_and_is_told(small_disk: Path):
    database = f"sqlite:///{small_disk / 'study.db'}"
    with reading(small_disk, database) as reader:
        assert reader.save(**{ENDING: "Yes"}).status_code == 200
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        # SQLite writes over what its log no longer needs, so a few more saves may fit.
        last = ""
        for number in range(400):
            refused = reader.save(**{f"{ENDING}.why": f"because {number}"})
            if refused.status_code != 200:
                break
            last = f"because {number}"
        assert refused.status_code == 503
        assert "disk with the study&#39;s database is full" in refused.text
        health = reader.browser.get("/health")
        assert health.json() == {
            "ok": False, "problem": "the disk with the study's database is full",
        }  # fmt: skip
        filler.unlink()
        page = reader.saved()
        assert 'value="Yes" checked' in page
        assert last in page
        assert reader.save(**{f"{ENDING}.why": "there is room again"}).status_code == 200
        reader.process.send_signal(signal.SIGTERM)
        assert reader.process.wait(60) == 0
    assert exported(small_disk / "study.toml", small_disk)[0]["rationale"] == "there is room again"


def exported(study: Path, folder: Path) -> list[dict[str, Any]]:
    out = folder / "answers.jsonl"
    run("study", "export", str(study), "--unfinished", "--out", str(out))
    rows = rows_of(out)
    return [row for row in rows if row["value"] is not None]


def test_what_people_answered_is_their_organiser_s_alone(tmp_path: Path):
    old = os.umask(0o022)
    try:
        database = f"sqlite:///{tmp_path / 'study.db'}"
        with reading(tmp_path, database) as reader:
            assert reader.save(**{ENDING: "Yes"}).status_code == 200
            files = [tmp_path / f"study.db{end}" for end in ("", "-wal", "-shm")]
            assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 3
        assert exported(tmp_path / "study.toml", tmp_path)
        assert (tmp_path / "answers.jsonl").stat().st_mode & 0o777 == 0o600
        # One that somebody opened to everybody.
        (tmp_path / "study.db").chmod(0o644)
        run("study", "invite", str(tmp_path / "study.toml"), "1")
        assert (tmp_path / "study.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_stop_beside_a_reader_and_a_half_sent_request_saves_all_it_can(tmp_path: Path, name: str):
    database = f"sqlite:///{tmp_path / 'study.db'}"
    with reading(tmp_path, database) as reader:
        other = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM answers").fetchone()
        assert reader.save(**{ENDING: "Yes"}).status_code == 200
        url = reader.browser.base_url
        half = socket.create_connection((url.host, url.port))
        half.sendall(b"POST /save HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        reader.process.send_signal(signal.Signals[name])
        assert reader.process.wait(90) == 0
        half.close()
        said = reader.process.stdout.read()
        assert "study.db-wal beside it: copy both" in said
        # Not after all the time that a request under way may take.
        assert "graceful shutdown exceeded" not in said
        assert "Traceback" not in said
        alone = tmp_path / "alone"
        alone.mkdir()
        for file in ("study.toml", "s.jsonl", "study.db"):
            shutil.copy(tmp_path / file, alone)
        other.close()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        exported(alone / "study.toml", alone)
    assert "copied without its log, study.db-wal" in refused.value.stderr
    assert not (alone / "answers.jsonl").exists()
    assert len(exported(tmp_path / "study.toml", tmp_path)) == 1


def test_a_copy_that_is_taken_with_its_log_is_whole(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'study.db'}"
    copy = tmp_path / "copy"
    copy.mkdir()
    with reading(tmp_path, database) as reader:
        assert reader.save(**{ENDING: "Yes"}).status_code == 200
        for file in ("study.toml", "s.jsonl", "study.db", "study.db-wal"):
            shutil.copy(tmp_path / file, copy)
    assert [row["value"] for row in exported(copy / "study.toml", copy)] == [1.0]
    # Read once and closed, it needs no log any more.
    assert [row["value"] for row in exported(copy / "study.toml", copy)] == [1.0]
