"""Ranking things from comparisons in which two were shown and one was preferred.

Bradley and Terry 1952: the log-odds that A is preferred to B are the strength of A minus that of B.
A place effect is added, the log-odds that of two equal things the one shown first is preferred
(Davidson and Beaver 1977); each answer counts in the order in which it was asked. A tie counts as
half a win for each (Glickman 1999, section 2): a strength then gives the expected share of
preferences, whatever makes raters call a tie. Davidson's model (1970) would also assume that ties
result from similar strengths, and equally often for every rater. The intervals and tests below
assume only the expected share.

Estimates are by maximum likelihood. They are finite if, for any division of the things of a part
into two sets, a member of each was preferred to one of the other (Ford 1957), that is if the graph
of preferences is strongly connected. A thing that was preferred every time has no finite strength:
it has its place in the order and None, not the number that a prior would give it. Things not
connected by comparisons belong to separate parts, each centred at 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.bradley_terry import Cells, fit, knows_place
from fabula.stats.compare import holm
from fabula.stats.effects import number_clusters
from fabula.stats.intervals import MIN_UNITS, Floats
from fabula.types import Estimate

METHOD = "bradley-terry-1"
"""The ranking method, for signatures."""
ALPHA = 0.05
"""Below this p, preferences differ from chance, and neighbours from each other."""

_N_RESAMPLES = 2_000
_BLOCK = 1 << 22
# Sums of the same numbers in different orders differ by less than this share of their size.
_SLACK = 1e-9
_SINGULAR = 1e-7

Ints = NDArray[np.int64]
Ends = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Answers, each about two things, which are numbered from 0.

    first, second: int64, shape (n,), what was shown first and second; never the same.
    outcome: float64, shape (n,): 1 if the first was preferred, 0 if the second, 0.5 for a tie.
    cluster: int64, shape (n,): answers of one cluster (a prompt, a participant) are correlated;
    by default, those about one pair are.
    """

    first: Ints
    second: Ints
    outcome: Floats
    cluster: Ints | None = None

    def __post_init__(self) -> None:
        if (self.first == self.second).any():
            raise ValueError("a thing cannot be compared with itself")
        if not np.isin(self.outcome, (0.0, 0.5, 1.0)).all():
            raise ValueError("an outcome is 1, 0.5 or 0")

    def take(self, kept: NDArray[np.bool_]) -> Comparisons:
        """Only the answers selected by a mask."""
        cluster = None if self.cluster is None else self.cluster[kept]
        return Comparisons(self.first[kept], self.second[kept], self.outcome[kept], cluster)

    def tally(self, n_things: int) -> Tally:
        """How often each order of two things was shown, and the first preferred."""
        orders, cell_of = np.unique(self.first * n_things + self.second, return_inverse=True)
        first, second = np.divmod(orders, n_things)
        shown = np.bincount(cell_of, minlength=len(orders)).astype(np.float64)
        preferred = np.bincount(cell_of, self.outcome, len(orders)).astype(np.float64)
        return Tally(first, second, shown, preferred, cell_of.astype(np.int64))

    def pairs(self) -> Ints:
        """The pair of each answer, regardless of order, numbered from 0: shape (n,)."""
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        return number_clusters(low * (int(high.max(initial=0)) + 1) + high)[0]


@dataclass(frozen=True, slots=True)
class Tally:
    """Answers by cell, i.e. by the order in which two things were shown; each shape (n_cells,)."""

    first: Ints
    second: Ints
    shown: Floats
    preferred: Floats
    cell_of: Ints
    """The cell of each answer: shape (n,)."""


@dataclass(frozen=True, slots=True)
class Strength:
    """The strength of a thing, in log-odds relative to the mean of its part."""

    thing: int
    part: int
    """Things of different parts were not compared, even indirectly."""
    estimate: Estimate
    missing_reason: str | None
    share: float | None
    """The share of its comparisons in which it was preferred, ties counting half."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Two neighbours of the ranking: how much stronger the upper one is."""

    upper: int
    lower: int
    difference: Estimate
    p: float | None
    """Two-sided, for equal strengths, corrected (Holm) over all neighbours."""

    @property
    def is_told_apart(self) -> bool | None:
        return None if self.p is None else self.p < ALPHA


@dataclass(frozen=True, slots=True)
class Ranking:
    """The strongest of each part first."""

    strengths: tuple[Strength, ...]
    gaps: tuple[Gap, ...]
    """Between neighbours that both have a strength."""
    place: Estimate
    """Log-odds that of two equal things the one shown first is preferred."""
    place_reason: str | None
    p_chance: float | None
    """Of the test that all things of a part are equal."""
    n: int
    n_units: int
    units: str
    """The independent units of tests and intervals: `pairs` or `clusters`."""

    @property
    def is_told_from_chance(self) -> bool:
        return self.p_chance is not None and self.p_chance < ALPHA


