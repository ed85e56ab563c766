"""A model whose calls come out of a purse."""

from __future__ import annotations

from typing import Self

from fabula.models.base import Answer, Choice, Model, Prompt, Sampling
from fabula.models.cost import Budget

__all__ = ["PaidModel"]


class PaidModel:
    """Another model; no call begins that could spend more than the budget has."""

    def __init__(self, model: Model, budget: Budget) -> None:
        self._model, self._budget = model, budget
        self.name, self.n_parallel = model.name, model.n_parallel
        self.can_be_held = model.can_be_held

    async def ask(self, prompt: Prompt, sampling: Sampling, choice: Choice | None = None) -> Answer:
        """The answer. Raises `ModelError` where the purse leaves no room for the call."""
        async with self._budget.call(prompt, sampling):
            answer = await self._model.ask(prompt, sampling, choice)
            self._budget.spend(answer.usage)
        return answer

    async def __aenter__(self) -> Self:
        await self._model.__aenter__()
        # Some models know only now what they are called, and how many prompts they take.
        self.name, self.n_parallel = self._model.name, self._model.n_parallel
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._model.__aexit__(*error)
