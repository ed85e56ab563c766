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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.packages import scipy
from fabula.core.types import Contrast, Estimate
from fabula.stats.contrasts import adjusted
from fabula.stats.resampling import MIN_UNITS, NONE, SLACK, Floats, Units

if TYPE_CHECKING:
    from scipy import sparse

METHOD = "bradley-terry-1"
"""The ranking method, for signatures."""
ALPHA = 0.05
"""Below this p, preferences differ from chance, and neighbours from each other."""
_N_RESAMPLES = 2_000
_BLOCK = 1 << 22
_MAX_STEPS = 40
_TOLERANCE = 1e-9
_LARGEST_PLACE = 10.0
"""A finite place effect of this size would take 20,000 answers to show."""
CHOICE = "cycles-1"
"""How pairs are drawn, for signatures."""
_N_CYCLES = 2
_SINGULAR = 1e-7
Ints = NDArray[np.int64]


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
        cluster = None if self.cluster is None else self.cluster[kept]
        return Comparisons(self.first[kept], self.second[kept], self.outcome[kept], cluster)

    def tally(self, n_things: int) -> Tally:
        """How often each order of two things was shown, and the first preferred."""
        orders, cell_of = np.unique(self.first * n_things + self.second, return_inverse=True)
        first, second = np.divmod(orders, n_things)
        shown = np.bincount(cell_of, minlength=len(orders)).astype(np.float64)
        preferred = np.bincount(cell_of, self.outcome, len(orders)).astype(np.float64)
        return Tally(first, second, shown, preferred, cell_of.astype(np.int64))

    def units(self) -> Units:
        """What is independent: clusters or, without them, pairs regardless of order."""
        if self.cluster is not None:
            return Units.by(self.cluster)
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        return Units.by(low * (int(high.max(initial=0)) + 1) + high)


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
class Ranking:
    """The strongest of each part first."""

    strengths: tuple[Strength, ...]
    gaps: tuple[Contrast, ...]
    """Between neighbours that both have a strength, by their numbers."""
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


def is_told_apart(gap: Contrast) -> bool | None:
    """Whether two neighbours of a ranking differ; None if that was not tested."""
    return None if gap.p_adjusted is None else gap.p_adjusted < ALPHA


def rank(answers: Comparisons, n_things: int, *, seed: int, signature: str) -> Ranking:
    """Rank things by their comparisons, with 95 % intervals and tests.

    Intervals use robust errors by unit, which is a cluster or, without clusters, a pair: each is
    left out in one Newton step (CR3 of Bell and McCaffrey 2002). Student's t has one degree of
    freedom less than there are units. There are no intervals below ten. Whether preferences differ
    from chance is a permutation test: if all things of a part were equal, the two of a pair, or
    all of a cluster, could be swapped.
    """
    parts = _components(answers.first, answers.second, n_things, "weak")
    # Groups within which strengths are finite.
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
    # The things above each minus those below it, where strengths do not decide.
    n_above = (sizes @ reach - reach @ sizes)[groups].astype(np.int64)
    # Anything that one side always wins is certain in the limit, and does not affect finite ones.
    inner = answers.take(groups[answers.first] == groups[answers.second])
    estimates = _Estimates(inner, groups, signature)
    # Only the largest group of a part, of at least two, has strengths: two would have two scales.
    is_ranked = np.zeros(n_things, np.bool_)
    for part in range(int(parts.max(initial=-1)) + 1):
        members = np.unique(groups[parts == part])
        largest = members[np.argmax(sizes[members])]
        is_ranked |= (groups == largest) & (sizes[largest] > 1)
    both = np.concatenate([answers.first, answers.second])
    won = np.concatenate([answers.outcome, 1 - answers.outcome])
    n_shown, n_won = np.bincount(both, minlength=n_things), np.bincount(both, won, n_things)
    strengths = []
    for item in range(n_things):
        n = int(n_shown[item])
        reason = None if is_ranked[item] else "one_sided" if n else "not_compared"
        estimate = estimates.missing(n)
        if reason is None:
            estimate, _ = estimates.tested({item: 1.0}, n, int(groups[item]))
        share = float(n_won[item] / n) if n else None
        strengths.append(Strength(item, int(parts[item]), estimate, reason, share))
    strengths.sort(key=lambda s: (s.part, n_above[s.thing], -(s.estimate.value or 0.0), s.thing))
    known = (two for two in pairwise(strengths) if not any(each.missing_reason for each in two))
    gaps = [estimates.gap(upper, lower) for upper, lower in known if upper.part == lower.part]
    place = estimates.place(), estimates.place_reason
    p = _p_of_chance(answers, n_things, seed)
    kind = "pairs" if answers.cluster is None else "clusters"
    n, n_units = len(answers.first), answers.units().n
    return Ranking(tuple(strengths), tuple(adjusted(gaps)), *place, p, n, n_units, kind)


