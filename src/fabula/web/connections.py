"""Drop connections that send requests too slowly, or exceed the limit per address.

uvicorn waits for the rest of a request without a timeout: a thousand half-sent ones would exhaust
the file descriptors of the process, and each would delay the server's shutdown. Nor does it limit
how long the head of a request may be.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LEAST_BYTES_PER_S = 16_384
"""A body that arrives at this rate or faster may be as long as the application allows."""
_MOST_AROUND = 1 << 16
"""Bytes of a request around its body: its head, what divides chunks, and trailers."""
_TO_STOP_S = 2.0
"""How long a half-sent request may still take when the server is shutting down."""


def bounded_connections(request_s: float, n_per_address: int | None) -> type[HttpToolsProtocol]:
    """Return a protocol for uvicorn with limits on time, size and connections.

    `request_s` is the time from the first byte, or the connection, to the complete request;
    `n_per_address` the number of concurrent connections, None for no limit.
    """

    class Bounded(_BoundedConnection):
        limit_s = request_s
        most_held = n_per_address
        held: ClassVar[dict[str, list[_BoundedConnection]]] = {}

    return Bounded


class _BoundedConnection(HttpToolsProtocol):
    """A connection that is dropped when it exceeds a limit; subclasses set the limits."""

    limit_s: ClassVar[float]
    most_held: ClassVar[int | None]
    held: ClassVar[dict[str, list[_BoundedConnection]]]
    """Open connections by address, the oldest first."""

    _begun = 0.0
    _n_bytes = 0
    _n_around = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        held = self.held.setdefault(self._address(), [])
        held.append(self)
        self._begin()
        if self.most_held is not None and len(held) > self.most_held:
            # The one that has waited longest: who only holds connections keeps nobody out.
            next((one for one in held if one.is_idle), self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        held = self.held[self._address()]
        held.remove(self)
        if not held:
            del self.held[self._address()]
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._n_bytes += len(data)
        self._n_around += len(data)
        super().data_received(data)
        if self._n_around > _MOST_AROUND and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:
            self._begin()

    def on_body(self, body: bytes) -> None:
        self._n_around = max(0, self._n_around - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._end()
        self._n_around = 0
        super().on_message_complete()

    def shutdown(self) -> None:
        super().shutdown()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self.loop.call_later(_TO_STOP_S, self.transport.abort)

    @property
    def is_idle(self) -> bool:
        """Whether no complete request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete or self._timer is not None

    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _begin(self) -> None:
        self._begun, self._n_bytes = self.loop.time(), 0
        self._timer = self.loop.call_later(self.limit_s, self._check)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        spent = self.loop.time() - self._begun
        left = self.limit_s + self._n_bytes / _LEAST_BYTES_PER_S - spent
        if self.flow.read_paused:
            # The application is the one taking time.
            left = self.limit_s
        if left > 0:
            self._timer = self.loop.call_later(left, self._check)
        else:
            self.transport.abort()