def rank(answers: Comparisons, n_things: int, *, seed: int, signature: str) -> Ranking:
    """Rank things by their comparisons, with 95 % intervals and tests.

    Intervals use robust errors by unit, which is a cluster or, without clusters, a pair: each is
    left out in one Newton step (CR3 of Bell and McCaffrey 2002). Student's t has one degree of
    freedom less than there are units. There are no intervals below ten. Whether preferences differ
    from chance is a permutation test: if all things of a part were equal, the two of a pair, or
    all of a cluster, could be swapped.
    """
    parts = _components(answers.first, answers.second, n_things, "weak")
    groups, n_above = _strong_groups(answers, n_things)
    # Anything that one side always wins is certain in the limit, and does not affect finite ones.
    inner = answers.take(groups[answers.first] == groups[answers.second])
    fitted = _Fitted.of(inner, groups)
    estimates = _Estimates(fitted, fitted.errors(), fitted.n_units(), signature)
    is_ranked = _are_in_largest(groups, parts)
    # How often each thing was compared, and preferred.
    both = np.concatenate([answers.first, answers.second])
    won = np.concatenate([answers.outcome, 1 - answers.outcome])
    n_shown, n_won = np.bincount(both, minlength=n_things), np.bincount(both, won, n_things)
    strengths = []
    for thing in range(n_things):
        n = int(n_shown[thing])
        reason = None if is_ranked[thing] else "one_sided" if n else "not_compared"
        estimate = estimates.missing(n) if reason else estimates.strength(thing, n)
        share = float(n_won[thing] / n) if n else None
        strengths.append(Strength(thing, int(parts[thing]), estimate, reason, share))
    strengths.sort(key=lambda s: (s.part, n_above[s.thing], -(s.estimate.value or 0.0), s.thing))
    gaps = [
        estimates.gap(upper, lower)
        for upper, lower in pairwise(strengths)
        if upper.part == lower.part and not (upper.missing_reason or lower.missing_reason)
    ]
    corrected = holm([gap.p for gap in gaps])
    n_units = len(np.unique(_units(answers)))
    return Ranking(
        tuple(strengths),
        tuple(replace(gap, p=p) for gap, p in zip(gaps, corrected, strict=True)),
        estimates.place(),
        fitted.place_reason,
        _p_of_chance(answers, n_things, seed),
        len(answers.first),
        n_units,
        "pairs" if answers.cluster is None else "clusters",
    )


# Which strengths are finite.


def _components(
    first: Ints, second: Ints, n_things: int, connection: Literal["strong", "weak"]
) -> Ints:
    """The component of each thing in the graph from first to second."""
    graph = scipy("sparse").csr_array((np.ones(len(first)), (first, second)), (n_things, n_things))
    labels: Ints = scipy("sparse.csgraph").connected_components(graph, connection=connection)[1]
    return labels.astype(np.int64)


def _strong_groups(answers: Comparisons, n_things: int) -> tuple[Ints, Ints]:
    """Groups within which strengths are finite, and the number of things above each thing minus
    those below it, where strengths do not decide: int64, shape (n_things,) each."""
    first_won, second_won = answers.outcome > 0, answers.outcome < 1
    winner = np.concatenate([answers.first[first_won], answers.second[second_won]])
    loser = np.concatenate([answers.second[first_won], answers.first[second_won]])
    groups = _components(winner, loser, n_things, "strong")
    sizes = np.bincount(groups)
    reach = np.zeros((len(sizes), len(sizes)), np.bool_)
    reach[groups[winner], groups[loser]] = True
    np.fill_diagonal(reach, val=False)
    for _ in range(len(sizes).bit_length()):
        further = reach | (reach.astype(np.float32) @ reach.astype(np.float32) > 0)
        if (further == reach).all():
            break
        reach = further
    above = sizes @ reach - reach @ sizes
    return groups, above[groups].astype(np.int64)


def _are_in_largest(groups: Ints, parts: Ints) -> NDArray[np.bool_]:
    """Whether each thing is in its part's largest group, of at least two: those with a strength.

    Strengths of two groups of a part would be on different scales.
    """
    sizes = np.bincount(groups)
    largest = np.zeros(len(groups), np.bool_)
    for part in range(int(parts.max(initial=-1)) + 1):
        own = np.unique(groups[parts == part])
        group = own[np.argmax(sizes[own])]
        largest |= (groups == group) & (sizes[group] > 1)
    return largest


