"""A whole run: open models, confirm the cost, store every answer, write the measurements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabula.errors import InputError
from fabula.judging.folder import RunFolder
from fabula.judging.judging_plan import AnswerBook, JudgePlan
from fabula.judging.measurements import to_measurements
from fabula.judging.pairwise import Pairs, judge_pairs
from fabula.judging.run import MAX_UNREADABLE, RETEST, judge_stories, with_retest
from fabula.models.base import FunctionModel, Model, Usage
from fabula.models.cost import Estimate, Price, SharedBudget, estimate_tokens
from fabula.models.model_spec import ModelOptions, open_model
from fabula.text import check_ids
from fabula.types import Document, Measurement

# The typical length of an answer, in tokens.
_LIKELY_OUTPUT = {"verdict-first": 60, "reason-first": 350}


@dataclass(frozen=True, slots=True)
class Spent:
    """What a model used and cost. `cost` in dollars, None if its price is unknown."""

    model: str
    n_calls: int
    usage: Usage
    cost: float | None
    is_free: bool = False
    """Its price is known to be zero."""


@dataclass(frozen=True, slots=True)
class Session:
    """What is judged, by which models, and with which settings."""

    documents: Sequence[Document]
    models: Sequence[str | FunctionModel]
    plan: JudgePlan
    out: Path | None = None
    pairs: Pairs | None = None
    """Judge these pairs instead of single stories."""
    n_retest: int = 0
    options: ModelOptions = field(default_factory=ModelOptions)
    max_cost: float | None = None
    restart: bool = False
    again: Collection[str] = ()
    """Ask again if a verdict is missing for one of these reasons."""
    max_unreadable: int = MAX_UNREADABLE
    """Stop after this many answers in a row without a readable verdict; 0 never stops."""


def run_session(
    session: Session,
    *,
    agree: Callable[[str, Estimate], None] = lambda _model, _estimate: None,
    begin: Callable[[str, int], None] = lambda _model, _n: None,
    meter: Callable[[int], None] = lambda _: None,
) -> tuple[list[Measurement], list[Spent]]:
    """Judge, model by model; returns measurements in the order of models, stories, items.

    `agree` is called with a model's estimated cost before its first call, and raises to stop.
    Raises `InputError`, `ModelError`, `BusyError`; answers so far stay in the session's folder.
    """
    check_ids(session.documents)
    for document in session.documents:
        if document.id.endswith(RETEST):
            raise InputError(f"{document.id}: an id must not end with {RETEST}; give it another")
    plan, prices = session.plan, session.options.prices
    most = session.max_unreadable
    documents = with_retest(session.documents, session.n_retest, plan.seed)
    folder = None if session.out is None else RunFolder(session.out, plan, session.again)

    async def judge(
        spec: str | FunctionModel, book: AnswerBook, shared_budget: SharedBudget
    ) -> tuple[list[Measurement], Spent]:
        name = spec if isinstance(spec, str) else spec.name
        price = prices.of(spec) if isinstance(spec, str) else prices.each
        async with open_model(spec, replace(session.options, shared_budget=shared_budget)) as model:
            n_before = book.n_new
            agree(name, estimate_calls(session, documents, model, book, price))
            if folder is not None:
                folder.begin()
            if session.pairs is not None:
                begin(name, 2 * len(plan.items) * len(session.pairs))
                found = await judge_pairs(
                    session.pairs, model, plan, book, meter=meter, max_unreadable=most
                )
            else:
                begin(name, len(plan.items) * plan.n_answers * len(documents))
                judged = await judge_stories(
                    documents, model, plan, book, meter=meter, max_unreadable=most
                )
                found = list(to_measurements(judged, documents, model.name, plan))
            budget, n_new = model.budget, book.n_new - n_before
            return found, Spent(model.name, n_new, budget.usage, budget.cost, budget.is_free)

    measurements: list[Measurement] = []
    spent: list[Spent] = []
    opened = folder.open(restart=session.restart) if folder else nullcontext(AnswerBook())
    with opened as book:
        shared_budget = SharedBudget(session.max_cost, book.ledger)
        for spec in dict.fromkeys(session.models):
            found, cost = asyncio.run(judge(spec, book, shared_budget))
            measurements += found
            spent.append(cost)
        if folder is not None:
            folder.finish(measurements)
    return measurements, spent


def estimate_calls(
    session: Session,
    documents: Sequence[Document],
    model: Model,
    book: AnswerBook,
    price: Price | None,
) -> Estimate:
    """Estimate the remaining calls: a prefix is read once, then taken from the cache."""
    plan = session.plan
    items = plan.items
    texts = [plan.template.shown(document) for document in documents]
    if session.pairs is not None:
        texts = [a.text + b.text for a, b in session.pairs for _ in range(2)]
    n_asked = len(items) * (plan.n_answers if session.pairs is None else 1)
    blank = Document("", "")
    questions = sum(estimate_tokens(plan.template.prompt(blank, item).text) for item in items)
    questions -= len(items) * estimate_tokens(plan.template.shown(blank))
    n_left = max(0, len(texts) * n_asked - book.count(model.name))
    share = n_left / (len(texts) * n_asked) if texts else 0.0
    prefixes = sum(map(estimate_tokens, texts))
    n_input = n_asked * prefixes + len(texts) * questions * n_asked // len(items)
    output = min(plan.max_tokens, _LIKELY_OUTPUT[plan.template.style])
    n_cached = (n_asked - 1) * prefixes if plan.template.has_story_first else 0
    usage = Usage(round(share * n_input), round(share * n_cached), round(n_left * output))
    return Estimate.of(n_left, usage, price)
