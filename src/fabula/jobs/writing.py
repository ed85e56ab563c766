"""Texts written by models, one row each: models are asked in turn, once the cost is confirmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import Confirm
from fabula.jobs.result import Result, Row

if TYPE_CHECKING:
    from fabula.models.base import Model
    from fabula.models.cost import Estimate, Price, Prices
    from fabula.resume import KeptRows

_PROMPT_TOKENS = 150
"""Approximate tokens of a prompt, besides the text it is about."""


@dataclass(frozen=True, slots=True, repr=False)
class Written(Result):
    """Requested texts, one row each; a missing text has its reason."""

    asked: Sequence[Row]
    out: Path

    def rows(self) -> list[Row]:
        return list(self.asked)

    @property
    def missing(self) -> dict[str, int]:
        """Why texts are missing, and how often."""
        reasons = Counter(str(row["missing_reason"]) for row in self.asked if row["missing_reason"])
        return dict(sorted(reasons.items()))

    @property
    def n(self) -> int:
        """The number of texts."""
        return len(self.asked) - sum(self.missing.values())

    def to_json(self) -> dict[str, Any]:
        n_asked = len(self.asked)
        return {"out": str(self.out), "n": self.n, "n_asked": n_asked, "missing": self.missing}


def estimate_texts(
    texts: Sequence[str], n_output: int, *, n_again: int = 0
) -> Callable[[Price | None], Estimate]:
    """The estimated cost of one call per text at a model's price, for a given answer length.

    Answers have `n_output` tokens, and may be sent back `n_again` times.
    """
    from fabula.models.base import Usage
    from fabula.models.cost import Estimate, estimate_tokens

    n = len(texts) * (1 + n_again)
    n_input = sum(map(estimate_tokens, texts)) * (1 + n_again) + _PROMPT_TOKENS * n
    usage = Usage(n_input + n_again * len(texts) * n_output, 0, n_output * n)

    return lambda price: Estimate.of(n, usage, price, is_most=n_again > 0)


def confirm_prompts(
    spec: str, prices: Prices, n_output: int, confirm: Confirm
) -> Callable[[Sequence[str]], None]:
    """Return a function that confirms the cost of one call of a model per prompt.

    Answers take about `n_output` tokens.
    """
    return lambda prompts: confirm(spec, estimate_texts(prompts, n_output)(prices.of(spec)))


def ask_models(
    asked: ModelSettings,
    kept: KeptRows,
    ask: Callable[[Model], Awaitable[list[Row]]],
    estimate: Callable[[Price | None], Estimate],
    confirm: Confirm,
) -> list[Row]:
    """The rows that `ask` gets from each model in turn; all costs are confirmed first.

    kept: the rows of the run, whose earlier costs count towards the limit.

    Raises `ModelError`, and what `confirm` raises.
    """
    import asyncio

    from fabula.models.model_spec import open_model

    terms = asked.options(kept.ledger)
    for spec in dict.fromkeys(asked.models):
        confirm(spec, estimate(terms.prices.of(spec)))

    async def run(spec: str) -> list[Row]:
        async with open_model(spec, terms) as model:
            return await ask(model)

    return [row for spec in dict.fromkeys(asked.models) for row in asyncio.run(run(spec))]
