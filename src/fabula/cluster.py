"""Work distributed over a Ray cluster: its nodes, and tasks whose results come in order.

The same code runs there as here: a task is a function of its item alone, so losing a node costs
only the tasks it was running, and the results are the same.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

from fabula import __version__
from fabula.errors import FabulaError, InputError, WorkersEnded

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

    def in_order(
        self, function: Callable[[T], R], items: Iterable[T], *, n_cpus: int = 1
    ) -> Iterator[R]:
        """Apply `function` to each item, in order, on `n_cpus` processors each.

        Items are read only as results are taken. If reading them fails, what was read before is
        done first. What is lost with a node is done again; raises `WorkersEnded` where that fails
        repeatedly.
        """
        call = self._ray.remote(_apply).options(max_retries=_MAX_RETRIES, num_cpus=n_cpus).remote
        shared = self._ray.put(function)
        stream, pending, failure = iter(items), deque[Any](), None
        while failure is None:
            try:
                item = next(stream)
            except StopIteration:
                break
            except FabulaError as error:
                failure = error
                break
            pending.append(call(shared, item))
            if len(pending) > 2 * self.n_cpus():
                yield self._get(pending.popleft())
        while pending:
            yield self._get(pending.popleft())
        if failure is not None:
            raise failure

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

        ask, asked = self._ray.remote(num_cpus=0)(_version), {}
        for node in self.nodes():
            there = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
            asked[node] = ask.options(scheduling_strategy=there).remote()
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
