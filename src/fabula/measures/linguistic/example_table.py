"""Passages with what every system wrote and its scores: Table 1 of the paper, and its numbers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.measures.linguistic.system_scores import Continuation, Story


@dataclass(frozen=True, slots=True)
class Written:
    """What a system wrote after a passage; no text if it failed."""

    system: str
    text: str | None
    values: Mapping[str, float | None]
    missing: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Example:
    """A passage and what each system wrote after it."""

    story: Story
    written: Sequence[Written]

    def to_json(self) -> dict[str, Any]:
        """As plain values for JSON output."""
        return {
            "id": self.story.id,
            "context": list(self.story.context),
            "systems": {
                one.system: {
                    "text": one.text,
                    "values": dict(one.values),
                    "missing": dict(one.missing),
                }
                for one in self.written
            },
        }


def sample_examples(
    stories: Sequence[Story],
    continuations: Iterable[Continuation],
    scored: Iterable[Mapping[str, Any]],
    systems: Sequence[str],
    n: int,
    seed: int,
) -> list[Example]:
    """Up to n passages, drawn at random from those that the most systems continued.

    `scored` are the rows of `scoring.score_rows`. The passages keep their order.
    """
    if not n:
        return []
    texts = {(one.story_id, one.system): one.text for one in continuations}
    by_story: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in scored:
        by_story.setdefault(row["id"], {})[row["system"]] = row
    most = max(map(len, by_story.values()))
    whole = [story for story in stories if len(by_story.get(story.id, ())) == most]
    chosen = sorted(random.Random(seed).sample(range(len(whole)), min(n, len(whole))))
    return [
        Example(
            story,
            [
                Written(system, texts[story.id, system], one["values"], one["missing"])
                for system in systems
                if (one := by_story[story.id].get(system)) is not None
            ],
        )
        for story in (whole[k] for k in chosen)
    ]
