"""Raters' answers about pieces of feedback, as numbers: means by group, and agreement.

Rashkin et al. 2025, sections 6.2 and 6.3 and appendix D.4: an answer is a value between 0 and 1
(the rubric's `values`); the values of all raters of a piece are averaged; a question that was not
asked, or has no answer, is not part of any mean. People and models are treated alike.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np

from fabula.errors import InputError
from fabula.stats.agreement import krippendorff_alpha, pearson
from fabula.stats.contrasts import pooled_estimate
from fabula.types import Estimate, Item, Measurement, Rubric, by_rater

Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""By item, then by document: the value of each rater who gave one."""


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The mean over documents, and its standard error (None below two documents)."""

    n: int
    mean: float | None
    error: float | None


@dataclass(frozen=True, slots=True)
class ItemAgreement:
    """Agreement among raters on one item, over the documents that several rated (Table 2)."""

    n: int
    similarity: float | None
    """Mean over pairs of raters of a document of 1 - |a - b|, relative to the scale's span."""
    alpha: float | None
    """Krippendorff's, with |a - b| as the distance."""


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """A rater's values against other raters' means on one item, over what both rated."""

    n: int
    similarity: Estimate
    correlation: Estimate


def value_of(item: Item, answer: float | str | None) -> float | None:
    """The worth of an answer; None if there is none, or if the item is not averaged.

    An answer may be an option, in any case, or its worth. Raises `InputError` for any other.
    """
    try:
        return None if answer is None else item.scale.worth(answer)
    except ValueError as error:
        raise InputError(f"{item.id}: {error}") from error


def score_table(
    measurements: Iterable[Measurement], rubric: Rubric
) -> dict[str, dict[str, list[float]]]:
    """Values by item and document, in the rubric's order of items."""
    items = {item.id: item for item in rubric.items}
    found: dict[str, dict[str, list[float]]] = {item: {} for item in items}
    for one in measurements:
        if one.item in items:
            value = value_of(items[one.item], one.value)
            if value is not None:
                found[one.item].setdefault(one.document_id, []).append(value)
    return found


def mean_scores(scores: Scores) -> dict[str, dict[str, float]]:
    """Each document's mean over its raters, by item."""
    return {
        item: {document: statistics.fmean(values) for document, values in given.items()}
        for item, given in scores.items()
    }


def group_means(
    means: Mapping[str, Mapping[str, float]], group_of: Callable[[str], str | None]
) -> dict[str, dict[str, GroupMean]]:
    """By group, then by item: the mean of the documents' means and its standard error.

    Documents whose group is None are excluded.
    """
    groups: dict[str, dict[str, list[float]]] = {}
    for item, given in means.items():
        for document, value in given.items():
            group = group_of(document)
            if group is not None:
                groups.setdefault(group, {}).setdefault(item, []).append(value)
    return {
        group: {item: _mean(by_item.get(item, [])) for item in means}
        for group, by_item in groups.items()
    }


def _mean(values: Sequence[float]) -> GroupMean:
    if not values:
        return GroupMean(0, None, None)
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return GroupMean(len(values), statistics.fmean(values), error)


def group_estimates(
    means: Mapping[str, Mapping[str, float]],
    group_of: Callable[[str], str | None],
    story_of: Callable[[str], str],
    *,
    signature: str = "",
) -> dict[str, dict[str, Estimate]]:
    """By group, then by item: the mean of the documents' means, with an interval over stories.

    An item without a value in a group is absent; documents whose group is None are excluded.
    """
    members: dict[str, dict[str, list[str]]] = {}
    for item, given in means.items():
        for document in given:
            group = group_of(document)
            if group is not None:
                members.setdefault(group, {}).setdefault(item, []).append(document)
    return {
        group: {
            item: pooled_estimate(
                np.array([means[item][one] for one in those], np.float64),
                np.ones(len(those)),
                [story_of(one) for one in those],
                method="mean over documents, by story",
                signature=signature,
            )
            for item, those in by_item.items()
        }
        for group, by_item in members.items()
    }


def spans_of(rubric: Rubric) -> dict[str, float]:
    """By item: the largest distance of two values, which `similarity` is relative to."""
    return {item.id: item.scale.span for item in rubric.items}


def item_agreement(
    scores: Scores, spans: Mapping[str, float] = MappingProxyType({})
) -> dict[str, ItemAgreement]:
    """Agreement of the raters of a document, by item; `spans` default to 1."""
    return {
        item: _agreement(list(given.values()), spans.get(item, 1.0))
        for item, given in scores.items()
    }


def _agreement(ratings: Sequence[Sequence[float]], span: float) -> ItemAgreement:
    several = [values for values in ratings if len(values) > 1]
    pairs = [1 - abs(a - b) / span for values in several for a, b in combinations(values, 2)]
    if not pairs:
        return ItemAgreement(0, None, None)
    table = np.full((len(several), max(map(len, several))), np.nan)
    for row, values in zip(table, several, strict=True):
        row[: len(values)] = values
    # The library does not square distances that it is given.
    alpha = krippendorff_alpha(table, lambda a, b: abs(a - b))
    return ItemAgreement(len(several), statistics.fmean(pairs), alpha)


def rater_agreement(
    mine: Mapping[str, float],
    theirs: Mapping[str, float],
    story_of: Callable[[str], str],
    *,
    span: float = 1.0,
    seed: int = 0,
    signature: str = "",
) -> RaterAgreement:
    """Values by document of one rater and of others; intervals are over stories.

    `span` is the largest distance of two values.
    """
    both = [document for document in mine if document in theirs]
    a = np.array([mine[document] for document in both], np.float64)
    b = np.array([theirs[document] for document in both], np.float64)
    stories = [story_of(document) for document in both]
    near = 1 - np.abs(a - b) / span
    similarity = pooled_estimate(
        near, np.ones(len(both)), stories, method="mean of 1 - |a - b| over stories",
        signature=signature,
    )  # fmt: skip
    correlation = pearson(a, b).estimate(
        stories, seed=seed, method="Pearson over stories", signature=signature
    )
    return RaterAgreement(len(both), similarity, correlation)


def agreements_with_people(
    measurements: Sequence[Measurement],
    people: Mapping[str, Mapping[str, float]],
    rubric: Rubric,
    story_of: Callable[[str], str],
    *,
    seed: int = 0,
) -> dict[str, dict[str, RaterAgreement]]:
    """By rater and item: agreement with people's means, where people answered."""
    return {
        rater: {
            item: rater_agreement(
                given,
                people[item],
                story_of,
                span=rubric.item(item).scale.span,
                seed=seed,
                signature=mine[0].signature,
            )
            for item, given in mean_scores(score_table(mine, rubric)).items()
            if people.get(item)
        }
        for rater, mine in by_rater(measurements).items()
    }
