"""Comparing groups of values in clusters, such as people and models writing to the same prompts.

Values of one cluster are correlated, so clusters are the units of resampling and permutation. A
group's mean is that of its *cells*: the mean of its values in each cluster. If the groups were
alike,

- the values of a cluster that several groups share could be assigned to these groups in any way
  that keeps the number in each (a sign flip, if each has one): the test is paired;
- a cluster with only one group could just as well belong to another, so such clusters are permuted
  as a whole.

Both are done at once (a permutation in blocks: Good 2005, chapter 6), and p is (b + 1) / (m + 1),
with b of m random permutations at least as extreme as the observed values (Phipson and Smyth 2010).
The statistic is the F of the one-way analysis of variance over cells, after subtracting each
block's own mean, which no permutation changes. F concerns means, like the percentage beside it; a
rank test would compare a mean of many values with single ones, which for skewed values differ
even if their means agree. If each value is its own cluster, this F is the usual one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.stats.compare import Difference
from fabula.stats.permutation import N_PERMUTATIONS
from fabula.stats.resample import (
    MIN_UNITS,
    bootstrap_means,
    interval_method,
    percentile_interval,
    with_interval,
)
from fabula.types import Estimate

Clustered = Mapping[str, Sequence[float]]
"""The values of a group by cluster, with at least one value each."""

_BLOCK = 1 << 22
_SLACK = 1e-9
"""Shares that differ by less than this are equal up to rounding."""


@dataclass(frozen=True, slots=True)
class Omnibus:
    """Whether several groups differ at all. `p` is None with fewer than ten units."""

    test: str
    statistic: float | None
    """None if it is infinite, because nothing varies within the groups."""
    p: float | None
    n_groups: int
    n_units: int
    """Texts, or clusters."""
    is_clustered: bool


def cell_means(group: Clustered) -> dict[str, float]:
    """The mean of a group's values in each cluster, ordered by name."""
    return {name: math.fsum(group[name]) / len(group[name]) for name in sorted(group)}


def compare_clusters(a: Clustered, b: Clustered, *, seed: int, signature: str) -> Difference:
    """Compare the means of two groups, cluster by cluster.

    Uses the clusters that both have, if these are at least half of those of the smaller group, and
    all clusters otherwise. The interval is by bootstrap: shared clusters are drawn for both at
    once, others for their own group. p is from `permutation_f`. With fewer than ten clusters there
    is neither.
    """
    shared = a.keys() & b.keys()
    is_paired = bool(shared) and 2 * len(shared) >= min(len(a), len(b))
    if is_paired:
        a, b = ({name: group[name] for name in shared} for group in (a, b))
    n_units = min(len(a), len(b))
    over = "shared clusters" if is_paired else "clusters of each group"
    most = max(len(a), len(b))
    method = f"percentage difference of means, {interval_method(most, over)}"
    signature = with_interval(signature, most)
    if not n_units:
        none = Estimate(None, None, None, 0, method, signature, 0)
        return Difference(none, None, None, None)
    first, second = cell_means(a), cell_means(b)
    mean_a, mean_b = (math.fsum(cells.values()) / len(cells) for cells in (first, second))
    value = 100 * (mean_a - mean_b) / mean_b if mean_b else None
    ends: tuple[float | None, float | None] = None, None
    p: float | None = None
    if n_units >= MIN_UNITS:
        p = permutation_f([a, b], seed=seed).p
        means_a, means_b = _resampled_means(first, second, seed)
        if means_b.all():
            ends = percentile_interval(100 * (means_a - means_b) / means_b, n_units)
    n = n_units if is_paired else len(a.keys() | b.keys())
    percent = Estimate(value, *ends, n, method, signature, n_units)
    return Difference(percent, None, _superiority(first, second, is_paired), p)


