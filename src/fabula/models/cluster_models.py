"""A local model with copies on the nodes of a Ray cluster; each call goes to one of them.

Prompts, storage and accounting stay where the command runs. If a copy is lost, the calls it was
answering are retried on another.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from fabula.cluster import Cluster
from fabula.errors import FabulaError, InputError, ModelError, WorkersEnded
from fabula.models.base import Answer, Form, Model, Prompt, Sampling
from fabula.models.local import has_gpu, runtime_version
from fabula.models.model_copies import Copies

__all__ = ["ClusterModel", "ClusterTerms", "Seat", "seats"]

_N_LOSSES = 5
"""How often one call may be lost: the call itself might be what kills the copies."""
_N_OPENINGS = 20
_WAIT_S = 3.0


@dataclass(frozen=True, slots=True)
class ClusterTerms:
    """The cluster, as for `Cluster`, and the resources of each copy."""

    address: str | None = None
    n_gpus: int | None = None
    """GPUs of each copy; None is 1 if the cluster has any, otherwise none."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where to place a copy, and its resources."""

    node: str
    n_gpus: int
    n_threads: int


def seats(cluster: Cluster, n_gpus: int | None) -> list[Seat]:
    """Place as many copies as the GPUs allow, `n_gpus` each, or with 0 one per node.

    None is 1 if a node has any. The processors of a node are divided among its copies. Raises
    `InputError` if no node has `n_gpus`.
    """
    nodes = cluster.nodes()
    if n_gpus is None:
        n_gpus = int(any(map(cluster.n_gpus, nodes)))
    if not n_gpus:
        return [Seat(node, 0, cluster.n_cpus(node)) for node in nodes]
    found = []
    for node in nodes:
        # Nodes without GPUs are left out: other hardware could answer differently.
        n_copies = cluster.n_gpus(node) // n_gpus
        n_threads = max(1, cluster.n_cpus(node) // max(1, n_copies))
        found += [Seat(node, n_gpus, n_threads)] * n_copies
    if not found:
        raise InputError(
            f"`n_gpus` {n_gpus}: no node of the cluster has so many; ask for fewer, or start nodes "
            "with `ray start --num-gpus N`"
        )
    return found


class ClusterModel:
    """A stand-in for the model `here`, answered by copies that `open_copy` opens. Picklable.

    It has the same name as the local model; a copy with another name is refused. Opening it raises
    `InputError`, `ModelError`.
    """

    def __init__(self, here: Model, open_copy: Callable[[], Model], terms: ClusterTerms) -> None:
        self._open_copy = open_copy
        self._address, self._n_gpus = terms.address, terms.n_gpus
        self._n_each = here.n_parallel
        self._copies: Copies[Any] = Copies([], self._n_each)
        self._cluster: Any = None
        self._opening = asyncio.Lock()
        self._actors: list[Any] = []
        self._known: set[tuple[str, str]] = set()
        self._is_over = False
        self.name, self.can_be_held = here.name, here.can_be_held
        self.n_parallel = here.n_parallel

    async def __aenter__(self) -> Self:
        self._cluster = Cluster(self._address)
        try:
            await self._open()
        except BaseException:
            self._close()
            raise
        self.n_parallel = self._n_each * len(self._copies)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._close()

    def _close(self) -> None:
        self._cluster.end(self._actors)
        self._cluster.close()

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        """Raises what the copy raises, `ModelError` if copies are lost repeatedly."""
        lost: WorkersEnded | None = None
        for _ in range(_N_LOSSES):
            async with self._copies.free(prompt.prefix) as copy:
                try:
                    asked = copy.ask.remote(prompt, sampling, form)
                    answer: Answer = await self._cluster.answer(asked)
                except WorkersEnded as error:
                    lost = error
                    self._copies.drop(copy)
                    self._cluster.end([copy])
                else:
                    return answer
            await self._open_again()
        raise ModelError(
            f"{self.name}: {_N_LOSSES} copies were lost while answering the same call ({lost}); "
            "the answers so far are kept"
        ) from lost

    async def _open_again(self) -> None:
        """Open new copies on the remaining nodes if none is left."""
        async with self._opening:
            for n_left in reversed(range(_N_OPENINGS)):
                if len(self._copies) or self._is_over:
                    break
                # A lost node still counts as present until it has been silent for a while.
                await asyncio.sleep(_WAIT_S)
                try:
                    await self._open()
                except FabulaError as error:
                    if isinstance(error, ModelError) or not n_left:
                        self._is_over = True
                        await self._copies.fail(ModelError(f"{self.name}: {error}"))

    async def _open(self) -> None:
        """Raises `WorkersEnded` if the nodes were lost meanwhile."""
        found = seats(self._cluster, self._n_gpus)
        actors = [
            self._cluster.actor(_Copy, seat.node, num_cpus=1, num_gpus=seat.n_gpus)(
                self._open_copy, seat
            )
            for seat in found
        ]
        self._actors += actors
        opened = await asyncio.gather(
            *(self._cluster.answer(actor.open.remote()) for actor in actors),
            return_exceptions=True,
        )
        there: dict[Any, tuple[str, str]] = {}
        lost: BaseException = WorkersEnded(
            "no node of the cluster has a free processor; start one with `ray start`, and run the "
            "same command again"
        )
        for actor, result in zip(actors, opened, strict=True):
            if isinstance(result, WorkersEnded):
                lost = result
            elif isinstance(result, BaseException):
                raise result
            else:
                there[actor] = result
        if not there:
            raise lost
        self._known |= set(there.values())
        self._check()
        # Copies opened later must be of the same kind.
        self._n_gpus = found[0].n_gpus
        await self._copies.add(there)

    def _check(self) -> None:
        """Raise `ModelError` if the copies are not all the same model and runtime."""
        others = sorted(name for name, _ in self._known if name != self.name)
        if others:
            raise ModelError(
                f"{self.name}: a node has {others[0]} at the same path; put the same file on all "
                "nodes"
            )
        versions = sorted({version for _, version in self._known})
        if len(versions) > 1:
            raise ModelError(
                f"{self.name}: nodes have xllamacpp {' and '.join(versions)}; install the same "
                "version on all nodes, since their answers could differ"
            )


class _Copy:
    """The actor: the model, open on its node."""

    def __init__(self, open_copy: Callable[[], Model], seat: Seat) -> None:
        # The node's own environment takes precedence.
        os.environ.setdefault("FABULA_THREADS", str(seat.n_threads))
        self._open_copy, self._seat = open_copy, seat
        self._model: Model

    async def open(self) -> tuple[str, str]:
        """Its name, and the version of its runtime."""
        # Not in the constructor of the actor: errors raised here are passed on unchanged.
        if self._seat.n_gpus and not has_gpu():
            raise ModelError(
                f"node {self._seat.node[:8]}: its xllamacpp cannot use a GPU; install one that "
                "can, or start the node with `ray start --num-gpus 0`"
            )
        self._model = await self._open_copy().__aenter__()
        return self._model.name, runtime_version()

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None) -> Answer:
        return await self._model.ask(prompt, sampling, form)
