"""How wide an interval will be with N stories and raters, from a pilot.

The pilot is described by a probit model: behind each verdict is a normal variable, the sum of
contributions of the story, the item in this story, the rater in this story, and noise; the verdict
is Yes above a threshold of the item. The three correlations are estimated by moments, from pairs of
verdicts that share a story and an item, a story, or a story and a rater. Verdicts for designs of
any size are then drawn from the model, and the width is that of the central 95 % of the statistic.
As in all intervals of Fabula, raters belong to a story: one who judged several stories counts as
several.

Numbers are planned item by item, as they are reported: the variable is cut into the values of the
pilot, with their frequencies, and one correlation describes what two raters of a story share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.reliability import concordance_of_sums, fleiss_of_sums, fleiss_sums
from fabula.stats.resample import MIN_UNITS, percentile_interval
from fabula.types import Estimate

Floats = NDArray[np.float64]

_N_STORIES = 10_000
_N_DRAWS = 4000
_N_LARGE = 200
_MOST = 0.999
_N_VALUES = 20
"""Distinct numbers; if there are more, neighbours are merged."""
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class Pilot:
    """The model of verdicts. Correlations are between the variables behind two verdicts."""

    thresholds: tuple[float, ...]
    """By item: Yes if the variable is above it; the quantile of the share of No."""
    same_item: float
    """Two raters on one item of a story."""
    same_story: float
    """Two raters on two items of a story; not above `same_item`."""
    same_rater: float
    """One rater's verdicts on two items of a story."""


@dataclass(frozen=True, slots=True)
class GradedPilot:
    """The model of the numbers of one item."""

    values: tuple[float, ...]
    """Ascending."""
    thresholds: tuple[float, ...]
    """One fewer than values: the number of thresholds below the variable selects the value."""
    same_item: float
    """The correlation of the variables behind the numbers of two raters of a story."""


@dataclass(frozen=True, slots=True)
class Widths:
    """Widths of the central 95 % of the mean and of kappa; None if undefined."""

    mean: float | None
    kappa: float | None

    def of(self, statistic: str) -> float | None:
        return self.mean if statistic == "mean" else self.kappa


