"""Runs the commands of a page in order, each once, with what they need around them."""

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
from starlette.testclient import TestClient
from tests.docs.reading_pages import Step, expected_files
from tests.docs.scenery import make_scenery
from tests.studies.running import answer_all, open_study, send

_LIMIT_S = 240
_SERVERS = {r"\bstudy serve\b": 8000, r"^fabula desk\b": 8765, r"\breference serve\b": 8100}
"""The ports of commands that serve until they are stopped."""


@dataclass(slots=True)
class Stage:
    """The folder in which a page's commands run, and those who were invited there."""

    folder: Path
    environment: dict[str, str]
    _invited: list[str] = field(default_factory=list)

    def run(self, step: Step) -> None:
        """After all steps before it: it ends well, and writes what it names."""
        make_scenery(step.text, self.folder)
        ports = (port for pattern, port in _SERVERS.items() if re.search(pattern, step.text))
        port = next(ports, None)
        code, said = self._served(step.text, port) if port else self._finished(step.text)
        told = f"{step.name}\nexit code {code}\n{said}"
        assert code == 0, told
        assert "Traceback" not in said, told
        lacking = [name for name in expected_files(step.text) if not (self.folder / name).exists()]
        assert not lacking, f"did not write {lacking}: {told}"
        self._invited += re.findall(r"/i/(\S+)", said)

    def _finished(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, input="",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_LIMIT_S,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def _served(self, command: str, port: int) -> tuple[int, str]:
        """Start the server, and stop it as Ctrl-C does; then let two of the invited take part."""
        log_file = self.folder / "serve.log"
        with _turn_at_the_port(port), log_file.open("w+", encoding="utf-8") as log:
            process = subprocess.Popen(
                ["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                _wait_for(process, port, time.monotonic() + 60)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
                try:
                    code = process.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    code = process.wait()
            log.seek(0)
            said = log.read()
        if study := re.search(r"study serve (\S+\.toml)", command):
            running = open_study(self.folder / study[1])
            with contextlib.closing(running.store):
                for token in self._invited[:2]:
                    reader = TestClient(running.app)
                    send(reader, "/consent", reader.get(f"/i/{token}"))
                    assert "You have finished" in answer_all(reader).text
        return code, said


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


def _wait_for(process: subprocess.Popen[bytes], port: int, until: float) -> None:
    """Until the server says something, ends, or time is up."""
    while process.poll() is None and time.monotonic() < until:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 10) as client,
        ):
            client.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            if client.recv(100).startswith(b"HTTP/"):
                return
        time.sleep(0.05)
