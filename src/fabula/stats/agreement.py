"""Agreement of raters on any scale: kappas, alpha, ICC, correlations, a judge's accuracy.

An agreement is a `Statistic`: a function of sums over subjects, so that it can be resampled. Yes-no
is nominal with two values. They follow the papers that define them, and what these leave undefined
is handled in one way: an undefined value is None, never 0 and never NaN.

- One rater, or one subject with a single rating: None.
- Constant ratings (everybody gives the same answer to everything): chance agreement is as high, so
  kappa and alpha are 0 / 0 and are None; percentage agreement is 100, and so is Gwet's AC1.
- Over several items, each item has the chance of its own base rate: what is reached beyond chance
  is summed over items, and so is what could be reached. Who knows only how often each item is
  passed then agrees as by chance. An item whose answers never vary adds to neither sum.
- Correlation with a constant is None.
- Precision without a positive verdict, recall without a positive truth, balanced accuracy with
  one class only, phi with a constant side: None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.packages import scipy
from fabula.core.types import Estimate
from fabula.stats import resampling
from fabula.stats.resampling import JACKKNIFE, NONE, Floats, OfSums, Units, estimate

MIN_CHANCE = 15
"""No interval over several items if fewer answers would differ by chance: Yes or No is too rare."""
_MAX_PRIOR = 256
Level = Literal["nominal", "ordinal", "interval", "absolute"]
Association = Literal["correlation", "slope"]
Sums = Floats
Parts = Callable[[Sums, int], tuple[Sums, Sums]]


@dataclass(frozen=True, slots=True)
class Statistic:
    """An agreement, from what each subject adds to sums."""

    rows: Sums
    """float64, shape (n_subjects, n_items * m), 0 for a subject that does not count."""
    parts: Parts
    """From summed rows (..., n_items * m) and n_items: what is reached beyond chance, and what
    could be, each of shape (...). Their ratio is the agreement."""
    prior: Sums
    """float64 (k, m): what a subject could add, each equally likely."""
    n: int
    """The number of subjects that count."""
    n_prior: float = 2.0
    """How many independent units all of the prior is worth."""
    n_items: int = 1

    def over(self, items: Sequence[object] | None) -> Statistic:
        """Over several items, if any, each subject of one: its row moves to its item's columns."""
        if items is None:
            return self
        places = Units.by(items)
        n, m = self.rows.shape
        blocks = np.zeros((n, max(1, places.n), m))
        blocks[np.arange(n), places.of] = self.rows
        n_items = blocks.shape[1]
        return replace(self, rows=blocks.reshape(n, n_items * m), n_items=n_items)

    def of_sums(self, sums: Sums) -> Floats:
        """Agreements from summed rows, (..., n_items * m) to (...); NaN if undefined."""
        return ratios(*self.parts(sums, self.n_items))

    @property
    def value(self) -> float | None:
        return _value(self.of_sums, self.rows)

    def estimate(
        self, groups: Sequence[object], *, seed: int, method: str, signature: str
    ) -> Estimate:
        """With its interval over groups (stories), one for each subject; `n` counts subjects."""
        units, value = Units.by(groups).known_sums(self.rows), self.value
        ends, by = NONE, resampling.POSTERIOR if self.n_items == 1 else JACKKNIFE
        if self.n_items > 1:
            method = f"{method} within items"
            with np.errstate(divide="ignore", invalid="ignore"):
                possible = self.parts(self.rows.sum(axis=0), self.n_items)[1]
            if value is not None and possible >= MIN_CHANCE:
                ends = resampling.jackknife_interval(units, self.of_sums)
                if ends == NONE:
                    # No unit makes a difference, as with perfect agreement; others might.
                    every = np.tile(self.prior, (1, self.n_items))
                    ends, by = resampling.agreement_interval(
                        units, self.of_sums, every, seed=seed, n_prior=1
                    )
        elif value is not None:
            # A unit of the prior is as large as a group is on average.
            prior = self.prior * (int(self.rows.any(axis=1).sum()) / max(1, len(units)))
            ends, by = resampling.agreement_interval(
                units, self.of_sums, prior, seed=seed, n_prior=self.n_prior
            )
        return estimate(value, ends, self.n, len(units), of=method, by=by, signature=signature)


