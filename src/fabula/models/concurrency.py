"""Concurrent calls, without losing any that has been paid for."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from fabula.errors import CallFailed, FabulaError, ModelError
from fabula.models.base import Model

T = TypeVar("T")


class HeldOpen:
    """A model kept open for synchronous callers: `with HeldOpen(model) as held`.

    One event loop for the whole time: a model's connections belong to the loop that opened it.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._model.__aenter__())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._runner is not None:
            with self._runner as runner:
                runner.run(self._model.__aexit__(*error))
        self._runner = None

    def signed(self, *decides: str, label: str = "") -> str:
        """Name for signatures: the model, a label, and a digest of all that `decides`."""
        digest = hashlib.sha256("\0".join([self._model.name, *decides]).encode()).hexdigest()[:8]
        # These separate a signature's parts, and what is before the last @ is a label.
        name = f"{self._model.name}{label}".replace("|", "_").replace(":", "_")
        return f"model({name})@{digest}"

    def run_all(self, calls: Sequence[Callable[[], Awaitable[T]]], what: str, made: str) -> list[T]:
        """The results of all calls, in order. Raises `ModelError` if one fails."""
        try:
            return self.run(in_turn(calls, self._model.n_parallel))
        except CallFailed as error:
            raise ModelError(
                f"{what} failed: {error}; finished {made} are kept, run the same command again to "
                "resume"
            ) from error

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a call. Raises `ModelError` outside the `with` block."""
        if self._runner is None:
            call.close()
            raise ModelError(f"{self._model.name}: is not open; use it in `with`")
        return self._runner.run(call)


async def in_turn(calls: Sequence[Callable[[], Awaitable[T]]], n_parallel: int) -> list[T]:
    """Run calls, up to `n_parallel` at a time; results in order.

    After an error no further call is started; running ones are awaited, since they are paid for.
    Then the first error is raised.
    """
    found: dict[int, T] = {}
    waiting = iter(enumerate(calls))
    errors: list[Exception] = []

    async def work() -> None:
        for place, call in waiting:
            if errors:
                return
            try:
                found[place] = await call()
            except FabulaError as error:
                errors.append(error)

    await asyncio.gather(*(work() for _ in range(min(n_parallel, len(calls)))))
    if errors:
        raise errors[0]
    return [found[place] for place in range(len(calls))]


async def all_of(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all calls; if some fail, the others are awaited first."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


class Places:
    """Limits concurrent calls; a free slot goes to the text with the fewest running calls.

    So several texts are processed side by side, each reusing its cached prefix, rather than all
    calls working on one text after the other.
    """

    def __init__(self, n_places: int) -> None:
        self._n_free = n_places
        self._n_under_way: Counter[str] = Counter()
        self._waiting: dict[asyncio.Future[None], str] = {}

    @asynccontextmanager
    async def take(self, text: str) -> AsyncIterator[None]:
        """Hold a slot for a call about `text`, once it is its turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting[turn] = text
        self._give()
        try:
            await turn
            yield
        finally:
            if self._waiting.pop(turn, None) is None:
                self._n_free += 1
                self._n_under_way[text] -= 1
            # After the tasks that are ready: the one that frees a slot may have more to ask.
            loop.call_later(0, self._give)

    def _give(self) -> None:
        while self._n_free and self._waiting:
            turn = min(self._waiting, key=lambda one: self._n_under_way[self._waiting[one]])
            self._n_free -= 1
            self._n_under_way[self._waiting.pop(turn)] += 1
            if not turn.done():
                turn.set_result(None)
