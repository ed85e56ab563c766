"""Ctrl-C and SIGTERM while the desk does something: how soon everything has ended, and what stays.

    python bench/stopping.py [--tries 50] [--words 20000] [--smoke]

Each try opens a desk of its own, lets it do one thing after another in turn (start, read a draft in
several processes, wait for the writer's answer, read with a language model, wait for a service that
does not answer), and ends it at a random moment: Ctrl-C as the signal to all processes of a
terminal, SIGTERM to the desk alone. Fails where one takes over five seconds, leaves a process,
prints a traceback, ends with another code than 0, or loses what was typed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path

import httpx

import corpora
import fabula
from fabula.text import read_documents

_MAX_S = 5.0
_WAITS = ("starting", "reading", "question", "fluency", "service")
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(fabula.__file__).parents[1])}


class Desk:
    """A desk in a session of its own, with a browser that was let in."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fabula", "desk", "--port=0", f"--dir={folder}", "--no-open"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env=_ENVIRONMENT | {"FABULA_CACHE": str(folder / "cache")},
        )  # fmt: skip
        assert self.process.stdout is not None
        found = (re.search(r"http://127\.0\.0\.1\S+", line) for line in self.process.stdout)
        address = httpx.URL(next(match[0] for match in found if match))
        self.home = f"http://{address.netloc.decode()}"
        self.browser = httpx.Client(follow_redirects=True, timeout=60)
        page = self.browser.get(address).text
        self.csrf = page.partition('name="csrf" value="')[2].partition('"')[0]

    def post(self, page: str, /, **fields: str) -> httpx.Response:
        return self.browser.post(self.home + page, data={"csrf": self.csrf, **fields})

    def wait_for(self, path: str, *keys: str) -> None:
        """Until its state has one of these words, or the report is over."""
        while True:
            state = self.browser.get(f"{self.home}{path}/state").json()
            if state["over"] or any(key in f"{state['stage']} {state['question']}" for key in keys):
                return
            time.sleep(0.05)

    def ask_for(self, reference: str) -> None:
        """Ask for a reference at this address; the desk ends before it answers."""
        with contextlib.suppress(httpx.HTTPError):
            self.post("/references", path=reference)

    def left(self) -> list[int]:
        """The processes of its session."""
        ids = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state != "Z":
                    ids.append(int(path.parent.name))
        return ids


def stopped(folder: Path, doing: str, by: str, text: str, silent: str) -> tuple[float, str]:
    """One try: seconds until nothing was left, and what was wrong."""
    desk = Desk(folder)
    try:
        desk.post("/writing", text="What was typed.", typed="1")
        short = " ".join(text.split()[:300])
        if doing == "reading":
            path = desk.post("/drafts", text=text).url.path
            desk.wait_for(path, "reading")
        elif doing == "question":
            path = desk.post("/drafts", text=short, model="other", verdicts="on", agreed="yes",
                             model_name=f"{silent}/v1#m").url.path  # fmt: skip
            desk.wait_for(path, "will be asked")
        elif doing == "fluency":
            desk.wait_for(desk.post("/drafts", text=short, fluency="on").url.path, "fluency")
        elif doing == "service":
            threading.Thread(target=desk.ask_for, args=(silent,), daemon=True).start()
        time.sleep(random.uniform(0, 0.2 if corpora.SMOKE else 3))
        begin = time.monotonic()
        if by == "Ctrl-C":
            os.killpg(desk.process.pid, signal.SIGINT)
        else:
            desk.process.send_signal(signal.SIGTERM)
        faults = []
        with contextlib.suppress(subprocess.TimeoutExpired):
            desk.process.wait(30)
        while (left := desk.left()) and time.monotonic() - begin < _MAX_S:
            time.sleep(0.02)
        seconds = time.monotonic() - begin
        assert desk.process.stdout is not None
        printed = "" if left else desk.process.stdout.read()
        faults += [f"left {len(left)} processes"] if left else []
        faults += [f"code {desk.process.poll()}"] if desk.process.poll() != 0 else []
        faults += [printed[-600:]] if "Traceback" in printed else []
        faults += [f"{seconds:.1f} s"] if seconds > _MAX_S else []
        writing = json.loads((folder / "new" / "writing.json").read_bytes())
        faults += [] if writing["text"] == "What was typed." else ["lost what was typed"]
        return seconds, "; ".join(faults)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(desk.process.pid, signal.SIGKILL)


def main() -> None:
    options = corpora.options(__doc__, tries=50, words=20_000)
    n_tries = len(_WAITS) if corpora.SMOKE else 2 * options.tries
    parts = read_documents([corpora.SHARED / "reference" / "gutenberg_novels.jsonl.gz"])
    text = "\n\n".join(part.text for part in islice(parts, 40))
    text = " ".join(text.split(" ")[: options.words])
    failed = []
    with corpora.scratch() as folder, socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        seconds: dict[tuple[str, str], list[float]] = {}
        for number in range(n_tries):
            doing = _WAITS[number % len(_WAITS)]
            by = ("SIGTERM", "Ctrl-C")[number % 2]
            taken, fault = stopped(folder / str(number), doing, by, text, address)
            seconds.setdefault((doing, by), []).append(taken)
            print(number, doing, by, f"{taken:.1f}", fault, file=sys.stderr, flush=True)
            failed += [f"{doing}, {by}, try {number}: {fault}"] if fault else []
    for (doing, by), taken in sorted(seconds.items()):
        print(f"{doing}, {by}: {len(taken)} tries, {max(taken):.1f} s at most")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