def difference(
    a: tuple[Statistic, Sequence[object]],
    b: tuple[Statistic, Sequence[object]],
    *,
    method: str,
    signature: str,
) -> Estimate:
    """The difference of two statistics of the same groups (stories), with its 95 % interval.

    a, b: a statistic, and the group of each of its subjects. A group is left out of both at once
    (the jackknife), since a story that is hard for one is hard for the other.
    """
    n_a = a[0].rows.shape[1]
    sums = np.zeros((len(a[0].rows) + len(b[0].rows), n_a + b[0].rows.shape[1]))
    sums[: len(a[0].rows), :n_a], sums[len(a[0].rows) :, n_a:] = a[0].rows, b[0].rows
    units = Units.by([*a[1], *b[1]]).known_sums(sums)

    def apart(sums: Sums) -> Floats:
        return a[0].of_sums(sums[..., :n_a]) - b[0].of_sums(sums[..., n_a:])

    n_units = int((units[:, :n_a].any(axis=1) & units[:, n_a:].any(axis=1)).sum())
    value = _value(apart, units)
    ends = NONE if value is None else resampling.jackknife_interval(units, apart, on_z=False)
    return estimate(value, ends, n_units, n_units, of=method, by=JACKKNIFE, signature=signature)


def _value(of_sums: OfSums, rows: Sums) -> float | None:
    """A statistic of the rows' sum; None if it is undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(of_sums(rows.sum(axis=0)))
    return value if np.isfinite(value) else None


def _items_of(sums: Sums, n_items: int) -> Sums:
    """Shape (..., n_items * m) to (..., n_items, m)."""
    return sums.reshape(*sums.shape[:-1], n_items, -1)


def _beyond_chance(n: Sums, observed: Sums, by_chance: Sums) -> tuple[Sums, Sums]:
    """What is reached beyond chance, and could be: shape (..., n_items) three times to (...)."""
    counts = (n > 0) & (by_chance < 1)
    gained = np.where(counts, n * (observed - by_chance), 0.0).sum(axis=-1)
    return gained, np.where(counts, n * (1 - by_chance), 0.0).sum(axis=-1)


def ratios(gained: Sums, possible: Sums) -> Floats:
    """What is reached as a share of what could be; NaN where nothing could be."""
    return gained / np.where(possible > 0, possible, np.nan)


def cohen(a: Floats, b: Floats, items: Sequence[object] | None = None) -> Statistic:
    """Cohen's kappa (1960), unweighted, over the subjects that both rated. a, b: float64, (n,).

    items: the item of each subject, if there are several.
    """
    is_paired = ~(np.isnan(a) | np.isnan(b))
    categories = np.unique(np.concatenate([a[is_paired], b[is_paired]]))
    cells = (a[:, None] == categories)[:, :, None] & (b[:, None] == categories)[:, None, :]
    k = len(categories)
    rows = (cells & is_paired[:, None, None]).reshape(len(a), k**2).astype("f8")

    def parts(sums: Sums, n_items: int) -> tuple[Sums, Sums]:
        table = sums.reshape(*sums.shape[:-1], n_items, k, k)
        n = table.sum(axis=(-2, -1))
        observed = np.trace(table, axis1=-2, axis2=-1) / n
        rows, columns = table.sum(axis=-1) / n[..., None], table.sum(axis=-2) / n[..., None]
        return _beyond_chance(n, observed, (rows * columns).sum(axis=-1))

    return Statistic(rows, parts, np.eye(k**2), int(is_paired.sum())).over(items)


def fleiss(ratings: Floats, items: Sequence[object] | None = None) -> Statistic:
    """Fleiss's kappa (1971), for varying numbers of raters per subject (Gwet 2014, section 2.6).

    ratings: float64, shape (n_subjects, n_raters), NaN if missing. Agreement is the mean over
    subjects of the share of pairs of ratings that are equal; chance agreement is the sum of squares
    of the mean category shares of subjects. So each subject counts once, however many raters it
    has; one with a single rating has no pair and is ignored. If all have the same number of raters,
    this is Fleiss's formula. items: the item of each subject, if there are several.
    """
    rows = fleiss_sums(_with_prior(ratings))
    rows, prior = rows[: len(ratings)], rows[len(ratings) :]
    return Statistic(rows, fleiss_parts, prior, int(rows[:, 0].sum())).over(items)


def fleiss_sums(ratings: Floats) -> Sums:
    """What Fleiss's kappa needs of each subject: float64, shape (n_subjects, 2 + n_categories).

    Whether it counts (with two ratings or more), the share of its pairs of ratings that are equal,
    and its ratings by category as shares.
    """
    categories = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == categories).sum(axis=1).astype(np.float64)
    n_ratings = (~np.isnan(ratings)).sum(axis=1)
    equal = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, n_ratings * (n_ratings - 1))
    shares = counts / np.maximum(1, n_ratings)[:, None]
    counted: Sums = np.column_stack([np.ones(len(ratings)), equal, shares])
    counted[n_ratings < 2] = 0
    return counted


def fleiss_parts(sums: Sums, n_items: int = 1) -> tuple[Sums, Sums]:
    sums = _items_of(sums, n_items)
    n = sums[..., 0]
    by_chance = ((sums[..., 2:] / n[..., None]) ** 2).sum(axis=-1)
    return _beyond_chance(n, sums[..., 1] / n, by_chance)


def gwet(
    ratings: Floats, items: Sequence[object] | None = None, *, n_categories: int = 2
) -> Statistic:
    """Gwet's AC1 (2008), for ratings as of `fleiss`: beside a kappa where an answer is rare.

    Chance agreement is that of raters who guess at the subjects that are hard: it is small if
    nearly everybody says No, where kappa's is nearly 1 and its value rests on a few subjects.
    """

    def parts(sums: Sums, n_items: int) -> tuple[Sums, Sums]:
        sums = _items_of(sums, n_items)
        n = sums[..., 0]
        shares = sums[..., 2:] / n[..., None]
        by_chance = (shares * (1 - shares)).sum(axis=-1) / (n_categories - 1)
        return _beyond_chance(n, sums[..., 1] / n, by_chance)

    return replace(fleiss(ratings), parts=parts).over(items)


def alpha(
    ratings: Floats, level: Level = "nominal", items: Sequence[object] | None = None
) -> Statistic:
    """Krippendorff's alpha, 1 - disagreement within subjects / by chance.

    As defined in "Computing Krippendorff's Alpha-Reliability" (2011), sections C and D.

    ratings: float64, shape (n_subjects, n_raters), NaN if missing; a subject with a single rating
    has no pair and is ignored. The distance of two values is that of the level; "absolute" is
    |a - b|, not squared. items: the item of each subject, if there are several, for nominal
    ratings: disagreement, and disagreement by chance, are then summed over items.
    """
    # Ratings and prior together, so that both have the same values and the same middle.
    extended = _with_prior(ratings)
    is_given = ~np.isnan(extended)
    n = np.where(is_given.sum(axis=1) > 1, is_given.sum(axis=1), 0)
    others = np.maximum(n - 1, 1)
    parts: Parts
    if level == "interval":
        # Half the sum of squared differences of all pairs is n times the squares minus the square.
        middle = float(extended[is_given].mean()) if is_given.any() else 0.0
        x = np.where(is_given & (n > 0)[:, None], extended - middle, 0.0)
        total, squares = x.sum(axis=1), (x**2).sum(axis=1)
        rows = np.column_stack([(n * squares - total**2) / others, total, squares, n])
        parts = _interval_parts
    else:
        values = np.unique(extended[is_given])
        counts = (extended[:, :, None] == values).sum(axis=1) * (n > 0)[:, None]
        apart = ((n**2 - (counts**2).sum(axis=1)) / others)[:, None]
        parts = _nominal_parts
        if level == "ordinal":
            # Distances depend on the counts of values, so each subject has its table of pairs.
            k = len(values)
            pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(k)) / others[:, None, None]
            apart, parts = pairs.reshape(len(pairs), k * k), _ordinal_parts
        elif level == "absolute":
            distances = np.abs(extended[:, :, None] - extended[:, None, :])
            apart = (np.nansum(distances, axis=(1, 2)) / others)[:, None]
            parts = partial(_absolute_parts, values=values)
        rows = np.column_stack([apart, counts, n]).astype(np.float64)
    rows, prior = rows[: len(ratings)], rows[len(ratings) :]
    n_prior = 2.0 if level == "nominal" else 1.0
    return Statistic(rows, parts, prior, int(rows.any(axis=1).sum()), n_prior).over(items)


def _interval_parts(sums: Sums, _: int) -> tuple[Sums, Sums]:
    within, total, squares, n = (sums[..., k] for k in range(4))
    by_chance = _known(n * squares - total**2, n * squares) / (n - 1)
    return by_chance - within, by_chance


def _nominal_parts(sums: Sums, n_items: int) -> tuple[Sums, Sums]:
    sums = _items_of(sums, n_items)
    n = sums[..., -1]
    by_chance = (n**2 - (sums[..., 1:-1] ** 2).sum(axis=-1)) / np.maximum(n - 1, 1)
    return (by_chance - sums[..., 0]).sum(axis=-1), by_chance.sum(axis=-1)


def _absolute_parts(sums: Sums, _: int, values: Floats) -> tuple[Sums, Sums]:
    totals, apart = sums[..., 1:-1], np.abs(values[:, None] - values)
    by_chance = np.einsum("...i,ij,...j->...", totals, apart, totals) / (sums[..., -1] - 1)
    return by_chance - sums[..., 0], by_chance


def _ordinal_parts(sums: Sums, _: int) -> tuple[Sums, Sums]:
    k = round((4 * sums.shape[-1] - 3) ** 0.5 / 2 - 0.5)
    pairs, totals = sums[..., : k * k].reshape(*sums.shape[:-1], k, k), sums[..., k * k : -1]
    # A value is placed in the middle of the ranks of the ratings that gave it.
    places = np.cumsum(totals, axis=-1) - totals / 2
    apart = (places[..., :, None] - places[..., None, :]) ** 2
    by_chance = np.einsum("...i,...ij,...j->...", totals, apart, totals) / (sums[..., -1] - 1)
    return by_chance - (pairs * apart).sum(axis=(-2, -1)), by_chance


def pearson(a: Floats, b: Floats) -> Statistic:
    """Pearson's r over the complete pairs. a, b: float64, shape (n,)."""

    def parts(sums: Sums, _: int) -> tuple[Sums, Sums]:
        n, x, y, xx, yy, xy = (sums[..., k] for k in range(6))
        spread = _known(n * xx - x * x, n * xx) * _known(n * yy - y * y, n * yy)
        return n * xy - x * y, np.sqrt(spread)

    return _of_pairs(a, b, parts, 2.0)