# Answers, and the fit to them.


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The finite strengths, and the answers they are estimated from."""

    answers: Comparisons
    groups: Ints
    tally: Tally
    cells: Cells
    theta: Floats
    """Shape (size,)."""
    place_reason: str | None

    @classmethod
    def of(cls, answers: Comparisons, groups: Ints) -> _Fitted:
        n_things = len(groups)
        tally = answers.tally(n_things)
        shown, preferred = tally.shown[None], tally.preferred[None]
        cells = Cells.of(tally.first, tally.second, groups, has_place=True)
        reason: str | None = "place_unknown"
        theta = np.full(n_things + 1, np.nan)
        if knows_place(cells):
            theta = fit(cells, shown, preferred)[0]
            reason = None if np.isfinite(theta).all() else "one_sided"
        if reason is not None:
            cells = Cells.of(tally.first, tally.second, groups, has_place=False)
            theta = fit(cells, shown, preferred)[0]
        return cls(answers, groups, tally, cells, theta, reason)

    def n_units(self) -> Ints:
        """The number of units behind each group's strengths, and last behind the place effect."""
        n_groups = int(self.groups.max(initial=-1)) + 1
        units, n_units = number_clusters(_units(self.answers))
        seen = np.unique(units * n_groups + self.groups[self.answers.first]) % n_groups
        return np.append(np.bincount(seen, minlength=n_groups), n_units)

    def errors(self) -> _Errors:
        """By unit, from how much the estimates move when it is left out of the fit."""
        answers, tally = self.answers, self.tally
        p = scipy("special").expit(self.cells.rows @ self.theta)
        bread = np.linalg.inv(self.cells.curvature((tally.shown * p * (1 - p))[None])[0])
        # What each unit says in each of its cells.
        units, n_units = number_clusters(_units(answers))
        n_cells = len(tally.first)
        kinds, kind_of = np.unique(units * n_cells + tally.cell_of, return_inverse=True)
        unit_of, cell_of = np.divmod(kinds, n_cells)
        shown = np.bincount(kind_of).astype(np.float64)
        residual = np.bincount(kind_of, answers.outcome) - shown * p[cell_of]
        weight = shown * (p * (1 - p))[cell_of]
        moved = self.cells.rows[cell_of] @ bread
        n_kinds = np.bincount(unit_of, minlength=n_units)
        begins = np.cumsum(n_kinds) - n_kinds
        influence = np.zeros((n_units, len(bread)))
        is_bridge = np.zeros(n_units, np.bool_)
        for size in np.unique(n_kinds):
            own = np.flatnonzero(n_kinds == size)
            held = begins[own][:, None] + np.arange(size)
            moves, cells = moved[held], cell_of[held]
            # Of each row with each move; a row is 1, -1 and, with a place effect, 1.
            by_row = np.take_along_axis(moves, tally.first[cells][:, None, :], 2)
            by_row = by_row - np.take_along_axis(moves, tally.second[cells][:, None, :], 2)
            if self.cells.has_place:
                by_row += moves[:, :, -1:]
            left = np.eye(size) - weight[held][:, :, None] * by_row.transpose(0, 2, 1)
            left_out = np.linalg.pinv(left, rcond=_SINGULAR) @ residual[held][:, :, None]
            influence[own] = (moves * left_out).sum(axis=1)
            # Without a unit that alone connects others, their strengths would be unknown, and so
            # is their error.
            is_bridge[own] = np.linalg.svd(left, compute_uv=False)[:, -1] < _SINGULAR
        is_known = np.ones(len(bread), np.bool_)
        bridged = np.unique(self.groups[tally.first[cell_of[is_bridge[unit_of]]]])
        is_known[: len(self.groups)] = ~np.isin(self.groups, bridged)
        n = max(1, n_units)
        return _Errors((n - 1) / n * influence.T @ influence, is_known)


# Intervals and tests.


@dataclass(frozen=True, slots=True)
class _Errors:
    """A covariance of the estimates, and the strengths it covers."""

    covariance: Floats
    is_known: NDArray[np.bool_]

    def _error(self, contrast: Floats) -> float:
        """0 if it is unknown."""
        if not self.is_known[contrast != 0].all():
            return 0.0
        return math.sqrt(max(0.0, float(contrast @ self.covariance @ contrast)))

    def interval(self, contrast: Floats, value: float, n_units: int) -> Ends:
        error = self._error(contrast)
        if n_units < MIN_UNITS or not error > 0:
            return None, None
        reach = error * float(scipy("special").stdtrit(n_units - 1, 0.975))
        return value - reach, value + reach

    def p(self, contrast: Floats, value: float, n_units: int) -> float | None:
        error = self._error(contrast)
        if n_units < MIN_UNITS or not error > 0:
            return None
        return float(2 * scipy("special").stdtr(n_units - 1, -abs(value) / error))


