"""A server on loopback from a thread of this process, of files or of whatever a test answers."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """One that writes nothing into the test's output."""

    def log_message(self, *_: object) -> None:
        pass

    def asked(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(
        self, status: int, data: bytes = b"", headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class _Files(Handler, SimpleHTTPRequestHandler):
    pass


@contextmanager
def on_loopback(
    handler: Callable[..., Any], kind: type[ThreadingHTTPServer] = ThreadingHTTPServer
) -> Iterator[str]:
    """The server's address."""
    with kind(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def serving_files(folder: Path) -> AbstractContextManager[str]:
    return on_loopback(partial(_Files, directory=str(folder)))
