"""Means of groups, and whether groups differ: of independent values, or of values in clusters.

Independent values are compared as in Lu et al. 2024, section "Evaluation": by Mann-Whitney U, with
the difference in per cent, (index A - index B) / index B.

Values of one cluster are correlated, such as texts by people and models to the same prompts, so
clusters are the units of resampling and permutation. A group's mean is that of its *cells*: the
mean of its values in each cluster. If the groups were alike,

- the values of a cluster that several groups share could be assigned to these groups in any way
  that keeps the number in each (a sign flip, if each has one): the test is paired;
- a cluster with only one group could as well belong to another, so these are permuted as a whole.

Both are done at once (a permutation in blocks: Good 2005, chapter 6), and p is (b + 1) / (m + 1),
with b of m random permutations at least as extreme as the observed values (Phipson and Smyth 2010).
The statistic is the variation between the groups' means over what their own spread, and what they
share of it, would make it (the ANOVA-type statistic of Brunner, Dette and Munk 1997). With complete
shared clusters it is the F of repeated measures, with groups of equal size the F of the one-way
analysis of variance, and with two groups the square of the paired or of Welch's t. So a difference
in spread alone, as between people and models, does not count. It concerns means, like the
percentage beside it. The p of three groups and more is that of the Wald statistic, whose
permutations also hold their level where spreads are unequal (Pauly, Brunner and Konietschke 2015).

Words that distinguish two groups: by log-odds (Monroe, Colaresi and Quinn 2008, "Fightin' Words",
section 3.5). Their z treats the words of a text as independent, which they are not: a story about a
lamp says *lamp* twenty times. So z only compares a difference with the noise of word counts;
significance is tested on which texts hold the phrase, where a text counts once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fabula.core.packages import scipy
from fabula.core.types import Contrast, Estimate
from fabula.stats import resampling
from fabula.stats.resampling import MIN_UNITS, NONE, SLACK, Floats, Units, estimate

Clustered = Mapping[str, Sequence[float]]
"""The values of a group by cluster, with at least one value each."""
_BLOCK = 1 << 22


def mean_estimate(values: Sequence[float] | Floats, *, signature: str) -> Estimate:
    """The mean of independent values with its 95 % interval."""
    data = np.asarray(values, np.float64)
    n = len(data)
    value, ends = (float(data.mean()), resampling.mean_interval(data)) if n else (None, NONE)
    return estimate(value, ends, n, n, of="mean", by=resampling.STUDENT, signature=signature)


def pooled_estimate(
    parts: Floats,
    wholes: Floats,
    groups: Sequence[object],
    *,
    method: str,
    signature: str,
    n: int | None = None,
    is_share: bool = False,
) -> Estimate:
    """The sum of `parts` over that of `wholes`, float64, shape (n,), with its interval over groups.

    is_share: whether each part counts some of its whole, so that 0 and 1 are the ends.
    """
    units = Units.by(groups).known_sums(np.column_stack([wholes, parts]))
    n = len(parts) if n is None else n
    whole = float(units[:, 0].sum())
    value, ends = None, NONE
    if whole:
        value = float(parts.sum()) / whole
        if is_share:
            ends = resampling.share_interval(units[:, 1], units[:, 0])
        else:
            ends = resampling.influence_interval(value, (units[:, 1] - value * units[:, 0]) / whole)
    by = resampling.WILSON if is_share else resampling.STUDENT
    return estimate(value, ends, n, len(units), of=method, by=by, signature=signature)


def compare_means(
    number: str, groups: Mapping[str, Sequence[float]], *, signature: str
) -> Contrast:
    """Compare two independent groups of values, by name, in a number.

    Details: `percent`, 100 * (mean A - mean B) / mean B (Lu et al. 2024); `superiority`, the
    probability that a text of A scores above one of B, ties half; `u`, Mann-Whitney's.
    """
    (a, b), (first, second) = groups, (np.asarray(values, np.float64) for values in groups.values())
    n = len(first) + len(second)
    u, p = None, None
    test = scipy("stats").mannwhitneyu
    if len(first) and len(second):
        if first.min() == second.max() and second.min() == first.max():
            # All values are equal: no order is more extreme than this one. SciPy would divide 0.
            u, p = len(first) * len(second) / 2, 1.0
        else:
            u, p = map(float, test(first, second, alternative="two-sided", method="auto"))
    percent, gap = _differences(first, second, n, "", signature, are_paired=False)
    superiority = None if u is None else u / (len(first) * len(second))
    details = {"percent": percent, "superiority": superiority, "u": u}
    return Contrast(number, a, b, gap, p, None, "Mann-Whitney", details=details)


def compare_clusters(
    number: str, groups: Mapping[str, Clustered], *, seed: int, signature: str
) -> Contrast:
    """Compare the means of two groups, by name, cluster by cluster.

    Uses the clusters that both have, if these are at least half of those of the smaller group, and
    all clusters otherwise. Interval and p (from `permutation_f`) are over clusters; with fewer than
    ten there is neither. Details as of `compare_means`, without u.
    """
    (name_a, name_b), (a, b) = groups, groups.values()
    shared = a.keys() & b.keys()
    is_paired = bool(shared) and 2 * len(shared) >= min(len(a), len(b))
    if is_paired:
        a, b = ({name: group[name] for name in shared} for group in (a, b))
    n_units = min(len(a), len(b))
    # Both in the order of the clusters' names.
    cells = cell_means(a), cell_means(b)
    first, second = (np.array(list(side.values()), np.float64) for side in cells)
    n = 0 if not n_units else n_units if is_paired else len(a.keys() | b.keys())
    over = " over shared clusters" if is_paired else " over clusters of each group"
    percent, gap = _differences(first, second, n, over, signature, are_paired=is_paired)
    # How often a cluster mean of A exceeds B's in the same cluster, or in any; ties half.
    superiority = None
    if n_units and is_paired:
        superiority = float(np.mean((first > second) + 0.5 * (first == second)))
    elif n_units:
        # A cluster that equals k others is above half of them; a table of all pairs could be huge.
        order = np.sort(second)
        below = np.searchsorted(order, first, "left") + np.searchsorted(order, first, "right")
        superiority = float(below.sum()) / (2 * len(first) * len(second))
    details = {"percent": percent, "superiority": superiority}
    p = permutation_f([a, b], seed=seed).p if n_units >= MIN_UNITS else None
    return Contrast(number, name_a, name_b, gap, p, None, "permutation", details=details)


def _differences(
    a: Floats, b: Floats, n: int, over: str, signature: str, *, are_paired: bool
) -> tuple[Estimate, Estimate]:
    """100 * (mean A - mean B) / mean B, and mean A - mean B. a, b: float64 (n,), paired or not."""
    percent, gap, ends, ends_of_gap = None, None, NONE, NONE
    if len(a) and len(b):
        mean_a, mean_b = float(a.mean()), float(b.mean())
        of_a, of_b = (a - mean_a) / len(a), (b - mean_b) / len(b)
        gap, percent = mean_a - mean_b, 100 * (mean_a - mean_b) / mean_b if mean_b else None
        samples = [(of_a, of_b)] if are_paired else [(of_a, 0 * of_a), (0 * of_b, of_b)]
        low, high = resampling.ratio_interval(mean_a, mean_b, *samples)
        ends = None if low is None else 100 * (low - 1), None if high is None else 100 * (high - 1)
        added = [of_a - of_b] if are_paired else [of_a, -of_b]
        ends_of_gap = resampling.influence_interval(gap, *added)
    n_units = min(len(a), len(b))
    how, gap_how = f"percentage difference of means{over}", f"difference of means{over}"
    by, gap_by = resampling.FIELLER, resampling.STUDENT
    return (
        estimate(percent, ends, n, n_units, of=how, by=by, signature=signature),
        estimate(gap, ends_of_gap, n, n_units, of=gap_how, by=gap_by, signature=signature),
    )


def adjusted(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """With their p corrected over all of them (Holm)."""
    corrected = holm([contrast.p for contrast in contrasts])
    return [replace(c, p_adjusted=p) for c, p in zip(contrasts, corrected, strict=True)]


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


def kruskal_wallis(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """H of Kruskal and Wallis 1952, corrected for ties, and p by chi-squared; no group is empty."""
    data = [np.asarray(group, np.float64) for group in groups]
    if min(group.min() for group in data) == max(group.max() for group in data):
        # All values are equal: no order is more extreme than this one. SciPy would compute 0 / 0.
        return 0.0, 1.0
    result = scipy("stats").kruskal(*data)
    return float(result.statistic), float(result.pvalue)


def permutation_f(
    groups: Sequence[Clustered], *, seed: int, n_permutations: int = resampling.N_PERMUTATIONS
) -> Omnibus:
    """Test whether group means differ, by permutation in blocks; no p below ten clusters.

    Raises `ValueError` if a group has no cluster, or there are fewer than two groups.
    """
    if len(groups) < 2 or not all(groups):
        raise ValueError("needs at least two groups, each with a cluster")
    design = _Design(groups)
    n_units = len({name for group in groups for name in group})
    f = float(design.ratios(design.values[None])[0])
    # With two groups both are the same.
    statistic = design.ratios
    if len(groups) > 2 and n_units > 2 * len(groups) and math.isfinite(f):
        statistic = design.wald
    observed = float(statistic(design.values[None])[0])
    p: float | None = None
    if n_units >= MIN_UNITS:
        rng = np.random.default_rng([seed, 4])
        step = max(1, _BLOCK // len(design.values))
        n_extreme = 0
        for start in range(0, n_permutations, step):
            drawn = design.permuted(min(step, n_permutations - start), rng)
            n_extreme += int(np.count_nonzero(statistic(drawn) >= observed * (1 - SLACK)))
        p = (n_extreme + 1) / (n_permutations + 1)
    return Omnibus("permutation F", f if math.isfinite(f) else None, p, len(groups), n_units, True)


class _Design:
    """The layout of values, by group and then by cluster, and the block within which each may move.

    A cluster of several groups is a block, and its values move; block 0 holds the means of all
    clusters of one group, which move as a whole.
    """

    def __init__(self, groups: Sequence[Clustered]) -> None:
        n_holders = Counter(name for group in groups for name in group)
        several = sorted(name for name, n in n_holders.items() if n > 1)
        shared = {name: k for k, name in enumerate(several, 1)}
        cells = [
            (shared.get(name, 0), group[name] if name in shared else [mean])
            for group in groups
            for name, mean in cell_means(group).items()
        ]
        self._owners = np.array([owner for owner, _ in cells])
        self._cell_sizes = np.array([len(members) for _, members in cells])
        _, block = np.unique(np.repeat(self._owners, self._cell_sizes), return_inverse=True)
        raw = np.array([value for _, members in cells for value in members], np.float64)
        self._scale = float(np.abs(raw).max())
        self.values = raw - (np.bincount(block, raw) / np.bincount(block))[block]
        self._group_sizes = np.array([len(group) for group in groups])
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
        least = (SLACK * self._scale) ** 2
        ratios: Floats = np.where(
            between > least, between / np.where(expected > least, expected, np.nan), 0.0
        )
        return np.nan_to_num(ratios, nan=np.inf)

    def wald(self, values: Floats) -> Floats:
        """The Wald statistic of the groups' differences, for each row: (n,)."""
        means, covariances = self.means(values)
        k = means.shape[1]
        contrasts = np.eye(k)[:-1] - np.eye(k)[-1]
        apart = means @ contrasts.T
        inverse = np.linalg.pinv(contrasts @ covariances @ contrasts.T, hermitian=True)
        statistics: Floats = np.einsum("ni,nij,nj->n", apart, inverse, apart)
        return statistics


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.cumsum(sizes) - sizes