@dataclass(frozen=True, slots=True)
class _Estimates:
    """Strengths and their differences, as estimates."""

    fitted: _Fitted
    errors: _Errors
    n_units: Ints
    signature: str

    @property
    def method(self) -> str:
        how = "Bradley-Terry, maximum likelihood, ties as half a win each"
        if self.fitted.place_reason:
            how += ", without a place effect"
        unit = "pair" if self.fitted.answers.cluster is None else "cluster"
        return f"{how}; robust errors by {unit} (CR3)"

    def missing(self, n: int) -> Estimate:
        return Estimate(None, None, None, n, self.method, self.signature)

    def strength(self, thing: int, n: int) -> Estimate:
        return self._of(self._unit(thing), n, int(self.fitted.groups[thing]))

    def place(self) -> Estimate:
        n = len(self.fitted.answers.first)
        if self.fitted.place_reason:
            return self.missing(n)
        return self._of(self._unit(len(self.fitted.groups)), n, -1)

    def gap(self, upper: Strength, lower: Strength) -> Gap:
        contrast = self._unit(upper.thing) - self._unit(lower.thing)
        group = int(self.fitted.groups[upper.thing])
        difference = self._of(contrast, upper.estimate.n + lower.estimate.n, group)
        value = float(contrast @ self.fitted.theta)
        p = self.errors.p(contrast, value, int(self.n_units[group]))
        return Gap(upper.thing, lower.thing, difference, p)

    def _unit(self, k: int) -> Floats:
        unit: Floats = np.zeros(len(self.fitted.theta))
        unit[k] = 1.0
        return unit

    def _of(self, contrast: Floats, n: int, group: int) -> Estimate:
        value, n_units = float(contrast @ self.fitted.theta), int(self.n_units[group])
        ends = self.errors.interval(contrast, value, n_units)
        return Estimate(value, *ends, n, self.method, self.signature, n_units)


def _units(answers: Comparisons) -> Ints:
    return answers.pairs() if answers.cluster is None else answers.cluster


def _p_of_chance(answers: Comparisons, n_things: int, seed: int) -> float | None:
    """The p of a permutation test that things are equal, whatever the place effect.

    The statistic is that of the score test: wins beyond those explained by the place alone,
    weighted by how often things met. Things of a unit are swapped; if both orders of each pair were
    asked equally often, p is exact. (b + 1) / (m + 1) as in Phipson and Smyth 2010. None without
    answers.
    """
    if not len(answers.first):
        return None
    units, n_units = number_clusters(_units(answers))
    residual = answers.outcome - answers.outcome.mean()
    # A row for each thing in each unit: how much it won there.
    keys = np.concatenate([units * n_things + answers.first, units * n_things + answers.second])
    members, place = np.unique(keys, return_inverse=True)
    won = np.bincount(place, np.concatenate([residual, -residual]))
    unit_of, thing_of = np.divmod(members, n_things)
    sizes = np.bincount(unit_of, minlength=n_units)
    n_met = np.bincount(units, minlength=n_units)
    inverse = np.linalg.pinv(_expected_meetings(unit_of, thing_of, sizes, n_met, n_things))
    observed = np.bincount(thing_of, won, n_things)
    least = float(observed @ inverse @ observed) * (1 - _SLACK) - _SLACK
    rng = np.random.default_rng([seed, 1])
    totals = np.zeros((_N_RESAMPLES, n_things))
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes[unit_of] == size)
        to_things = scipy("sparse").csr_array(
            (np.ones(len(rows)), (np.arange(len(rows)), thing_of[rows])), (len(rows), n_things)
        )
        step = max(1, _BLOCK // len(rows))
        for start in range(0, _N_RESAMPLES, step):
            block = totals[start : start + step]
            drawn = np.tile(won[rows].reshape(-1, size), (len(block), 1, 1))
            block += rng.permuted(drawn, axis=2).reshape(len(block), -1) @ to_things
    statistics = np.einsum("bi,ij,bj->b", totals, inverse, totals)
    return float((int((statistics >= least).sum()) + 1) / (_N_RESAMPLES + 1))


def _expected_meetings(
    unit_of: Ints, thing_of: Ints, sizes: Ints, n_met: Ints, n_things: int
) -> Floats:
    """The Laplacian of how often things meet, averaged over all swaps."""
    rates = n_met / np.maximum(1, sizes * (sizes - 1) / 2)
    n_units = len(sizes)
    sparse = scipy("sparse")
    belongs = sparse.csr_array((np.ones(len(unit_of)), (unit_of, thing_of)), (n_units, n_things))
    weighed = belongs.T @ sparse.diags_array(rates) @ belongs
    met = weighed.toarray()
    np.fill_diagonal(met, 0.0)
    laplacian: Floats = np.diag(met.sum(axis=1)) - met
    return laplacian
