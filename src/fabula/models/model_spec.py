"""Opening a model by name, and dispatching prompts to several copies of it."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Self, TypeVar

from fabula.core.errors import InputError, ModelError
from fabula.models.base import Answer, Effort, Form, FunctionModel, Model, Prompt, Sampling
from fabula.models.cost import Budget, BudgetedModel, Prices, SharedBudget
from fabula.models.hosted import HostedModel
from fabula.models.local import LocalModel, embedded_model
from fabula.models.replay import ReplayedModel

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
            ranks = {
                model: (not (prefix and prefix in self._read[model]), self._n_under_way[model])
                for model in self._free()
            }
            copy = min(ranks, key=ranks.__getitem__)
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


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """User settings for calling a model; None is the model's own default."""

    n_parallel: int | None = None
    max_retries: int = 5
    cache: bool = False
    batch: bool = False
    timeout_s: int | None = None
    """Time limit of one attempt of a call; None is the limit of the provider's client."""
    effort: Effort | None = None
    """How long a reasoning model should think, if a call does not say."""
    structured: bool | None = None
    """Whether to constrain hosted models to a JSON schema; by default if known to work."""
    prices: Prices = field(default_factory=Prices)
    """Prices of tokens, for models with unknown prices."""
    shared_budget: SharedBudget | None = None
    """The total limit for all models opened with it; None is no limit."""


def open_model(spec: str | FunctionModel, options: ModelOptions | None = None) -> BudgetedModel:
    """Create a model, not yet started: `async with open_model("local") as model`.

    All language models are opened here, so that none is used outside of a budget (`model.budget`).

    `local` is the embedded one, `PATH.gguf` any other GGUF file, `http://...` an OpenAI-compatible
    server (several separated by commas share the calls), `replay:PATH` recorded answers, and
    `provider/model` any model of Inspect AI; a `FunctionModel` is used as is. Raises `ModelError`,
    and `InputError` if a limit requires an unknown price.
    """
    options = options or ModelOptions()
    if isinstance(spec, FunctionModel):
        return BudgetedModel(spec, Budget(options.prices.each, options.shared_budget))
    budget = Budget(options.prices.of(spec), options.shared_budget)
    is_here = spec == "local" or spec.lower().endswith(".gguf")
    if is_here and options.effort is not None:
        raise InputError(f"{spec}: `reasoning_effort` is only for hosted models; leave it out")
    model: Model
    if is_here:
        file = embedded_model() if spec == "local" else Path(spec)
        model = LocalModel(file, n_parallel=options.n_parallel or 1)
    elif spec.startswith("replay:"):
        path, _, model_name = spec.removeprefix("replay:").partition("#")
        model = ReplayedModel(Path(path), model_name or None)
    elif "/" not in spec:
        raise ModelError(
            f"{spec}: no such model; write `local`, a path to a .gguf file, a URL, or "
            f"provider/model as in openai/gpt-4o"
        )
    else:
        addresses, mark, name = spec.partition("#")
        servers = [f"{address}{mark}{name}" for address in re.split(r",(?=https?://)", addresses)]
        n_each = options.n_parallel or 10
        # Inspect counts the calls to one model, whatever server they go to.
        models = [HostedModel(server, options, n_each * len(servers)) for server in servers]
        model = models[0] if len(models) == 1 else SharedModel(models, n_each)
    return BudgetedModel(model, budget, effort=options.effort)
