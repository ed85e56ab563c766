"""Rater agreement: kappas, alpha, correlations, and a judge's accuracy against experts.

Kappas and alpha follow the papers that define them; correlations are SciPy's. Cases these leave
undefined are handled uniformly here: an undefined value is None, never 0 and never NaN.

- One rater, or one subject with a single rating: None.
- Constant ratings (everybody gives the same answer to everything): chance agreement is as high, so
  kappa and alpha are 0 / 0 and are None; percentage agreement is 100.
- Over several items (strata), each item has the chance of its own base rate: what is reached
  beyond chance is summed over items, and so is what could be reached. Who knows only how often each
  item is passed then agrees as by chance. An item whose answers never vary adds to neither sum.
- Correlation with a constant is None.
- Precision without a positive verdict, recall without a positive truth, balanced accuracy with
  one class only, phi with a constant side: None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.intervals import (
    NONE,
    Floats,
    agreement_interval,
    by_unit,
    influence_interval,
    jackknife_interval,
    share_interval,
)
from fabula.types import Estimate

MIN_CHANCE = 15
"""Several items have no interval if fewer answers would differ by chance: Yes, or No, is then too
rare for one."""
_MAX_PRIOR = 256
Level = Literal["nominal", "ordinal", "interval", "ratio"]
Sums = Floats


def by_stratum(sums: Sums, strata: Sequence[object] | None) -> tuple[Sums, int]:
    """Each row moved to the columns of its stratum, and the number of strata.

    sums: float64, shape (n_subjects, m); returns shape (n_subjects, n_strata * m). Without strata
    the sums are returned as they are.
    """
    if strata is None:
        return sums, 1
    places = {stratum: k for k, stratum in enumerate(dict.fromkeys(strata))}
    n, m = sums.shape
    blocks = np.zeros((n, max(1, len(places)), m))
    blocks[np.arange(n), [places[stratum] for stratum in strata]] = sums
    return blocks.reshape(n, blocks.shape[1] * m), blocks.shape[1]


def _strata_of(sums: Sums, n_strata: int) -> Sums:
    """Shape (..., n_strata * m) to (..., n_strata, m)."""
    return sums.reshape(*sums.shape[:-1], n_strata, -1)


def _beyond_chance(n: Sums, observed: Sums, by_chance: Sums) -> tuple[Sums, Sums]:
    """What is reached beyond chance, and could be: shape (..., n_strata) three times to (...)."""
    counts = (n > 0) & (by_chance < 1)
    gained = np.where(counts, n * (observed - by_chance), 0.0).sum(axis=-1)
    possible = np.where(counts, n * (1 - by_chance), 0.0).sum(axis=-1)
    return gained, possible


def _kappas(gained: Sums, possible: Sums) -> Floats:
    kappas: Floats = gained / np.where(possible > 0, possible, np.nan)
    return kappas


def fleiss_kappa(ratings: Floats, strata: Sequence[object] | None = None) -> float | None:
    """Fleiss 1971, for varying numbers of raters per subject (Gwet 2014, section 2.6).

    ratings: float64, shape (n_subjects, n_raters), NaN if missing. Agreement is the mean over
    subjects of the share of pairs of ratings that are equal; chance agreement is the sum of squares
    of the mean category shares of subjects. So each subject counts once, however many raters it
    has; one with a single rating has no pair and is ignored. If all have the same number of raters,
    this is Fleiss's formula. strata: the item of each subject, if there are several.
    """
    sums, n_strata = by_stratum(fleiss_sums(ratings), strata)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = float(fleiss_of_sums(sums.sum(axis=0), n_strata))
    return kappa if np.isfinite(kappa) else None


def cohen_kappa(a: Floats, b: Floats, strata: Sequence[object] | None = None) -> float | None:
    """Cohen 1960, unweighted, over the subjects that both rated. a, b: float64, shape (n,).

    strata: the item of each subject, if there are several.
    """
    sums, n_strata = by_stratum(cohen_sums(a, b), strata)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = float(cohen_of_sums(sums.sum(axis=0), n_strata))
    return kappa if np.isfinite(kappa) else None


def krippendorff_alpha(
    ratings: Floats, level: Level | Callable[[float, float], float] = "nominal"
) -> float | None:
    """Krippendorff's alpha, 1 - disagreement within subjects / by chance; ratings may be missing.

    As defined in "Computing Krippendorff's Alpha-Reliability" (2011), sections C and D.

    ratings: float64, shape (n_subjects, n_raters), NaN if missing. `level` is a level of
    measurement, or a distance of two values, which is used as is, not squared. A subject with a
    single rating has no pair and is ignored. None if no subject has two ratings, or if all values
    coincide (distance 0 from each other), so that no disagreement is possible. Raises `ValueError`
    for negative ratings on the level "ratio".
    """
    paired = ratings[(~np.isnan(ratings)).sum(axis=1) > 1]
    subjects, raters = np.nonzero(~np.isnan(paired))
    values, places = np.unique(paired[subjects, raters], return_inverse=True)
    counts = np.zeros((len(paired), len(values)))
    np.add.at(counts, (subjects, places), 1)
    totals = counts.sum(axis=0)
    distances = _distances(values, totals, level)
    by_chance = totals @ distances @ totals / (totals.sum() - 1)
    if not by_chance > 0:
        return None
    others = counts.sum(axis=1, keepdims=True) - 1
    within = ((counts / others) @ distances * counts).sum()
    return float(1 - within / by_chance)


def _distances(
    values: Floats, totals: Floats, level: Level | Callable[[float, float], float]
) -> Floats:
    """The distances between values (ibid., section D): shape (n_values, n_values).

    values: ascending, shape (n_values,); totals: how often each was given.
    """
    if not isinstance(level, str):
        table = [[0.0 if a == b else level(a, b) for b in values.tolist()] for a in values.tolist()]
        return np.array(table, np.float64).reshape(len(values), len(values))
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    if level == "ratio" and (values < 0).any():
        raise ValueError("ratings on a ratio scale cannot be negative; use 'interval'")
    # On an ordinal scale, a value is placed in the middle of the ranks of the ratings that gave it.
    scale = np.cumsum(totals) - totals / 2 if level == "ordinal" else values
    apart = scale[:, None] - scale
    if level == "ratio":
        apart /= np.maximum(scale[:, None] + scale, np.finfo(np.float64).tiny)
    squares: Floats = apart**2
    return squares


def alpha_interval(
    ratings: Floats,
    groups: Sequence[object],
    level: Literal["nominal", "ordinal", "interval"] = "nominal",
    *,
    seed: int,
    signature: str,
    strata: Sequence[object] | None = None,
) -> Estimate:
    """Krippendorff's alpha, with its interval over groups (stories).

    ratings as in `krippendorff_alpha`; `groups` says what each subject belongs to. strata: the item
    of each subject, if there are several, for nominal ratings: disagreement, and disagreement by
    chance, are then summed over items.
    """
    # Together, so that both have the same values and the same middle.
    parts, of_sums = _alpha_parts(_with_prior(ratings), level)
    sums, prior = parts[: len(ratings)], parts[len(ratings) :]
    method, n = f"Krippendorff's alpha ({level})", int(sums.any(axis=1).sum())
    told = seed, method, signature, n
    if level == "nominal":
        return _kappa_estimate(sums, strata, _nominal_parts, prior, groups, *told)
    value = krippendorff_alpha(ratings, level)
    return _agreement(value, sums, of_sums, groups, prior, 1.0, *told)


def _alpha_parts(
    ratings: Floats, level: Literal["nominal", "ordinal", "interval"]
) -> tuple[Sums, Callable[[Sums], Floats]]:
    """What alpha needs of each subject, ending with its number of ratings, and alpha of such sums.

    A subject with a single rating has zeros. For ordinal ratings the distances depend on how often
    each value was given, so each subject then has the whole table of its pairs of values.
    """
    given = ~np.isnan(ratings)
    n = np.where(given.sum(axis=1) > 1, given.sum(axis=1), 0)
    others = np.maximum(n - 1, 1)
    if level == "interval":
        # Half the sum of squared differences of all pairs is n times the squares minus the square.
        middle = float(ratings[given].mean()) if given.any() else 0.0
        x = np.where(given & (n > 0)[:, None], ratings - middle, 0.0)
        total, squares = x.sum(axis=1), (x**2).sum(axis=1)
        return np.column_stack([(n * squares - total**2) / others, total, squares, n]), _interval
    counts = (ratings[:, :, None] == np.unique(ratings[given])).sum(axis=1) * (n > 0)[:, None]
    if level == "nominal":
        apart = (n**2 - (counts**2).sum(axis=1)) / others
        return np.column_stack([apart, counts, n]).astype(np.float64), _nominal
    k = counts.shape[1]
    pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(k)) / others[:, None, None]
    return np.column_stack([pairs.reshape(len(pairs), k * k), counts, n]), _ordinal


def _interval(sums: Sums) -> Floats:
    within, total, squares, n = (sums[..., k] for k in range(4))
    by_chance = _known(n * squares - total**2, n * squares) / (n - 1)
    return _alphas(within, by_chance)


def _nominal(sums: Sums) -> Floats:
    return _kappas(*_nominal_parts(sums, 1))


def _nominal_parts(sums: Sums, n_strata: int) -> tuple[Sums, Sums]:
    """As for kappas: disagreement by chance minus that within subjects, and that by chance."""
    sums = _strata_of(sums, n_strata)
    n = sums[..., -1]
    by_chance = (n**2 - (sums[..., 1:-1] ** 2).sum(axis=-1)) / np.maximum(n - 1, 1)
    return (by_chance - sums[..., 0]).sum(axis=-1), by_chance.sum(axis=-1)


def _ordinal(sums: Sums) -> Floats:
    k = round((4 * sums.shape[-1] - 3) ** 0.5 / 2 - 0.5)
    pairs, totals = sums[..., : k * k].reshape(*sums.shape[:-1], k, k), sums[..., k * k : -1]
    # A value is placed in the middle of the ranks of the ratings that gave it.
    places = np.cumsum(totals, axis=-1) - totals / 2
    apart = (places[..., :, None] - places[..., None, :]) ** 2
    by_chance = np.einsum("...i,...ij,...j->...", totals, apart, totals) / (sums[..., -1] - 1)
    return _alphas((pairs * apart).sum(axis=(-2, -1)), by_chance)


def _alphas(within: Floats, by_chance: Floats) -> Floats:
    alphas: Floats = 1 - within / np.where(by_chance > 0, by_chance, np.nan)
    return alphas


def percent_agreement(ratings: Floats) -> float | None:
    """Share of pairs of ratings of one subject that are equal, in percent.

    ratings: float64, shape (n_subjects, n_raters), NaN if missing.
    """
    given = ~np.isnan(ratings)
    n_pairs = float((given.sum(axis=1) * (given.sum(axis=1) - 1)).sum())
    categories = np.unique(ratings[given])
    counts = (ratings[:, :, None] == categories).sum(axis=1)
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
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both], np.tile(np.arange(n_subjects), len(pairs))[both]


def pearson(a: Floats, b: Floats) -> float | None:
    """Pearson's r over the complete pairs."""
    return _correlation(a, b, "pearsonr")