def concordance(a: Floats, b: Floats) -> Statistic:
    """Kappa with quadratic weights (Cohen 1968): 1 - the mean squared distance of a pair over that
    of all pairs of a value of one with a value of the other.

    On numbers it is Lin's concordance coefficient (1989), and needs no categories.
    """
    return _of_pairs(a, b, concordance_parts, 1.0)


def spearman(a: Floats, b: Floats) -> Statistic:
    is_paired, rank = ~(np.isnan(a) | np.isnan(b)), scipy("stats").rankdata
    return pearson(rank(a[is_paired]), rank(b[is_paired]))


def _of_pairs(a: Floats, b: Floats, parts: Parts, n_prior: float) -> Statistic:
    """Of the count, sums, squares and products of pairs: rows of shape (n, 6).

    The overall mean is subtracted, lest squares of sums cancel sums of squares.
    """
    is_paired = ~(np.isnan(a) | np.isnan(b))
    prior, middle = np.zeros((1, 6)), 0.0
    if is_paired.any():
        middle = float(np.concatenate([a[is_paired], b[is_paired]]).mean())
        values = [np.unique(x[is_paired]) for x in (a, b)]
        values = [np.quantile(x, np.linspace(0, 1, 16)) if len(x) > 16 else x for x in values]
        prior = _pair_rows(*(np.array(list(product(*values))) - middle).T)
    rows = _pair_rows(*(np.where(is_paired, x - middle, 0.0) for x in (a, b)))
    rows[:, 0] = is_paired
    return Statistic(rows, parts, prior, int(is_paired.sum()), n_prior)


