"""14 tests over one story: the story read once, against once for each test.

    python bench/judge.py [--model local] [--stories FILE.json] [--smoke]

Both in one run, with the same model in the same process; the ratio is what sharing saves.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import corpora
from fabula.core.types import Document
from fabula.judging.plan import AnswerBook, JudgePlan
from fabula.judging.prompts import Template
from fabula.judging.run import judge_stories
from fabula.models.base import Answer, Form, Prompt, Sampling
from fabula.models.local import LocalModel, embedded_model
from fabula.rubrics.load import load_rubric
from fabula.rubrics.released import read_released_stories


class Apart(LocalModel):
    """No prompt has a prefix that others share."""

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        return await super().ask(Prompt("", prompt.text), sampling, form)


async def seconds(path: Path, story: Document, plan: JudgePlan, *, shared: bool) -> float:
    """Wall time of all items about a story, the model loaded before."""
    async with (LocalModel if shared else Apart)(path) as model:
        start = time.perf_counter()
        await judge_stories([story], model, plan, AnswerBook())
        return time.perf_counter() - start


def main() -> None:
    given = corpora.options(
        __doc__, model=("local", "local, or a .gguf file"),
        stories=corpora.SHARED / "ttcw" / "ttcw_short_stories.json",
        number=(5, "which story of the file"),
    )  # fmt: skip
    path = embedded_model() if given.model == "local" else Path(given.model)
    story = read_released_stories(given.stories)[given.number]
    print(f"{story.id}: {len(story.text.split()):,} words, {path.name}")
    rubric = load_rubric("ttcw")
    rubric = replace(rubric, items=rubric.items[: corpora.sized(14, 2)])
    for max_tokens, what in ((1, "verdict alone"), (corpora.sized(60, 4), "verdict and reason")):
        plan = JudgePlan(rubric, Template("verdict-first"), max_tokens=max_tokens)
        shared = asyncio.run(seconds(path, story, plan, shared=True))
        apart = asyncio.run(seconds(path, story, plan, shared=False))
        print(f"{what}: shared {shared:.1f} s, apart {apart:.1f} s, ratio {shared / apart:.3f}")


if __name__ == "__main__":
    main()