def spearman(a: Floats, b: Floats) -> float | None:
    """Spearman's rho over the complete pairs."""
    return _correlation(a, b, "spearmanr")


def _correlation(a: Floats, b: Floats, name: str) -> float | None:
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(getattr(scipy("stats"), name)(a, b).statistic)


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
        both = ~(np.isnan(judge) | np.isnan(truth))
        said, is_so = judge[both] == 1, truth[both] == 1
        return cls(
            int((said & is_so).sum()),
            int((said & ~is_so).sum()),
            int((~said & is_so).sum()),
            int((~said & ~is_so).sum()),
        )

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


def fleiss_sums(ratings: Floats) -> Sums:
    """What Fleiss's kappa needs of each subject: float64, shape (n_subjects, 2 + n_categories).

    Whether it counts (with two ratings or more), the share of its pairs of ratings that are equal,
    and its ratings by category as shares. Sum over subjects, and pass the sums to `fleiss_of_sums`.
    """
    categories = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == categories).sum(axis=1).astype(np.float64)
    n_ratings = (~np.isnan(ratings)).sum(axis=1)
    equal = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, n_ratings * (n_ratings - 1))
    shares = counts / np.maximum(1, n_ratings)[:, None]
    counted: Sums = np.column_stack([np.ones(len(ratings)), equal, shares])
    counted[n_ratings < 2] = 0
    return counted


