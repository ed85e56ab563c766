"""Desk, study and served reference under load for a while, with restarts in between.

    python bench/soak.py [--minutes 30] [--lives 3] [--readers 3] [--smoke]

Each server runs as its command in a process of its own, is asked without pause by some readers, is
stopped by SIGTERM and started again. Printed of each life: memory and open files after the first
fifth and at the end, and how long answers took. Fails where memory grows by more than a tenth and
20 MB, or files stay open, or an answer is lost, or one request in a hundred finds a server busy, or
one does not stop in order.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

import corpora
import fabula
from fabula.core.types import Document
from fabula.reference.search import Reference
from fabula.studies.design import new_study

HIDDEN = re.compile(r'name="(csrf|page|unit|revision|shown)" value="([^"]*)"')
ENVIRONMENT = {**os.environ, "FABULA_STUDY_PASSWORD": "a secret of ours",
               "PYTHONPATH": str(Path(fabula.__file__).parents[1])}  # fmt: skip
_PAUSE_S = 0.1
"""Between requests of a reader: the servers limit what one address may ask."""
_MAX_GROWTH, _MAX_GROWTH_MB, _MAX_FILES, _MAX_BUSY = 1.1, 20, 8, 0.01


@dataclass
class Life:
    """What was seen between a start and a stop."""

    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    n_slowed: int = 0
    n_busy: int = 0
    """Answers of 503 that say when to come back: what was sent can be sent again."""
    early: tuple[float, int] = (0.0, 0)
    """Memory in MB, and open files."""
    late: tuple[float, int] = (0.0, 0)


Visit = Callable[[httpx.Client, str, int], httpx.Response]
"""One request: by the browser, to the server's address, as the n-th of this reader."""


@dataclass
class Server:
    """A command that serves, and what is asked of it."""

    name: str
    words: tuple[str, ...]
    visit: Visit
    lost: Callable[[], list[str]] = list
    """What was said to be kept and is not there."""
    lives: list[Life] = field(default_factory=list)


def desk(folder: Path) -> Server:
    """Drafts are typed, kept and shown; none is measured, which would be other programs' work."""
    csrf: dict[int, str] = {}

    def visit(browser: httpx.Client, address: str, n: int) -> httpx.Response:
        home = f"http://{httpx.URL(address).netloc.decode()}"
        key = id(browser)
        if key not in csrf:
            page = browser.get(address)
            csrf[key] = dict(HIDDEN.findall(page.text))["csrf"]
            return page
        if n % 2:
            return browser.get(f"{home}/")
        form = {"csrf": csrf[key], "text": f"The lamp went out {n} times. " * 50, "typed": "1"}
        return browser.post(f"{home}/writing", data=form)

    return Server(
        "desk", ("desk", "--port", "0", "--dir", str(folder / "desk"), "--no-open"), visit
    )


