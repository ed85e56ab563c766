"""Recorded answers in place of a model: for tests, and to judge again without paying again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from fabula.core.errors import DAMAGE, CallFailed, ModelError
from fabula.core.resume import KeptRows, RowKind
from fabula.core.store import ROWS, check_unchanged, text_digest
from fabula.models.base import Answer, Effort, Form, Model, Prompt, Sampling, Usage
from fabula.text.refusals import is_refusal

_USAGE = ("n_input", "n_cached", "n_output")


class ReplayedModel:
    """Answers from `answers.jsonl` of a run, or from rows of {"prompt": ..., "text": ...}.

    A row is found by its prompt (or the prompt's `prompt_digest`) and its seed, if it has one. If
    there are two rows, the last counts: a failed call that was retried has two. `PATH#model`
    selects one model of a recording of several. A prompt that was not recorded fails that call.
    """

    n_parallel = 1
    can_be_held = False

    def __init__(self, path: Path, model: str | None = None) -> None:
        self._path = path
        self._wanted = model
        self.name = f"replay/{path.stem}"
        self._rows: dict[tuple[str, int | None], dict[str, Any]] = {}

    async def __aenter__(self) -> Self:
        try:
            lines = self._path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{self._path}: cannot read recorded answers ({error})") from error
        models: dict[str, None] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{self._path}, line {number}"
            try:
                row = json.loads(line)
                digest = row.get("prompt_digest") or text_digest(row["prompt"])
                if not row.get("failed"):
                    recorded(row)
                key = str(digest), None if row.get("seed") is None else int(row["seed"])
            except DAMAGE as error:
                raise ModelError(
                    f"{where}: not a recorded answer; a row has prompt (or prompt_digest) and text"
                ) from error
            ROWS.check(row, where)
            check_unchanged(row, line.encode(errors="replace"), where)
            if key[1] is None and key in self._rows:
                raise ModelError(f"{where}: a second answer to the same prompt; give each its seed")
            name = str(row.get("model") or "")
            if self._wanted in (None, name):
                models[name] = None
                self._rows[key] = row
        if len(models) > 1:
            raise ModelError(
                f"{self._path}: contains answers by {', '.join(models)}; name one, as in "
                f"replay:{self._path}#{next(iter(models))}"
            )
        if self._wanted and not models:
            raise ModelError(f"{self._path}: contains no answers by {self._wanted}")
        self.name = next(iter(models), "") or self.name
        return self

    async def __aexit__(self, *error: object) -> None:
        self._rows.clear()

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        digest = text_digest(prompt.text)
        row = self._rows.get((digest, sampling.seed)) or self._rows.get((digest, None))
        if row is None:
            raise CallFailed(f"{self._path}: contains no answer to this prompt ({digest})")
        return recorded(row)


def recorded(row: dict[str, Any]) -> Answer:
    """An answer from its row. Raises `CallFailed` if the row records a failure."""
    if row.get("failed"):
        raise CallFailed(str(row["failed"]))
    usage = row.get("usage") or {}
    n_input, n_cached, n_output = (int(usage.get(name, 0)) for name in _USAGE)
    return Answer(
        stop=row.get("stop") or "end",
        usage=Usage(n_input, n_cached, n_output),
        masses={str(option): float(mass) for option, mass in (row.get("masses") or {}).items()},
        **{name: str(row.get(name) or "") for name in ("text", "note", "served", "runtime")},
    )


def recording_row(answer: Answer) -> dict[str, Any]:
    """An answer as a row; `recorded` reads it back."""
    row: dict[str, Any] = {
        "text": answer.text,
        "stop": answer.stop,
        "note": answer.note,
        "masses": {option: round(mass, 6) for option, mass in answer.masses.items()},
        "usage": {name: getattr(answer.usage, name) for name in _USAGE},
    }
    about = {"served": answer.served, "runtime": answer.runtime}
    return row | {name: value for name, value in about.items() if value}


CALLS = RowKind(
    "the answer",
    ("model", "prompt_digest", "drawn"),
    ("seed",),
    # A refusal may not be final.
    is_made_again=lambda row: is_refusal(str(row.get("text") or "")),
)


class CachedModel(Model):
    """Wraps a model with rows of answers, by model, prompt and sampling: none is paid for twice."""

    def __init__(self, model: Model, rows: KeptRows, *, effort: Effort | None = None) -> None:
        self._model, self._rows, self._effort = model, rows, effort
        self.name, self.n_parallel = model.name, model.n_parallel
        self.can_be_held = model.can_be_held

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        sampling = replace(sampling, effort=sampling.effort or self._effort)
        drawn = f"{sampling}|{form}" if form else str(sampling)
        key = {"model": self.name, "prompt_digest": text_digest(prompt.text), "drawn": drawn}
        if (row := self._rows.find(key)) is not None:
            # It was paid for earlier.
            return replace(recorded(row), usage=Usage())
        answer = await self._model.ask(prompt, sampling, form)
        names = {name: key[name] for name in ("model", "prompt_digest")}
        self._rows.add(names | {"seed": sampling.seed, "drawn": drawn} | recording_row(answer))
        return answer
