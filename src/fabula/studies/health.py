"""A health check for saving answers: cached, bounded in time, and cheap to call often."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from anyio import CapacityLimiter, move_on_after
from anyio.to_thread import run_sync

from fabula.studies.database import Store

_FRESH_S = 1.0
_LIMIT_S = 3.0
_CHECKPOINT_S = 60.0


class Health:
    """The last result of the check, refreshed on request once it is stale."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: str | None = None
        self._at = -_FRESH_S
        self._one = asyncio.Lock()
        # A dedicated thread, because all others may be waiting for the database.
        self._thread = CapacityLimiter(1)

    async def problem(self) -> str | None:
        """Return why answers cannot be saved, or None."""
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
    """Checkpoint the database file every minute, not only when it is closed."""

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
