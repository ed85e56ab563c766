"""Recorded answers in place of a model: for tests, and to judge again without paying again."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Self

from fabula.errors import CallFailed, ModelError
from fabula.models.base import Answer, Choice, Prompt, Sampling, Usage

__all__ = ["ReplayedModel", "prompt_digest", "recorded", "recording_row"]


class ReplayedModel:
    """Answers from `answers.jsonl` of a run, or from rows of {"prompt": ..., "text": ...}.

    A row is found by its prompt (or the prompt's `prompt_digest`) and its seed; rows of one prompt
    without seeds are given in their order. A prompt that was not recorded fails that call.
    """

    n_parallel = 1
    context_tokens: int | None = None
    can_be_held = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"replay/{path.stem}"
        self._rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._given: dict[str, int] = defaultdict(int)

    async def __aenter__(self) -> Self:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{self._path}: recorded answers cannot be read ({error})") from error
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                key = row.get("prompt_digest") or prompt_digest(row["prompt"])
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                raise ModelError(
                    f"{self._path}, line {number}: not a recorded answer; a row has "
                    f"prompt (or prompt_digest) and text"
                ) from error
            self._rows[key].append(row)
            self.name = str(row.get("model") or self.name)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._rows.clear()

    async def ask(self, prompt: Prompt, sampling: Sampling, choice: Choice | None = None) -> Answer:
        key = prompt_digest(prompt.text)
        rows = self._rows.get(key, [])
        same = [row for row in rows if row.get("seed") == sampling.seed]
        if same:
            # A call that failed and was made again has two rows; the last one counts.
            return recorded(same[-1])
        unseeded = [row for row in rows if "seed" not in row]
        if not unseeded:
            raise CallFailed(f"{self._path}: holds no answer to this prompt ({key})")
        self._given[key] += 1
        return recorded(unseeded[(self._given[key] - 1) % len(unseeded)])


def prompt_digest(text: str) -> str:
    """Sixteen digits for a prompt; recordings need not hold whole stories."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def recorded(row: dict[str, Any]) -> Answer:
    """An answer from its row. Raises `CallFailed` where the row records a failure."""
    if row.get("failed"):
        raise CallFailed(str(row["failed"]))
    usage = row.get("usage") or {}
    return Answer(
        text=str(row.get("text") or ""),
        stop=row.get("stop") or "end",
        usage=Usage(usage.get("n_input", 0), usage.get("n_cached", 0), usage.get("n_output", 0)),
        masses=row.get("masses") or {},
        note=str(row.get("note") or ""),
    )


def recording_row(answer: Answer) -> dict[str, Any]:
    """An answer as a row; `recorded` reads it back."""
    return {
        "text": answer.text,
        "stop": answer.stop,
        "note": answer.note,
        "masses": {option: round(mass, 6) for option, mass in answer.masses.items()},
        "usage": {
            "n_input": answer.usage.n_input,
            "n_cached": answer.usage.n_cached,
            "n_output": answer.usage.n_output,
        },
    }
