"""The cost of a run: an estimate before it, a limit during it, the amount spent after it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from fabula.core.errors import InputError, ModelError
from fabula.core.provenance import current_recording
from fabula.core.resume import Ledger
from fabula.models.base import (
    Answer,
    ChargedCallFailed,
    Effort,
    Form,
    Model,
    Prompt,
    Sampling,
    Usage,
)

_CHARS_PER_TOKEN = 4
# English prose has 4 to 5 bytes per token, other languages' tokenizers rarely fewer than 3.
_BYTES_PER_TOKEN = 3
_FRAME_TOKENS = 8
"""Approximate tokens that a chat template adds to a prompt."""
_MILLION = 1_000_000
# Providers that run on the user's own machine.
_OWN_MACHINE = {"ollama", "vllm", "sglang", "hf", "llama-cpp-python", "transformer_lens", "mockllm"}


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens: input, input read from the provider's cache, output."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = usage.n_input - usage.n_cached
        parts = fresh * self.input + usage.n_cached * cached + usage.n_output * self.output
        return parts / _MILLION


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected usage of a run. `cost` is None if the price is unknown."""

    n_calls: int
    usage: Usage
    cost: float | None
    is_most: bool = False
    """An upper bound: the number of calls depends on the answers."""

    @classmethod
    def of(cls, n_calls: int, usage: Usage, price: Price | None, *, is_most: bool = False) -> Self:
        """At a model's price, None if it is unknown."""
        return cls(n_calls, usage, None if price is None else price.of(usage), is_most)


def parse_price(text: str) -> Price:
    """Parse `IN/OUT` in dollars per million tokens. Raises `InputError`."""
    try:
        prices = [float(part) for part in text.split("/")]
    except ValueError:
        prices = []
    if len(prices) not in (2, 3) or not all(math.isfinite(p) and p >= 0 for p in prices):
        raise InputError(
            f"{text!r} is not a price: write dollars per million tokens as IN/OUT, such as 3/15, "
            f"or IN/OUT/CACHED"
        )
    return Price(*prices)


@dataclass(frozen=True, slots=True)
class Prices:
    """User-supplied prices of models: one price for any model, or a price by name."""

    each: Price | None = None
    named: Mapping[str, Price] = field(default_factory=dict)

    def of(self, model: str) -> Price | None:
        """The price given by the user, or the known one; None if there is neither."""
        return self.named.get(model) or self.each or known_price(model)


def parse_prices(text: str) -> Prices:
    """Parse `IN/OUT`, or `MODEL=IN/OUT;MODEL=IN/OUT`. Raises `InputError`."""
    each, named = None, {}
    for part in text.split(";"):
        model, equals, price = part.strip().rpartition("=")
        if equals:
            named[model.strip()] = parse_price(price.strip())
        elif each is not None:
            raise InputError(f"{text!r} contains two prices without a model; write MODEL=IN/OUT")
        else:
            each = parse_price(price)
    return Prices(each, named)


def known_price(model: str) -> Price | None:
    """The price of a model: zero on the user's machine, otherwise as set in Inspect AI."""
    provider = model.partition("/")[0]
    is_here = provider == "local" or model.startswith("replay:") or model.lower().endswith(".gguf")
    if is_here or provider in _OWN_MACHINE:
        return Price(0.0, 0.0)
    if model.startswith(("http://", "https://")):
        return None
    try:
        from inspect_ai.model import get_model_info
    except ImportError:
        return None
    info = get_model_info(model)
    cost = None if info is None else info.cost
    return None if cost is None else Price(cost.input, cost.output, cost.input_cache_read)