def _pair_rows(x: Floats, y: Floats) -> Sums:
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def concordance_parts(sums: Sums, _: int = 1) -> tuple[Sums, Sums]:
    n, x, y, xx, yy, xy = (sums[..., k] for k in range(6))
    by_chance = _known(xx + yy - 2 * x * y / n, xx + yy)
    return by_chance - (xx + yy - 2 * xy), by_chance


def _known(difference: Floats, of: Floats) -> Floats:
    """A difference of sums, NaN if it does not exceed the rounding error of `of`."""
    return np.where(difference > 1e-10 * of, difference, np.nan)


def icc(ratings: Floats) -> Statistic:
    """ICC(2,1) of Shrout and Fleiss 1979: one rater, absolute agreement, raters drawn at random.

    ratings: float64, shape (n_subjects, n_raters), a column per person. It has no value if a person
    has not rated every subject (the formula needs all), there are fewer than two of either, nothing
    varies, or the variance in the denominator is estimated as 0.
    """
    n, k = ratings.shape
    is_whole = n > 1 and k > 1 and not np.isnan(ratings).any() and np.ptp(ratings) > 0
    rated = ratings if is_whole else np.zeros(ratings.shape)
    middle = float(rated.mean()) if is_whole else 0.0
    possible = _could_be(np.unique(rated), max(1, k), in_order=True)
    rows, prior = (
        np.column_stack([np.ones(len(x)), (x**2).sum(axis=1), x.sum(axis=1) ** 2, x])
        for x in (rated - middle, possible - middle)
    )
    return Statistic(rows, _icc_parts, prior, n, 1.0)


