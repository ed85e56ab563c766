"""Work in other processes: here, or on a Ray cluster; results come in order.

A child is a Python subprocess with one pipe in each direction. No other process holds an end of
either pipe, so each side notices immediately when the other exits, even in the middle of a message.
Only the parent handles interrupts: Ctrl-C reaches every process of a terminal, and a child stopped
while sending would leave half a message.

On a cluster the same code runs as here: a task is a function of its item alone, so losing a node
costs only the tasks it was running, and the results are the same.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self, TypeAlias, TypeVar

from fabula.core import N_UNSEARCHED, __version__
from fabula.core.errors import FabulaError, InputError, WorkersEnded
from fabula.core.packages import needing

T = TypeVar("T")
R = TypeVar("R")

InOrder = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Applies a function to each item, in order: `in_order`, or a cluster's method."""

_CONNECT_S = 10
_MAX_RETRIES = 8
"""How often a task is retried after its process or node was lost."""


class Child:
    """The subprocess, as seen by its parent; it runs `function(*connections(...))`.

    `module` and `function` name what it runs, called with the file descriptors of its two pipes.
    """

    def __init__(self, module: str, function: str) -> None:
        self.owner = os.getpid()
        theirs, self.requests = Pipe(duplex=False)
        self.answers, mine = Pipe(duplex=False)
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        code = f"import sys; from {module} import {function}; {function}(*map(int, sys.argv[1:]))"
        fds = theirs.fileno(), mine.fileno()
        # Interrupts are blocked in the process until it ignores them itself.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, *map(str, fds)],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        mine.close()

    def kill(self) -> None:
        """Kill it immediately. A thread waiting for it gets an `EOFError`."""
        self.process.kill()

    def close(self) -> None:
        """Release it, once no other thread uses its pipes."""
        self.requests.close()
        self.answers.close()
        self.process.kill()
        self.process.wait()


def connections(requests_fd: int, answers_fd: int) -> tuple[Connection, Connection]:
    """In the child: requests and answers. The child exits as soon as its parent has."""
    gc.set_threshold(N_UNSEARCHED)
    import resource
    import select

    def end_with_owner() -> None:
        """End this process when the other end of a pipe is closed."""
        hangup = select.poll()
        hangup.register(requests_fd, 0)
        while not any(event & select.POLLHUP for _, event in hangup.poll()):
            pass
        os._exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # A child killed for using too much memory leaves no core dump.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    threading.Thread(target=end_with_owner, daemon=True).start()
    return Connection(requests_fd, writable=False), Connection(answers_fd, readable=False)


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
            folder = Path("/sys/fs/cgroup", "" if number == "0" else "memory", group.lstrip("/"))
            if number == "0" or "memory" in controllers.split(","):
                limits = (folder / "memory.max", folder / "memory.limit_in_bytes")
                texts = [limit.read_text().strip() for limit in limits if limit.exists()]
                sizes += [int(text) for text in texts if text.isdecimal()]
    return min(sizes)


def in_order(
    function: Callable[[T], R], items: Iterable[T], n_jobs: int, *, n_small: int = 1
) -> Iterator[R]:
    """Apply `function` to each item, in order; items are read only as results are taken.

    For up to `n_small` items no processes are started. If reading them fails, what was read before
    is done first. Raises `WorkersEnded` if a process was killed from outside.
    """
    stream = iter(items)
    head = list(islice(stream, n_small + 1))
    if n_jobs == 1 or len(head) <= n_small:
        yield from map(function, chain(head, stream))
        return
    team = _Team(function, n_jobs)
    try:
        yield from _asked_ahead(team.ask, chain(head, stream), team.result, lambda: 2 * n_jobs)
    finally:
        team.end()


