"""A thread pool with a bounded queue of waiting requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["Full", "Workers"]

T = TypeVar("T")


class Full(Exception):  # noqa: N818 (an event, not a kind of error)
    """All threads are busy, and the queue is full."""


class Workers:
    """Threads that search."""

    def __init__(self, n_at_once: int, n_waiting: int) -> None:
        self._pool = ThreadPoolExecutor(n_at_once, thread_name_prefix="search")
        self._n_most = n_at_once + n_waiting
        self._n_held = 0
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Queue `work` and return its result, or raise its exception. Raises `Full`."""
        with self._lock:
            if self._n_held >= self._n_most:
                raise Full("too many requests in parallel")
            self._n_held += 1
        try:
            future = self._pool.submit(work)
        except BaseException:
            self._let_go()
            raise
        # Work whose client has disconnected keeps its place until it is done.
        future.add_done_callback(self._let_go)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _let_go(self, _: Future[Any] | None = None) -> None:
        with self._lock:
            self._n_held -= 1
