"""The rubrics as tasks of Inspect AI, for those who run their evaluations there.

    inspect eval fabula/ttcw --model openai/gpt-4o -T stories=drafts/

The same prompts, conditions and strict reading as `fabula judge`; the log, its viewer, retries and
batches are Inspect's. An answer without a verdict is unscored with its reason, never a No, and so
is an item that its condition rules out. Each scale has metrics of its own, and no mean is over two.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageUser,
    ContentText,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from fabula.errors import InputError
from fabula.judging.plan import MAX_TOKENS
from fabula.judging.prompts import Style, Template
from fabula.judging.run import depends_on, is_asked
from fabula.models.hosted import answer_of
from fabula.models.verdicts import read_verdict
from fabula.reasons import explain
from fabula.rubrics import load_rubric
from fabula.rubrics.released import STORIES_FILE, read_released_stories
from fabula.text import find_files, read_documents
from fabula.types import Document, Item, Rubric, Scale

__all__ = ["rubric", "ttcw"]


@task
def ttcw(stories: str = "", style: Style = "reason-first", text_field: str = "text") -> Task:
    """The 14 tests of TTCW about each story of a file or folder."""
    return rubric(stories, "ttcw", style, text_field)


@task
def rubric(
    stories: str = "", name: str = "ttcw", style: Style = "reason-first", text_field: str = "text"
) -> Task:
    """Any rubric, by its name or its file, about each story of a file or folder."""
    loaded = load_rubric(name)
    for item in loaded.items:
        if item.scale.is_ranking:
            raise InputError(
                f"{name}: {item.id} ranks the stories of a group, and a model is shown one story "
                f"at a time; compare them with `fabula judge --pairwise`"
            )
    documents = _documents(stories, text_field)
    return Task(
        dataset=MemoryDataset(list(_samples(documents, loaded, style)), name=loaded.key),
        solver=_asking(loaded, documents, style),
        scorer=verdict(loaded, style),
        config=GenerateConfig(max_tokens=MAX_TOKENS[style]),
        version=loaded.key,
    )


def _documents(stories: str, text_field: str) -> list[Document]:
    if not stories:
        raise InputError("name the stories with -T stories=FILE, a file or a folder")
    if Path(stories).name == STORIES_FILE:
        return read_released_stories(Path(stories))
    documents = list(read_documents(find_files((stories,)), text_field=text_field))
    if not documents:
        raise InputError(f"{stories}: holds no stories")
    return documents


def _samples(documents: list[Document], loaded: Rubric, style: Style) -> Iterator[Sample]:
    for document in documents:
        for item in loaded.items:
            yield Sample(
                id=f"{document.id}/{item.id}",
                input=[_message(document, item, style)],
                metadata={
                    "story": document.id,
                    "author": document.author or "",
                    "item": item.id,
                    "dimension": item.dimension,
                    "scale": item.scale.kind,
                    "range": item.scale.range,
                    "options": list(item.scale.options),
                    # All of it, for metrics are computed from the log, which may be scored again.
                    "fields": asdict(item.scale),
                },
            )


def _message(document: Document, item: Item, style: Style) -> ChatMessageUser:
    prompt = Template(style).prompt(document, item)
    # The mark tells Anthropic's models where the shared prefix ends; others need none.
    content: list[Any] = [
        ContentText(text=prompt.prefix, cache_breakpoint=True),
        ContentText(text=prompt.question),
    ]
    return ChatMessageUser(content=content)


def _asking(loaded: Rubric, documents: list[Document], style: Style) -> Solver:
    """Asks an item, and before it those that decide whether it is asked; each of them once."""
    stories = {document.id: document for document in documents}
    outputs = _Once()

    async def output_of(story: Document, item: Item, epoch: int) -> ModelOutput | str:
        """The model's output, or why it was not asked."""
        if item.show_if:
            reason = await reason_against(story, item, epoch)
            if reason:
                return reason
        key = story.id, item.id, epoch
        return await outputs.get(key, lambda: get_model().generate([_message(story, item, style)]))

    async def reason_against(story: Document, item: Item, epoch: int) -> str:
        """`not_asked` or `gate_missing` where the condition of an item does not hold."""
        answers: dict[str, object] = {name: story.meta.get(name) for name in loaded.facts}
        is_open = any(answers[name] is None for name in depends_on(item) if name in answers)
        for gate in (loaded.item(name) for name in depends_on(item) if name not in answers):
            output = await output_of(story, gate, epoch)
            if isinstance(output, str):
                is_open |= output == "gate_missing"
                continue
            found = read_verdict(answer_of(output), gate.scale, style)
            answers[gate.id] = gate.scale.named(found.value)
            is_open |= answers[gate.id] is None
        if is_asked(item, answers):
            return ""
        return "gate_missing" if is_open else "not_asked"

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        story, item = stories[state.metadata["story"]], loaded.item(state.metadata["item"])
        output = await output_of(story, item, state.epoch)
        if isinstance(output, str):
            state.metadata["not_asked"] = output
        else:
            state.output = output
            state.messages.append(output.message)
        state.completed = True
        return state

    # Inspect writes a solver's arguments into the plan of the log: stories do not belong there.
    @solver
    def asked() -> Solver:
        return solve

    return asked()


