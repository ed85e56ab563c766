"""`fabula reference serve`, really listening on loopback: in this process, or in one of its own."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from fabula.reference.client import Limits, open_served
from fabula.reference.search import Reference
from fabula.reference.service import Gate, Served, create_app
from tests.running_commands import running

TOKEN = "a-token-of-the-tests"


@dataclass
class Serving:
    """A service, where it listens, and what it serves."""

    url: str
    served: Served

    def open(self, **options: object) -> Reference:
        """The reference as a client sees it, with short waits."""
        how = {"backoff_s": 0.01, "token": TOKEN} | options
        return Reference(open_served(self.url, **how))  # type: ignore[arg-type]


@contextmanager
def serving_reference(
    *paths: Path,
    limits: Limits | None = None,
    tokens: Sequence[str] = (TOKEN,),
    check_every_s: float = 60,
) -> Iterator[Serving]:
    """In this process, on a thread of its own. It looks for changes when it is told to."""
    served, limits = Served(paths), limits or Limits()
    app = create_app(served, Gate(tokens, limits), limits, check_every_s)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield Serving(url, served)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@dataclass
class Process:
    """`fabula reference serve` as a user starts it."""

    url: str
    process: subprocess.Popen[str]
    said: list[str]


@contextmanager
def serving_process(*arguments: str, **more: str) -> Iterator[Process]:
    """The command itself, in a process of its own; killed at the end if it still runs."""
    said: list[str] = []
    with running("reference", "serve", *arguments, said=said, **more) as (process, url):
        _wait_for(url)
        yield Process(url, process, said)


def _wait_for(url: str) -> None:
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), 30) as client:
        client.sendall(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