def log_odds(
    a: Floats, b: Floats, n_a: float, n_b: float, prior_size: float
) -> tuple[Floats, Floats]:
    """Log-odds ratios with an informative Dirichlet prior, and their z (equations 16 to 22).

    a, b: float64 (n_phrases,), how often each phrase occurs in the groups, out of `n_a` and `n_b`
    occurrences in total. The prior is the distribution over both groups, worth `prior_size`
    occurrences: it shrinks the differences of rare phrases.
    """
    prior = prior_size * (a + b) / (n_a + n_b)
    with_a, with_b = a + prior, b + prior
    difference = np.log(with_a / (n_a + prior_size - with_a)) - np.log(
        with_b / (n_b + prior_size - with_b)
    )
    return difference, difference / np.sqrt(1 / with_a + 1 / with_b)


Stratum = tuple[int, int, int]
"""The number of texts, of those in group A, and of those that hold the phrase."""


def exact_p(strata: Sequence[Stratum], n_holders_a: int) -> float:
    """Probability that as many texts of A, or an equally unlikely number, hold a phrase by chance.

    Within each stratum all texts are equally likely to belong to A, and strata are independent: for
    one stratum this is Fisher's exact test, for several the exact test of Cochran, Mantel and
    Haenszel. `n_holders_a` is over all strata. Two-sided, by the distance from the mean. It equals
    a permutation test of the texts over all permutations.
    """
    # A stratum held by all or none of the texts, or with only one group, has a single outcome.
    fixed = 0
    open_: list[Stratum] = []
    for n, n_a, n_holders in strata:
        if n_holders in (0, n) or n_a in (0, n):
            fixed += n_a if n_holders == n else n_holders if n_a == n else 0
        else:
            open_.append((n, n_a, n_holders))
    first, chances = _distribution(tuple(sorted(open_)))
    values = first + np.arange(len(chances))
    mean = float(values @ chances)
    distance = abs(n_holders_a - fixed - mean)
    return min(1.0, math.fsum(chances[np.abs(values - mean) >= distance - SLACK].tolist()))


