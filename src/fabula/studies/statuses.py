"""Polling of a platform's statuses while a study is served."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from fabula.studies.database import Store, StoreFailed, now_ms
from fabula.studies.places import Applied, apply_statuses
from fabula.studies.prolific import PlatformFailed, Prolific

_END_S = 5.0


@dataclass(slots=True)
class Statuses:
    """The statuses of a study's people at Prolific, and the outcome of the last fetch."""

    prolific: Prolific
    studies: Sequence[str]
    """The study's ids at Prolific."""
    fetched_ms: int | None = None
    problem: str = ""
    """Why the last fetch failed; empty if it succeeded."""

    def fetch(self, store: Store, stop: threading.Event | None = None) -> Applied | None:
        """Fetch and apply all statuses; None if `stop` was set in the meantime.

        All or nothing: a list that breaks off changes nothing. Raises `PlatformFailed`,
        `StoreFailed`.
        """
        try:
            found = [one for study in self.studies for one in self.prolific.submissions(study)]
            if stop is not None and stop.is_set():
                return None
            with store.writing() as connection:
                applied = apply_statuses(connection, found, self.studies)
        except (PlatformFailed, StoreFailed) as error:
            self.problem = str(error)
            raise
        self.fetched_ms, self.problem = now_ms(), ""
        return applied


@contextmanager
def followed(store: Store, statuses: Statuses | None, every_s: float) -> Iterator[None]:
    """Fetch statuses every `every_s` seconds on a thread. Failures are recorded and retried."""
    if statuses is None:
        yield
        return
    stop = threading.Event()
    # Shutdown does not wait for a busy platform.
    statuses.prolific = replace(statuses.prolific, wait=stop.wait)

    def run() -> None:
        while not stop.is_set():
            # The error is in `problem`.
            with suppress(PlatformFailed, StoreFailed):
                statuses.fetch(store, stop)
            stop.wait(every_s)

    thread = threading.Thread(target=run, name="statuses", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_END_S)
