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
The statistic is the variation between the groups' means over what their own spread, and what they
share of it, would make it (the ANOVA-type statistic of Brunner, Dette and Munk 1997). With complete
shared clusters it is the F of repeated measures, with groups of equal size the F of the one-way
analysis of variance, and with two groups the square of the paired or of Welch's t. So a difference
in spread alone, as between people and models, does not count. It concerns means, like the
percentage beside it. The p of three groups and more is that of the Wald statistic, whose
permutations also hold their level where spreads are unequal (Pauly, Brunner and Konietschke 2015).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.stats.compare import Difference, gap_estimate, percent_interval
from fabula.stats.intervals import MIN_UNITS, Floats
from fabula.stats.permutation import N_PERMUTATIONS
from fabula.types import Estimate

Clustered = Mapping[str, Sequence[float]]
"""The values of a group by cluster, with at least one value each."""

_BLOCK = 1 << 22
_SLACK = 1e-9
"""Ratios that differ by less than this share of them are equal up to rounding."""


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
    all clusters otherwise. Interval and p (from `permutation_f`) are over clusters; with fewer than
    ten there is neither.
    """
    shared = a.keys() & b.keys()
    is_paired = bool(shared) and 2 * len(shared) >= min(len(a), len(b))
    if is_paired:
        a, b = ({name: group[name] for name in shared} for group in (a, b))
    n_units = min(len(a), len(b))
    over = "shared clusters" if is_paired else "clusters of each group"
    method = f"percentage difference of means over {over}, Fieller"
    if not n_units:
        none = Estimate(None, None, None, 0, method, signature, 0)
        return Difference(none, None, None, None, none)
    first, second = cell_means(a), cell_means(b)
    mean_a, mean_b = (math.fsum(cells.values()) / len(cells) for cells in (first, second))
    value = 100 * (mean_a - mean_b) / mean_b if mean_b else None
    # Both in the order of the clusters' names.
    columns = [np.array(list(cells.values()), np.float64) for cells in (first, second)]
    p = permutation_f([a, b], seed=seed).p if n_units >= MIN_UNITS else None
    n = n_units if is_paired else len(a.keys() | b.keys())
    ends = percent_interval(*columns, are_paired=is_paired)
    return Difference(
        Estimate(value, *ends, n, method, signature, n_units),
        None,
        _superiority(first, second, is_paired),
        p,
        gap_estimate(*columns, are_paired=is_paired, n=n, signature=signature),
    )


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
    f = float(design.ratios(design.values[None])[0])
    # With two groups both are the same.
    statistic = design.ratios
    if len(groups) > 2 and n_clusters > 2 * len(groups) and math.isfinite(f):
        statistic = design.wald
    seen = float(statistic(design.values[None])[0])
    p: float | None = None
    if n_clusters >= MIN_UNITS:
        rng = np.random.default_rng([seed, 4])
        step = max(1, _BLOCK // len(design.values))
        n_extreme = 0
        for start in range(0, n_permutations, step):
            drawn = design.permuted(min(step, n_permutations - start), rng)
            n_extreme += int(np.count_nonzero(statistic(drawn) >= seen * (1 - _SLACK)))
        p = (n_extreme + 1) / (n_permutations + 1)
    return Omnibus(
        "permutation F", f if math.isfinite(f) else None, p, len(groups), n_clusters, True
    )


class _Design:
    """The layout of values, by group and then by cluster, and the block within which each may move.

    A cluster of several groups is a block, and its values move; block 0 holds the means of all
    clusters of one group, which move as a whole.
    """

    def __init__(self, groups: Sequence[Clustered]) -> None:
        n_holders = Counter(name for group in groups for name in group)
        several = sorted(name for name, n in n_holders.items() if n > 1)
        shared = {name: k for k, name in enumerate(several, 1)}
        values: list[float] = []
        blocks: list[int] = []
        n_values: list[int] = []
        owners: list[int] = []
        for group in groups:
            for name, mean in cell_means(group).items():
                owners.append(shared.get(name, 0))
                own = group[name] if name in shared else [mean]
                values += own
                blocks += [shared.get(name, 0)] * len(own)
                n_values.append(len(own))
        _, block = np.unique(blocks, return_inverse=True)
        raw = np.array(values, np.float64)
        self._scale = float(np.abs(raw).max())
        self.values = raw - (np.bincount(block, raw) / np.bincount(block))[block]
        self._cell_sizes = np.array(n_values)
        self._group_sizes = np.array([len(group) for group in groups])
        self._owners = np.array(owners)
        self._holders = np.repeat(np.arange(len(groups)), self._group_sizes)
        self._n_shared = len(shared)
        self._by_block = np.argsort(block, kind="stable")
        self._blocks = block[self._by_block]

    def permuted(self, n: int, rng: np.random.Generator) -> Floats:
        """Permute values within their blocks: float64 (n, n_values)."""
        keys = rng.random((n, len(self.values))) + self._blocks
        dealt = np.empty(keys.shape)
        dealt[:, self._by_block] = self.values[self._by_block][np.argsort(keys, axis=1)]
        return dealt

    def means(self, values: Floats) -> tuple[Floats, Floats]:
        """The groups' means, (n, n_groups), and their covariances, (n, n_groups, n_groups).

        values: float64 (n, n_values).
        """
        sizes, k = self._group_sizes, len(self._group_sizes)
        cells = np.add.reduceat(values, _starts(self._cell_sizes), axis=1) / self._cell_sizes
        means = np.add.reduceat(cells, _starts(sizes), axis=1) / sizes
        # What each cell adds to its group's mean.
        added = (cells - means[:, self._holders]) / sizes[self._holders]
        covariances = np.zeros((len(values), k, k))
        if self._n_shared > 1:
            both = np.zeros((len(values), self._n_shared, k))
            is_shared = self._owners > 0
            both[:, self._owners[is_shared] - 1, self._holders[is_shared]] = added[:, is_shared]
            covariances = both.swapaxes(1, 2) @ both * (self._n_shared / (self._n_shared - 1))
        squares = np.add.reduceat(added**2, _starts(sizes), axis=1)
        covariances[:, range(k), range(k)] = squares * sizes / np.maximum(sizes - 1, 1)
        return means, covariances

    def ratios(self, values: Floats) -> Floats:
        """F of each row, (n,): 0 if nothing varies, infinite if only the groups' means do."""
        means, covariances = self.means(values)
        k = means.shape[1]
        between = ((means - means.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
        expected = np.trace(covariances, axis1=1, axis2=2) - covariances.sum(axis=(1, 2)) / k
        least = (_SLACK * self._scale) ** 2
        found: Floats = np.where(
            between > least, between / np.where(expected > least, expected, np.nan), 0.0
        )
        return np.nan_to_num(found, nan=np.inf)

    def wald(self, values: Floats) -> Floats:
        """The Wald statistic of the groups' differences, for each row: (n,)."""
        means, covariances = self.means(values)
        k = means.shape[1]
        contrasts = np.eye(k)[:-1] - np.eye(k)[-1]
        apart = means @ contrasts.T
        inverse = np.linalg.pinv(contrasts @ covariances @ contrasts.T, hermitian=True)
        found: Floats = np.einsum("ni,nij,nj->n", apart, inverse, apart)
        return found


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    starts: NDArray[np.int64] = np.cumsum(sizes) - sizes
    return starts
