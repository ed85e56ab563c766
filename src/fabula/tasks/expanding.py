"""Expand draft tests so that others understand them: meaning, what to list, other wordings.

Chakrabarty et al. 2024, section 5.2.1: an expert's question alone is ambiguous to other experts and
to models, so a model writes out its meaning, and experts verify and edit that. The result is a
draft for them; the existing fields of an item are not changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from fabula.errors import CallFailed
from fabula.models.base import Model, Prompt, Sampling
from fabula.models.concurrency import in_turn
from fabula.tasks.model_texts import read_written
from fabula.types import Item, Rubric

_MAX_TOKENS = 600

_MEANING = """Experienced readers and editors of fiction put this question to a story:

{question}

Explain in one paragraph of at most 150 words what they mean by it: which quality they look for, \
how it shows on the page when it is there, and what its absence looks like. Do not answer the \
question, and write only the paragraph."""
_LIST = """A careful reader is to answer this question about a story, and is to collect evidence \
first:

{question}

Say in one sentence what to list or to mark in the story before deciding. Begin with a verb in the \
imperative, such as List or Name, and write only the sentence."""
_PARAPHRASES = """Here is a question about a story:

{question}

Ask the same in {n} other ways. Each must have the same answer for every story. Write one question \
a line, without numbers, and nothing else."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A rubric with expanded items, and what the model failed to give."""

    rubric: Rubric
    n_written: int
    missing: Mapping[str, int]
    """Why a requested field is missing, and how often."""


def expansion_prompts(item: Item, n_paraphrases: int) -> dict[str, str]:
    """The prompts for an item, by the field that the answer fills; existing fields stay."""
    prompts = {}
    if not item.background:
        prompts["background"] = _MEANING.format(question=item.question)
    if not item.list_first:
        prompts["list_first"] = _LIST.format(question=item.question)
    if n_paraphrases > len(item.paraphrases):
        prompts["paraphrases"] = _PARAPHRASES.format(question=item.question, n=n_paraphrases)
    return prompts


async def expand_rubric(
    rubric: Rubric,
    model: Model,
    n_paraphrases: int = 0,
    *,
    meter: Callable[[int], None] = lambda _: None,
) -> Expanded:
    """Fill in what the rubric's items lack. Raises `ModelError` if no call can succeed."""
    wanted = [
        (item, field, prompt)
        for item in rubric.items
        for field, prompt in expansion_prompts(item, n_paraphrases).items()
    ]

    async def ask(prompt: str) -> tuple[str | None, str | None]:
        try:
            answer = await model.ask(Prompt("", prompt), Sampling(max_tokens=_MAX_TOKENS))
        except CallFailed:
            return None, "failed"
        finally:
            meter(1)
        if answer.stop == "length":
            return None, "truncated"
        written = read_written(answer)
        return written.text, written.missing_reason

    answers = await in_turn([partial(ask, prompt) for _, _, prompt in wanted], model.n_parallel)
    missing: Counter[str] = Counter()
    filled: dict[str, dict[str, str | tuple[str, ...]]] = {}
    for (item, field, _), (text, reason) in zip(wanted, answers, strict=True):
        value = None if text is None else _read(item, field, text, n_paraphrases)
        if value:
            filled.setdefault(item.id, {})[field] = value
        else:
            missing[reason or "no_answer"] += 1
    items = tuple(replace(item, **filled.get(item.id, {})) for item in rubric.items)  # type: ignore[arg-type]
    n_written = sum(map(len, filled.values()))
    return Expanded(replace(rubric, items=items), n_written, dict(sorted(missing.items())))


def _read(item: Item, field: str, text: str, n_paraphrases: int) -> str | tuple[str, ...]:
    """The value for a field in an answer; empty if it has none."""
    if field != "paraphrases":
        return " ".join(text.split())
    found = list(item.paraphrases)
    for line in text.splitlines():
        question = re.sub(r"^\W*(?:\d+\s*[.):]\s*)?", "", line).strip(' *"”')
        if question.endswith("?") and question not in (item.question, *found):
            found.append(question)
    # All items of a run are asked in the same number of wordings, so fewer would be useless.
    return tuple(found[:n_paraphrases]) if len(found) >= n_paraphrases else ()
