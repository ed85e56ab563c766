"""Texts that models write, a row each: every model asked in turn, once its cost is agreed to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import Confirm

if TYPE_CHECKING:
    from fabula.models import Model
    from fabula.models.cost import Estimate, Price, Prices
    from fabula.resume import Row

__all__ = ["Written", "ask_models", "confirm_prompts", "estimate_texts"]

_PROMPT_TOKENS = 150
"""About what a question takes besides the text it is about."""


@dataclass(frozen=True, slots=True)
class Written:
    """Texts that were asked for, a row each; what a model did not give has its reason."""

    rows: Sequence[Row]
    out: Path

    @property
    def missing(self) -> dict[str, int]:
        """Why there is no text, and how often."""
        reasons = Counter(str(row["missing_reason"]) for row in self.rows if row["missing_reason"])
        return dict(sorted(reasons.items()))

    @property
    def n(self) -> int:
        """How many texts there are."""
        return len(self.rows) - sum(self.missing.values())

    def to_json(self) -> dict[str, Any]:
        n_asked = len(self.rows)
        return {"out": str(self.out), "n": self.n, "n_asked": n_asked, "missing": self.missing}


def estimate_texts(
    texts: Sequence[str], n_output: int, *, n_again: int = 0
) -> Callable[[Price | None], Estimate]:
    """What a call on each text takes, by a model's price, where answers have `n_output` tokens.

    An answer may be sent back `n_again` times.
    """
    from fabula.models import Usage
    from fabula.models.cost import Estimate, estimate_tokens

    n = len(texts) * (1 + n_again)
    n_input = sum(map(estimate_tokens, texts)) * (1 + n_again) + _PROMPT_TOKENS * n
    usage = Usage(n_input + n_again * len(texts) * n_output, 0, n_output * n)

    def estimate(price: Price | None) -> Estimate:
        cost = None if price is None else price.of(usage)
        return Estimate(n, usage, cost, is_most=n_again > 0)

    return estimate


def _confirm_all(
    models: Sequence[str],
    prices: Prices,
    estimate: Callable[[Price | None], Estimate],
    confirm: Confirm,
) -> None:
    """Confirm what each model will take, before the first of them is asked anything."""
    for spec in dict.fromkeys(models):
        confirm(spec, estimate(prices.of(spec)))


def confirm_prompts(
    models: Sequence[str], prices: Prices, n_output: int, confirm: Confirm
) -> Callable[[Sequence[str]], None]:
    """Confirms what a call on each prompt takes, answered in about `n_output` tokens."""
    return lambda prompts: _confirm_all(models, prices, estimate_texts(prompts, n_output), confirm)


def ask_models(
    asked: ModelSettings,
    ask: Callable[[Model], Awaitable[list[Row]]],
    estimate: Callable[[Price | None], Estimate],
    confirm: Confirm,
) -> list[Row]:
    """What `ask` has of each model, one after the other; all costs are confirmed first.

    Raises `ModelError`, and what `confirm` raises.
    """
    import asyncio

    from fabula.models import open_model

    terms = asked.options()
    _confirm_all(asked.models, terms.prices, estimate, confirm)

    async def run(spec: str) -> list[Row]:
        async with open_model(spec, terms) as model:
            return await ask(model)

    return [row for spec in dict.fromkeys(asked.models) for row in asyncio.run(run(spec))]
