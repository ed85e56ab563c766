"""Parallel work in processes, with results in order and a bounded number of tasks in flight."""

from __future__ import annotations

import _thread
import contextlib
import os
import pickle
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from fabula.child import Child, connections
from fabula.errors import FabulaError, InputError, WorkersEnded

T = TypeVar("T")
R = TypeVar("R")

InOrder = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Applies a function to each item, in order: `in_order`, or a cluster's method."""


def default_jobs() -> int:
    """FABULA_JOBS, or the processors available to this process (all if that is unknown).

    Raises `InputError` if FABULA_JOBS is not a number.
    """
    asked = os.environ.get("FABULA_JOBS", "")
    if asked and not asked.isdecimal():
        raise InputError(f"FABULA_JOBS={asked} is not a number of processes")
    if int(asked or 0):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """The memory available to this process: the machine's, or the limit of its container."""
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
    """Apply `function` to each item, in order; items are read only as results are taken.

    For up to `n_small` items no processes are started. Raises `WorkersEnded` if a process was
    killed from outside.
    """
    stream = iter(items)
    head = list(islice(stream, n_small + 1))
    if n_jobs == 1 or len(head) <= n_small:
        yield from map(function, chain(head, stream))
        return
    team = _Team(function)
    pending: deque[_Answer] = deque()
    try:
        for item in chain(head, stream):
            pending.append(team.ask(item, n_jobs))
            if len(pending) > 2 * n_jobs:
                yield _result(pending.popleft())
        while pending:
            yield _result(pending.popleft())
    finally:
        team.end()


_Answer: TypeAlias = "SimpleQueue[tuple[bool, Any]]"
"""Receives the result of an item, or the exception it raised."""


class _Team:
    """Processes, each with its own pipes and a thread here that starts it and talks to it.

    A queue or lock shared by processes stays locked when one of them is killed, and half a message
    stays in a shared pipe; the others then wait forever. Here nothing is shared. An interrupt is
    raised in the main thread only, between any two instructions, so that thread waits only on
    queues implemented in C, which an interrupt cannot leave locked.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        import cloudpickle

        # cloudpickle sends functions defined in a notebook by value.
        self._dumps = cloudpickle.dumps
        self._first = self._dumps((sys.path, self._dumps(function)))
        self._asked: SimpleQueue[tuple[Any, _Answer] | None] = SimpleQueue()
        self._begun: list[int] = []
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._children: list[Child] = []
        self._is_over = False
        self._n_asked = 0

    def ask(self, item: Any, n_jobs: int) -> _Answer:
        """Submit an item; starts one more process until there are `n_jobs`."""
        if self._n_asked < n_jobs:
            # Not by `threading`: an interrupt during its start can leave a lock held.
            _thread.start_new_thread(self._work, ())
        self._n_asked += 1
        answer: _Answer = SimpleQueue()
        self._asked.put((item, answer))
        return answer

    def end(self) -> None:
        """Kill the processes, whatever they are doing, and wait until they have exited."""
        # Threads that start after this see it, and those that started before it are counted.
        self._is_over = True
        n_begun = len(self._begun)
        for _ in range(n_begun):
            self._asked.put(None)
        for child in tuple(self._children):
            child.kill()
        for _ in range(n_begun):
            self._ended.get()

    def _work(self) -> None:
        """Thread that manages one process from start to end."""
        self._begun.append(1)
        try:
            if not self._is_over:
                self._lead(Child("fabula.workers", "serve"))
        except BaseException as error:  # noqa: BLE001 (raised again where the result is awaited)
            if (asked := self._asked.get()) is not None:
                asked[1].put((False, error))
        finally:
            self._ended.put(None)

    def _lead(self, child: Child) -> None:
        self._children.append(child)
        try:
            first = [self._first]
            while not self._is_over and (asked := self._asked.get()) is not None:
                item, answer = asked
                try:
                    request = self._dumps(item)
                except Exception as error:  # noqa: BLE001 (raised by an object's own pickling)
                    answer.put((False, error))
                    continue
                try:
                    for message in (*first, request):
                        child.requests.send_bytes(message)
                    first = []
                    reply = child.answers.recv_bytes()
                except (EOFError, OSError):
                    answer.put((False, _lost()))
                    return
                answer.put(_loaded(reply))
        finally:
            self._children.remove(child)
            child.close()


def _loaded(reply: bytes) -> tuple[bool, Any]:
    try:
        has_result, result = pickle.loads(reply)
    except Exception as error:  # noqa: BLE001 (raised by an object's own pickling)
        return False, error
    return has_result, result


def _lost() -> WorkersEnded:
    return WorkersEnded(
        "a worker process was killed, perhaps for lack of memory; run the same command again, "
        "with fewer `n_jobs`"
    )


def _result(answer: _Answer) -> Any:
    has_result, result = answer.get()
    if not has_result:
        raise result
    return result


def serve(requests_fd: int, answers_fd: int) -> None:
    """A worker process: receive a function, then items, until the parent has ended."""
    import cloudpickle

    requests, answers = connections(requests_fd, answers_fd)
    function: Callable[[Any], Any] | None = None
    with contextlib.suppress(EOFError, OSError):
        first = requests.recv_bytes()
        while True:
            item = requests.recv_bytes()
            try:
                function = function or _function(first)
                reply = cloudpickle.dumps((True, function(pickle.loads(item))))
            except BaseException as error:  # noqa: BLE001 (raised again by the parent)
                reply = _raised(error)
            answers.send_bytes(reply)


def _function(first: bytes) -> Callable[[Any], Any]:
    sys.path[:], pickled = pickle.loads(first)
    function: Callable[[Any], Any] = pickle.loads(pickled)
    return function


def _raised(error: BaseException) -> bytes:
    """The exception an item raised, pickled for the parent, with its traceback as text."""
    import cloudpickle

    if not isinstance(error, FabulaError):
        error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        reply: bytes = cloudpickle.dumps((False, error))
        pickle.loads(reply)
    except Exception:  # noqa: BLE001 (raised by an object's own pickling)
        reply = pickle.dumps((False, RuntimeError("".join(traceback.format_exception(error)))))
    return reply
