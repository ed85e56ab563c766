"""Draft binary tests from experts' free-form measures, and expand drafts, for people to edit.

Chakrabarty et al. 2024, section 4.1: measures are grouped by meaning, the longest one (in words)
represents its group, a measure that is not a question is turned into one, and the group gets a
name. There people did this by discussion; here it is done with sentence embeddings, so the draft is
only a starting point. Section 5.2.1: an expert's question alone is ambiguous to other experts and
to models, so a model writes out its meaning, and experts verify and edit that; an item's existing
fields are not changed.
"""

from __future__ import annotations

import asyncio
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fabula.core.errors import CallFailed, InputError
from fabula.core.types import Aggregate, Item, Rubric
from fabula.judging.themes import content_words, group_vectors, names_by_words
from fabula.models.base import Model, Prompt, Sampling, in_turn
from fabula.models.encoder import Encoder
from fabula.models.model_spec import ModelOptions, open_model
from fabula.models.texts import Meter, one_line, read_written
from fabula.rubrics.load import parse_rubric, rubric_toml
from fabula.text import TextSettings

_MAX_MEASURES = 20_000


@dataclass(frozen=True, slots=True)
class Measure:
    """What an expert would measure, in the expert's own words."""

    text: str
    dimension: str = ""
    participant: str = ""


def read_measures(path: Path) -> list[Measure]:
    """The rows of a CSV with the column `measure`. Raises `InputError` with the line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not rows.fieldnames or "measure" not in rows.fieldnames:
                raise InputError(
                    f"{path}: has no column `measure`; add a header line that contains it"
                )
            measures = []
            for row in rows:
                about = ((row.get(name) or "").strip() for name in ("dimension", "participant"))
                measures.append(Measure(" ".join((row["measure"] or "").split()), *about))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV file in UTF-8 ({error})") from error
    worded = [measure for measure in measures if TextSettings().has_words(measure.text)]
    if not worded:
        raise InputError(f"{path}: contains no measures")
    if len(worded) > _MAX_MEASURES:
        raise InputError(f"{path}: more than {_MAX_MEASURES:,} measures")
    return worded


def draft_rubric(
    measures: Sequence[Measure],
    name: str,
    *,
    n_groups: int | None = None,
    model: str | None = None,
    options: ModelOptions | None = None,
    agree: Callable[[Sequence[str]], None] = lambda _: None,
) -> tuple[Rubric, list[str]]:
    """Return a rubric with one test per group, and for each test the measures behind it.

    Without a model, a group is named by its most frequent words, and a measure that is not a
    question is turned into one with a fixed phrase. `agree` receives the prompts before the first
    one is sent, and raises to stop. Raises `ModelError`.
    """
    vectors = Encoder().encode([measure.text for measure in measures])
    by_dimension: dict[str, list[int]] = defaultdict(list)
    for place, measure in enumerate(measures):
        by_dimension[measure.dimension].append(place)
    groups = [
        (dimension, [measures[places[k]] for k in members])
        for dimension, places in by_dimension.items()
        for members in group_vectors(vectors[places], n_groups=n_groups)
    ]
    texts = [[member.text for member in members] for _, members in groups]
    if model is not None:
        agree([prompt for group in texts for prompt in _wording_prompts(group) if prompt])
    names = asyncio.run(_worded(texts, model, options))
    n_of: Counter[str] = Counter()
    items, sources = list[Item](), ["The measures behind each test:"]
    for (dimension, members), (title, question) in zip(groups, names, strict=True):
        n_of[_id(title)] += 1
        n = n_of[_id(title)]
        # Numbered where two would be the same.
        id_ = _id(title) + (f"_{n}" if n > 1 else "")
        items.append(Item(id_, len(items) + 1, title, question, dimension))
        sources.append(id_)
        sources += [f"  {m.text}" + f" ({m.participant})" * bool(m.participant) for m in members]
    rubric = Rubric(
        id=_id(name),
        version="draft",
        title=f"Draft of {name}",
        items=tuple(items),
        aggregate=Aggregate("count", "Yes", "tests passed"),
        wording="drafted from experts' measures; to be edited",
    )
    return parse_rubric(rubric_toml(rubric).encode(), name), sources


async def _worded(
    groups: Sequence[Sequence[str]], spec: str | None, options: ModelOptions | None
) -> list[tuple[str, str]]:
    fullest = list(map(_fullest, groups))
    questions = [
        text if text.endswith("?") else f"Is this so of the story: {text.rstrip('.')}?"
        for text in fullest
    ]
    plain = list(zip(names_by_words(groups), questions, strict=True))
    if spec is None:
        return plain
    worded = []
    async with open_model(spec, options) as model:
        for group, measure, (title, question) in zip(groups, fullest, plain, strict=True):
            asking, naming = _wording_prompts(group)
            asked = await one_line(model, asking) if asking else None
            # A question that shares no word with its measure is about something else.
            if asked and asked.endswith("?") and content_words(asked) & content_words(measure):
                question = asked
            name = await one_line(model, naming, max_tokens=16)
            if name and len(name.split()) <= 6 and _id(name):
                title = name.rstrip(".") or title
            worded.append((title, question))
    return worded


def _wording_prompts(group: Sequence[str]) -> tuple[str | None, str]:
    """The prompts for a group's question, None if it already is one, and for its name."""
    fullest = _fullest(group)
    question = (
        f"An expert measures the creativity of a story by this:\n\n{fullest}\n\nWrite it as one "
        f"question about a story that can be answered with Yes or No, where Yes is good. Write "
        f"only the question."
    )
    listed = "\n".join(f"- {text}" for text in group[:12])
    name = (
        f"These measures of creative writing mean the same thing:\n\n{listed}\n\nName what they "
        f"measure in two to four words. Write only the name."
    )
    return None if fullest.endswith("?") else question, name


def _fullest(group: Sequence[str]) -> str:
    """The best articulated measure: the one with the most words, as in the paper."""
    return max(group, key=lambda text: len(text.split()))


def _id(title: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return plain if plain[:1].isalpha() else f"test_{plain}".rstrip("_")


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
    rubric: Rubric, model: Model, n_paraphrases: int = 0, *, meter: Meter = lambda _: None
) -> Expanded:
    """Fill in what the rubric's items lack. Raises `ModelError` if no call can succeed."""
    requests = [
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

    answers = await in_turn([partial(ask, prompt) for _, _, prompt in requests], model.n_parallel)
    missing: Counter[str] = Counter()
    filled: dict[str, dict[str, str | tuple[str, ...]]] = {}
    for (item, field, _), (text, reason) in zip(requests, answers, strict=True):
        value: str | tuple[str, ...] = " ".join((text or "").split())
        if field == "paraphrases":
            asked = list(item.paraphrases)
            for line in (text or "").splitlines():
                question = re.sub(r"^\W*(?:\d+\s*[.):]\s*)?", "", line).strip(' *"”')
                if question.endswith("?") and question not in (item.question, *asked):
                    asked.append(question)
            # All items of a run are asked in the same number of wordings: fewer would be useless.
            value = tuple(asked[:n_paraphrases]) if text and len(asked) >= n_paraphrases else ()
        if value:
            filled.setdefault(item.id, {})[field] = value
        else:
            missing[reason or "no_answer"] += 1
    items = tuple(replace(item, **filled.get(item.id, {})) for item in rubric.items)  # type: ignore[arg-type]
    n_written = sum(map(len, filled.values()))
    return Expanded(replace(rubric, items=items), n_written, dict(sorted(missing.items())))
