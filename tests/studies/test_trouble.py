"""A database that cannot be written for a while: the page keeps the answer, /health says why."""

import contextlib
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.commands import invoke, refused, rows_of, write_rows
from tests.running_commands import running
from tests.studies.running import ENDING, hidden, tales

from fabula.studies.design import new_study


@dataclass
class Reader:
    """Somebody who has a story before them, and the server that sent it."""

    process: subprocess.Popen[str]
    browser: httpx.Client
    form: dict[str, str]

    def save(self, item: str = ENDING, value: str = "Yes") -> int:
        return self.browser.post("/save", data=self.form | {item: value}).status_code

    def saved(self) -> str:
        """The page as it is sent anew."""
        return self.browser.get("/page/story-1").text

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        assert self.process.wait(90) == 0


@contextlib.contextmanager
def reading(folder: Path, database: str = "") -> Iterator[Reader]:
    study = folder / "study.toml"
    new_study(study, "ttcw", write_rows(folder / "s.jsonl", tales(1, 2)))
    place = (str(study), "--database", database or f"sqlite:///{folder / 'study.db'}")
    token = invoke("study", "invite", *place, "1").stdout.strip().rpartition("/")[2]
    with (
        running("study", "serve", *place, "--port", "0") as (process, url),
        httpx.Client(base_url=url, follow_redirects=True, timeout=120) as browser,
    ):
        browser.post("/consent", data=hidden(browser.get(f"/i/{token}")))
        yield Reader(process, browser, hidden(browser.get("/page/story-1")))


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
    with reading(tmp_path, database) as reader, ThreadPoolExecutor(12) as pool:
        browser = reader.browser
        with locked(database):
            saving = pool.submit(reader.save)
            assert not wait([saving], 0.5).done, "it waits"
        assert saving.result() == 200, "what is let through in time is taken"
        with locked(database):
            # More than the server has threads for.
            waiting = [pool.submit(reader.save) for _ in range(12)]
            assert browser.get("/static/study.css").status_code == 200
            health = browser.get("/health")
            assert not any(one.done() for one in waiting), "the saves are still waiting"
            assert health.status_code == 503
            used = "another program is using the study's database"
            assert health.json() == {"ok": False, "problem": used}
            assert [one.result() for one in waiting] == [503] * 12
            said = {ENDING: "No", f"{ENDING}.why": 'It "stops" & <b>', "go": ""}
            page = browser.post("/page/story-1", data=reader.form | said)
            assert page.status_code == 503
            assert page.headers["retry-after"]
            assert "Not saved yet" in page.text
        # What a browser without JavaScript sends when "Try again" is pressed.
        (action,) = re.findall(r'<form method="post" action="([^"]+)"', page.text)
        assert "Saved" in browser.post(action, data=hidden(page)).text
        page_now = reader.saved()
        assert 'value="No" checked' in page_now
        assert "It &#34;stops&#34; &amp; &lt;b&gt;" in page_now
        reader.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=12m", "none", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_loses_nothing_and_is_told(small_disk: Path):
    why = f"{ENDING}.why"
    with reading(small_disk) as reader:
        assert reader.save() == 200
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        # SQLite writes over what its log no longer needs, so a few more saves may fit.
        for number in range(400):
            found = reader.browser.post("/save", data=reader.form | {why: f"because {number}"})
            if found.status_code != 200:
                break
        assert found.status_code == 503
        assert "disk with the study&#39;s database is full" in found.text
        full = "the disk with the study's database is full"
        assert reader.browser.get("/health").json() == {"ok": False, "problem": full}
        filler.unlink()
        page = reader.saved()
        assert 'value="Yes" checked' in page
        assert not number or f"because {number - 1}<" in page
        assert reader.save(why, "there is room again") == 200
        reader.stop()
    assert exported(small_disk)[0]["rationale"] == "there is room again"


def export(folder: Path) -> tuple[object, ...]:
    out = folder / "answers.jsonl"
    return "study", "export", folder / "study.toml", "--unfinished", "--out", out


def exported(folder: Path) -> list[dict[str, Any]]:
    invoke(*export(folder))
    return [row for row in rows_of(folder / "answers.jsonl") if row["value"] is not None]


def test_what_people_answered_is_their_organiser_s_alone(tmp_path: Path):
    def modes(*names: str) -> set[int]:
        return {(tmp_path / name).stat().st_mode & 0o777 for name in names}

    old = os.umask(0o022)
    try:
        with reading(tmp_path) as reader:
            assert reader.save() == 200
            assert modes("study.db", "study.db-wal", "study.db-shm") == {0o600}
        assert exported(tmp_path)
        assert modes("answers.jsonl") == {0o600}
        # One that somebody opened to everybody.
        (tmp_path / "study.db").chmod(0o644)
        invoke("study", "invite", tmp_path / "study.toml", "1")
        assert modes("study.db") == {0o600}
    finally:
        os.umask(old)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_beside_readers_and_half_a_request_saves_all(tmp_path: Path, how: signal.Signals):
    with reading(tmp_path) as reader:
        other = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM answers").fetchone()
        assert reader.save() == 200
        url = reader.browser.base_url
        with socket.create_connection((url.host, url.port)) as half:
            half.sendall(b"POST /save HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
            reader.stop(how)
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
    assert "copied without its log, study.db-wal" in refused(*export(alone))
    assert not (alone / "answers.jsonl").exists()
    # Read once with its log and closed, it needs no log any more.
    assert [len(exported(tmp_path)) for _ in range(2)] == [1, 1]
