"""Commands that serve pages or answers: their socket, and their orderly end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fabula.cli.interrupting import interrupt

if TYPE_CHECKING:
    import uvicorn

__all__ = ["listen", "serve_until_stopped"]

_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")


def listen(host: str, port: int) -> socket.socket:
    """A socket that is ours; said before the service starts where it cannot be had."""
    from fabula.errors import InputError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        raise InputError(
            f"--port {port}: cannot listen there at {host} ({error.strerror}); name another, or 0 "
            f"for any"
        ) from error
    # An answer goes out in two pieces, and the second would wait 40 ms to be asked for. (asyncio
    # sets this only on sockets that name their protocol.)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve_until_stopped(
    config: uvicorn.Config, listening: socket.socket, announce: Callable[[], None]
) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP, and return; requests under way are finished first.

    `announce` tells where; from then on a signal is orderly. SIGHUP is left to whoever took it.
    """
    import uvicorn

    server = uvicorn.Server(config)
    with _stopping(server):
        announce()
        server.run(sockets=[listening])


@contextmanager
def _stopping(server: uvicorn.Server) -> Iterator[None]:
    """Have the signals stop the server, and not the process: it has files to close.

    uvicorn takes SIGINT and SIGTERM itself while it runs, and raises them again when it is done.
    """
    names = [signal.Signals[name] for name in _STOPS if name in signal.Signals.__members__]
    default = {signal.SIG_DFL, signal.default_int_handler, interrupt}
    before = {name: signal.getsignal(name) for name in names if signal.getsignal(name) in default}
    for name in before:
        signal.signal(name, lambda *_: setattr(server, "should_exit", True))
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
