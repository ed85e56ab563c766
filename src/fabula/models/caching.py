"""A model with cached answers: each is stored as it arrives, and not requested again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from fabula.models.base import Answer, Effort, Form, Model, Prompt, Sampling, Usage
from fabula.models.replay import prompt_digest, recorded, recording_row
from fabula.resume import KeptRows, RowKind
from fabula.text.refusals import is_refusal


def _is_refused(row: Mapping[str, Any]) -> bool:
    """Whether a row is a refusal, which is retried, since it may not be final."""
    return is_refusal(str(row.get("text") or ""))


CALLS = RowKind("the answer", ("model", "prompt_digest", "drawn"), ("seed",), _is_refused)


class CachedModel:
    """Wraps a model with rows of its answers: cached ones are neither requested nor paid again.

    An answer is identified by the model, the prompt, and everything that affects sampling. A file
    of the rows can be replayed (`replay:FILE`).
    """

    def __init__(self, model: Model, rows: KeptRows, *, effort: Effort | None = None) -> None:
        self._model, self._rows, self._effort = model, rows, effort
        self.name, self.n_parallel = model.name, model.n_parallel
        self.can_be_held = model.can_be_held

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        sampling = replace(sampling, effort=sampling.effort or self._effort)
        drawn = f"{sampling}|{form}" if form else str(sampling)
        key = {"model": self.name, "prompt_digest": prompt_digest(prompt.text), "drawn": drawn}
        row = self._rows.find(key)
        if row is not None:
            # It was paid for earlier.
            return replace(recorded(row), usage=Usage())
        answer = await self._model.ask(prompt, sampling, form)
        names = {name: key[name] for name in ("model", "prompt_digest")}
        self._rows.add(names | {"seed": sampling.seed, "drawn": drawn} | recording_row(answer))
        return answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None
