"""Whether two groups differ: Mann-Whitney U, the paper's percentage difference, Holm's correction.

Lu et al. 2024, section "Evaluation": groups are compared by Mann-Whitney U, and their difference is
reported as (index A - index B) / index B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabula.packages import scipy
from fabula.stats.intervals import Floats, influence_interval, mean_interval, ratio_interval
from fabula.types import Estimate


@dataclass(frozen=True, slots=True)
class Difference:
    """How group A differs from group B. `p` is two-sided; None if a group is empty."""

    percent: Estimate
    """100 * (mean A - mean B) / mean B; no value if mean B is 0."""
    u: float | None
    """Mann-Whitney U of A: pairs in which A is larger, ties counting half."""
    superiority: float | None
    """U as a share of all pairs: the probability that a text of A scores above one of B."""
    p: float | None
    gap: Estimate
    """mean A - mean B."""


def mean_estimate(values: Sequence[float] | Floats, *, signature: str) -> Estimate:
    """The mean of independent values with its 95 % interval."""
    data = np.asarray(values, np.float64)
    n, method = len(data), "mean, t corrected for skewness"
    if n == 0:
        return Estimate(None, None, None, 0, method, signature, 0)
    return Estimate(float(data.mean()), *mean_interval(data), n, method, signature, n)


def percent_interval(
    a: Floats, b: Floats, *, are_paired: bool
) -> tuple[float | None, float | None]:
    """Of 100 * (mean A - mean B) / mean B. a, b: float64, shape (n,); paired value by value."""
    mean_a, mean_b = float(a.mean()), float(b.mean())
    of_a, of_b = (a - mean_a) / len(a), (b - mean_b) / len(b)
    samples = [(of_a, of_b)] if are_paired else [(of_a, 0 * of_a), (0 * of_b, of_b)]
    ends = ratio_interval(mean_a, mean_b, *samples)
    low, high = (None if end is None else 100 * (end - 1) for end in ends)
    return low, high


def compare_means(a: Sequence[float], b: Sequence[float], *, signature: str) -> Difference:
    """Compare two independent groups of values; `n_units` is that of the smaller."""
    mannwhitneyu = scipy("stats").mannwhitneyu
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    n, n_units = len(first) + len(second), min(len(first), len(second))
    method = "percentage difference of means, Fieller"
    if n_units == 0:
        none = Estimate(None, None, None, n, method, signature, 0)
        return Difference(none, None, None, None, none)
    if first.min() == second.max() and second.min() == first.max():
        # All values are equal: no order is more extreme than this one. SciPy would compute 0 / 0.
        u, p = len(first) * len(second) / 2, 1.0
    else:
        u, p = mannwhitneyu(first, second, alternative="two-sided", method="auto")
    mean_a, mean_b = float(first.mean()), float(second.mean())
    value = 100 * (mean_a - mean_b) / mean_b if mean_b else None
    ends = percent_interval(first, second, are_paired=False)
    return Difference(
        percent=Estimate(value, *ends, n, method, signature, n_units),
        u=float(u),
        superiority=float(u) / (len(first) * len(second)),
        p=float(p),
        gap=gap_estimate(first, second, are_paired=False, n=n, signature=signature),
    )


def gap_estimate(a: Floats, b: Floats, *, are_paired: bool, n: int, signature: str) -> Estimate:
    """mean A - mean B. a, b: float64, shape (n,); paired value by value."""
    of_a, of_b = (a - a.mean()) / len(a), (b.mean() - b) / len(b)
    value = float(a.mean() - b.mean())
    ends = influence_interval(value, *([of_a + of_b] if are_paired else [of_a, of_b]))
    method = "difference of means, t corrected for skewness"
    return Estimate(value, *ends, n, method, signature, min(len(a), len(b)))


def kruskal_wallis(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """H of Kruskal and Wallis 1952, corrected for ties, and p by chi-squared.

    Each group must have a value.
    """
    kruskal = scipy("stats").kruskal
    data = [np.asarray(group, np.float64) for group in groups]
    if min(group.min() for group in data) == max(group.max() for group in data):
        # All values are equal: no order is more extreme than this one. SciPy would compute 0 / 0.
        return 0.0, 1.0
    found = kruskal(*data)
    return float(found.statistic), float(found.pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction; a missing p-value is not a test and stays missing.

    Holm 1979: the i-th smallest of m is multiplied by m - i + 1, and none is below a previous one.
    """
    tests = sorted((p, k) for k, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, k) in enumerate(tests):
        running = max(running, min(1.0, p * (len(tests) - rank)))
        corrected[k] = running
    return corrected
