"""Dispatching prompts to several copies of one model."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, Self, TypeVar

from fabula.models.base import Answer, Form, Model, Prompt, Sampling

C = TypeVar("C")


class Copies(Generic[C]):
    """Copies of a model, each with up to `n_each` prompts at a time.

    A prompt goes to a free copy that has read its prefix, or else to the least busy one.
    """

    def __init__(self, copies: Iterable[C], n_each: int) -> None:
        self._n_each = n_each
        self._n_under_way = dict.fromkeys(copies, 0)
        self._read = {copy: deque[str](maxlen=n_each) for copy in self._n_under_way}
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def free(self, prefix: str) -> AsyncIterator[C]:
        """A copy to ask about `prefix`, once one is free."""
        async with self._changed:
            await self._changed.wait_for(self._free)
            copy = min(self._free(), key=lambda one: self._rank(one, prefix))
            self._n_under_way[copy] += 1
            self._read[copy].append(prefix)
        try:
            yield copy
        finally:
            async with self._changed:
                self._n_under_way[copy] -= 1
                self._changed.notify_all()

    def _free(self) -> list[C]:
        return [copy for copy, n in self._n_under_way.items() if n < self._n_each]

    def _rank(self, copy: C, prefix: str) -> tuple[bool, int]:
        return not (prefix and prefix in self._read[copy]), self._n_under_way[copy]


class SharedModel:
    """Servers of one model: each call goes to one of them. Its name is that of the first."""

    def __init__(self, models: Sequence[Model], n_each: int) -> None:
        self._models = models
        self._copies = Copies(models, n_each)
        self._stack = AsyncExitStack()
        self.name, self.can_be_held = models[0].name, models[0].can_be_held
        self.n_parallel = n_each * len(models)

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        async with self._copies.free(prompt.prefix) as model:
            return await model.ask(prompt, sampling, form)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for model in self._models:
                await stack.enter_async_context(model)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()
