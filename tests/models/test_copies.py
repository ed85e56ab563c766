"""Which copy of a model is asked next, and whose call comes next."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.serving import prompt_of, serving

from fabula.core.types import Document
from fabula.judging.plan import JudgePlan
from fabula.judging.prompts import Template
from fabula.judging.session import Session, run_session
from fabula.models.model_spec import Copies, ModelOptions
from fabula.rubrics.load import load_rubric


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 30), st.randoms(use_true_random=False))
def test_every_copy_is_given_as_much_as_it_takes_and_no_more(
    n_copies: int, n_each: int, n_calls: int, draw: random.Random
):
    under_way: Counter[int] = Counter()
    n_all = min(n_calls, n_copies * n_each)

    async def run() -> None:
        copies = Copies(range(n_copies), n_each)
        all_busy = asyncio.Event()

        async def call(k: int) -> None:
            async with copies.free(f"story {k % 3}") as copy:
                under_way[copy] += 1
                assert under_way[copy] <= n_each
                if under_way.total() == n_all:
                    all_busy.set()
                await all_busy.wait()
                for _ in range(draw.randrange(4)):
                    await asyncio.sleep(0)
                under_way[copy] -= 1

        await asyncio.wait_for(asyncio.gather(*map(call, range(n_calls))), 10)

    asyncio.run(run())
    assert under_way.total() == 0


def test_a_call_goes_where_its_beginning_was_read():
    async def run() -> list[str]:
        copies = Copies(["a", "b", "c"], 1)
        went = []
        for prefixes in (["one", "two", "three"], ["three", "one"], ["two"]):
            held = [copies.free(prefix) for prefix in prefixes]
            went += [await place.__aenter__() for place in held]
            for place in held:
                await place.__aexit__(None, None, None)
        return went

    assert asyncio.run(run()) == ["a", "b", "c", "c", "a", "b"]


def test_two_servers_judge_as_one_under_the_name_of_the_first(tmp_path: Path):
    rubric = load_rubric("ttcw")
    plan = JudgePlan(rubric, Template("verdict-first"))
    stories = [Document(name, f"Story {name}.") for name in "AB"]

    def answer(body: dict[str, Any], _: int) -> str:
        return "Yes. Good." if "Story A" in prompt_of(body) else "No. Bad."

    def judge(spec: str, out: Path) -> bytes:
        options = ModelOptions(n_parallel=1, max_retries=0)
        run_session(Session(stories, [spec], plan, out, options=options))
        return (out / "measurements.jsonl").read_bytes()

    with serving(answer) as first, serving(answer) as second:
        alone = judge(f"{first.url}/v1#shared", tmp_path / "alone")
        first.requests.clear()
        both = judge(f"{first.url}/v1,{second.url}/v1#shared", tmp_path / "both")
    assert both == alone
    assert len(first.requests) + len(second.requests) == 28
    assert first.requests
    assert second.requests
