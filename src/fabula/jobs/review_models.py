"""The parts of a review that call a language model: verdicts on a rubric, and feedback."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from fabula.errors import InputError, ModelError
from fabula.jobs.progress import Confirm, Progress
from fabula.jobs.report import ReportSettings
from fabula.judging.judge_prompts import Template
from fabula.judging.judging_plan import MAX_TOKENS, AnswerBook, JudgePlan
from fabula.judging.measurements import to_measurements
from fabula.judging.run import judge_stories
from fabula.judging.session import Session, estimate_calls
from fabula.models.base import Model, Usage
from fabula.models.cost import Estimate
from fabula.models.encoder import Encoder
from fabula.models.model_spec import ModelOptions, open_model
from fabula.models.replay import CALLS, CachedModel
from fabula.resume import kept_rows
from fabula.rubrics.load import load_rubric
from fabula.tasks.feedback.advising import Advice, AdvicePlan, advise, estimate
from fabula.types import Document, Measurement


@dataclass(frozen=True, slots=True)
class Said:
    """What one model said about all texts."""

    verdicts: tuple[Measurement, ...]
    advice: tuple[Advice, ...]
    failures: tuple[str, ...]
    """Why texts have no feedback."""


def judge_plan(plan: ReportSettings) -> JudgePlan:
    """How the rubric is asked. Raises `InputError`."""
    return JudgePlan(
        rubric=load_rubric(plan.rubric),
        template=Template(plan.style),
        max_tokens=MAX_TOKENS[plan.style],
        seed=plan.seed,
        effort=plan.models.reasoning_effort,
        structured=plan.models.structured,
    )


async def ask_model(
    spec: str,
    documents: Sequence[Document],
    plan: ReportSettings,
    options: ModelOptions,
    progress: Progress,
    confirm: Confirm,
) -> Said:
    """Get verdicts and feedback from one model. Raises `ModelError`, `InputError`."""
    judging, advising = judge_plan(plan), _advice_plan(plan)
    wants_verdicts, wants_advice = plan.asks("verdicts"), plan.asks("feedback")
    # Before anything is paid for.
    encoder = Encoder() if wants_advice else None
    with ExitStack() as stack:
        # Other settings give another answer.
        held = {None: "", True: "-structured", False: "-unstructured"}[plan.models.structured]
        path = None if plan.keep is None else plan.keep / f"answers{held}.jsonl"
        rows = stack.enter_context(kept_rows(path, CALLS))
        async with open_model(spec, options) as opened:
            # Cached answers are free, so the cache comes before the budget.
            model = CachedModel(opened, rows, effort=options.effort)
            book = AnswerBook()
            confirm(spec, _expected(spec, documents, plan, options, model, book))
            verdicts: list[Measurement] = []
            name = model.name.partition("@")[0]
            if wants_verdicts:
                progress.begin(f"verdicts by {name}", len(judging.items) * len(documents))
                meter = progress.advance
                judged = await judge_stories(documents, model, judging, book, meter=meter)
                verdicts += to_measurements(judged, documents, model.name, judging)
            advice: list[Advice] = []
            failures: list[str] = []
            if encoder is not None:
                progress.begin(f"feedback by {name}", plan.n_samples * len(documents))
                for document in documents:
                    asked = advise(document, model, advising, encoder, meter=progress.advance)
                    try:
                        advice.append(await asked)
                    except (InputError, ModelError) as error:
                        failures.append(str(error))
            return Said(tuple(verdicts), tuple(advice), tuple(failures))


def estimate_review(spec: str, documents: Sequence[Document], plan: ReportSettings) -> Estimate:
    """Estimate the cost of a model before it is opened; cached answers are not considered."""
    options = plan.models.options()
    return _expected(spec, documents, plan, options, open_model(spec, options), AnswerBook())


def _expected(
    spec: str,
    documents: Sequence[Document],
    plan: ReportSettings,
    options: ModelOptions,
    model: Model,
    book: AnswerBook,
) -> Estimate:
    price = options.prices.of(spec)
    expected = []
    if plan.asks("verdicts"):
        session = Session(documents, [spec], judge_plan(plan))
        expected.append(estimate_calls(session, documents, model, book, price))
    if plan.asks("feedback"):
        advising = _advice_plan(plan)
        expected += [estimate(document, advising, 0, price) for document in documents]
    known = [one.cost for one in expected if one.cost is not None]
    return Estimate(
        sum(one.n_calls for one in expected),
        sum((one.usage for one in expected), start=Usage()),
        math.fsum(known) if len(known) == len(expected) else None,
        any(one.is_most for one in expected),
    )


def _advice_plan(plan: ReportSettings) -> AdvicePlan:
    return AdvicePlan(n_times=plan.n_samples, seed=plan.seed, effort=plan.models.reasoning_effort)
