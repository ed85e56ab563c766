"""Raters' answers about pieces of feedback: means by group, agreement, and shares of topics.

Rashkin et al. 2025, sections 6.2 and 6.3 and appendix D.4: an answer is a value between 0 and 1
(the rubric's `values`); the values of all raters of a piece are averaged; a question that was not
asked, or has no answer, is not part of any mean. People and models are treated alike. Appendix G:
the label of a topic is right if it is among the gold labels of a piece.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import Any

import numpy as np

from fabula.core.errors import InputError
from fabula.core.types import Estimate, Item, Measurement, Rubric, by_rater
from fabula.raters.agreement import AmongPeople, Measurements
from fabula.stats.agreement import alpha, pearson
from fabula.stats.contrasts import pooled_estimate

Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""By item, then by document: the value of each rater who gave one."""
Means = Mapping[str, Mapping[str, float]]
Labels = Mapping[str, str | None]
GroupOf = Callable[[str], str | None]
StoryOf = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The mean over documents, and its standard error (None below two documents)."""

    n: int
    mean: float | None
    error: float | None


def value_of(item: Item, answer: float | str | None) -> float | None:
    """The worth of an option, or a worth itself, if the item has any. Raises `InputError`."""
    try:
        return None if answer is None else item.scale.worth(answer)
    except ValueError as error:
        raise InputError(f"{item.id}: {error}") from error


def score_table(
    measurements: Iterable[Measurement], rubric: Rubric
) -> dict[str, dict[str, list[float]]]:
    """Values by item and document, in the rubric's order of items."""
    items = {item.id: item for item in rubric.items}
    table: dict[str, dict[str, list[float]]] = {item: {} for item in items}
    for answer in measurements:
        item = items.get(answer.item)
        if item is not None and (value := value_of(item, answer.value)) is not None:
            table[item.id].setdefault(answer.document_id, []).append(value)
    return table


def mean_scores(scores: Scores) -> dict[str, dict[str, float]]:
    """Each document's mean over its raters, by item."""
    return {
        item: {document: statistics.fmean(values) for document, values in by_document.items()}
        for item, by_document in scores.items()
    }


def _members(means: Means, group_of: GroupOf) -> dict[str, dict[str, list[str]]]:
    """By group, then by item: the documents with a mean; those whose group is None are excluded."""
    members: dict[str, dict[str, list[str]]] = {}
    for item, by_document in means.items():
        for document in by_document:
            if (group := group_of(document)) is not None:
                members.setdefault(group, {}).setdefault(item, []).append(document)
    return members


def group_means(means: Means, group_of: GroupOf) -> dict[str, dict[str, GroupMean]]:
    """By group, then by item: the mean of the documents' means and its standard error."""
    rows: dict[str, dict[str, GroupMean]] = {}
    for group, by_item in _members(means, group_of).items():
        rows[group] = {}
        for item, by_document in means.items():
            values = [by_document[document] for document in by_item.get(item, ())]
            n = len(values)
            mean = statistics.fmean(values) if n else None
            error = statistics.stdev(values) / math.sqrt(n) if n > 1 else None
            rows[group][item] = GroupMean(n, mean, error)
    return rows


def group_estimates(
    means: Means, group_of: GroupOf, story_of: StoryOf, *, signature: str = ""
) -> dict[str, dict[str, Estimate]]:
    """By group and item, if it has values: the mean of documents' means, its interval by story."""
    return {
        group: {
            item: pooled_estimate(
                np.array([means[item][document] for document in documents], np.float64),
                np.ones(len(documents)),
                list(map(story_of, documents)),
                method="mean over documents, by story",
                signature=signature,
            )
            for item, documents in by_item.items()
        }
        for group, by_item in _members(means, group_of).items()
    }


def item_agreement(scores: Scores, rubric: Rubric) -> dict[str, AmongPeople]:
    """Agreement of the raters of a document, by item (Table 2).

    Similarity: the mean over pairs of 1 - |a - b| relative to the span; alpha's distance: |a - b|.
    """
    rows = {}
    for item, by_document in scores.items():
        several = [values for values in by_document.values() if len(values) > 1]
        span = rubric.item(item).scale.span
        near = [1 - abs(a - b) / span for values in several for a, b in combinations(values, 2)]
        table = np.array(list(zip_longest(*several, fillvalue=np.nan)), np.float64).T
        value = alpha(table, "absolute").value if several else None
        alphas = Estimate(value, None, None, len(several), "Krippendorff's alpha (|a - b|)", "")
        similar = statistics.fmean(near) if near else None
        rows[item] = AmongPeople(item, len(several), alpha=alphas, similarity=similar)
    return rows


