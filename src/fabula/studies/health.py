"""Whether answers can be saved now, asked often and by anybody, and never waited for long."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from anyio import CapacityLimiter, move_on_after
from anyio.to_thread import run_sync

from fabula.studies.database import Store

__all__ = ["Health", "checkpointed"]

_FRESH_S = 1.0
_LIMIT_S = 3.0
_CHECKPOINT_S = 60.0


class Health:
    """What was found last, looked at again when it is asked for and old."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: str | None = None
        self._at = -_FRESH_S
        self._one = asyncio.Lock()
        # A thread of its own: the others may all be waiting for the database.
        self._thread = CapacityLimiter(1)

    async def problem(self) -> str | None:
        """Why answers cannot be saved, or None."""
        async with self._one:
            if time.monotonic() - self._at >= _FRESH_S:
                self._found = "the study's database is not responding"
                with move_on_after(_LIMIT_S):
                    self._found = await run_sync(
                        self._store.problem, limiter=self._thread, abandon_on_cancel=True
                    )
                self._at = time.monotonic()
            return self._found


@contextlib.asynccontextmanager
async def checkpointed(store: Store) -> AsyncIterator[None]:
    """Have the database's file brought up to date every minute, and not only when it is closed."""

    async def now_and_then() -> None:
        while True:
            await asyncio.sleep(_CHECKPOINT_S)
            await run_sync(store.checkpoint, limiter=CapacityLimiter(1))

    task = asyncio.create_task(now_and_then())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
