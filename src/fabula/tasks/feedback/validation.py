"""Whether measures without people say what people say: Rashkin et al. 2025, appendix E."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fabula.stats.agreement import bootstrap_interval, pearson, pearson_of_sums, pearson_sums
from fabula.tasks.feedback.answers import Answers
from fabula.tasks.feedback.scoring import cell_repetition
from fabula.types import Estimate

__all__ = ["VALIDATED", "validate"]

VALIDATED = {
    "feedback_type": ("says perfect", "is praise only", 0.90),
    "specificity": ("repetition", "is specific", -0.55),
}
"""By the item that people answered: the measure, what they were asked, the paper's Pearson."""


def validate(
    answers: Answers, people: Mapping[str, Mapping[str, float]], *, seed: int = 0
) -> dict[str, Estimate]:
    """Pearson of a measure with people's means (by item, then by piece), for pieces that have both.

    Repetition is within the cell, over all of `answers`. Intervals resample stories.
    """
    measured = {
        "feedback_type": answers.is_perfect.astype(np.float64),
        "specificity": cell_repetition(answers),
    }
    stories = [str(story) for story in answers.stories]
    found = {}
    for item, values in measured.items():
        given = people.get(item, {})
        said = np.array([given.get(id_, np.nan) for id_ in answers.ids], np.float64)
        found[item] = bootstrap_interval(
            pearson(values, said),
            pearson_sums(values, said),
            pearson_of_sums,
            stories,
            seed=seed,
            method="Pearson with people's means, percentile bootstrap over stories",
            signature=answers.signature,
            n=int((~(np.isnan(values) | np.isnan(said))).sum()),
        )
    return found