@dataclass(frozen=True, slots=True)
class PilotFigures:
    """A pilot, and what its model predicts for a study like it."""

    n_stories: int
    n_raters: float
    """Mean number of raters per story."""
    mean: Estimate
    """The share of Yes, or the mean of numbers, with its interval over stories."""
    kappa: Estimate
    """Fleiss's kappa; for numbers, that of two raters with quadratic weights."""
    predicted: Widths
    """Predicted widths of the two intervals."""
    model: Pilot | GradedPilot


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What is needed with this many raters per story."""

    n_raters: int
    mean_stories: int | None
    kappa_stories: int | None
    """None with one rater: there are no pairs to agree."""

    @property
    def mean_readings(self) -> int | None:
        """Stories times raters: a reading is one rater judging a story on all items."""
        return None if self.mean_stories is None else self.mean_stories * self.n_raters

    @property
    def kappa_readings(self) -> int | None:
        return None if self.kappa_stories is None else self.kappa_stories * self.n_raters


def fit_pilot(ratings: Floats) -> Pilot | str:
    """The model of a pilot, or why it cannot be fitted.

    ratings: float64 of 0 and 1, shape (n_stories, n_items, n_raters), NaN if missing.
    """
    given = ~np.isnan(ratings)
    if few := _too_few(given.any(axis=1).sum(axis=1)):
        return few
    values = np.where(given, ratings, 0.0)
    n_given = given.sum(axis=(0, 2))
    if not n_given.all():
        return "an item of the pilot has no verdict"
    shares = values.sum(axis=(0, 2)) / n_given
    if np.all((shares == 0) | (shares == 1)):
        return "everybody gave the same answer to each item"
    # If everybody answered an item alike, its share is moved half a verdict away from 0 or 1.
    shares = np.clip(shares, 0.5 / n_given, 1 - 0.5 / n_given)
    thresholds = _quantile(1 - shares)
    same_item, same_story, same_rater = (
        _correlation(thresholds, *products) for products in _products(values, given)
    )
    same_story = min(same_story, same_item)
    # A rater's contribution on two items comes on top of the story's, and leaves room for the item.
    same_rater = min(max(same_rater, same_story), 1 - (same_item - same_story))
    return Pilot(tuple(thresholds.tolist()), same_item, same_story, same_rater)


def _too_few(n_raters: NDArray[np.intp]) -> str | None:
    """Why these numbers of raters per story do not suffice for planning, or None."""
    if (n_raters > 0).sum() < MIN_UNITS:
        return f"the pilot has fewer than {MIN_UNITS} stories"
    if (n_raters > 1).sum() < MIN_UNITS:
        return f"fewer than {MIN_UNITS} stories of the pilot have two raters"
    return None


def fit_graded(ratings: Floats) -> GradedPilot | str:
    """The model of a pilot of one item's numbers, or why it cannot be fitted.

    ratings: float64, shape (n_stories, n_raters), NaN if missing.
    """
    given = ~np.isnan(ratings)
    if few := _too_few(given.sum(axis=1)):
        return few
    values, codes, counts = np.unique(ratings[given], return_inverse=True, return_counts=True)
    if len(values) == 1:
        return "everybody gave the same answer"
    if len(values) > _N_VALUES:
        # About the same number of ratings in each; each is represented by the mean of its ratings.
        middles = (np.cumsum(counts) - counts / 2) / counts.sum()
        bins = np.minimum((middles * _N_VALUES).astype(int), _N_VALUES - 1)
        totals = np.bincount(bins, counts)
        held = totals > 0
        values = np.bincount(bins, counts * values)[held] / totals[held]
        codes, counts = (np.cumsum(held) - 1)[bins][codes], totals[held]
    # Subtracting the lowest value keeps the products small.
    heights = np.zeros(ratings.shape)
    heights[given] = (values - values[0])[codes.reshape(-1)]
    thresholds = _quantile(np.cumsum(counts)[:-1] / counts.sum())
    n_raters = given.sum(axis=1)
    n_pairs = float((n_raters * (n_raters - 1)).sum())
    products = float((heights.sum(axis=1) ** 2 - (heights**2).sum(axis=1)).sum())
    mean = float(np.average(values - values[0], weights=counts))
    steps = np.diff(values)
    wanted = products / n_pairs - mean**2
    same_item = _root(lambda rho: float(steps @ _joint_excess(thresholds, rho) @ steps) - wanted)
    return GradedPilot(tuple(values.tolist()), tuple(thresholds.tolist()), same_item)


def _root(excess: Callable[[float], float]) -> float:
    """The root, a correlation; 0 if it is negative."""
    brentq = scipy("optimize").brentq
    if excess(0.0) >= 0:
        return 0.0
    return _MOST if excess(_MOST) <= 0 else float(brentq(excess, 0.0, _MOST, xtol=1e-6))


def _quantile(shares: Floats) -> Floats:
    ndtri = scipy("special").ndtri
    found: Floats = ndtri(shares)
    return found


def _products(values: Floats, given: NDArray[np.bool_]) -> list[tuple[Floats, Floats]]:
    """For pairs of verdicts: how many are both Yes, and how many there are, by two items.

    Of different raters on one item, of different raters on two items, of one rater on two items;
    each of shape (n_items, n_items), zero where the items are not of that kind.
    """
    is_there = given.astype(np.float64)

    def by_items(table: Floats) -> tuple[Floats, Floats]:
        """Pairs of verdicts of any raters of a story, and those of one rater."""
        totals = table.sum(axis=2)
        flat = table.transpose(1, 0, 2).reshape(table.shape[1], -1)
        of_one = flat @ flat.T
        return totals.T @ totals, of_one

    (yes, yes_of_one), (pairs, pairs_of_one) = by_items(values), by_items(is_there)
    diagonal = np.eye(len(yes))
    others = yes - yes_of_one, pairs - pairs_of_one
    return [
        (others[0] * diagonal, others[1] * diagonal),
        (others[0] * (1 - diagonal), others[1] * (1 - diagonal)),
        (yes_of_one * (1 - diagonal), pairs_of_one * (1 - diagonal)),
    ]


def _correlation(thresholds: Floats, yes: Floats, n_pairs: Floats) -> float:
    """The correlation that explains the observed number of pairs both Yes; 0 if it is negative.

    A rubric of one item has no pairs of two items, and no correlation for them.
    """
    ndtr = scipy("special").ndtr
    if not n_pairs.any():
        return 0.0
    beyond = ndtr(-thresholds)
    by_chance = (n_pairs * np.outer(beyond, beyond)).sum()

    def excess(correlation: float) -> float:
        joint = _joint_excess(thresholds, correlation)
        return float(by_chance + (n_pairs * joint).sum() - yes.sum())

    return _root(excess)


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    return (nodes + 1) / 2, weights / 2


def _joint_excess(thresholds: Floats, correlation: float) -> Floats:
    """P(both above) minus the product, for each two thresholds: (n_items, n_items).

    By Plackett's identity it is the integral of the bivariate normal density over r from 0 to the
    correlation; substituting r = sin(t) removes the pole at 1.
    """
    nodes, weights = _nodes()
    end = np.arcsin(correlation)
    a, b = thresholds[:, None, None], thresholds[None, :, None]
    angle = end * nodes
    density = np.exp(-(a * a + b * b - 2 * a * b * np.sin(angle)) / (2 * np.cos(angle) ** 2))
    found: Floats = (density * weights).sum(axis=2) * end / (2 * np.pi)
    return found


@dataclass(frozen=True, slots=True)
class StoryPool:
    """Simulated stories, each judged by the same number of raters on all items."""

    sums: Floats
    """For each story the mean, then what its kappa needs: shape (n, 1 + m)."""
    seed: int
    kappas: Callable[[Floats], Floats] = fleiss_of_sums
    """From summed rows: Fleiss's kappa, or for numbers kappa with quadratic weights."""

    @classmethod
    def drawn(
        cls, pilot: Pilot | GradedPilot, n_raters: int, *, seed: int, n: int = _N_STORIES
    ) -> StoryPool:
        rng = np.random.default_rng([seed, n_raters])
        if isinstance(pilot, GradedPilot):
            numbers = _draw_numbers(pilot, n, n_raters, rng)
            sums = np.column_stack([numbers.mean(axis=1), pair_sums(numbers)])
            return cls(sums, seed, concordance_of_sums)
        verdicts = _draw(pilot, n, n_raters, rng)
        n_yes = verdicts.sum(axis=2)
        # Fleiss's kappa depends on the verdicts of an item only through the number of Yes.
        kinds = (np.arange(n_raters + 1)[:, None] > np.arange(n_raters)).astype(np.float64)
        of_items = fleiss_sums(kinds)[n_yes].sum(axis=1)
        return cls(np.column_stack([n_yes.mean(axis=1) / n_raters, of_items]), seed)

    def widths(self, n_stories: int) -> Widths:
        """The widths with this many stories, drawn afresh on each call."""
        rng = np.random.default_rng([self.seed, n_stories])
        step = max(1, _BLOCK // (n_stories * self.sums.shape[1]))
        blocks = [
            self.sums[rng.integers(len(self.sums), size=(min(step, _N_DRAWS - at), n_stories))].sum(
                axis=1
            )
            for at in range(0, _N_DRAWS, step)
        ]
        sums = np.concatenate(blocks)
        with np.errstate(divide="ignore", invalid="ignore"):
            kappas = self.kappas(sums[:, 1:])
        return Widths(_width(sums[:, 0] / n_stories), _width(kappas))

    def n_for(self, statistic: str, width: float) -> int | None:
        """How many stories give an interval of at most this width; None if undefined."""
        n = MIN_UNITS
        # Widths shrink with the root of the number: exactly if large, so a few steps find it.
        for _ in range(6):
            at = min(n, _N_LARGE)
            found = self.widths(at).of(statistic)
            if found is None:
                return None
            wanted = max(MIN_UNITS, math.ceil(at * (found / width) ** 2))
            if min(wanted, _N_LARGE) == at or abs(wanted - n) <= 0.02 * n:
                break
            n = wanted
        return wanted


def _draw(
    pilot: Pilot, n_stories: int, n_raters: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Verdicts, shape (n_stories, n_items, n_raters)."""
    n_items = len(pilot.thresholds)
    parts = (
        (pilot.same_story, (n_stories, 1, 1)),
        (pilot.same_item - pilot.same_story, (n_stories, n_items, 1)),
        (pilot.same_rater - pilot.same_story, (n_stories, 1, n_raters)),
    )
    rest = max(0.0, 1 - math.fsum(variance for variance, _ in parts))
    latent = np.sqrt(rest) * rng.standard_normal((n_stories, n_items, n_raters))
    for variance, shape in parts:
        latent += np.sqrt(max(0.0, variance)) * rng.standard_normal(shape)
    found: NDArray[np.bool_] = latent > np.array(pilot.thresholds)[:, None]
    return found


def _draw_numbers(
    pilot: GradedPilot, n_stories: int, n_raters: int, rng: np.random.Generator
) -> Floats:
    """Numbers, shape (n_stories, n_raters)."""
    latent = np.sqrt(pilot.same_item) * rng.standard_normal((n_stories, 1))
    latent = latent + np.sqrt(1 - pilot.same_item) * rng.standard_normal((n_stories, n_raters))
    found: Floats = np.array(pilot.values)[np.searchsorted(pilot.thresholds, latent)]
    return found


def pair_sums(ratings: Floats) -> Floats:
    """The `pearson_sums` of all ordered pairs of raters of each story: shape (n_stories, 6).

    ratings: float64, shape (n_stories, n_raters), NaN if missing.
    """
    n = (~np.isnan(ratings)).sum(axis=1)
    sums, squares = np.nansum(ratings, axis=1), np.nansum(ratings**2, axis=1)
    each, square = (n - 1) * sums, (n - 1) * squares
    return np.column_stack([n * (n - 1), each, each, square, square, sums**2 - squares])


def _width(values: Floats) -> float | None:
    # These are simulated studies, not a small sample, so there are always enough units.
    low, high = percentile_interval(values, MIN_UNITS)
    return None if low is None or high is None else high - low