def _asked_ahead(
    ask: Callable[[Any], Any],
    items: Iterable[Any],
    result_of: Callable[[Any], Any],
    n_ahead: Callable[[], int],
) -> Iterator[Any]:
    """The results in order, while up to `n_ahead` items more are asked for.

    If reading the items fails, what was read before is done first.
    """
    stream, pending, failure = iter(items), deque[Any](), None
    while failure is None:
        try:
            item = next(stream)
        except StopIteration:
            break
        except FabulaError as error:
            failure = error
            break
        pending.append(ask(item))
        if len(pending) > n_ahead():
            yield result_of(pending.popleft())
    while pending:
        yield result_of(pending.popleft())
    if failure is not None:
        raise failure


_Answer: TypeAlias = "SimpleQueue[tuple[bool, Any]]"
"""Receives the result of an item, or the exception it raised."""


class _Team:
    """Processes, each with its own pipes and a thread here that starts it and talks to it.

    A queue or lock shared by processes stays locked when one of them is killed, and half a message
    stays in a shared pipe; the others then wait forever. Here nothing is shared. An interrupt is
    raised in the main thread only, between any two instructions, so that thread waits only on
    queues implemented in C, which an interrupt cannot leave locked.
    """

    def __init__(self, function: Callable[[Any], Any], n_jobs: int) -> None:
        import cloudpickle

        # cloudpickle sends functions defined in a notebook by value.
        self._dumps = cloudpickle.dumps
        self._first = self._dumps((sys.path, self._dumps(function)))
        self._asked: SimpleQueue[tuple[Any, _Answer] | None] = SimpleQueue()
        self._begun: list[int] = []
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._children: list[Child] = []
        self._is_over = False
        self._n_to_start = n_jobs

    def ask(self, item: Any) -> _Answer:
        """Submit an item; starts one more process until there are `n_jobs`."""
        if self._n_to_start:
            # Not by `threading`: an interrupt during its start can leave a lock held.
            _thread.start_new_thread(self._work, ())
            self._n_to_start -= 1
        answer: _Answer = SimpleQueue()
        self._asked.put((item, answer))
        return answer

    @staticmethod
    def result(answer: _Answer) -> Any:
        """Wait for it. Raises what the item raised."""
        has_result, result = answer.get()
        if not has_result:
            raise result
        return result

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
                self._lead(Child("fabula.core.workers", "serve"))
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
                    sentence = (
                        "a worker process was killed, perhaps for lack of memory; run the same "
                        "command again, with fewer `n_jobs`"
                    )
                    answer.put((False, WorkersEnded(sentence)))
                    return
                try:
                    answer.put(pickle.loads(reply))
                except Exception as error:  # noqa: BLE001 (raised by an object's own pickling)
                    answer.put((False, error))
        finally:
            self._children.remove(child)
            child.close()


def serve(requests_fd: int, answers_fd: int) -> None:
    """A worker process: receive a function, then items, until the parent has ended."""
    import cloudpickle

    requests, answers = connections(requests_fd, answers_fd)
    function: Any = None
    with contextlib.suppress(EOFError, OSError):
        first = requests.recv_bytes()
        while True:
            item = requests.recv_bytes()
            try:
                if function is None:
                    sys.path[:], pickled = pickle.loads(first)
                    function = pickle.loads(pickled)
                reply = cloudpickle.dumps((True, function(pickle.loads(item))))
            except BaseException as error:  # noqa: BLE001 (raised again by the parent)
                shown = "".join(traceback.format_exception(error))
                if not isinstance(error, FabulaError):
                    error.add_note(f"in a worker process:\n{shown}")
                try:
                    reply = cloudpickle.dumps((False, error))
                    pickle.loads(reply)
                except Exception:  # noqa: BLE001 (raised by an object's own pickling)
                    shown = "".join(traceback.format_exception(error))
                    reply = pickle.dumps((False, RuntimeError(shown)))
            answers.send_bytes(reply)


