"""Work distributed over a Ray cluster: its nodes, and tasks whose results come in order.

The same code runs there as here: a task is a function of its item alone, so losing a node costs
only the tasks it was running, and the results are the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

from fabula import __version__
from fabula.errors import FabulaError, InputError, WorkersEnded

__all__ = ["Cluster"]

T = TypeVar("T")
R = TypeVar("R")

_CONNECT_S = 10
_MAX_RETRIES = 8
"""How often a task is retried after its process or node was lost."""


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
        try:
            import ray
        except ImportError as error:
            raise InputError("Ray is not installed; run: pip install 'fabula[cluster]'") from error
        self._ray: Any = ray
        self._is_ours = not ray.is_initialized()
        address = address or os.environ.get("RAY_ADDRESS")
        _check_answers(address)
        own: dict[str, Any] = {} if address else {"num_cpus": n_cpus, "include_dashboard": False}
        if self._is_ours:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ray.init(
                        address=address or "local",
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                        **own,
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

    def n_gpus(self, node: str) -> int:
        """The number of GPUs of a node."""
        return sum(
            int(row["Resources"].get("GPU", 0))
            for row in self._ray.nodes()
            if row["Alive"] and node == row["NodeID"]
        )

    def _check_versions(self) -> None:
        """Refuse nodes whose results might differ. Raises `InputError`."""
        ask = self._ray.remote(num_cpus=0)(_version)
        asked = {node: self._on(ask, node).remote() for node in self.nodes()}
        for node, awaited in asked.items():
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

    def _on(self, remote: Any, node: str, **options: Any) -> Any:
        """A remote function or class pinned to that node."""
        import ray.util.scheduling_strategies as strategies

        there = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        return remote.options(scheduling_strategy=there, **options)

    def task(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Wrap a function to run anywhere in the cluster; it returns a reference for `get`."""
        remote = self._ray.remote(max_retries=_MAX_RETRIES, **options)(function)
        call: Callable[..., Any] = remote.remote
        return call

    def actor(self, kind: type, node: str, **options: Any) -> Callable[..., Any]:
        """Wrap a class so that its objects live on that node; calling it returns a handle.

        The actor ends with its node; calls to it then fail.
        """
        create: Callable[..., Any] = self._on(self._ray.remote(kind), node, **options).remote
        return create

    def end(self, actors: Iterable[Any]) -> None:
        """Kill actors, whether or not their nodes are still there."""
        for actor in actors:
            with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
                self._ray.kill(actor)

    def get(self, awaited: Any) -> Any:
        """The result of a task. Raises what it raised, or `WorkersEnded` if it was lost."""
        with self._told():
            return self._ray.get(awaited)

    async def answer(self, awaited: Any) -> Any:
        """Like `get`, without blocking the event loop."""
        with self._told():
            return await awaited

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        lost = self._ray.exceptions.RayError
        try:
            yield
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

    def put(self, value: Any) -> Any:
        """Store a value so that each node fetches it only once."""
        return self._ray.put(value)

    def in_order(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Apply `function` to each item, in order; items are read only as results are taken."""
        call = self.task(_apply)
        shared = self.put(function)
        pending: deque[Any] = deque()
        for item in items:
            pending.append(call(shared, item))
            if len(pending) > 2 * self.n_cpus():
                yield self.get(pending.popleft())
        while pending:
            yield self.get(pending.popleft())


def _check_answers(address: str | None) -> None:
    """Check that the address answers: Ray itself would retry for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise _no_answer(str(address), error) from error


def _no_answer(address: str, error: BaseException) -> InputError:
    return InputError(
        f"`address` {address}: Ray is not responding ({_first_line(error)}); start it with `ray "
        "start --head`, or leave `address` out to use this machine"
    )


def _version() -> str:
    return __version__


def _apply(function: Callable[[T], R], item: T) -> R:
    return function(item)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
