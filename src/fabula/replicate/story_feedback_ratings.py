"""Tables 3 to 5 and appendix E of Rashkin et al. 2025: what raters said of the feedback.

Means over documents of the raters' means, with their standard errors; and how far measures agree
with raters. Table 2, the agreement of raters, is of single ratings, which were not released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.errors import InputError
from fabula.judging.folder import read_run
from fabula.measures.ratings import GroupMean, group_means, mean_scores, score_table
from fabula.replicate.story_feedback_printed import METHODS, MODELS, PROMPTS, SHOTS
from fabula.tasks.feedback.validation import VALIDATED, validate
from fabula.types import Estimate

__all__ = ["ORDERS", "Rated", "RatedRow", "Validation", "rate", "read_rated", "validate_rater"]

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
    """Appendix E: a measure against what a rater said."""

    rater: str
    question: str
    metric: str
    by: str
    """`released` or `ours`."""
    printed: float | None
    correlation: Estimate


def read_rated(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """By rater of a finished run, then by question and document."""
    rubric, measurements = read_run(folder)
    if rubric.id != "feedback":
        raise InputError(
            f"{folder}: was judged by the rubric {rubric.id!r}; Tables 3 to 5 are of `feedback`"
        )
    found = {}
    for rater in dict.fromkeys(one.rater for one in measurements):
        own = [one for one in measurements if one.rater == rater]
        means = mean_scores(score_table(own, rubric))
        found[rater] = {item.replace("_", "-"): given for item, given in means.items()}
    return found


def rate(
    rater: str,
    is_people: bool,
    means: Mapping[str, Mapping[str, float]],
    rows: Sequence[Mapping[str, Any]],
    printed: Callable[[str], dict[str, tuple[float, float]]],
) -> Rated:
    """The tables by one rater; `means` by question and document, which `rows` describe."""
    by_id = {row["id"]: row for row in rows}
    documents = {document for given in means.values() for document in given}
    found: list[RatedRow] = []
    for dimension, order in ORDERS.items():
        labels = {id_: str(row[dimension]) for id_, row in by_id.items()}
        groups = group_means(means, labels.get)
        known = [name for name in order if name in groups]
        found += [
            RatedRow({dimension: name}, printed(name), groups[name])
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
    found = []
    for by, mine in measures.items():
        for item, estimate in validate(mine, people, stories, seed=seed).items():
            if estimate.n:
                metric, printed = VALIDATED[item]
                shown = printed if rater == "people" else None
                found.append(Validation(rater, item.replace("_", "-"), metric, by, shown, estimate))
    return tuple(found)
