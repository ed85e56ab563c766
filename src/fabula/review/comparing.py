"""Compare groups of texts, given by a field: do their numbers differ?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from fabula.measures.group_comparison import Pair
from fabula.review.found import Review
from fabula.review.numbers import numbers_of_review
from fabula.review.report_parts import Number
from fabula.stats.compare import compare_means, holm, mean_estimate
from fabula.types import Estimate

__all__ = ["GroupTest", "compare_groups"]


@dataclass(frozen=True, slots=True)
class GroupTest:
    """One number by group; p-values are corrected over its pairs."""

    number: Number
    means: dict[str, Estimate]
    n_missing: dict[str, int]
    pairs: tuple[Pair, ...]


def compare_groups(review: Review, by: str, *, seed: int = 0) -> list[GroupTest]:
    """Each number's mean by group with its interval, and every pair by the Mann-Whitney test.

    Raises `InputError` if a text lacks the field.
    """
    names = [text.document.group(by) for text in review.texts]
    numbers, rows = numbers_of_review(review)
    groups = sorted(set(names))
    tests = []
    for number in numbers:
        if number.key in ("n_words", "n_sentences"):
            continue
        values: dict[str, list[float]] = {group: [] for group in groups}
        missing = dict.fromkeys(groups, 0)
        for name, row in zip(names, rows, strict=True):
            value = row.get(number.key)
            if value is None:
                missing[name] += 1
            else:
                values[name].append(value)
        signature = review.signatures.get(number.part, "")
        found = [
            (a, b, compare_means(values[a], values[b], seed=seed, signature=signature))
            for a, b in combinations(groups, 2)
        ]
        corrected = holm([difference.p for _, _, difference in found])
        means = {
            group: mean_estimate(values[group], seed=seed, signature=signature) for group in groups
        }
        pairs = tuple(Pair(*one, p) for one, p in zip(found, corrected, strict=True))
        tests.append(GroupTest(number, means, missing, pairs))
    return tests
