"""Whether measures without people agree with people: Rashkin et al. 2025, appendix E."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fabula.stats.reliability import pearson_estimate
from fabula.tasks.feedback.answers import Answers
from fabula.tasks.feedback.feedback_scores import cell_repetition
from fabula.types import Estimate

VALIDATED = {"feedback_type": ("perfect", 0.90), "specificity": ("repetition", -0.55)}
"""By the item that people answered: the measure, and the paper's Pearson correlation."""


def measured(answers: Answers) -> dict[str, dict[str, float]]:
    """The two measures by piece of feedback; repetition is within the cell, over all of `answers`.

    A piece without trigrams has no repetition.
    """
    columns = {
        "perfect": answers.is_perfect.astype(np.float64),
        "repetition": cell_repetition(answers),
    }
    return known_values(answers.ids, columns)


def known_values(
    ids: Sequence[str], columns: Mapping[str, NDArray[np.float64]]
) -> dict[str, dict[str, float]]:
    """The numbers of each column by id, without NaN."""
    return {
        name: {id_: float(n) for id_, n in zip(ids, numbers, strict=True) if not np.isnan(n)}
        for name, numbers in columns.items()
    }


def validate(
    measures: Mapping[str, Mapping[str, float]],
    people: Mapping[str, Mapping[str, float]],
    stories: Mapping[str, str],
    *,
    seed: int = 0,
    signature: str = "",
) -> dict[str, Estimate]:
    """Pearson correlation of a measure with people's means, by item, over pieces with both.

    `stories` gives the story that each piece is about; intervals are over these.
    """
    found = {}
    for item, (name, _) in VALIDATED.items():
        mine, said = measures.get(name, {}), people.get(item, {})
        both = [id_ for id_ in said if id_ in mine and id_ in stories]
        a = np.array([mine[id_] for id_ in both], np.float64)
        b = np.array([said[id_] for id_ in both], np.float64)
        found[item] = pearson_estimate(
            a,
            b,
            [stories[id_] for id_ in both],
            seed=seed,
            method="Pearson with people's means over stories",
            signature=signature,
        )
    return found
