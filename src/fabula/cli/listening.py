"""The socket of a command that serves pages or answers."""

from __future__ import annotations

import socket

__all__ = ["listen"]


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
