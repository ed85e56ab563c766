"""A model whose calls are charged to a budget: what `open_model` returns for any model."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

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
from fabula.models.cost import Budget, counted_usage
from fabula.provenance import current_recording

__all__ = ["BudgetedModel"]


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
                self._spend(error.usage, prompt, sampling, Answer(""))
                raise
            usage = self._spend(answer.usage, prompt, sampling, answer)
        if self._noted is not None:
            self._noted.note_answer(self.name, answer.served, answer.runtime)
        return answer if usage is answer.usage else replace(answer, usage=usage)

    def _spend(self, usage: Usage, prompt: Prompt, sampling: Sampling, answer: Answer) -> Usage:
        usage = counted_usage(usage, prompt, sampling, answer)
        self.budget.spend(usage)
        return usage

    async def __aenter__(self) -> Self:
        await self._model.__aenter__()
        # Some models only know their name and number of parallel prompts now.
        self.name, self.n_parallel = self._model.name, self._model.n_parallel
        self.can_be_held = self._model.can_be_held
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._model.__aexit__(*error)
