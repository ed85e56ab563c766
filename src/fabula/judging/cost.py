"""What a run costs: an estimate before it, a limit while it goes on, what was spent after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fabula.errors import InputError, ModelError
from fabula.models import Prompt, Sampling, Usage

__all__ = ["Budget", "Estimate", "Price", "known_price", "parse_price"]

_CHARS_PER_TOKEN = 4
_MILLION = 1_000_000
# Providers that run on the user's own machine.
_OWN_MACHINE = {"ollama", "vllm", "sglang", "hf", "llama-cpp-python", "transformer_lens", "mockllm"}


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars a million tokens: read, read again from the provider's cache, written."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = usage.n_input - usage.n_cached
        parts = fresh * self.input + usage.n_cached * cached + usage.n_output * self.output
        return parts / _MILLION


FREE = Price(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will take. `cost` is None where the price is unknown."""

    n_calls: int
    usage: Usage
    cost: float | None


def parse_price(text: str) -> Price:
    """`IN/OUT` in dollars a million tokens. Raises `InputError`."""
    try:
        prices = [float(part) for part in text.split("/")]
    except ValueError:
        prices = []
    if len(prices) not in (2, 3) or min(prices) < 0:
        raise InputError(
            f"--price {text}: write dollars a million tokens as IN/OUT, such as 3/15, or "
            f"IN/OUT/CACHED"
        )
    return Price(*prices)


def known_price(model: str) -> Price | None:
    """The price of a model: nothing on one's own machine, else what Inspect AI was told."""
    provider = model.partition("/")[0]
    if provider in {"local", "replay"} | _OWN_MACHINE:
        return FREE
    if model.startswith(("http://", "https://")):
        return None
    try:
        from inspect_ai.model import get_model_info
    except ImportError:
        return None
    info = get_model_info(model)
    if info is None or info.cost is None:
        return None
    cost = info.cost
    return Price(cost.input, cost.output, cost.input_cache_read)


def estimate_tokens(text: str) -> int:
    """About: four characters a token, as English prose has."""
    return -(-len(text) // _CHARS_PER_TOKEN)


class Budget:
    """Spends no more than `limit` dollars: a call begins only if it cannot break the limit."""

    def __init__(self, price: Price | None = None, limit: float | None = None) -> None:
        if limit is not None and price is None:
            raise InputError("--max-cost needs the model's price; add --price IN/OUT")
        self._price = price
        self._limit = limit
        self._reserved = 0.0
        self._changed = asyncio.Condition()
        self.spent = 0.0
        self.usage = Usage()

    @asynccontextmanager
    async def call(self, prompt: Prompt, sampling: Sampling) -> AsyncIterator[None]:
        """Hold what the call may cost at most until it is over. Raises `ModelError` at the end."""
        most = Usage(estimate_tokens(prompt.text), 0, sampling.max_tokens)
        cost = self._price.of(most) if self._price else 0.0
        async with self._changed:
            while self._limit is not None and self.spent + self._reserved + cost > self._limit:
                if self._reserved == 0:
                    raise ModelError(
                        f"--max-cost {self._limit:g} is reached ({self.spent:.4f} dollars spent); "
                        f"what was answered is kept, a higher limit goes on"
                    )
                await self._changed.wait()
            self._reserved += cost
        try:
            yield
        finally:
            async with self._changed:
                self._reserved = max(0.0, self._reserved - cost)
                if self._reserved < 1e-12:
                    self._reserved = 0.0
                self._changed.notify_all()

    def spend(self, usage: Usage) -> None:
        self.usage = self.usage + usage
        if self._price is not None:
            self.spent += self._price.of(usage)
