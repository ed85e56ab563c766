"""14 tests over one story: the story read once, against once for each test.

    python bench/judge.py [--model local] [--stories ../shared/data/ttcw/ttcw_short_stories.json]

Both in one run, with the same model in the same process; the ratio is what sharing saves.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from fabula.judging import AnswerBook, JudgePlan, Template, judge_stories
from fabula.models.local import LocalModel, embedded_model
from fabula.rubrics import load_rubric
from fabula.rubrics.released import read_released_stories
from fabula.types import Document


async def seconds(path: Path, story: Document, plan: JudgePlan, *, shared: bool) -> float:
    """Wall time of all items about a story, the model loaded before."""
    async with LocalModel(path, reuse_prefix=shared) as model:
        start = time.perf_counter()
        await judge_stories([story], model, plan, AnswerBook([], lambda _: None))
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="local", help="local, or a .gguf file")
    parser.add_argument(
        "--stories", type=Path, default=Path("../shared/data/ttcw/ttcw_short_stories.json")
    )
    parser.add_argument("--number", type=int, default=5, help="which story of the file")
    given = parser.parse_args()
    path = embedded_model() if given.model == "local" else Path(given.model)
    story = read_released_stories(given.stories)[given.number]
    print(f"{story.id}: {len(story.text.split()):,} words, {path.name}")
    for max_tokens, what in ((1, "verdict alone"), (60, "verdict and reason")):
        plan = JudgePlan(load_rubric("ttcw"), Template("verdict-first"), max_tokens=max_tokens)
        shared = asyncio.run(seconds(path, story, plan, shared=True))
        apart = asyncio.run(seconds(path, story, plan, shared=False))
        print(f"{what}: shared {shared:.1f} s, apart {apart:.1f} s, ratio {shared / apart:.3f}")


if __name__ == "__main__":
    main()