def _components(
    first: Ints, second: Ints, n_things: int, connection: Literal["strong", "weak"]
) -> Ints:
    """The component of each thing in the graph from first to second."""
    graph = scipy("sparse").csr_array((np.ones(len(first)), (first, second)), (n_things, n_things))
    labels: Ints = scipy("sparse.csgraph").connected_components(graph, connection=connection)[1]
    return labels.astype(np.int64)


class _Estimates:
    """The finite strengths, and their differences, from the answers that have them."""

    def __init__(self, answers: Comparisons, groups: Ints, signature: str) -> None:
        self.answers, self.groups, self.signature = answers, groups, signature
        self.tally = tally = answers.tally(len(groups))
        shown, preferred = tally.shown[None], tally.preferred[None]
        self.cells = Cells(tally.first, tally.second, groups, has_place=True)
        self.place_reason: str | None = "place_unknown"
        self.theta: Floats = np.full(len(groups) + 1, np.nan)
        # A place effect is identifiable if the column of ones is not a combination of rows.
        n_cells = len(tally.first)
        whole = self.cells.curvature(np.ones((1, n_cells)))[0]
        apart = n_cells - whole[-1, :-1] @ np.linalg.solve(whole[:-1, :-1], whole[-1, :-1])
        if apart > SLACK * max(1, n_cells):
            self.theta = fit(self.cells, shown, preferred)[0]
            self.place_reason = None if np.isfinite(self.theta).all() else "one_sided"
        if self.place_reason is not None:
            self.cells = Cells(tally.first, tally.second, groups, has_place=False)
            self.theta = fit(self.cells, shown, preferred)[0]
        # The number of units behind each group's strengths, and last behind the place effect.
        self.units = answers.units()
        n_groups = int(groups.max(initial=-1)) + 1
        seen = np.unique(self.units.of * n_groups + groups[answers.first]) % n_groups
        self.n_units = np.append(np.bincount(seen, minlength=n_groups), self.units.n)
        # A covariance of the estimates, and which strengths it covers: by unit, from how much the
        # estimates move when it is left out of the fit.
        units, n_units = self.units, self.units.n
        p = scipy("special").expit(self.cells.rows @ self.theta)
        bread = np.linalg.inv(self.cells.curvature((tally.shown * p * (1 - p))[None])[0])
        # What each unit says in each of its cells.
        kinds, kind_of = np.unique(units.of * n_cells + tally.cell_of, return_inverse=True)
        unit_of, cell_of = np.divmod(kinds, n_cells)
        n_shown = np.bincount(kind_of).astype(np.float64)
        residual = np.bincount(kind_of, answers.outcome) - n_shown * p[cell_of]
        weight = n_shown * (p * (1 - p))[cell_of]
        moved = self.cells.rows[cell_of] @ bread
        n_kinds = np.bincount(unit_of, minlength=n_units)
        begins = np.cumsum(n_kinds) - n_kinds
        influence = np.zeros((n_units, len(bread)))
        is_bridge = np.zeros(n_units, np.bool_)
        for size in np.unique(n_kinds):
            alike = np.flatnonzero(n_kinds == size)
            places = begins[alike][:, None] + np.arange(size)
            moves, cells = moved[places], cell_of[places]
            # Of each row with each move; a row is 1, -1 and, with a place effect, 1.
            by_row = np.take_along_axis(moves, tally.first[cells][:, None, :], 2)
            by_row = by_row - np.take_along_axis(moves, tally.second[cells][:, None, :], 2)
            if self.cells.has_place:
                by_row += moves[:, :, -1:]
            left = np.eye(size) - weight[places][:, :, None] * by_row.transpose(0, 2, 1)
            left_out = np.linalg.pinv(left, rcond=_SINGULAR) @ residual[places][:, :, None]
            influence[alike] = (moves * left_out).sum(axis=1)
            # Without a unit that alone connects others, strengths and their errors are unknown.
            is_bridge[alike] = np.linalg.svd(left, compute_uv=False)[:, -1] < _SINGULAR
        self.is_known = np.ones(len(bread), np.bool_)
        bridged = np.unique(groups[tally.first[cell_of[is_bridge[unit_of]]]])
        self.is_known[: len(groups)] = ~np.isin(groups, bridged)
        n = max(1, n_units)
        self.covariance: Floats = (n - 1) / n * influence.T @ influence

    @property
    def method(self) -> str:
        how = "Bradley-Terry, maximum likelihood, ties as half a win each"
        if self.place_reason:
            how += ", without a place effect"
        unit = "pair" if self.answers.cluster is None else "cluster"
        return f"{how}; robust errors by {unit} (CR3)"

    def missing(self, n: int) -> Estimate:
        return Estimate(None, None, None, n, self.method, self.signature)

    def place(self) -> Estimate:
        n = len(self.answers.first)
        if self.place_reason:
            return self.missing(n)
        return self.tested({len(self.groups): 1.0}, n, -1)[0]

    def gap(self, upper: Strength, lower: Strength) -> Contrast:
        n = upper.estimate.n + lower.estimate.n
        group = int(self.groups[upper.thing])
        difference, p = self.tested({upper.thing: 1.0, lower.thing: -1.0}, n, group)
        names = str(upper.thing), str(lower.thing)
        return Contrast("strength", *names, difference, p, test="Wald, robust errors")

    def tested(
        self, parts: Mapping[int, float], n: int, group: int
    ) -> tuple[Estimate, float | None]:
        """A sum of parts of the estimates with its interval, and the p of its being 0."""
        contrast = np.zeros(len(self.theta))
        contrast[list(parts)] = list(parts.values())
        value, n_units = float(contrast @ self.theta), int(self.n_units[group])
        error, ends, p = 0.0, NONE, None
        if self.is_known[list(parts)].all():
            error = math.sqrt(max(0.0, float(contrast @ self.covariance @ contrast)))
        if n_units >= MIN_UNITS and error > 0:
            special = scipy("special")
            reach = error * float(special.stdtrit(n_units - 1, 0.975))
            ends = value - reach, value + reach
            p = float(2 * special.stdtr(n_units - 1, -abs(value) / error))
        return Estimate(value, *ends, n, self.method, self.signature, n_units), p


