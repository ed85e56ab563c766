"""The tables of "Help Me Write a Story" (Rashkin, Clark, Huot and Lapata 2025).

From the authors' released files, or from feedback of one's own. Where the released rows carry the
authors' measures, these are averaged beside ours, so that it shows where ours differ from theirs.
`story_feedback_check` finds that repetition in Table 1 is the mean of that in Table 9: it is taken
among the answers of one model to one prompt in one number of shots, so it is here too.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.models.encoder import Encoder
from fabula.replicate.story_feedback_files import (
    FEEDBACK_FILE,
    ONE_SENTENCE,
    RATINGS_FILE,
    known_model,
    read_own,
    read_released,
)
from fabula.replicate.story_feedback_printed import QUESTIONS, automatic, ratings
from fabula.replicate.story_feedback_ratings import (
    ORDERS,
    Rated,
    Validation,
    rate,
    read_rated,
    validate_rater,
)
from fabula.stats.agreement import pearson
from fabula.tasks.feedback.answers import Answers, bertscore, read_answers
from fabula.tasks.feedback.scoring import CELL, group_answers, repetition, score_answers
from fabula.text.feedback import feedback_id
from fabula.types import Estimate

__all__ = [
    "LAYOUT",
    "Automatic",
    "Match",
    "Means",
    "Replica",
    "Row",
    "replicate_released",
    "replicate_run",
]


Rows = Sequence[Mapping[str, Any]]
CountSentences = Callable[[list[str]], list[int]]

LAYOUT = ("prompt", "shots", "model")
"""The order in which Table 9 lists its cells."""
_CROSSES = ((), ("model",), ("prompt",), ("shots",), ("method",), LAYOUT)


@dataclass(frozen=True, slots=True)
class Row:
    """A subset of the answers: each metric as printed, by the released columns, and by ours."""

    where: Mapping[str, str]
    n: int
    printed: Mapping[str, float]
    released: Mapping[str, float | None]
    ours: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Match:
    """Our measure against the released column, answer by answer."""

    n: int
    n_equal: int
    mean_difference: float
    """Of absolute differences."""
    correlation: float | None


@dataclass(frozen=True, slots=True)
class Automatic:
    """Tables 1 and 6 to 9."""

    rows: tuple[Row, ...]
    n_answers: int
    n_empty: int
    """Answers without a character, which have length 0 and no trigram."""
    n_missing: Mapping[str, int]
    matches: Mapping[str, Match]
    signature: str


@dataclass(frozen=True, slots=True)
class Replica:
    """What one source of feedback gives."""

    source: str
    is_released: bool
    automatic: Automatic | None
    rated: tuple[Rated, ...]
    validations: tuple[Validation, ...]
    names: Mapping[str, str]
    lacking: tuple[str, ...] = ()
    """Released files that are not there."""


@dataclass(frozen=True, slots=True)
class Means:
    """What measures need beside the answers; without it they are left out."""

    count_sentences: CountSentences | None = None
    encoder: Encoder | None = None
    """For BERTScore, in percent as the paper prints it; comparable within one encoder only."""


_PLAIN = Means()


def replicate_released(folder: Path, *, means: Means = _PLAIN, seed: int = 0) -> Replica:
    """What the released files of `folder` give. Raises `InputError`."""
    given = read_released(folder)
    measured: dict[str, dict[str, dict[str, float]]] = {}
    tables = None
    if given.feedback is not None:
        tables, measured["ours"] = _automatic(given.feedback, means, seed, automatic)
    rated: tuple[Rated, ...] = ()
    validations: tuple[Validation, ...] = ()
    if given.rated is not None:
        said = {question: _column(given.rated, "ratings", question) for question in QUESTIONS}
        rated = (rate("people", True, said, given.rated, ratings),)
        measured["released"] = {
            metric: _column(given.rated, "columns", metric) for metric in ("perfect", "repetition")
        }
        stories = {row["id"]: row["story_id"] for row in given.rated}
        validations = validate_rater("people", said, measured, stories, seed)
    present = {FEEDBACK_FILE: given.feedback, RATINGS_FILE: given.rated}
    return Replica(
        source=str(folder),
        is_released=True,
        automatic=tables,
        rated=rated,
        validations=validations,
        names=given.names,
        lacking=tuple(name for name, rows in present.items() if rows is None),
    )


def replicate_run(
    paths: Sequence[Path],
    folders: Sequence[Path] = (),
    *,
    means: Means = _PLAIN,
    seed: int = 0,
) -> Replica:
    """The same tables of one's own feedback, and of runs of `judge` that rated it.

    A figure of the paper stands only beside a model that it had. Raises `InputError`.
    """
    rows = [{**row, "id": feedback_id(row)} for row in read_own(paths)]
    tables, measured = _automatic(rows, means, seed, _printed_of_model)
    rated: list[Rated] = []
    validations: list[Validation] = []
    stories = {row["id"]: row["story_id"] for row in rows}
    for folder in folders:
        for rater, said in read_rated(folder).items():
            one = rate(rater, False, said, rows, _ratings_of_model)
            if not one.n:
                raise InputError(
                    f"{folder}: rated none of this feedback; give the run of `fabula feedback "
                    f"rate` on it"
                )
            rated.append(one)
            validations += validate_rater(rater, said, {"ours": measured}, stories, seed)
    return Replica(
        source=", ".join(map(str, paths)),
        is_released=False,
        automatic=tables,
        rated=tuple(rated),
        validations=tuple(validations),
        names={},
    )


def _printed_of_model(where: Mapping[str, str]) -> dict[str, float]:
    """Only what the paper has of that model: its other subsets are of its eight models."""
    model = known_model(where["model"]) if "model" in where else None
    return automatic({**where, "model": model}) if model is not None else {}


def _ratings_of_model(name: str) -> dict[str, tuple[float, float]]:
    model = known_model(name)
    return ratings(model) if model is not None else {}


def _automatic(
    rows: Rows,
    means: Means,
    seed: int,
    printed: Callable[[Mapping[str, str]], dict[str, float]],
) -> tuple[Automatic, dict[str, dict[str, float]]]:
    """The tables, and our measures of each answer by metric and id."""
    answers = read_answers(
        rows,
        one_sentence=ONE_SENTENCE,
        count_sentences=means.count_sentences,
        similarity=None if means.encoder is None else _percent(bertscore(means.encoder)),
        encoder="" if means.encoder is None else means.encoder.name,
        keep_refusals=True,
    )
    given = [row for row in rows if row["feedback"] is not None]
    ours = _by_answer(answers)
    found = []
    for subset in score_answers(answers, seed=seed, crosses=_CROSSES):
        held = [row for row in given if all(row[k] == v for k, v in subset.where.items())]
        found.append(
            Row(subset.where, subset.n, printed(subset.where), _released(held), subset.values)
        )
    tables = Automatic(
        rows=tuple(sorted(found, key=lambda row: _place(row.where))),
        n_answers=len(answers),
        n_empty=sum(not row["feedback"] for row in given),
        n_missing=answers.n_missing,
        matches=_matches(ours, given),
        signature=answers.signature,
    )
    ids = [row["id"] for row in given]
    return tables, {
        metric: {id_: float(v) for id_, v in zip(ids, values, strict=True) if not np.isnan(v)}
        for metric, values in ours.items()
    }


def _percent(score: Callable[[str, str], float]) -> Callable[[str, str], float]:
    return lambda text, other: 100 * score(text, other)


def _by_answer(answers: Answers) -> dict[str, NDArray[np.float64]]:
    _, cells = group_answers(answers, CELL)
    return {
        "length": answers.lengths,
        "perfect": answers.is_perfect.astype(np.float64),
        "repetition": repetition(answers.trigrams, cells, np.ones(len(answers), np.bool_)),
        "repetition_imperfect": repetition(answers.trigrams, cells, ~answers.is_perfect),
        "overlap": answers.overlaps,
        "one_sentence": answers.one_sentence,
    }


def _released(rows: Rows) -> dict[str, float | None]:
    """Means of the authors' columns over the rows that have them; none where no row has any."""
    kept: dict[str, list[float]] = {}
    says, is_right = 0, 0
    for row in rows:
        columns = row.get("columns", {})
        for metric, value in columns.items():
            if metric == "repetition_imperfect" and columns["perfect"]:
                continue
            if metric == "one_sentence" and row["prompt"] not in ONE_SENTENCE:
                continue
            if value is not None:
                kept.setdefault(metric, []).append(value)
        if columns.get("perfect"):
            says += 1
            is_right += row["method"] == "original"
    found: dict[str, float | None] = {name: statistics.fmean(v) for name, v in kept.items()}
    if found:
        found["perfect_precision"] = is_right / says if says else None
    return found


def _matches(ours: Mapping[str, NDArray[np.float64]], rows: Rows) -> dict[str, Match]:
    found = {}
    for metric, mine in ours.items():
        values = [row.get("columns", {}).get(metric) for row in rows]
        theirs = np.array([np.nan if value is None else value for value in values])
        both = ~(np.isnan(mine) | np.isnan(theirs))
        if both.any():
            apart = np.abs(mine[both] - theirs[both])
            found[metric] = Match(
                n=int(both.sum()),
                n_equal=int((apart < 1e-6).sum()),
                mean_difference=float(apart.mean()),
                correlation=pearson(mine, theirs),
            )
    return found


def _place(where: Mapping[str, str]) -> tuple[Any, ...]:
    """Subsets in the paper's order; what it has not comes after, by name."""
    values = []
    for dimension, value in where.items():
        order = ORDERS[dimension]
        values.append((order.index(value) if value in order else len(order), value))
    return _CROSSES.index(tuple(where)), values


def _column(rows: Rows, kind: str, name: str) -> dict[str, float]:
    return {row["id"]: row[kind][name] for row in rows if row[kind][name] is not None}
