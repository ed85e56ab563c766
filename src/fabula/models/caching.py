"""A model whose answers are kept as they come, and not asked for again."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from fabula.models.base import Answer, Choice, Model, Prompt, Sampling, Usage
from fabula.models.replay import prompt_digest, recorded, recording_row
from fabula.store import RowWriter
from fabula.text.refusals import is_refusal

__all__ = ["KeptModel"]


class KeptModel:
    """Another model, with a file of its answers: what is there is not asked and not paid again.

    An answer is known by the model, the prompt, and all that decides how it is drawn. The file can
    be replayed (`replay:FILE`). It is touched when the first new answer comes.
    """

    def __init__(self, model: Model, file: RowWriter) -> None:
        self._model, self._file = model, file
        self._has_begun = False
        self.name, self.n_parallel = model.name, model.n_parallel
        self.can_be_held = model.can_be_held
        self._kept = {
            (row.get("model"), row.get("prompt_digest"), row.get("drawn")): row
            for row in file.kept
            # A refusal is asked about again, for it may not be the last word.
            if row.get("prompt_digest") and not is_refusal(str(row.get("text") or ""))
        }

    async def ask(self, prompt: Prompt, sampling: Sampling, choice: Choice | None = None) -> Answer:
        drawn = f"{sampling}|{choice}" if choice else str(sampling)
        key = self.name, prompt_digest(prompt.text), drawn
        if key in self._kept:
            # It was paid for before.
            return replace(recorded(self._kept[key]), usage=Usage())
        answer = await self._model.ask(prompt, sampling, choice)
        if not self._has_begun:
            self._file.begin()
            self._has_begun = True
        row = {"model": key[0], "prompt_digest": key[1], "seed": sampling.seed, "drawn": drawn}
        self._file.write(row | recording_row(answer))
        self._kept[key] = row | recording_row(answer)
        return answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None