def fleiss_of_sums(sums: Sums, n_strata: int = 1) -> Floats:
    """Kappas from summed rows, shape (..., n_strata * m) to (...); NaN if undefined."""
    return _kappas(*_fleiss_parts(sums, n_strata))


def _fleiss_parts(sums: Sums, n_strata: int) -> tuple[Sums, Sums]:
    sums = _strata_of(sums, n_strata)
    n = sums[..., 0]
    by_chance = ((sums[..., 2:] / n[..., None]) ** 2).sum(axis=-1)
    return _beyond_chance(n, sums[..., 1] / n, by_chance)


def describe_raters(ratings: Floats) -> str:
    """The number of raters per subject: `3`, or `2-4` if it varies."""
    counts = np.unique((~np.isnan(ratings)).sum(axis=1))
    return "-".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if len(counts) else "0"


def cohen_sums(a: Floats, b: Floats) -> Sums:
    """The cell of each subject in the table of a against b: shape (n_subjects, k * k)."""
    both = ~(np.isnan(a) | np.isnan(b))
    categories = np.unique(np.concatenate([a[both], b[both]]))
    cells = (a[:, None] == categories)[:, :, None] & (b[:, None] == categories)[:, None, :]
    flat: Sums = (cells & both[:, None, None]).reshape(len(a), len(categories) ** 2).astype("f8")
    return flat