class Cells:
    """The orders in which two things were shown, with the contribution of each to the log-odds,
    and to the score and the curvature of the log-likelihood.

    rows: shape (n_cells, size), 1 for the first thing, -1 for the second, and 1 for the place
    effect if there is such a column. squares: shape (size * size, n_cells), the outer products of
    rows. centre: shape (size, size), 1 between things of a group, whose strengths sum to 0.
    """

    def __init__(self, first: Ints, second: Ints, groups: Ints, *, has_place: bool) -> None:
        n_things, n_cells = len(groups), len(first)
        size = n_things + has_place
        columns = np.stack([first, second, np.full(n_cells, n_things)][: 2 + has_place], axis=1)
        values = np.array([1.0, -1.0, 1.0])[: 2 + has_place]
        cells = np.repeat(np.arange(n_cells), len(values))
        csr_array = scipy("sparse").csr_array
        where = cells, columns.ravel()
        self.rows: sparse.csr_array = csr_array((np.tile(values, n_cells), where), (n_cells, size))
        places = columns[:, :, None] * size + columns[:, None, :]
        where = places.ravel(), np.repeat(np.arange(n_cells), len(values) ** 2)
        products = np.tile(np.outer(values, values).ravel(), n_cells)
        self.squares: sparse.csr_array = csr_array((products, where), (size * size, n_cells))
        self.centre, self.has_place = np.zeros((size, size)), has_place
        self.centre[:n_things, :n_things] = groups[:, None] == groups

    def curvature(self, weights: Floats) -> Floats:
        """Minus the second derivatives, made invertible: weights (b, n_cells) to (b, size, size)"""
        size = len(self.centre)
        curvature: Floats = (self.squares @ weights.T).T.reshape(-1, size, size) + self.centre
        return curvature