class _Once:
    """Calls that several samples wait for, each made once."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str, int], asyncio.Task[ModelOutput]] = {}

    async def get(
        self,
        key: tuple[str, str, int],
        call: Callable[[], Coroutine[Any, Any, ModelOutput]],
    ) -> ModelOutput:
        found = self._tasks.get(key)
        if found is None or (found.done() and (found.cancelled() or found.exception())):
            found = self._tasks[key] = asyncio.ensure_future(call())
        # One sample that is stopped must not stop the call that others wait for.
        return await asyncio.shield(found)


# Raw scores of all epochs: Inspect's own reducer makes 0 of a choice.
@metric(scores="unreduced")
def by_item() -> Metric:
    """Yes-no items by their mean, and `all` over them; numbers by theirs, with the range in the
    name; each option of a choice by its share."""

    def compute(scores: list[SampleScore]) -> Value:
        by_id: dict[str, list[SampleScore]] = {}
        for one in scores:
            by_id.setdefault(_meta(one)["item"], []).append(one)
        found: dict[str, float | int | str | bool | None] = {}
        for item, of_item in by_id.items():
            found |= _scale(of_item[0]).metrics(item, [_value(one) for one in of_item])
        tests = [float(one.score.as_float()) for one in scores if _scale(one).is_test]
        return found | ({"all": statistics.fmean(tests)} if tests else {})

    return compute


@metric(name="stderr", scores="unreduced")
def tests_stderr() -> Metric:
    """The standard error of `all`, over stories."""

    def compute(scores: list[SampleScore]) -> Value:
        tests = [one for one in scores if _scale(one).is_test]
        compute_stderr: Any = stderr(cluster="story")
        return compute_stderr(tests) if tests else float("nan")

    return compute


def _meta(one: SampleScore) -> Mapping[str, Any]:
    return one.sample_metadata or {}


def _scale(one: SampleScore) -> Scale:
    return Scale(**_meta(one)["fields"])


def _value(one: SampleScore) -> float | str:
    value = one.score.value
    return value if isinstance(value, str) else float(one.score.as_float())


@scorer(metrics=[by_item(), tests_stderr()])
def verdict(loaded: Rubric, style: Style) -> Scorer:
    """What the item's scale has: 1 for Yes and 0 for No, a number, an option, a text."""

    async def score(state: TaskState, target: Target) -> Score:
        item = loaded.item(str(state.metadata["item"]))
        reason = str(state.metadata.get("not_asked") or "")
        if reason:
            return Score.unscored(reason=reason, explanation=explain(reason))
        found = read_verdict(answer_of(state.output), item.scale, style)
        if found.value is None:
            reason = found.missing_reason or ""
            return Score.unscored(
                reason=reason, answer=state.output.completion, explanation=explain(reason)
            )
        return Score(value=found.value, explanation=found.rationale)

    return score