def cohen_of_sums(sums: Sums, n_strata: int = 1) -> Floats:
    """Kappas from summed cells, shape (..., n_strata * k * k) to (...); NaN if undefined."""
    return _kappas(*_cohen_parts(sums, n_strata))


def _cohen_parts(sums: Sums, n_strata: int) -> tuple[Sums, Sums]:
    sums = _strata_of(sums, n_strata)
    k = round(sums.shape[-1] ** 0.5)
    table = sums.reshape(*sums.shape[:-1], k, k)
    n = table.sum(axis=(-2, -1))
    observed = np.trace(table, axis1=-2, axis2=-1) / n
    rows, columns = table.sum(axis=-1) / n[..., None], table.sum(axis=-2) / n[..., None]
    return _beyond_chance(n, observed, (rows * columns).sum(axis=-1))


def pearson_sums(a: Floats, b: Floats) -> Sums:
    """Count, sums, squares and products of each pair: shape (n, 6).

    The overall mean is subtracted from values, to avoid cancellation when squares of sums are
    subtracted from sums of squares.
    """
    both = ~(np.isnan(a) | np.isnan(b))
    middle = float(np.concatenate([a[both], b[both]]).mean()) if both.any() else 0.0
    x, y = np.where(both, a - middle, 0.0), np.where(both, b - middle, 0.0)
    return np.column_stack([both.astype(np.float64), x, y, x * x, y * y, x * y])


def pearson_of_sums(sums: Sums) -> Floats:
    """Correlations from summed rows, shape (..., 6) to (...); NaN if undefined."""
    n, x, y, xx, yy, xy = (sums[..., k] for k in range(6))
    spread = _known(n * xx - x * x, n * xx) * _known(n * yy - y * y, n * yy)
    correlations: Floats = (n * xy - x * y) / np.sqrt(spread)
    return correlations


def concordance_of_sums(sums: Sums) -> Floats:
    """Quadratically weighted kappas from summed `pearson_sums`, shape (..., 6) to (...).

    Cohen 1968: 1 - the mean squared distance of a pair over that of all pairs of a value of one
    with a value of the other. On numbers it is Lin's concordance coefficient (1989), and needs no
    categories. NaN if undefined.
    """
    n, x, y, xx, yy, xy = (sums[..., k] for k in range(6))
    kappas: Floats = 1 - (xx + yy - 2 * xy) / _known(xx + yy - 2 * x * y / n, xx + yy)
    return kappas


def _known(difference: Floats, of: Floats) -> Floats:
    """A difference of sums, NaN if it does not exceed the rounding error of `of`."""
    return np.where(difference > 1e-10 * of, difference, np.nan)


def icc_agreement(ratings: Floats) -> float | None:
    """ICC(2,1) of Shrout and Fleiss 1979: one rater, absolute agreement, raters drawn at random.

    ratings: float64, shape (n_subjects, n_raters), a column per person. None if a person has not
    rated every subject (the formula needs all), there are fewer than two of either, nothing
    varies, or the variance in the denominator is estimated as 0.
    """
    n, k = ratings.shape
    if n < 2 or k < 2 or np.isnan(ratings).any() or np.ptp(ratings) == 0:
        return None
    mean, of_subjects, of_raters = ratings.mean(), ratings.mean(axis=1), ratings.mean(axis=0)
    between = k * ((of_subjects - mean) ** 2).sum() / (n - 1)
    raters = n * ((of_raters - mean) ** 2).sum() / (k - 1)
    rest = ratings - of_subjects[:, None] - of_raters + mean
    error = (rest**2).sum() / ((n - 1) * (k - 1))
    whole = between + (k - 1) * error + k * (raters - error) / n
    # Two raters who disagree crosswise about two subjects make the denominator 0.
    return None if abs(whole) < 1e-9 * error else float((between - error) / whole)


