"""A model whose calls come out of a budget: what `open_model` gives, whichever model it opens."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from fabula.models.base import (
    Answer,
    ChargedCallFailed,
    Choice,
    Effort,
    Model,
    Prompt,
    Sampling,
    Usage,
)
from fabula.models.cost import Budget, counted_usage
from fabula.provenance import current_recording

__all__ = ["BudgetedModel"]


class BudgetedModel:
    """Another model; no call begins that could spend more than its budget has."""

    def __init__(self, model: Model, budget: Budget, *, effort: Effort | None = None) -> None:
        self._model, self.budget, self._effort = model, budget, effort
        # Of where it is opened: it may be asked from other threads, which know of no recording.
        self._noted = current_recording()
        self.name, self.n_parallel = model.name, model.n_parallel
        self.can_be_held = model.can_be_held

    async def ask(self, prompt: Prompt, sampling: Sampling, choice: Choice | None = None) -> Answer:
        """The answer, with what it took. Raises `ModelError` where the budget has no room for it.

        A failed call is paid for where the model read its prompt.
        """
        sampling = replace(sampling, effort=sampling.effort or self._effort)
        async with self.budget.call(prompt, sampling):
            try:
                answer = await self._model.ask(prompt, sampling, choice)
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
        # Some models know only now what they are called, and how many prompts they take.
        self.name, self.n_parallel = self._model.name, self._model.n_parallel
        self.can_be_held = self._model.can_be_held
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._model.__aexit__(*error)
