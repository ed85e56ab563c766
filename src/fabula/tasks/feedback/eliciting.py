"""Ask models for feedback: every story, corrupted and not, with every prompt.

Rashkin et al. 2025, sections 4 and 5 and appendix A: sampled at temperature 0.7. The paper's grid
is 1,304 stories, four prompts, with and without examples, eight models: 83,456 answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path
from typing import Any

from fabula import __version__
from fabula.errors import InputError
from fabula.models.base import Model, Sampling, Usage
from fabula.models.cost import Estimate, Price, estimate_tokens
from fabula.resume import KeptRows, Row, RowKind
from fabula.store import read_rows
from fabula.tasks.feedback.feedback_prompts import PromptSet, feedback_prompt
from fabula.tasks.model_texts import Wanted, ask_for, why_no_text
from fabula.types import Signature

ANSWERS = RowKind("the feedback", ("id", "model"), ("missing_reason", "feedback", "story"))
_EXPECTED_TOKENS = 120
"""Tokens per answer, for the estimate: the paper's mean is 74 (Table 1, 295 characters)."""


SAMPLING = Sampling(temperature=0.7, max_tokens=512)


@dataclass(frozen=True, slots=True)
class ElicitPlan:
    """The prompts and settings for each story."""

    prompts: PromptSet
    names: tuple[str, ...]
    shots: tuple[int, ...] = (0, 2)
    sampling: Sampling = SAMPLING

    def signature(self, model: str) -> str:
        return str(
            Signature.of(
                "feedback",
                model=model,
                prompts=self.prompts.name,
                sampling=str(self.sampling).replace("|", ",").replace(":", "="),
                v=__version__,
            )
        )


def read_corrupted(path: Path) -> list[dict[str, Any]]:
    """Rows of `feedback corrupt`. Raises `InputError` with the line."""
    rows = []
    seen: set[str] = set()
    for number, row in enumerate(read_rows(path, is_edited=True), 1):
        for name in ("id", "story_id", "method", "text", "original"):
            if not isinstance(row.get(name), str):
                raise InputError(
                    f"{path}, line {number}: no text {name!r}; use the output of "
                    "`fabula feedback corrupt`"
                )
        if row["id"] in seen:
            raise InputError(f"{path}, line {number}: the id {row['id']!r} occurs twice")
        seen.add(row["id"])
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: contains no stories")
    return rows


def estimate_grid(
    stories: Sequence[Mapping[str, Any]], plan: ElicitPlan, price: Price | None
) -> Estimate:
    """The estimated cost of the whole grid."""
    n_input = 0
    for name, n in product(plan.names, plan.shots):
        frame = len(feedback_prompt(plan.prompts, name, "", n).text)
        n_input += sum(estimate_tokens(" " * (frame + len(row["text"]))) for row in stories)
    n_calls = len(stories) * len(plan.names) * len(plan.shots)
    usage = Usage(n_input, 0, n_calls * min(_EXPECTED_TOKENS, plan.sampling.max_tokens))
    return Estimate(n_calls, usage, None if price is None else price.of(usage))


async def elicit(
    stories: Sequence[Mapping[str, Any]],
    model: Model,
    plan: ElicitPlan,
    rows: KeptRows,
    *,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """A row for each story, prompt and number of examples; a missing answer has its reason.

    Prompts of one kind are consecutive, so that the model can cache their common prefix.
    """
    signature = plan.signature(model.name)

    def wanted(n_shots: int, name: str, story: Mapping[str, Any]) -> Wanted:
        made_of = {
            "id": f"{story['id']}_{name}_{n_shots}",
            "model": model.name,
            "story": story["text"],
            "signature": signature,
        }

        async def make() -> Row:
            prompt = feedback_prompt(plan.prompts, name, story["text"], n_shots)
            answer = await model.ask(prompt, plan.sampling)
            reason = why_no_text(answer)
            return {
                "id": made_of["id"],
                "story_id": story["story_id"],
                "method": story["method"],
                "prompt": name,
                "shots": n_shots,
                "model": model.name,
                "feedback": None if reason else answer.text.strip(),
                "missing_reason": reason,
                "is_cut": answer.stop == "length",
                "story": story["text"],
                "original": story["original"],
                "change": story.get("change"),
                "signature": signature,
            }

        return Wanted(made_of, make)

    grid = product(plan.shots, plan.names, stories)
    return await ask_for(starmap(wanted, grid), rows, model.n_parallel, meter)
