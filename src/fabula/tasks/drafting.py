"""Draft binary tests from experts' free-form measures, for a person to edit.

Chakrabarty et al. 2024, section 4.1: measures are grouped by meaning, the longest one (in words)
represents its group, a measure that is not a question is turned into one, and the group gets a
name. There people did this by discussion; here it is done with sentence embeddings, so the draft is
only a starting point.
"""

from __future__ import annotations

import asyncio
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabula.errors import InputError
from fabula.models.base import one_line
from fabula.models.encoder import Encoder
from fabula.models.model_spec import ModelOptions, open_model
from fabula.rubrics.load import parse_rubric, rubric_toml
from fabula.stats.vector_groups import group_vectors
from fabula.tasks.naming import content_words, names_by_words
from fabula.text import TextSettings
from fabula.types import Aggregate, Item, Rubric

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
            measures = [
                Measure(
                    text=" ".join((row["measure"] or "").split()),
                    dimension=(row.get("dimension") or "").strip(),
                    participant=(row.get("participant") or "").strip(),
                )
                for row in rows
            ]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV file in UTF-8 ({error})") from error
    kept = [measure for measure in measures if TextSettings().has_words(measure.text)]
    if not kept:
        raise InputError(f"{path}: contains no measures")
    if len(kept) > _MAX_MEASURES:
        raise InputError(f"{path}: more than {_MAX_MEASURES:,} measures")
    return kept


def draft_rubric(
    measures: Sequence[Measure],
    name: str,
    *,
    n_groups: int | None = None,
    distance: float = 0.55,
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
        for members in group_vectors(vectors[places], n_groups=n_groups, distance=distance)
    ]
    texts = [[member.text for member in members] for _, members in groups]
    if model is not None:
        agree([prompt for group in texts for prompt in _wording_prompts(group) if prompt])
    names = asyncio.run(_worded(texts, model, options))
    ids = _ids([title for title, _ in names])
    items = [
        Item(id_, index, title, question, dimension)
        for index, (id_, (dimension, _), (title, question)) in enumerate(
            zip(ids, groups, names, strict=True), 1
        )
    ]
    sources = ["The measures behind each test:"]
    for id_, (_, members) in zip(ids, groups, strict=True):
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
    """A name and a question for each group."""
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


def _ids(titles: Sequence[str]) -> list[str]:
    """An id for each title, numbered where two would be the same."""
    taken: Counter[str] = Counter()
    ids = []
    for title in titles:
        taken[_id(title)] += 1
        n = taken[_id(title)]
        ids.append(_id(title) + (f"_{n}" if n > 1 else ""))
    return ids


def _id(title: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return plain if plain[:1].isalpha() else f"test_{plain}".rstrip("_")
