"""Runs the steps of a page in order, each once, with what they need around them."""

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.docs.reading_pages import Step, expected_files
from tests.docs.scenery import N_STORIES, make_scenery

_LIMIT_S = 240
_SERVERS = {r"\bstudy serve\b": 8000, r"^fabula desk\b": 8765, r"\breference serve\b": 8100}
"""The ports of commands that serve until they are stopped."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended, what it printed, and which files that it names are not there."""

    code: int
    stdout: str
    stderr: str
    lacking: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        return f"exit code {self.code}\n{self.stdout}\n{self.stderr}"


@dataclass(slots=True)
class Stage:
    """The folder of one session of a page, and those who were invited there."""

    folder: Path
    environment: dict[str, str]
    _invited: list[str] = field(default_factory=list)

    def outcome(self, step: Step) -> Outcome:
        """Run the step, after all steps before it."""
        if step.kind == "python":
            return self._finished(["python", "-"], step.text)
        make_scenery(step.text, self.folder)
        outcome = self._run(step)
        self._invited += re.findall(r"/i/(\S+)", outcome.stdout)
        return outcome

    def _run(self, step: Step) -> Outcome:
        for pattern, port in _SERVERS.items():
            if re.search(pattern, step.text):
                return self._served(step.text, port)
        done = self._finished(["bash", "-c", step.text])
        written = expected_files(step.text)
        lacking = tuple(name for name in written if not (self.folder / name).exists())
        return Outcome(done.code, done.stdout, done.stderr, lacking)

    def _finished(self, command: list[str], said: str = "") -> Outcome:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, input=said, capture_output=True,
            text=True, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout, done.stderr)

    def _served(self, command: str, port: int) -> Outcome:
        """Start the server, let two of the invited take part, and stop it as Ctrl-C does."""
        log_file = self.folder / "serve.log"
        with _turn_at_the_port(port), log_file.open("w+", encoding="utf-8") as log:
            process = subprocess.Popen(
                ["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                if _answers(process, port, time.monotonic() + 60) and "study" in command:
                    asyncio.run(_take_part(self._invited[:2], N_STORIES, port))
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
                try:
                    code = process.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    code = process.wait()
            log.seek(0)
            return Outcome(code, log.read(), "")


@contextlib.contextmanager
def _turn_at_the_port(port: int) -> Iterator[None]:
    """Hold the port among tests that run side by side: the commands name no other."""
    with (Path(tempfile.gettempdir()) / f"fabula-tests-port-{port}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
                break
            time.sleep(0.2)
        else:
            pytest.skip(f"port {port} of this machine is taken")
        yield


def _answers(process: subprocess.Popen[bytes], port: int, until: float) -> bool:
    """Whether the server says something before it ends, or time is up."""
    while process.poll() is None and time.monotonic() < until:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 10) as client,
        ):
            client.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            if client.recv(100).startswith(b"HTTP/"):
                return True
        time.sleep(0.05)
    return False


@dataclass
class _Here:
    """The server as participants know it."""

    port: int
    n_kills: int = 0
    is_down: bool = False


async def _take_part(tokens: list[str], n_stories: int, port: int) -> None:
    import aiohttp
    from tests.studies.simulation import Load, Outcome, Person

    seen = Outcome()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        for number, token in enumerate(tokens):
            load = Load(n_participants=len(tokens), n_kills=0, seconds=0, n_stories=n_stories)
            await Person(number, token, _Here(port), http, load, seen).take_part()  # type: ignore[arg-type]
    assert not seen.errors, seen.errors