def icc_interval(
    ratings: Floats, groups: Sequence[object], *, seed: int, signature: str
) -> Estimate:
    """ICC(2,1) with its interval over groups (stories); ratings as above."""
    value = icc_agreement(ratings)
    # If there is no value, its parts are not used.
    middle = 0.0 if value is None else float(ratings.mean())
    given = np.zeros(ratings.shape) if value is None else ratings
    could = _could_be(np.unique(given), max(1, ratings.shape[1]), in_order=True)
    sums, prior = _icc_sums(given - middle), _icc_sums(could - middle)
    return _agreement(
        value, sums, _icc_of_sums, groups, prior, 1.0, seed, "ICC(2,1)", signature, len(groups)
    )


def _icc_sums(x: Floats) -> Sums:
    return np.column_stack([np.ones(len(x)), (x**2).sum(axis=1), x.sum(axis=1) ** 2, x])


def _icc_of_sums(sums: Sums) -> Floats:
    """ICC(2,1) from summed subjects: count, squares, squares of their sums, a column per person."""
    n, squares, of_subjects, columns = sums[..., 0], sums[..., 1], sums[..., 2], sums[..., 3:]
    k = columns.shape[-1]
    middle = columns.sum(axis=-1) ** 2 / (n * k)
    between, raters = of_subjects / k - middle, (columns**2).sum(axis=-1) / n - middle
    error = (squares - middle - between - raters) / ((n - 1) * (k - 1))
    between = between / (n - 1)
    whole = between + (k - 1) * error + k * (raters / (k - 1) - error) / n
    found: Floats = (between - error) / np.where(
        np.abs(whole) > 1e-9 * np.abs(error), whole, np.nan
    )
    return found