class Cluster:
    """A connection to Ray: the cluster at `address`, or one on this machine.

    address: as printed by `ray start`, `auto` for the cluster running on this machine, or
    `ray://host:10001`. Defaults to the environment variable RAY_ADDRESS; without it, a cluster of
    `n_cpus` processors is started on this machine and ends with this process. Raises `InputError`
    if Ray is not installed or does not answer, or if a node has another version of Fabula.
    """

    def __init__(self, address: str | None = None, *, n_cpus: int | None = None) -> None:
        # No usage statistics are sent.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        # Work that is lost with its node is done again; Ray would print a traceback for each.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        missing = "Ray is not installed; run: pip install 'fabula[cluster]'"
        self._ray = ray = needing("ray", missing)
        self._is_ours = not ray.is_initialized()
        address = address or os.environ.get("RAY_ADDRESS")
        host, _, port = (address or "").removeprefix("ray://").rpartition(":")
        if address and host and port.isdecimal():
            # Ray itself would retry for minutes.
            try:
                socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
            except OSError as error:
                raise _no_answer(address, error) from error
        more: dict[str, Any] = {} if address else {"num_cpus": n_cpus, "include_dashboard": False}
        if self._is_ours:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ray.init(
                        address=address or "local",
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                        **more,
                    )
            except Exception as error:  # Ray raises `Exception` itself if a node starts too late
                if address is None:
                    raise InputError(
                        f"Ray did not start on this machine ({_first_line(error)}); try again, or "
                        "without `engine`"
                    ) from error
                raise _no_answer(address, error) from error
        if address:
            self._check_versions()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect from the cluster; a cluster started on this machine is shut down."""
        if self._is_ours:
            self._ray.shutdown()

    def nodes(self) -> list[str]:
        """The ids of the nodes with a processor for work, in a stable order."""
        return sorted(
            node["NodeID"]
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
        )

    def n_cpus(self, node: str | None = None) -> int:
        """The number of processors of a node, or of all nodes, at least 1."""
        return max(
            1,
            sum(
                int(row["Resources"].get("CPU", 0))
                for row in self._ray.nodes()
                if row["Alive"] and (node is None or node == row["NodeID"])
            ),
        )

    def in_order(
        self, function: Callable[[T], R], items: Iterable[T], *, n_cpus: int = 1
    ) -> Iterator[R]:
        """Apply `function` to each item, in order, on `n_cpus` processors each.

        Items are read only as results are taken. What is lost with a node is done again; raises
        `WorkersEnded` where that fails repeatedly.
        """
        call = (
            self._ray.remote(lambda function, item: function(item))
            .options(max_retries=_MAX_RETRIES, num_cpus=n_cpus)
            .remote
        )
        ask = partial(call, self._ray.put(function))
        yield from _asked_ahead(ask, items, self._get, lambda: 2 * self.n_cpus())

    def _get(self, awaited: Any) -> Any:
        """The result of a task. Raises what it raised, or `WorkersEnded` if it was lost."""
        lost = self._ray.exceptions.RayError
        try:
            return self._ray.get(awaited)
        except lost as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, FabulaError):
                raise cause from None
            if isinstance(error, self._ray.exceptions.RayTaskError) and not isinstance(cause, lost):
                raise
            raise WorkersEnded(
                f"work on the cluster was lost ({_first_line(error)}); check that its nodes have "
                "memory and disk space left, and run the same command again"
            ) from error

    def _check_versions(self) -> None:
        """Refuse nodes whose results might differ. Raises `InputError`."""
        import ray.util.scheduling_strategies as strategies

        ask, tasks = self._ray.remote(num_cpus=0)(_version), {}
        for node in self.nodes():
            on_node = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
            tasks[node] = ask.options(scheduling_strategy=on_node).remote()
        for node, awaited in tasks.items():
            try:
                version = self._ray.get(awaited)
            except self._ray.exceptions.RayTaskError as error:
                version = f"none that can be used ({_first_line(error.cause)})"
            except self._ray.exceptions.RayError:
                continue  # The node is gone.
            if version != __version__:
                self.close()
                raise InputError(
                    f"the cluster's node {node[:8]} has Fabula {version}, but this machine has "
                    f"{__version__}; install the same version on all nodes"
                )


def _no_answer(address: str, error: BaseException) -> InputError:
    return InputError(
        f"`address` {address}: Ray is not responding ({_first_line(error)}); start it with `ray "
        "start --head`, or leave `address` out to use this machine"
    )


def _version() -> str:
    return __version__


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
