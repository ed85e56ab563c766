"""Work spread over processes, its results in order, with a bounded amount of it under way."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from fabula.errors import InputError, WorkersEnded

__all__ = ["InOrder", "default_jobs", "in_order", "memory_bytes"]

T = TypeVar("T")
R = TypeVar("R")

InOrder = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""A function of each item, in order, wherever it is called: `in_order`, or a cluster's."""

_IDLE_S = 30
"""Workers end after so long without work, also when the process that started them was killed."""


def default_jobs() -> int:
    """FABULA_JOBS, or the processors this process may use; all where the system does not tell.

    Raises `InputError` where FABULA_JOBS is not a number.
    """
    asked = os.environ.get("FABULA_JOBS", "")
    if asked and not asked.isdecimal():
        raise InputError(f"FABULA_JOBS={asked} is not a number of processes")
    if int(asked or 0):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """The memory this process may use: the machine's, or less where a container has a limit."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, group = line.split(":", 2)
            own = Path("/sys/fs/cgroup", "" if number == "0" else "memory", group.lstrip("/"))
            if number == "0" or "memory" in controllers.split(","):
                limits = (own / "memory.max", own / "memory.limit_in_bytes")
                texts = [limit.read_text().strip() for limit in limits if limit.exists()]
                sizes += [int(text) for text in texts if text.isdecimal()]
    return min(sizes)


def in_order(
    function: Callable[[T], R], items: Iterable[T], n_jobs: int, *, n_small: int = 1
) -> Iterator[R]:
    """`function` of each item, in order; items are read only as results are taken.

    Up to `n_small` items are not worth starting processes for. Raises `WorkersEnded` where a
    process was ended from outside.
    """
    stream = iter(items)
    head = list(islice(stream, n_small + 1))
    if n_jobs == 1 or len(head) <= n_small:
        yield from map(function, chain(head, stream))
        return
    from loky import ProcessPoolExecutor

    # A process that has grown is replaced, which is nothing to tell anybody.
    warnings.filterwarnings("ignore", message="A worker was restarted", category=UserWarning)
    executor = ProcessPoolExecutor(n_jobs, timeout=_IDLE_S)
    pending: deque[Future[R]] = deque()
    try:
        for item in chain(head, stream):
            pending.append(executor.submit(function, item))
            if len(pending) > 2 * n_jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenExecutor as error:
        raise WorkersEnded(
            "a worker process was killed, perhaps for lack of memory; run the same command again, "
            "with fewer `n_jobs`"
        ) from error
    finally:
        executor.shutdown(wait=True, kill_workers=True)