def _with_prior(ratings: Floats) -> Floats:
    """The ratings, and below them what as many raters as a subject has could say of it."""
    given = ~np.isnan(ratings)
    counts = given.sum(axis=1)
    n_raters = int(np.median(counts[counts > 1])) if (counts > 1).any() else 1
    could = _could_be(np.unique(ratings[given]), min(n_raters, ratings.shape[1]))
    below = np.full((len(could), ratings.shape[1]), np.nan)
    below[:, : could.shape[1]] = could
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
    said: list[float] = values.tolist()
    if in_order:
        rows = list(product(said, repeat=n_raters))
    else:
        rows = list(combinations_with_replacement(said, n_raters))
    step = -(-len(rows) // _MAX_PRIOR)
    return np.array(rows[::step], np.float64)


def _agreement(
    value: float | None,
    sums: Sums,
    of_sums: Callable[[Sums], Floats],
    groups: Sequence[object],
    prior: Sums,
    n_prior: float,
    seed: int,
    method: str,
    signature: str,
    n: int,
) -> Estimate:
    """An agreement on one item; a unit of the prior is as large as a group is on average."""
    units = by_unit(sums, groups)
    size = len(sums[sums.any(axis=1)]) / max(1, len(units))
    ends = NONE
    if value is not None:
        ends = agreement_interval(units, of_sums, prior * size, seed=seed, n_prior=n_prior)
    method = f"{method}, posterior of weighted units"
    return Estimate(value, *ends, n, method, signature, len(units))


def _kappa_estimate(
    sums: Sums,
    strata: Sequence[object] | None,
    parts: Callable[[Sums, int], tuple[Sums, Sums]],
    prior: Sums,
    groups: Sequence[object],
    seed: int,
    method: str,
    signature: str,
    n: int,
) -> Estimate:
    """An agreement on one item, or over several; `parts`: what `_beyond_chance` makes of sums."""
    sums, n_strata = by_stratum(sums, strata)

    def of_sums(sums: Sums) -> Floats:
        return _kappas(*parts(sums, n_strata))

    with np.errstate(divide="ignore", invalid="ignore"):
        total = sums.sum(axis=0)
        found, possible = float(of_sums(total)), float(parts(total, n_strata)[1])
    value = found if np.isfinite(found) else None
    if n_strata == 1:
        return _agreement(value, sums, of_sums, groups, prior, 2.0, seed, method, signature, n)
    units, method = by_unit(sums, groups), f"{method} within items, jackknife"
    ends = NONE
    if value is not None and possible >= MIN_CHANCE:
        ends = jackknife_interval(units, of_sums)
        if ends == NONE:
            # No unit makes a difference, as with perfect agreement; others might.
            every = np.tile(prior, (1, n_strata))
            ends = agreement_interval(units, of_sums, every, seed=seed, n_prior=1.0)
    return Estimate(value, *ends, n, method, signature, len(units))


def cohen_estimate(
    a: Floats,
    b: Floats,
    groups: Sequence[object],
    strata: Sequence[object] | None = None,
    *,
    seed: int,
    method: str,
    signature: str,
) -> Estimate:
    """Cohen's kappa with its interval over groups (stories); `n` counts the subjects of both.

    a, b and `strata` as for `cohen_kappa`.
    """
    sums, n = cohen_sums(a, b), int((~np.isnan(a) & ~np.isnan(b)).sum())
    prior = np.eye(sums.shape[1])
    return _kappa_estimate(sums, strata, _cohen_parts, prior, groups, seed, method, signature, n)


def fleiss_estimate(
    ratings: Floats,
    groups: Sequence[object],
    strata: Sequence[object] | None = None,
    *,
    seed: int,
    method: str,
    signature: str,
) -> Estimate:
    """Fleiss's kappa with its interval over groups (stories); `n` counts subjects with a pair.

    ratings and `strata` as for `fleiss_kappa`.
    """
    parts = fleiss_sums(_with_prior(ratings))
    sums, prior = parts[: len(ratings)], parts[len(ratings) :]
    n = int(sums[:, 0].sum())
    return _kappa_estimate(sums, strata, _fleiss_parts, prior, groups, seed, method, signature, n)


def pearson_estimate(
    a: Floats,
    b: Floats,
    groups: Sequence[object],
    *,
    seed: int,
    method: str,
    signature: str,
    of_sums: Callable[[Sums], Floats] = pearson_of_sums,
) -> Estimate:
    """Pearson's r with its interval over groups (stories), or another statistic of its sums."""
    both = ~(np.isnan(a) | np.isnan(b))
    sums = pearson_sums(a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(of_sums(sums.sum(axis=0)))
    prior = np.zeros((1, 6))
    if both.any():
        values = [np.unique(x[both]) for x in (a, b)]
        values = [np.quantile(x, np.linspace(0, 1, 16)) if len(x) > 16 else x for x in values]
        pairs = np.array(list(product(*values)))
        middle = float(np.concatenate([a[both], b[both]]).mean())
        x, y = (pairs - middle).T
        prior = np.column_stack([np.ones(len(pairs)), x, y, x * x, y * y, x * y])
    known = value if np.isfinite(value) else None
    n_prior = 2.0 if of_sums is pearson_of_sums else 1.0
    return _agreement(
        known, sums, of_sums, groups, prior, n_prior, seed, method, signature, int(both.sum())
    )


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
    units = by_unit(np.column_stack([wholes, parts]), groups)
    n = len(parts) if n is None else n
    whole = float(units[:, 0].sum())
    method = f"{method}, {'Wilson' if is_share else 't corrected for skewness'}"
    if not whole:
        return Estimate(None, None, None, n, method, signature, len(units))
    value = float(parts.sum()) / whole
    if is_share:
        ends = share_interval(units[:, 1], units[:, 0])
    else:
        ends = influence_interval(value, (units[:, 1] - value * units[:, 0]) / whole)
    return Estimate(value, *ends, n, method, signature, len(units))


def difference_interval(
    a: tuple[Sums, Sequence[object]],
    b: tuple[Sums, Sequence[object]],
    of_sums: Callable[[Sums], Floats],
    *,
    method: str,
    signature: str,
) -> Estimate:
    """The difference of two statistics of the same groups (stories), with its 95 % interval.

    a, b: the sums of subjects, and their groups. A group is left out of both at once (the
    jackknife), since a story that is hard for one is hard for the other.
    """
    n_a = a[0].shape[1]
    sums = np.zeros((len(a[0]) + len(b[0]), n_a + b[0].shape[1]))
    sums[: len(a[0]), :n_a], sums[len(a[0]) :, n_a:] = a[0], b[0]
    units = by_unit(sums, [*a[1], *b[1]])

    def apart(sums: Sums) -> Floats:
        found: Floats = of_sums(sums[..., :n_a]) - of_sums(sums[..., n_a:])
        return found

    n_units = int((units[:, :n_a].any(axis=1) & units[:, n_a:].any(axis=1)).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(apart(units.sum(axis=0)))
    method = f"{method}, jackknife"
    if not np.isfinite(value):
        return Estimate(None, None, None, n_units, method, signature, n_units)
    ends = jackknife_interval(units, apart, on_z=False)
    return Estimate(value, *ends, n_units, method, signature, n_units)