def study(folder: Path, n_readers: int) -> Server:
    rows = [{"id": f"s{k}", "text": f"Story {k}. It ends. " * 60, "group": f"g{k // 2}"}
            for k in range(2 * n_readers)]  # fmt: skip
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = folder / "study.toml"
    new_study(file, "ttcw", folder / "s.jsonl")
    done = subprocess.run(
        [corpora.FABULA, "study", "invite", str(file), str(n_readers)],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    links = re.findall(r"/i/(\S+)", done.stdout)
    mine: dict[int, str] = {}
    kept: dict[str, float] = {}
    lock = threading.Lock()

    def visit(browser: httpx.Client, address: str, n: int) -> httpx.Response:
        key = id(browser)
        with lock:
            is_new = key not in mine
            if is_new:
                mine[key] = links[len(mine) % len(links)]
        if is_new:
            page = browser.get(f"{address}/i/{mine[key]}")
            form = dict(HIDDEN.findall(page.text))
            return browser.post(f"{address}/consent", data=form) if "csrf" in form else page
        page = browser.get(f"{address}/page/story-1")
        form = dict(HIDDEN.findall(page.text))
        if "revision" not in form:
            return page
        answer = {"1:narrative_ending": "Yes" if n % 2 else "No"}
        saved = browser.post(f"{address}/save", data=form | answer)
        if saved.status_code == 200 and saved.json()["problems"]:
            raise ValueError(f"not saved: {saved.text[:200]}")
        if saved.status_code == 200:
            kept[mine[key]] = float(n % 2)
        return saved

    def lost() -> list[str]:
        out = folder / "answers.jsonl"
        words = "study", "export", str(file), "--unfinished", "--out", str(out)
        subprocess.run([corpora.FABULA, *words], check=True, env=ENVIRONMENT)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        there = sorted(row["value"] for row in rows if row["value"] is not None)
        said = sorted(kept.values())
        return [] if there == said else [f"study: {said} were saved, {there} are there"]

    return Server("study", ("study", "serve", str(file), "--port", "0"), visit, lost)


def service(folder: Path) -> Server:
    line = "the sea was calm and the lamp went out before the ferry came in with the post"
    words = line.split()
    texts = [Document(f"d{k}", " ".join(words[k % 7 :] * 30)) for k in range(50)]
    Reference.build(texts, folder / "r.ref").close()
    known = sorted(set(words))
    states: dict[str, str] = {}

    def visit(browser: httpx.Client, address: str, n: int) -> httpx.Response:
        home = address.rstrip("/")
        if home not in states:
            states[home] = browser.get(f"{home}/v1/about").json()["state"]
        places = [1 + known.index(word) for word in words[n % 5 :] * 20]
        asked = {"state": states[home], "words": known, "places": places}
        return browser.post(f"{home}/v1/match", json=asked)

    return Server("service", ("reference", "serve", str(folder / "r.ref"), "--port", "0"), visit)


def live(server: Server, seconds: float, n_readers: int) -> Life:
    """One start, load, and stop."""
    life = Life()
    process = subprocess.Popen(
        [corpora.FABULA, *server.words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = next(
            found[0].rstrip(",.")
            for line in process.stdout
            if (found := re.search(r"http://[\d.]+:\d+\S*", line))
        )
        threading.Thread(target=process.stdout.read, daemon=True).start()
        until = time.monotonic() + seconds
        readers = [
            threading.Thread(target=_read, args=(server, address, until, life))
            for _ in range(n_readers)
        ]
        for reader in readers:
            reader.start()
        time.sleep(seconds / 5)
        life.early = used(process.pid)
        for reader in readers:
            reader.join()
        # Connections that the readers have closed are gone soon.
        time.sleep(min(2.0, seconds / 5))
        life.late = used(process.pid)
        process.send_signal(signal.SIGTERM)
        if (code := process.wait(60)) != 0:
            life.faults.append(f"ended with code {code}")
    finally:
        process.kill()
        process.wait()
    return life


def _read(server: Server, address: str, until: float, life: Life) -> None:
    n = 0
    with httpx.Client(follow_redirects=True, timeout=60) as browser:
        while time.monotonic() < until:
            begin = time.perf_counter()
            try:
                answer = server.visit(browser, address, n)
            except (httpx.HTTPError, ValueError, KeyError) as error:
                life.faults.append(f"{type(error).__name__}: {error}")
            else:
                life.seconds.append(time.perf_counter() - begin)
                if answer.status_code == 429:
                    life.n_slowed += 1
                elif answer.status_code == 503 and "retry-after" in answer.headers:
                    life.n_busy += 1
                elif answer.status_code >= 400:
                    life.faults.append(f"HTTP {answer.status_code} of {answer.url.path}")
            n += 1
            time.sleep(_PAUSE_S)


def used(pid: int) -> tuple[float, int]:
    """MB in memory, and open files, of a process and those it started."""
    memory, files = 0.0, 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        try:
            status = Path(f"/proc/{one}/status").read_text()
            memory += int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
            files += len(os.listdir(f"/proc/{one}/fd"))
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, TypeError):
            continue
    return memory, files


def faults_of(server: Server) -> list[str]:
    found = []
    for number, life in enumerate(server.lives, 1):
        found += [f"{server.name}, life {number}: {one}" for one in life.faults[:5]]
        if life.n_busy > _MAX_BUSY * len(life.seconds):
            found.append(f"{server.name}, life {number}: {life.n_busy} times busy")
        (early, n_early), (late, n_late) = life.early, life.late
        if late > early * _MAX_GROWTH and late > early + _MAX_GROWTH_MB:
            found.append(f"{server.name}, life {number}: memory {early:.0f} to {late:.0f} MB")
        if n_late > n_early + _MAX_FILES:
            found.append(f"{server.name}, life {number}: open files {n_early} to {n_late}")
    return found


def main() -> None:
    options = corpora.options(__doc__, minutes=30.0, lives=3, readers=3)
    lives = 1 if corpora.SMOKE else options.lives
    seconds = 1.0 if corpora.SMOKE else options.minutes * 60 / lives
    with corpora.scratch() as folder:
        servers = [desk(folder), study(folder, options.readers), service(folder)]
        for number in range(1, lives + 1):
            threads = [
                threading.Thread(
                    target=lambda one: one.lives.append(live(one, seconds, options.readers)),
                    args=(server,),
                )
                for server in servers
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for server in servers:
                if len(server.lives) < number:
                    sys.exit(f"{server.name}: life {number} broke off")
                print(_line(server, number), flush=True)
        found = [one for server in servers for one in (*faults_of(server), *server.lost())]
    if not corpora.SMOKE:
        found += [f"{one.name}: was not asked" for one in servers if not one.lives[-1].seconds]
    print("\n".join(found) if found else "memory flat, no file left open, every answer there")
    sys.exit(1 if found else 0)


def _line(server: Server, number: int) -> str:
    life = server.lives[number - 1]
    middle, high, tail = np.percentile(life.seconds or [0.0], [50, 99, 99.9]) * 1000
    return (
        f"{server.name}, life {number}: {len(life.seconds):,} requests, {middle:.0f} ms in the "
        f"middle, {high:.0f} at 99 %, {tail:.0f} at 99.9 %; {life.early[0]:.0f} to "
        f"{life.late[0]:.0f} MB, {life.early[1]} to {life.late[1]} files; {life.n_slowed} slowed, "
        f"{life.n_busy} busy"
    )


if __name__ == "__main__":
    main()
