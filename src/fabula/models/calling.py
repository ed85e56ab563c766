"""Many calls at a time, without losing one that is paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from fabula.errors import FabulaError

__all__ = ["all_of", "in_turn"]

T = TypeVar("T")


async def in_turn(calls: Sequence[Callable[[], Awaitable[T]]], n_parallel: int) -> list[T]:
    """The results in order, `n_parallel` at a time.

    After an error no call is begun; those on their way are waited for, for they are paid. Then the
    first error is raised.
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
    """The results of all calls; where some fail the others are waited for first."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