def _icc_parts(sums: Sums, _: int) -> tuple[Sums, Sums]:
    """Of count, squares, squares of subjects' sums, and a column per person."""
    n, squares, of_subjects, columns = sums[..., 0], sums[..., 1], sums[..., 2], sums[..., 3:]
    k = columns.shape[-1]
    middle = columns.sum(axis=-1) ** 2 / (n * k)
    between, raters = of_subjects / k - middle, (columns**2).sum(axis=-1) / n - middle
    error = (squares - middle - between - raters) / ((n - 1) * (k - 1))
    between = between / (n - 1)
    whole = between + (k - 1) * error + k * (raters / (k - 1) - error) / n
    # Two raters who disagree crosswise about two subjects make the denominator 0.
    is_known = np.abs(whole) > 1e-9 * np.abs(error)
    coefficient = (between - error) / np.where(is_known, whole, np.nan)
    return coefficient, np.ones(coefficient.shape)


def _with_prior(ratings: Floats) -> Floats:
    """The ratings, and below them what as many raters as a subject has could say of it."""
    is_given = ~np.isnan(ratings)
    counts = is_given.sum(axis=1)
    n_raters = int(np.median(counts[counts > 1])) if (counts > 1).any() else 1
    possible = _could_be(np.unique(ratings[is_given]), min(n_raters, ratings.shape[1]))
    below = np.full((len(possible), ratings.shape[1]), np.nan)
    below[:, : possible.shape[1]] = possible
    return np.vstack([ratings, below])


