"""The rubrics as tasks of Inspect AI, for those who run their evaluations there.

    inspect eval fabula/ttcw --model openai/gpt-4o -T stories=drafts/

The same prompts and the same strict reading as `fabula judge`; the log, its viewer, retries and
batches are Inspect's. An answer without a verdict is unscored with its reason, never a No.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentText, GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, grouped, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from fabula.errors import InputError
from fabula.judging.prompts import Style, Template
from fabula.models.hosted import answer_of
from fabula.models.verdicts import MISSING, read_verdict
from fabula.rubrics import load_rubric
from fabula.rubrics.released import STORIES_FILE, read_released_stories
from fabula.text import find_files, read_documents
from fabula.types import Document, Rubric

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
    documents = _documents(stories, text_field)
    return Task(
        dataset=MemoryDataset(list(_samples(documents, loaded, style)), name=loaded.key),
        solver=generate(),
        scorer=verdict(loaded, style),
        config=GenerateConfig(max_tokens=1024 if style == "reason-first" else 200),
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
    template = Template(style)
    for document in documents:
        for item in loaded.items:
            prompt = template.prompt(document, item)
            # The mark tells Anthropic's models where the shared prefix ends; others need none.
            content: list[Any] = [
                ContentText(text=prompt.prefix, cache_breakpoint=True),
                ContentText(text=prompt.question),
            ]
            yield Sample(
                id=f"{document.id}/{item.id}",
                input=[ChatMessageUser(content=content)],
                metadata={
                    "story": document.id,
                    "author": document.author or "",
                    "item": item.id,
                    "dimension": item.dimension,
                },
            )


@scorer(metrics=[grouped(mean(), "item"), stderr(cluster="story")])
def verdict(loaded: Rubric, style: Style) -> Scorer:
    """1 for Yes, 0 for No; unscored where there is no verdict."""

    async def score(state: TaskState, target: Target) -> Score:
        item = loaded.item(str(state.metadata["item"]))
        found = read_verdict(answer_of(state.output), item.scale, style)
        if found.value is None:
            reason = found.missing_reason or ""
            return Score.unscored(
                reason=reason, answer=state.output.completion, explanation=MISSING[reason]
            )
        return Score(value=found.value, explanation=found.rationale)

    return score