def _resampled_means(
    a: Mapping[str, float], b: Mapping[str, float], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The means of both groups in each resample of the clusters."""
    shared = sorted(a.keys() & b.keys())
    sums = [np.zeros(1), np.zeros(1)]
    if shared:
        table = np.array([[a[name], b[name]] for name in shared], np.float64)
        both = bootstrap_means(table, np.random.default_rng(seed)) * len(shared)
        sums = [both[:, 0], both[:, 1]]
    for k, (own, other) in enumerate(((a, b), (b, a))):
        alone = np.array([value for name, value in own.items() if name not in other], np.float64)
        if len(alone):
            drawn = bootstrap_means(alone, np.random.default_rng([seed, k]))
            sums[k] = sums[k] + drawn * len(alone)
    return sums[0] / len(a), sums[1] / len(b)


def _superiority(a: Mapping[str, float], b: Mapping[str, float], is_paired: bool) -> float:
    """How often a cluster mean of A exceeds B's in the same cluster, or in any; ties half."""
    first, second = np.array(list(a.values())), np.array(list(b.values()))
    if is_paired:
        apart = first - second
        return float(np.mean((apart > 0) + 0.5 * (apart == 0)))
    second.sort()
    # A cluster that equals k others is above half of them; a table of all pairs could be huge.
    below = np.searchsorted(second, first, "left") + np.searchsorted(second, first, "right")
    return float(below.sum()) / (2 * len(first) * len(second))


def permutation_f(
    groups: Sequence[Clustered], *, seed: int, n_permutations: int = N_PERMUTATIONS
) -> Omnibus:
    """Test whether group means differ, by permutation in blocks; no p below ten clusters.

    Raises `ValueError` if a group has no cluster, or there are fewer than two groups.
    """
    if len(groups) < 2 or not all(groups):
        raise ValueError("needs at least two groups, each with a cluster")
    design = _Design(groups)
    n_clusters = len({name for group in groups for name in group})
    seen = design.shares(design.values[None])[0]
    p: float | None = None
    if n_clusters >= MIN_UNITS:
        rng = np.random.default_rng([seed, 4])
        step = max(1, _BLOCK // len(design.values))
        n_extreme = 0
        for start in range(0, n_permutations, step):
            drawn = design.permuted(min(step, n_permutations - start), rng)
            n_extreme += int(np.count_nonzero(design.shares(drawn) >= seen - _SLACK))
        p = (n_extreme + 1) / (n_permutations + 1)
    n_between, n_within = len(groups) - 1, design.n_cells - len(groups)
    f = None if seen >= 1 - _SLACK else float(seen / n_between * max(0, n_within) / (1 - seen))
    return Omnibus("permutation F", f, p, len(groups), n_clusters, True)


class _Design:
    """The layout of values, by group and then by cluster, and the block within which each may move.

    A cluster of several groups is a block, and its values move; block 0 holds the means of all
    clusters of one group, which move as a whole.
    """

    def __init__(self, groups: Sequence[Clustered]) -> None:
        n_holders = Counter(name for group in groups for name in group)
        shared = {name: k for k, name in enumerate(sorted(n_holders), 1) if n_holders[name] > 1}
        values: list[float] = []
        blocks: list[int] = []
        n_values: list[int] = []
        for group in groups:
            for name, mean in cell_means(group).items():
                own = group[name] if name in shared else [mean]
                values += own
                blocks += [shared.get(name, 0)] * len(own)
                n_values.append(len(own))
        _, block = np.unique(blocks, return_inverse=True)
        raw = np.array(values, np.float64)
        self._scale = float(np.abs(raw).max())
        self.values = raw - (np.bincount(block, raw) / np.bincount(block))[block]
        self.n_cells = len(n_values)
        self._cell_sizes = np.array(n_values)
        self._group_sizes = np.array([len(group) for group in groups])
        self._by_block = np.argsort(block, kind="stable")
        self._blocks = block[self._by_block]

    def permuted(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Permute values within their blocks: float64 (n, n_values)."""
        keys = rng.random((n, len(self.values))) + self._blocks
        dealt = np.empty(keys.shape)
        dealt[:, self._by_block] = self.values[self._by_block][np.argsort(keys, axis=1)]
        return dealt

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the cells' variation that lies between groups, which increases with F.

        values: float64 (n, n_values). Returns float64 (n,); 0 if there is no variation.
        """
        cells = np.add.reduceat(values, _starts(self._cell_sizes), axis=1) / self._cell_sizes
        means = np.add.reduceat(cells, _starts(self._group_sizes), axis=1) / self._group_sizes
        centre = cells.mean(axis=1, keepdims=True)
        between = (self._group_sizes * (means - centre) ** 2).sum(axis=1)
        total = ((cells - centre) ** 2).sum(axis=1)
        found: NDArray[np.float64] = np.divide(
            between, total, out=np.zeros(len(values)), where=total > (_SLACK * self._scale) ** 2
        )
        return found


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    starts: NDArray[np.int64] = np.cumsum(sizes) - sizes
    return starts
