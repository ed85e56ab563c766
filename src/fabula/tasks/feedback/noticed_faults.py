"""Record whether readers notice a planted fault without being told of it.

A reader, a person or a model, answers the rubric `story_fault` about a changed story: whether
something is wrong, and where, in the story's words. The fault is noticed if these words overlap the
recorded place of the change (as in `finding`, by quotation, by four consecutive words, or by
sentence number). "No", or another place, is not noticed. A reader who says that something is wrong
but names no place, or more than half of the story, is missing, and so is one who did not answer. A
story that no reader was asked about has no record: whether its fault can be noticed is unknown, and
it is never assumed to be noticeable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabula.tasks.feedback.fault_matches import PointedStory, fault_places, merged, places_said
from fabula.types import Estimate, Measurement

__all__ = [
    "NoticeScore",
    "group_blinded",
    "noticed_by",
    "read_noticed",
    "score_noticed",
]

RULES = "1"
Span = tuple[int, int]
_MOST = 0.5
"""A share of the story: marking more than this does not count as naming a place."""


def noticed_by(
    row: Mapping[str, Any],
    answers: Mapping[str, Measurement],
    story: PointedStory,
    where: str = "",
) -> dict[str, Any]:
    """Record what one reader noticed in the story of a row of `feedback corrupt`.

    `answers` are the reader's answers by item. `noticed` is None if it is unknown, with the reason.
    For an original, it is whether the reader says that something is wrong.
    """
    wrong = answers.get("wrong")
    any_answer = next(iter(answers.values()))
    found: dict[str, Any] = {
        "rater": any_answer.rater,
        "is_person": not any_answer.signature.startswith("judge|"),
        "noticed": None,
    }
    if wrong is None or wrong.value is None:
        reason = "no_answer" if wrong is None else wrong.missing_reason
        return found | {"missing_reason": reason or "no_answer"}
    is_wrong = _is_yes(wrong.value)
    if is_wrong is None:
        return found | {"missing_reason": "undecided"}
    if not is_wrong or row["method"] == "original":
        return found | {"noticed": is_wrong}
    said = answers.get("where")
    spans = [] if said is None or said.value is None else places_said(str(said.value), story)
    n_marked = sum(end - start for start, end in merged(spans))
    if not spans or n_marked > _MOST * len(story.draft.text):
        return found | {"missing_reason": "no_place"}
    places = fault_places(
        str(row["text"]), row.get("original"), row.get("change") or {}, story.sentences, where
    )
    is_there = any(a < end and start < b for a, b in spans for start, end in places)
    return found | {"noticed": is_there}


def _is_yes(value: float | str) -> bool | None:
    """A verdict, or the share of Yes over several answers; None if they are evenly divided."""
    if isinstance(value, str):
        return value == "Yes"
    return None if value == 0.5 else value > 0.5


def read_noticed(
    rows: Sequence[Mapping[str, Any]],
    answers: Iterable[Measurement],
    sentences_of: Callable[[str], Sequence[Span]],
) -> list[dict[str, Any]]:
    """The rows of `feedback corrupt`, each with `change.noticed`: what each of its readers noticed.

    A row that no reader was asked about has none, not even one from an earlier record.
    """
    given: dict[str, dict[str, dict[str, Measurement]]] = defaultdict(dict)
    for one in answers:
        given[one.document_id].setdefault(one.rater, {})[one.item] = one
    checked = []
    for number, row in enumerate(rows, 1):
        change = {k: v for k, v in (row.get("change") or {}).items() if k != "noticed"}
        readers = given.get(str(row["id"]), {})
        if readers:
            story = PointedStory.of(str(row["text"]), sentences_of(str(row["text"])))
            change["noticed"] = [
                noticed_by(row, readers[rater], story, f"story {number}")
                for rater in sorted(readers)
            ]
        checked.append({**row, "change": change})
    return checked


@dataclass(frozen=True, slots=True)
class NoticeScore:
    """How many faults of a kind were checked by people or by a model, and the share noticed."""

    method: str
    written_by: str
    """A model, or `Fabula` if the built-in rules or sentences made it."""
    reader: str
    """`people`, or the name of a model; `nobody` if none was checked."""
    n_stories: int
    """All stories of this kind."""
    n_checked: int
    """The number of these with a known answer."""
    missing: Mapping[str, int]
    """Unknown answers, by reason."""
    noticed: Estimate
    """Over answers, with its interval over stories; for originals, the share said to be wrong."""


def score_noticed(
    rows: Sequence[Mapping[str, Any]],
    estimate: Callable[[Sequence[float], Sequence[str]], Estimate],
) -> list[NoticeScore]:
    """Scores for each kind of fault and writer, by people and by each model.

    `estimate` makes an estimate from values and the stories they are about.
    """
    kinds: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        kinds[row["method"], (row.get("change") or {}).get("written_by", "Fabula")].append(row)
    scores = []
    for (method, writer), own in kinds.items():
        by_reader: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
        for row in own:
            for one in (row.get("change") or {}).get("noticed") or ():
                reader = "people" if one["is_person"] else one["rater"]
                by_reader[reader].append((str(row["story_id"]), one))
        for reader, said in by_reader.items() or [("nobody", [])]:
            known = [(story, one) for story, one in said if one["noticed"] is not None]
            missing: dict[str, int] = defaultdict(int)
            for _, one in said:
                if one["noticed"] is None:
                    missing[one["missing_reason"]] += 1
            values = [float(one["noticed"]) for _, one in known]
            stories = [story for story, _ in known]
            scores.append(
                NoticeScore(
                    method,
                    writer,
                    reader,
                    len(own),
                    len(set(stories)),
                    dict(sorted(missing.items())),
                    estimate(values, stories),
                )
            )
    return scores


def group_blinded(rows: Sequence[Mapping[str, Any]], size: int, seed: int) -> list[dict[str, Any]]:
    """Group the stories for a study, each version without the record of its changes.

    In random order; no group has two versions of one story.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    groups: list[list[Mapping[str, Any]]] = []
    for k in order:
        row = rows[k]
        free = next(
            (
                one
                for one in groups
                if len(one) < size and all(row["story_id"] != two["story_id"] for two in one)
            ),
            None,
        )
        if free is None:
            groups.append([row])
        else:
            free.append(row)
    return [
        {"id": row["id"], "text": row["text"], "group": f"group {number}"}
        for number, group in enumerate(groups, 1)
        for row in group
    ]
