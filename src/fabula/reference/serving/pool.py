"""A thread pool with a bounded queue of waiting requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Full", "Workers"]

T = TypeVar("T")


class Full(Exception):  # noqa: N818 (an event, not a kind of error)
    """All threads are busy, and the queue is full."""


class Workers:
    """Threads that search."""

    def __init__(self, n_at_once: int, n_waiting: int) -> None:
        self.n_at_once = n_at_once
        self._pool = ThreadPoolExecutor(n_at_once, thread_name_prefix="search")
        self._n_most = n_at_once + n_waiting
        self._n_held = 0
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Queue `work` and return its result, or raise its exception. Raises `Full`."""
        self.hold()
        try:
            future = self.submit(work)
        except BaseException:
            self.let_go()
            raise
        # Work whose client has disconnected keeps its place until it is done.
        future.add_done_callback(lambda _: self.let_go())
        return await asyncio.wrap_future(future)

    def hold(self) -> None:
        """Take a place for a request, until `let_go`. Raises `Full`."""
        with self._lock:
            if self._n_held >= self._n_most:
                raise Full("too many requests in parallel")
            self._n_held += 1

    def let_go(self, n: int = 1) -> None:
        with self._lock:
            self._n_held -= n

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` when a thread is free, after all that was submitted before."""
        return self._pool.submit(work)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
