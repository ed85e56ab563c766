"""The topics of feedback: shares of categories, and how often a label is right.

Rashkin et al. 2025, appendix G: a label is right if it is among the gold labels of a piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabula.errors import InputError
from fabula.stats.contrasts import pooled_estimate
from fabula.types import Estimate


@dataclass(frozen=True, slots=True)
class CategoryShares:
    """The distribution of one group's labels. A piece without a label is not part of `shares`."""

    group: tuple[str, ...]
    n: int
    n_missing: int
    shares: Mapping[str, float]
    intervals: Mapping[str, Estimate]
    """The shares with their intervals over stories; empty if stories are unknown."""


def category_shares(
    labels: Mapping[str, str | None],
    categories: Sequence[str],
    group_of: Callable[[str], tuple[str, ...]],
    story_of: Callable[[str], str] | None = None,
    *,
    signature: str = "",
) -> list[CategoryShares]:
    """Shares by group, groups in order of first appearance; labels None are missing.

    With `story_of` they have intervals, over stories.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for document in labels:
        groups.setdefault(group_of(document), []).append(document)
    found = []
    for group, members in groups.items():
        given = [one for one in members if labels[one] is not None]
        counts = Counter(labels[one] for one in given)
        n = len(given)
        shares = {name: counts[name] / n for name in categories} if n else {}
        intervals = (
            {}
            if story_of is None
            else {
                name: pooled_estimate(
                    np.array([labels[one] == name for one in given], np.float64),
                    np.ones(n),
                    [story_of(one) for one in given],
                    method="share of labels over stories",
                    signature=signature,
                    is_share=True,
                )
                for name in shares
            }
        )
        found.append(CategoryShares(group, n, len(members) - n, shares, intervals))
    return found


def read_gold(
    rows: Iterable[tuple[Mapping[str, Any], str]], categories: Sequence[str], source: str
) -> dict[str, frozenset[str]]:
    """Gold labels by piece, from rows with `id` and `labels` (a list) or `label`.

    rows: each with its place. Raises `InputError`, also for a label that is not a category.
    """
    found: dict[str, frozenset[str]] = {}
    for row, where in rows:
        given = row.get("labels", row.get("label"))
        labels = [given] if isinstance(given, str) else given
        if not isinstance(row.get("id"), str) or not isinstance(labels, list) or not labels:
            raise InputError(f"{where}: a gold row needs an id and labels")
        unknown = [label for label in labels if label not in categories]
        if unknown:
            raise InputError(
                f"{where}: {unknown[0]!r} is not a category; the categories are "
                f"{', '.join(categories)}"
            )
        if row["id"] in found:
            raise InputError(f"{where}: the id {row['id']!r} occurs twice")
        found[row["id"]] = frozenset(labels)
    if not found:
        raise InputError(f"{source}: contains no gold labels")
    return found


def label_accuracy(
    labels: Mapping[str, str | None],
    gold: Mapping[str, frozenset[str]],
    story_of: Callable[[str], str],
    *,
    signature: str = "",
) -> Estimate:
    """The share of labels that are among the gold labels; `n` counts the pieces that have both.

    A piece without a label is neither right nor wrong. The interval is over stories.
    """
    both = [document for document in gold if labels.get(document) is not None]
    right = np.array([labels[document] in gold[document] for document in both], np.float64)
    return pooled_estimate(
        right,
        np.ones(len(both)),
        [story_of(document) for document in both],
        method="share of labels among the gold ones, over stories",
        signature=signature,
        is_share=True,
    )