@lru_cache(maxsize=1 << 16)
def _distribution(strata: tuple[Stratum, ...]) -> tuple[int, Floats]:
    """Like `_hypergeometric`, over several strata."""
    first, chances = 0, np.ones(1)
    for stratum in strata:
        low, factor = _hypergeometric(*stratum)
        first += low
        chances = np.convolve(chances, factor)
    return first, chances


@lru_cache(maxsize=1 << 16)
def _hypergeometric(n: int, n_a: int, n_holders: int) -> tuple[int, Floats]:
    """The smallest number of holders in A, and the probabilities of it and each larger number."""
    low, high = max(0, n_a + n_holders - n), min(n_a, n_holders)
    k = np.arange(low, high + 1)
    logs = _log_choices(np.array(n_holders), k) + _log_choices(np.array(n - n_holders), n_a - k)
    return low, np.exp(logs - _log_choices(np.array(n), np.array(n_a)))


def smallest_p(which: NDArray[np.int64], strata: NDArray[np.int64], n_tests: int) -> Floats:
    """The smallest p that each test can give, whatever the outcome: float64 (n_tests,).

    It is known without looking at which texts belong to A. which: int64 (n_rows,), the test that a
    stratum belongs to. strata: int64 (n_rows, 3), each a `Stratum`.
    """
    n, n_a, n_holders = strata.T
    ends = np.maximum(0, n_a + n_holders - n), np.minimum(n_a, n_holders)
    logs = []
    for k in ends:
        ways = _log_choices(n_holders, k) + _log_choices(n - n_holders, n_a - k)
        logs.append(np.bincount(which, ways - _log_choices(n, n_a), minlength=n_tests))
    return np.exp(np.minimum(*logs))


def _log_choices(n: NDArray[np.int64], k: NDArray[np.int64]) -> Floats:
    gammaln: Callable[[NDArray[np.int64]], Floats] = scipy("special").gammaln
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def can_pass(smallest: Floats, max_p: float) -> NDArray[np.bool_]:
    """Which tests could be significant after correction for all that could (Tarone 1990).

    smallest: float64 (n_tests,), the smallest p that each can give. A phrase held by three texts of
    a thousand cannot, and correcting for it would only hide phrases that can. The selection does
    not look at the groups, so a correction over the remaining tests keeps its level.
    """
    ordered = np.sort(smallest)
    n = 1
    while n < len(ordered) and np.searchsorted(ordered, max_p / n, "right") > n:
        n += 1
    return smallest <= max_p / n
