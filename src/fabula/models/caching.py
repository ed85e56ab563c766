"""A model whose answers are kept as they come, and not asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from fabula.models.base import Answer, Choice, Effort, Model, Prompt, Sampling, Usage
from fabula.models.replay import prompt_digest, recorded, recording_row
from fabula.resume import KeptRows, RowKind
from fabula.text.refusals import is_refusal

__all__ = ["CALLS", "CachedModel"]


def _is_refused(row: Mapping[str, Any]) -> bool:
    """A refusal is asked about again, for it may not be the last word."""
    return is_refusal(str(row.get("text") or ""))


CALLS = RowKind("the answer", ("model", "prompt_digest", "drawn"), ("seed",), _is_refused)


class CachedModel:
    """Another model, with rows of its answers: what is there is not asked and not paid again.

    An answer is known by the model, the prompt, and all that decides how it is drawn. A file of the
    rows can be replayed (`replay:FILE`).
    """

    def __init__(self, model: Model, rows: KeptRows, *, effort: Effort | None = None) -> None:
        self._model, self._rows, self._effort = model, rows, effort
        self.name, self.n_parallel = model.name, model.n_parallel
        self.can_be_held = model.can_be_held

    async def ask(self, prompt: Prompt, sampling: Sampling, choice: Choice | None = None) -> Answer:
        sampling = replace(sampling, effort=sampling.effort or self._effort)
        drawn = f"{sampling}|{choice}" if choice else str(sampling)
        key = {"model": self.name, "prompt_digest": prompt_digest(prompt.text), "drawn": drawn}
        row = self._rows.find(key)
        if row is not None:
            # It was paid for before.
            return replace(recorded(row), usage=Usage())
        answer = await self._model.ask(prompt, sampling, choice)
        names = {name: key[name] for name in ("model", "prompt_digest")}
        self._rows.add(names | {"seed": sampling.seed, "drawn": drawn} | recording_row(answer))
        return answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None
