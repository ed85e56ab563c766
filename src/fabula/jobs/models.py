"""Which language models a job calls, with what limits; models asked for texts in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.core.errors import explain
from fabula.core.settings import Between, Settings, SettingsError, part, setting
from fabula.jobs.job import Confirm
from fabula.jobs.result import Result, Row

if TYPE_CHECKING:
    from fabula.core.resume import KeptRows, Ledger
    from fabula.models.base import Model
    from fabula.models.cost import Estimate, Price, Prices
    from fabula.models.model_spec import ModelOptions


def temperature_setting(
    default: float | None, default_text: str = "", check: Between | None = None
) -> Any:
    """The temperature of sampling."""
    return setting(
        default,
        help="Sampling temperature.",
        check=check or Between(0, 2),
        default_text=default_text,
        tunes="models",
    )


def max_tokens_setting(default: int | None, default_text: str = "") -> Any:
    """The length of what a model writes."""
    return setting(
        default,
        help="Maximum length of what is written, in tokens.",
        check=Between(1),
        default_text=default_text,
        tunes="models",
    )


def _is_price(text: str) -> str | None:
    from fabula.core.errors import InputError
    from fabula.models.cost import parse_prices

    try:
        parse_prices(text)
    except InputError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class Pricing(Settings):
    """Prices of models whose price is unknown."""

    price: str | None = setting(
        None,
        help="Dollars per million tokens, to estimate the cost; for several models "
        "MODEL=IN/OUT;MODEL=IN/OUT.",
        unit="IN/OUT",
        check=_is_price,
        tunes="models",
    )

    def prices(self) -> Prices:
        """The prices given in the settings."""
        from fabula.models.cost import Prices, parse_prices

        return Prices() if self.price is None else parse_prices(self.price)


@dataclass(frozen=True, slots=True)
class Spending(Pricing):
    """The limit on the cost of model calls."""

    max_cost: float | None = setting(
        None,
        help="Stop before spending more than this; needs a price.",
        unit="DOLLARS",
        shared="models",
        check=Between(0),
    )

    def options(self, ledger: Ledger | None = None) -> ModelOptions:
        """Options for `open_model`; all models opened with them share the limit.

        ledger: what they cost so far, which lets the limit hold over all resumes.
        """
        from fabula.models.cost import SharedBudget
        from fabula.models.model_spec import ModelOptions

        return ModelOptions(prices=self.prices(), shared_budget=SharedBudget(self.max_cost, ledger))


_MODEL_HELP = (
    "local (the embedded model), a .gguf file, the URL of a server with OpenAI's protocol "
    "(URL#name, or URL,URL#name for several servers of one model), or provider/model as in "
    "Inspect AI: openai/..., anthropic/..., google/..., vllm/..., ollama/...; repeat it to ask "
    "several."
)


@dataclass(frozen=True, slots=True)
class ModelSettings(Settings):
    """The models, called in turn, and how each is called."""

    models: tuple[str, ...] = setting(("local",), help=_MODEL_HELP, unit="MODEL", option="model")
    n_parallel: int | None = setting(
        None,
        help="Concurrent calls, for each copy or server.",
        check=Between(1),
        default_text="1 local, 10 elsewhere",
        tunes="models",
    )
    max_retries: int = setting(
        5, help="Retries of a failed call (hosted models).", check=Between(0), tunes="models"
    )
    timeout: int | None = setting(
        None,
        help="Timeout of one attempt at a call (hosted models).",
        unit="SECONDS",
        check=Between(1),
        default_text="the timeout of the provider's client",
        tunes="models",
    )
    reasoning_effort: Literal["low", "medium", "high"] | None = setting(
        None,
        help="How long reasoning models think (hosted models); `max_tokens` includes the thinking.",
        default_text="the model's own",
        tunes="models",
    )
    cache: bool = setting(False, help="Use Inspect's cache (hosted models).", tunes="models")
    batch: bool = setting(
        False, help="Use the provider's batch mode: cheaper, slower.", tunes="models"
    )
    structured: bool | None = setting(
        None,
        help="Constrain hosted models to a JSON schema.",
        default_text="models known to follow one",
        tunes="models",
    )
    spending: Spending = part(Spending)

    def check_together(self) -> None:
        if not self.models:
            raise SettingsError("models", "must name at least one")

    @property
    def n_models(self) -> int:
        """Their number; duplicates count once."""
        return len(set(self.models))

    def options(self, ledger: Ledger | None = None) -> ModelOptions:
        """Options for `open_model`, as of `Spending.options`."""
        return replace(
            self.spending.options(ledger),
            n_parallel=self.n_parallel,
            max_retries=self.max_retries,
            cache=self.cache,
            batch=self.batch,
            structured=self.structured,
            timeout_s=self.timeout,
            effort=self.reasoning_effort,
        )


@dataclass(frozen=True, slots=True)
class NoModelSettings(ModelSettings):
    """Model settings whose default is no model."""

    models: tuple[str, ...] = setting((), help=_MODEL_HELP, unit="MODEL", option="model")

    def check_together(self) -> None:
        """Accept that no model is named."""


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

    n_calls = len(texts) * (1 + n_again)
    n_input = sum(map(estimate_tokens, texts)) * (1 + n_again) + _PROMPT_TOKENS * n_calls
    usage = Usage(n_input + n_again * len(texts) * n_output, 0, n_output * n_calls)

    return lambda price: Estimate.of(n_calls, usage, price, is_most=n_again > 0)


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


@dataclass(frozen=True, slots=True, repr=False)
class WrittenStories(Written):
    """Plots, stories or other texts by models."""

    what: str = "texts"
    finished: Sequence[Row] | None = None
    """The rows of `out`, if they are others than were asked for."""

    def rows(self) -> list[Row]:
        return list(self.asked if self.finished is None else self.finished)

    @property
    def n_framed(self) -> int:
        """The number of texts that a model put others around, which were removed."""
        return sum(bool(row.get("frame_removed")) for row in self.asked)

    def lines(self) -> list[str]:
        what = self.what
        lines = [f"{self.n:,} of {len(self.asked):,} {what}, written: {self.out}"]
        lines += [f"missing: {n:,} {what}: {explain(why)}" for why, n in self.missing.items()]
        if self.n_framed:
            lines.append(
                f"removed the text that the model put around {self.n_framed:,} {what} "
                "(frame_removed)"
            )
        return lines + [
            f"  {row['id']} by {row['model']}: {row['n_words']:,} words after {row['round']} "
            f"rounds, target {row['target_words']:,}"
            for row in self.asked
            if row["missing_reason"] == "not_converged"
        ]

    def to_json(self) -> dict[str, Any]:
        return Written.to_json(self) | {"n_framed": self.n_framed}

    def notices(self) -> list[str]:
        if self.what != "plots":
            return []
        return ["read them, and set `verified` to true for those that are right"]