def fit(cells: Cells, shown: Floats, preferred: Floats) -> Floats:
    """Strengths, and the place effect if the cells have one: float64, shape (b, size).

    shown, preferred: float64, shape (b, n_cells), how often each cell was asked, and how often the
    first was preferred; all b sets are fitted at once, whose likelihood is concave. The strengths
    of a set are NaN if it has no finite maximum, since Newton's method would not converge.
    """
    theta = np.zeros((len(shown), len(cells.centre)))
    active, log_expit = np.arange(len(shown)), scipy("special").log_expit
    for _ in range(_MAX_STEPS):
        n, y, current = shown[active], preferred[active], theta[active]
        p = scipy("special").expit((cells.rows @ current.T).T)
        score = (cells.rows.T @ (y - n * p).T).T
        curvature, step = cells.curvature(n * p * (1 - p)), np.ones_like(score)
        try:
            step[:] = np.linalg.solve(curvature, score[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            # A vanished curvature means a maximum at infinity: the step stays 1.
            whole = np.linalg.matrix_rank(curvature, hermitian=True) == score.shape[1]
            step[whole] = np.linalg.solve(curvature[whole], score[whole, :, None])[:, :, 0]
        # The longest step guaranteed to increase the likelihood: the curvature changes by at most
        # e^|change of the log-odds| (Sun and Tran-Dinh 2019, section 4). Near the maximum it is
        # Newton's.
        reach = np.abs((cells.rows @ step.T).T).max(axis=1, initial=0.0, keepdims=True)
        safe = np.divide(np.log1p(reach), reach, out=np.ones_like(reach), where=reach > 0)
        before, after = (cells.rows @ current.T).T, (cells.rows @ (current + step).T).T
        # The gain in log-likelihood, plus rounding.
        gain = y * (log_expit(after) - log_expit(before))
        gain += (n - y) * (log_expit(-after) - log_expit(-before))
        step *= np.where(gain.sum(axis=1, keepdims=True) + SLACK >= 0, 1.0, safe)
        theta[active] += step
        active = active[np.abs(step).max(axis=1) > _TOLERANCE]
        if not len(active):
            break
    theta[active] = np.nan
    if cells.has_place:
        # A place effect this large has no finite maximum: only rounding ended its steps.
        theta[np.abs(theta[:, -1]) > _LARGEST_PLACE] = np.nan
    return theta


def _p_of_chance(answers: Comparisons, n_things: int, seed: int) -> float | None:
    """The p of a permutation test that things are equal, whatever the place effect.

    The statistic is that of the score test: wins beyond those explained by the place alone,
    weighted by how often things met. Things of a unit are swapped; if both orders of each pair were
    asked as often, p is exact. (b + 1) / (m + 1), Phipson and Smyth 2010. None without answers.
    """
    if not len(answers.first):
        return None
    units, n_units = answers.units().of, answers.units().n
    residual = answers.outcome - answers.outcome.mean()
    # A row for each thing in each unit: how much it won there.
    keys = np.concatenate([units * n_things + answers.first, units * n_things + answers.second])
    members, place = np.unique(keys, return_inverse=True)
    won = np.bincount(place, np.concatenate([residual, -residual]))
    unit_of, thing_of = np.divmod(members, n_things)
    sizes = np.bincount(unit_of, minlength=n_units)
    n_met = np.bincount(units, minlength=n_units)
    # The Laplacian of how often things meet, averaged over all swaps.
    sparse, rates = scipy("sparse"), n_met / np.maximum(1, sizes * (sizes - 1) / 2)
    belongs = sparse.csr_array((np.ones(len(unit_of)), (unit_of, thing_of)), (n_units, n_things))
    met = (belongs.T @ sparse.diags_array(rates) @ belongs).toarray()
    np.fill_diagonal(met, 0.0)
    inverse = np.linalg.pinv(np.diag(met.sum(axis=1)) - met)
    observed = np.bincount(thing_of, won, n_things)
    least = float(observed @ inverse @ observed) * (1 - SLACK) - SLACK
    rng = np.random.default_rng([seed, 1])
    totals = np.zeros((_N_RESAMPLES, n_things))
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes[unit_of] == size)
        to_things = sparse.csr_array(
            (np.ones(len(rows)), (np.arange(len(rows)), thing_of[rows])), (len(rows), n_things)
        )
        step = max(1, _BLOCK // len(rows))
        for start in range(0, _N_RESAMPLES, step):
            block = totals[start : start + step]
            drawn = np.tile(won[rows].reshape(-1, size), (len(block), 1, 1))
            block += rng.permuted(drawn, axis=2).reshape(len(block), -1) @ to_things
    statistics = np.einsum("bi,ij,bj->b", totals, inverse, totals)
    return float((int((statistics >= least).sum()) + 1) / (_N_RESAMPLES + 1))


Pair = tuple[int, int]


def _parts(pairs: Sequence[Pair]) -> list[list[int]]:
    """The connected components of the pairs, each in the order of its first pair."""
    part_of: dict[int, list[int]] = {}
    for a, b in pairs:
        mine, other = part_of.setdefault(a, [a]), part_of.setdefault(b, [b])
        if mine is not other:
            mine += other
            for item in other:
                part_of[item] = mine
    return list({id(part): part for part in part_of.values()}.values())


def least_pairs(pairs: Sequence[Pair]) -> int:
    """The minimum number of these pairs that connects everything they connect."""
    return sum(len(part) - 1 for part in _parts(pairs))


def drawn_pairs(pairs: Sequence[Pair], n_pairs: int, rng: np.random.Generator) -> list[Pair]:
    """`n_pairs` of the pairs: random cycles through each part, then others at random.

    The first pairs connect everything, and each thing is compared about equally often. A smaller
    `n_pairs` gives the first pairs of a larger one.

    pairs: all pairs that may be asked; any two things of a part are a pair.
    """
    known = set(pairs)
    chosen: dict[Pair, None] = {}
    for _ in range(_N_CYCLES):
        paths: list[Pair] = []
        closing: list[Pair] = []
        for part in _parts(pairs):
            order = [int(item) for item in rng.permutation(part)]
            paths += pairwise(order)
            closing.append((order[-1], order[0]))
        both = ((a, b) if (a, b) in known else (b, a) for a, b in [*paths, *closing])
        chosen |= dict.fromkeys(both)
    remaining = sorted(known - chosen.keys())
    return [*chosen, *(remaining[k] for k in rng.permutation(len(remaining)))][:n_pairs]