def estimate_tokens(text: str) -> int:
    """Approximate: four characters per token, as in English prose."""
    return -(-len(text) // _CHARS_PER_TOKEN)


def _counted_usage(usage: Usage, prompt: Prompt, sampling: Sampling, answer: Answer) -> Usage:
    """The usage of a call; what the server does not report (no tokens for a text, negative ones, or
    more cached ones than asked) is estimated, erring on the high side."""
    n_input, n_output = usage.n_input, usage.n_output
    is_cut = answer.stop == "length"
    if n_input <= 0:
        n_input = _FRAME_TOKENS + most_likely_tokens(prompt.text)
    if n_output < 0 or (n_output == 0 and (answer.text or is_cut)):
        # A truncated answer has used up its token limit, however much of it is shown.
        n_output = max(most_likely_tokens(answer.text), sampling.max_tokens * is_cut)
    n_cached = usage.n_cached if 0 <= usage.n_cached <= n_input else 0
    if (n_input, n_cached, n_output) == (usage.n_input, usage.n_cached, usage.n_output):
        return usage
    return Usage(n_input, n_cached, n_output, is_estimated=True)


def most_likely_tokens(text: str) -> int:
    """A high estimate of the number of tokens in a text."""
    return -(-len(text.encode(errors="replace")) // _BYTES_PER_TOKEN)


class SharedBudget:
    """The limit in dollars for all models of a run (with a `ledger`, and its resumes), or None."""

    def __init__(self, limit: float | None = None, ledger: Ledger | None = None) -> None:
        if limit is not None and not (math.isfinite(limit) and limit >= 0):
            raise InputError(f"the cost limit {limit} must be a non-negative amount of dollars")
        self.limit, self._ledger = limit, ledger
        self.spent = 0.0 if ledger is None else ledger.spent()

    def spend(self, cost: float) -> None:
        self.spent += cost
        if self._ledger is not None and cost:
            self._ledger.add(cost)


class Budget:
    """A model's part of a shared budget: a call starts only if it cannot exceed the limit."""

    def __init__(
        self, price: Price | None = None, shared_budget: SharedBudget | None = None
    ) -> None:
        self._shared = shared_budget or SharedBudget()
        if self._shared.limit is not None and price is None:
            raise InputError("`max_cost` needs the model's price; set `price` as IN/OUT")
        self._price = price
        self._reserved = 0.0
        self._changed = asyncio.Condition()
        self.spent = 0.0
        self.usage = Usage()

    @property
    def cost(self) -> float | None:
        """Dollars spent; None if the price is unknown."""
        return None if self._price is None else self.spent

    @property
    def is_free(self) -> bool:
        """Whether every call is free, however many there are."""
        price = self._price
        return price is not None and not any((price.input, price.output, price.cached))

    @asynccontextmanager
    async def call(self, prompt: Prompt, sampling: Sampling) -> AsyncIterator[None]:
        """Reserve a call's maximum cost until it is over. Raises `ModelError` if it is too much."""
        # No tokeniser makes more tokens than a text has bytes, in any language.
        most = Usage(len(prompt.text.encode(errors="replace")), 0, sampling.max_tokens)
        cost = self._price.of(most) if self._price else 0.0
        limit = self._shared.limit
        async with self._changed:
            while limit is not None and self._shared.spent + self._reserved + cost > limit:
                if self._reserved == 0:
                    raise ModelError(
                        f"`max_cost` {limit:g} leaves no room for another call "
                        f"({self._shared.spent:.4f} dollars spent, the call could take "
                        f"{cost:.4f}); the answers so far are kept: raise the limit to resume"
                    )
                await self._changed.wait()
            self._reserved += cost
        try:
            yield
        finally:
            async with self._changed:
                self._reserved -= cost
                # A rounding remainder would look like a call in progress.
                self._reserved = self._reserved if self._reserved > 1e-12 else 0.0
                self._changed.notify_all()

    def spend(self, usage: Usage) -> None:
        self.usage = self.usage + usage
        if self._price is not None:
            self.spent += self._price.of(usage)
            self._shared.spend(self._price.of(usage))


class BudgetedModel:
    """Wraps a model; a call is only started if its maximum cost fits the budget."""

    def __init__(self, model: Model, budget: Budget, *, effort: Effort | None = None) -> None:
        self._model, self.budget, self._effort = model, budget, effort
        # The recording open here: calls may come from other threads, which do not see it.
        self._noted = current_recording()
        self.name, self.n_parallel = model.name, model.n_parallel
        self.can_be_held = model.can_be_held

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        """The answer, with its usage. Raises `ModelError` if it does not fit the budget.

        A failed call is charged if the model read its prompt.
        """
        sampling = replace(sampling, effort=sampling.effort or self._effort)
        async with self.budget.call(prompt, sampling):
            try:
                answer = await self._model.ask(prompt, sampling, form)
            except ChargedCallFailed as error:
                self.budget.spend(_counted_usage(error.usage, prompt, sampling, Answer("")))
                raise
            usage = _counted_usage(answer.usage, prompt, sampling, answer)
            self.budget.spend(usage)
        if self._noted is not None:
            self._noted.models[self.name, answer.served, answer.runtime] = None
        return answer if usage is answer.usage else replace(answer, usage=usage)

    async def __aenter__(self) -> Self:
        await self._model.__aenter__()
        # Some models only know their name and number of parallel prompts now.
        self.name, self.n_parallel = self._model.name, self._model.n_parallel
        self.can_be_held = self._model.can_be_held
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._model.__aexit__(*error)
