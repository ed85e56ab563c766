"""A function as a language model: any callable that turns a prompt into an answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Self

from fabula.errors import CallFailed, FabulaError
from fabula.models.base import Answer, Form, Prompt, Sampling

AskFunction = Callable[[str], str | Awaitable[str]]
"""Takes the text of a prompt and returns the text of an answer, synchronously or not."""


class FunctionModel:
    """A model that is a function of the prompt.

    Answers are stored under `name`, by default that of the function: use another name for another
    model behind the same function. A plain function runs in a thread; any exception is a failed
    call. Sampling is up to the function.
    """

    can_be_held = False

    def __init__(self, ask: AskFunction, name: str = "", *, n_parallel: int = 4) -> None:
        self._ask = ask
        own = getattr(ask, "__qualname__", type(ask).__qualname__).rpartition(".")[2]
        self.name = f"function/{name or own.strip('<>')}"
        self.n_parallel = n_parallel

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        try:
            if inspect.iscoroutinefunction(self._ask):
                found = await self._ask(prompt.text)
            else:
                found = await asyncio.to_thread(self._ask, prompt.text)
                if inspect.isawaitable(found):
                    found = await found
        except FabulaError:
            raise
        except Exception as error:
            raise CallFailed(f"{self.name}: {type(error).__name__}: {error}") from error
        if not isinstance(found, str):
            raise CallFailed(f"{self.name}: returned a {type(found).__name__}, not a string")
        return Answer(found)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass
