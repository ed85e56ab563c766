"""Keeping up with a platform while a study is served: statuses are fetched again and again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from fabula.studies.database import Store, StoreFailed, now_ms
from fabula.studies.places import Applied, apply_statuses
from fabula.studies.prolific import PlatformFailed, Prolific

__all__ = ["Statuses", "followed"]

_END_S = 5.0


@dataclass(slots=True)
class Statuses:
    """The statuses of a study's people at Prolific, and how the last attempt to fetch them went."""

    prolific: Prolific
    studies: Sequence[str]
    """The study's ids there."""
    fetched_ms: int | None = None
    problem: str = ""
    """Why the last attempt failed; empty where it did not."""

    def fetch(self, store: Store, stop: threading.Event | None = None) -> Applied | None:
        """Fetch all and take them over; None where `stop` was set meanwhile.

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
    """Fetch every so many seconds meanwhile, on a thread. A failure is kept and tried again."""
    if statuses is None:
        yield
        return
    stop = threading.Event()
    # Nobody waits for a platform that is busy once the server is told to stop.
    statuses.prolific = replace(statuses.prolific, wait=stop.wait)

    def run() -> None:
        while not stop.is_set():
            # What went wrong stands in `problem`.
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