def _could_be(values: Floats, n_raters: int, *, in_order: bool = False) -> Floats:
    """What raters could say of a subject: all ways in which they give these values, or some."""
    if len(values) == 0:
        return np.zeros((1, n_raters))
    if len(values) > 20:
        values = values[np.linspace(0, len(values) - 1, 20).astype(int)]
    if len(values) ** n_raters > 20_000:
        drawn = np.random.default_rng(0).integers(len(values), size=(_MAX_PRIOR, n_raters))
        return np.asarray(values[drawn], np.float64)
    kept: list[float] = values.tolist()
    if in_order:
        rows = list(product(kept, repeat=n_raters))
    else:
        rows = list(combinations_with_replacement(kept, n_raters))
    step = -(-len(rows) // _MAX_PRIOR)
    return np.array(rows[::step], np.float64)


def percent_agreement(ratings: Floats) -> float | None:
    """Share of pairs of ratings of one subject that are equal, in percent.

    ratings: float64, shape (n_subjects, n_raters), NaN if missing.
    """
    is_given = ~np.isnan(ratings)
    n_pairs = float((is_given.sum(axis=1) * (is_given.sum(axis=1) - 1)).sum())
    counts = (ratings[:, :, None] == np.unique(ratings[is_given])).sum(axis=1)
    n_equal = float((counts * (counts - 1)).sum())
    return 100 * n_equal / n_pairs if n_pairs else None


def pooled_pairs(ratings: Floats) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """All ordered pairs of ratings of one subject, and the row of each: shape (n_pairs,).

    Each pair occurs in both orders, so a correlation of the two does not depend on the order of the
    columns; the released verdicts have no fixed order of experts.
    """
    n_subjects, n_raters = ratings.shape
    pairs = [(i, j) for i in range(n_raters) for j in range(n_raters) if i != j]
    a, b = (ratings[:, [pair[k] for pair in pairs]].T.ravel() for k in (0, 1))
    is_paired = ~(np.isnan(a) | np.isnan(b))
    return a[is_paired], b[is_paired], np.tile(np.arange(n_subjects), len(pairs))[is_paired]


def describe_raters(ratings: Floats) -> str:
    """The number of raters per subject: `3`, or `2-4` if it varies."""
    counts = np.unique((~np.isnan(ratings)).sum(axis=1))
    return "-".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if len(counts) else "0"


def association_within(
    x: Floats,
    y: Floats,
    strata: Sequence[object],
    clusters: Sequence[object],
    *,
    kind: Association,
    method: str,
    signature: str,
    n_units: int | None = None,
) -> Estimate:
    """The partial correlation of x and y given the stratum, or the slope of y on x within strata.

    x, y: float64, shape (n,). A stratum of one subject is ignored. If x is 0 or 1, the slope is
    the difference of the means of y, weighted over strata as Cochran and Mantel-Haenszel do. The
    interval is over clusters; `n_units` is the number of independent units, if not all clusters.
    The value is None if x or y does not vary within any stratum.
    """
    of_cluster, of_stratum = Units.by(clusters), Units.by(strata)
    # Centred, to avoid cancellation when squares of sums are subtracted from sums of squares.
    x, y = x - (x.mean() if len(x) else 0), y - (y.mean() if len(y) else 0)
    # Count, sums, squares and products by cluster and stratum: (n_clusters, n_strata, 6).
    n_strata = max(1, of_stratum.n)
    table = np.zeros((of_cluster.n, n_strata, 6))
    np.add.at(table, (of_cluster.of, of_stratum.of), _pair_rows(x, y))
    sums = table.reshape(of_cluster.n, 6 * n_strata)

    def of_sums(sums: Sums) -> Floats:
        n, x, y, xx, yy, xy = (_items_of(sums, n_strata)[..., k] for k in range(6))
        n = np.maximum(n, 1)
        within_xx = np.round((xx - x * x / n).sum(axis=-1), 9)
        within_yy = np.round((yy - y * y / n).sum(axis=-1), 9)
        within_xy = (xy - x * y / n).sum(axis=-1)
        below = within_xx if kind == "slope" else np.sqrt(within_xx * within_yy)
        defined = (within_xx > 0) & ((within_yy > 0) | (kind == "slope"))
        return np.where(defined, within_xy / np.where(defined, below, 1), np.nan)

    value = _value(of_sums, sums)
    n_units = of_cluster.n if n_units is None else n_units
    ends = NONE
    if value is not None and n_units >= resampling.MIN_UNITS:
        ends = resampling.jackknife_interval(sums, of_sums, on_z=kind == "correlation")
    return estimate(value, ends, len(x), n_units, of=method, by=JACKKNIFE, signature=signature)


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of a judge's Yes and No against the truth's."""

    true_yes: int
    false_yes: int
    false_no: int
    true_no: int

    @classmethod
    def of(cls, judge: Floats, truth: Floats) -> Confusion:
        """judge, truth: float64 of 0 and 1, shape (n,), NaN if missing."""
        is_paired = ~(np.isnan(judge) | np.isnan(truth))
        is_said, is_true = judge[is_paired] == 1, truth[is_paired] == 1
        cells = is_said & is_true, is_said & ~is_true, ~is_said & is_true, ~is_said & ~is_true
        return cls(*(int(cell.sum()) for cell in cells))

    @property
    def n(self) -> int:
        return self.true_yes + self.false_yes + self.false_no + self.true_no

    @property
    def accuracy(self) -> float | None:
        return _ratio(self.true_yes + self.true_no, self.n)

    @property
    def precision(self) -> float | None:
        return _ratio(self.true_yes, self.true_yes + self.false_yes)

    @property
    def recall(self) -> float | None:
        return _ratio(self.true_yes, self.true_yes + self.false_no)

    @property
    def specificity(self) -> float | None:
        return _ratio(self.true_no, self.true_no + self.false_yes)

    @property
    def balanced_accuracy(self) -> float | None:
        if self.recall is None or self.specificity is None:
            return None
        return (self.recall + self.specificity) / 2

    @property
    def f1(self) -> float | None:
        """None if there are no positives on either side."""
        return _ratio(2 * self.true_yes, 2 * self.true_yes + self.false_yes + self.false_no)

    @property
    def phi(self) -> float | None:
        """The correlation of two yes/no variables (Matthews correlation coefficient)."""
        a, b, c, d = self.true_yes, self.false_yes, self.false_no, self.true_no
        product = (a + b) * (c + d) * (a + c) * (b + d)
        return (a * d - b * c) / product**0.5 if product else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