def rater_agreement(
    mine: Mapping[str, float],
    theirs: Mapping[str, float],
    story_of: StoryOf,
    *,
    span: float = 1.0,
    seed: int = 0,
    signature: str = "",
) -> dict[str, Estimate]:
    """`similarity` and `correlation` of a rater's values by document with others' means.

    Over what both rated; intervals are over stories. `span` is the largest distance of two values.
    """
    shared = [document for document in mine if document in theirs]
    a, b = (np.array([side[name] for name in shared], np.float64) for side in (mine, theirs))
    stories = list(map(story_of, shared))
    similarity = pooled_estimate(
        1 - np.abs(a - b) / span,
        np.ones(len(shared)),
        stories,
        method="mean of 1 - |a - b| over stories",
        signature=signature,
    )
    correlation = pearson(a, b).estimate(
        stories, seed=seed, method="Pearson over stories", signature=signature
    )
    return {"similarity": similarity, "correlation": correlation}


def agreements_with_people(
    measurements: Measurements, people: Means, rubric: Rubric, story_of: StoryOf, *, seed: int = 0
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """By rater and item: agreement with people's means, where people answered."""
    return {
        rater: {
            item: rater_agreement(
                means,
                people[item],
                story_of,
                span=rubric.item(item).scale.span,
                seed=seed,
                signature=answers[0].signature,
            )
            for item, means in mean_scores(score_table(answers, rubric)).items()
            if people.get(item)
        }
        for rater, answers in by_rater(measurements).items()
    }


@dataclass(frozen=True, slots=True)
class CategoryShares:
    """The distribution of one group's labels. A piece without a label is not part of `shares`."""

    group: tuple[str, ...]
    n: int
    n_missing: int
    shares: Mapping[str, float]
    intervals: Mapping[str, Estimate]
    """The shares with their intervals over stories."""


def category_shares(
    labels: Labels,
    categories: Sequence[str],
    group_of: Callable[[str], tuple[str, ...]],
    story_of: StoryOf,
    *,
    signature: str = "",
) -> list[CategoryShares]:
    """Shares by group, groups in order of first appearance; labels None are missing."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for document in labels:
        groups.setdefault(group_of(document), []).append(document)
    rows = []
    for group, members in groups.items():
        labelled = [text for text in members if labels[text] is not None]
        counts = Counter(labels[text] for text in labelled)
        n = len(labelled)
        shares = {name: counts[name] / n for name in categories} if n else {}
        intervals = {
            name: pooled_estimate(
                np.array([labels[text] == name for text in labelled], np.float64),
                np.ones(n),
                list(map(story_of, labelled)),
                method="share of labels over stories",
                signature=signature,
                is_share=True,
            )
            for name in shares
        }
        rows.append(CategoryShares(group, n, len(members) - n, shares, intervals))
    return rows


def read_gold(
    rows: Iterable[tuple[Mapping[str, Any], str]], categories: Sequence[str], source: str
) -> dict[str, frozenset[str]]:
    """Gold labels by piece, from rows with `id` and `labels` (a list) or `label`.

    rows: each with its place. Raises `InputError`, also for a label that is not a category.
    """
    gold: dict[str, frozenset[str]] = {}
    for row, where in rows:
        value = row.get("labels", row.get("label"))
        labels = [value] if isinstance(value, str) else value
        if not isinstance(row.get("id"), str) or not isinstance(labels, list) or not labels:
            raise InputError(f"{where}: a gold row needs an id and labels")
        if unknown := [label for label in labels if label not in categories]:
            raise InputError(
                f"{where}: {unknown[0]!r} is not a category; the categories are "
                f"{', '.join(categories)}"
            )
        if row["id"] in gold:
            raise InputError(f"{where}: the id {row['id']!r} occurs twice")
        gold[row["id"]] = frozenset(labels)
    if not gold:
        raise InputError(f"{source}: contains no gold labels")
    return gold


def label_accuracy(
    labels: Labels, gold: Mapping[str, frozenset[str]], story_of: StoryOf, *, signature: str = ""
) -> Estimate:
    """The share of labels that are among the gold ones, over the `n` pieces that have both.

    The interval is over stories.
    """
    shared = [document for document in gold if labels.get(document) is not None]
    return pooled_estimate(
        np.array([labels[document] in gold[document] for document in shared], np.float64),
        np.ones(len(shared)),
        [story_of(document) for document in shared],
        method="share of labels among the gold ones, over stories",
        signature=signature,
        is_share=True,
    )
