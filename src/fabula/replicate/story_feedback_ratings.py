"""Tables 3 to 5 and appendix E of Rashkin et al. 2025: people's ratings of the feedback.

Means over documents of the raters' means, with their standard errors; and the agreement of measures
with raters. Table 2, the agreement of raters, needs single ratings, which were not released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.errors import InputError
from fabula.judging.folder import read_run
from fabula.measures.ratings import GroupMean, group_means, mean_scores, score_table
from fabula.replicate.claims import load_printed, printed_table
from fabula.replicate.story_feedback_files import (
    ERROR,
    METHODS,
    MODELS,
    PAPER,
    PROMPTS,
    QUESTIONS,
    SHOTS,
    known_model,
)
from fabula.tasks.feedback.feedback_scores import VALIDATED, validate
from fabula.types import Estimate, by_rater

RATED_TABLES = ("Table 3", "Table 4", "Table 5")
ORDERS = {"model": MODELS, "prompt": PROMPTS, "shots": SHOTS, "method": METHODS}
"""The values of each dimension in the paper's order."""


@dataclass(frozen=True, slots=True)
class RatedRow:
    """Means by question of the feedback in a subset."""

    where: Mapping[str, str]
    printed: Mapping[str, tuple[float, float]]
    ours: Mapping[str, GroupMean]


@dataclass(frozen=True, slots=True)
class Rated:
    """Tables 3 to 5 by one rater."""

    rater: str
    is_people: bool
    n: int
    n_unknown: int
    """Rated pieces of feedback that are not among the answers."""
    rows: tuple[RatedRow, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """Appendix E: a measure compared with a rater's answers."""

    rater: str
    question: str
    metric: str
    by: str
    """`released` or `ours`."""
    printed: float | None
    correlation: Estimate


def row_of_paper(where: Mapping[str, str], *, is_released: bool) -> str:
    """The name of a subset in the paper's tables; none for a model that is not in the paper.

    For your own feedback, only subsets of a model can be compared with the paper: its others are of
    its eight models.
    """
    if is_released:
        return ", ".join(where.values())
    model = known_model(where.get("model", ""))
    return "" if model is None else ", ".join({**where, "model": model}.values())


def printed_row(name: str, tables: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The printed numbers of a subset, with the names of the columns."""
    for (table, row, column), printed in load_printed(PAPER).items():
        if row == name and table in tables:
            yield column, float(printed)


def _printed(where: Mapping[str, str], is_people: bool) -> dict[str, tuple[float, float]]:
    """Means and standard errors by question."""
    found = dict(printed_row(row_of_paper(where, is_released=is_people), RATED_TABLES))
    return {q: (found[q], found[q + ERROR]) for q in QUESTIONS if q in found}


def read_rated(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """By rater of a finished run, then by question and document."""
    rubric, measurements = read_run(folder)
    if rubric.id != "feedback":
        raise InputError(
            f"{folder}: was judged with the rubric {rubric.id!r}; Tables 3 to 5 need `feedback`"
        )
    found = {}
    for rater, own in by_rater(measurements).items():
        means = mean_scores(score_table(own, rubric))
        found[rater] = {item.replace("_", "-"): given for item, given in means.items()}
    return found


def rate(
    rater: str,
    is_people: bool,
    means: Mapping[str, Mapping[str, float]],
    rows: Sequence[Mapping[str, Any]],
) -> Rated:
    """The tables by one rater; `means` by question and document, described by `rows`."""
    by_id = {row["id"]: row for row in rows}
    documents = {document for given in means.values() for document in given}
    found: list[RatedRow] = []
    for dimension, order in ORDERS.items():
        labels = {id_: str(row[dimension]) for id_, row in by_id.items()}
        groups = group_means(means, labels.get)
        known = [name for name in order if name in groups]
        found += [
            RatedRow({dimension: name}, _printed({dimension: name}, is_people), groups[name])
            for name in known + sorted(set(groups) - set(known))
        ]
    n_known = len(documents & by_id.keys())
    return Rated(rater, is_people, n_known, len(documents) - n_known, tuple(found))


def validate_rater(
    rater: str,
    means: Mapping[str, Mapping[str, float]],
    measures: Mapping[str, Mapping[str, Mapping[str, float]]],
    stories: Mapping[str, str],
    seed: int,
) -> tuple[Validation, ...]:
    """Two correlations by each way of measuring, with intervals over stories."""
    people = {question.replace("-", "_"): given for question, given in means.items()}
    printed = printed_table(PAPER, "Appendix E") if rater == "people" else {}
    found = []
    for by, mine in measures.items():
        for item, estimate in validate(mine, people, stories, seed=seed).items():
            if estimate.n:
                metric, question = VALIDATED[item][0], item.replace("_", "-")
                shown = printed.get(question, {}).get(metric)
                found.append(Validation(rater, question, metric, by, shown, estimate))
    return tuple(found)
