"""How far raters agree: kappas, alpha, correlations, and what a judge gets right of the experts.

Kappas and alpha follow the papers that define them; correlations are SciPy's. What these leave
undefined is defined here, the same everywhere: where nothing can be said the value is None, never
0 and never NaN.

- One rater, or one subject with a single rating: None.
- Constant ratings (everybody says the same of everything): chance agrees as well as they do, so
  kappa and alpha are 0 / 0 and are None; their percentage agreement is 100.
- Correlation with a constant is None.
- Precision without a positive verdict, recall without a positive truth, balanced accuracy with
  one class only, phi with a constant side: None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.stats.resample import percentile_interval
from fabula.types import Estimate

__all__ = [
    "Confusion",
    "bootstrap_interval",
    "cohen_kappa",
    "cohen_of_sums",
    "cohen_sums",
    "describe_raters",
    "fleiss_kappa",
    "fleiss_of_sums",
    "fleiss_sums",
    "krippendorff_alpha",
    "pearson",
    "pearson_of_sums",
    "pearson_sums",
    "percent_agreement",
    "pooled_pairs",
    "spearman",
]

N_RESAMPLES = 2000
Level = Literal["nominal", "ordinal", "interval", "ratio"]


def fleiss_kappa(ratings: NDArray[np.float64]) -> float | None:
    """Fleiss 1971, for any number of raters of a subject (Gwet 2014, section 2.6).

    ratings: float64, shape (n_subjects, n_raters), NaN where missing. Agreement is the share of a
    subject's pairs of ratings that are equal; chance is the sum of squares of the categories'
    shares, each subject's own; both are means over subjects. So each subject counts once, however
    many raters it has; one with a single rating has no pair, and no part. Where all have as many
    raters, this is Fleiss's formula.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = float(fleiss_of_sums(fleiss_sums(ratings).sum(axis=0)))
    return kappa if np.isfinite(kappa) else None


def cohen_kappa(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Cohen 1960, unweighted, over the subjects that both rated. a, b: float64, shape (n,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = float(cohen_of_sums(cohen_sums(a, b).sum(axis=0)))
    return kappa if np.isfinite(kappa) else None


def krippendorff_alpha(
    ratings: NDArray[np.float64],
    level: Level | Callable[[float, float], float] = "nominal",
) -> float | None:
    """Krippendorff's alpha, missing ratings allowed: 1 - disagreement within subjects / by chance.

    As defined in "Computing Krippendorff's Alpha-Reliability" (2011), sections C and D.

    ratings: float64, shape (n_subjects, n_raters), NaN where missing. `level` is a level of
    measurement, or a distance of two values, which is taken as it is, not squared. A subject with a
    single rating has no pair, and no part. None where no subject has two ratings, or where all
    values have the same place (distance 0 of each other): then nothing can disagree. Raises
    `ValueError` for negative ratings on the level "ratio".
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
    values: NDArray[np.float64],
    totals: NDArray[np.float64],
    level: Level | Callable[[float, float], float],
) -> NDArray[np.float64]:
    """How far values are from each other (ibid., section D): shape (n_values, n_values).

    values: ascending, shape (n_values,); totals: how often each was given.
    """
    if not isinstance(level, str):
        table = [[0.0 if a == b else level(a, b) for b in values.tolist()] for a in values.tolist()]
        return np.array(table, np.float64).reshape(len(values), len(values))
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    if level == "ratio" and (values < 0).any():
        raise ValueError("ratings on a ratio scale cannot be negative; use 'interval'")
    # On an ordinal scale a value stands in the middle of the ranks of those who gave it.
    scale = np.cumsum(totals) - totals / 2 if level == "ordinal" else values
    apart = scale[:, None] - scale
    if level == "ratio":
        apart /= np.maximum(scale[:, None] + scale, np.finfo(np.float64).tiny)
    squares: NDArray[np.float64] = apart**2
    return squares


def percent_agreement(ratings: NDArray[np.float64]) -> float | None:
    """Share of pairs of ratings of one subject that are equal, in percent.

    ratings: float64, shape (n_subjects, n_raters), NaN where missing.
    """
    given = ~np.isnan(ratings)
    n_pairs = float((given.sum(axis=1) * (given.sum(axis=1) - 1)).sum())
    categories = np.unique(ratings[given])
    counts = (ratings[:, :, None] == categories).sum(axis=1)
    n_equal = float((counts * (counts - 1)).sum())
    return 100 * n_equal / n_pairs if n_pairs else None


def pooled_pairs(ratings: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All ordered pairs of ratings of one subject, pooled: shape (n_pairs,) twice.

    Each pair comes in both orders, so a correlation of the two does not depend on which rater
    stands in which column; the released verdicts have no fixed order of experts.
    """
    n_raters = ratings.shape[1]
    first = [ratings[:, i] for i in range(n_raters) for j in range(n_raters) if i != j]
    second = [ratings[:, j] for i in range(n_raters) for j in range(n_raters) if i != j]
    if not first:
        return np.empty(0), np.empty(0)
    a, b = np.concatenate(first), np.concatenate(second)
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both]


def pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Pearson's r over the pairs in which both are there."""
    return _correlation(a, b, "pearsonr")


def spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Spearman's rho over the pairs in which both are there."""
    return _correlation(a, b, "spearmanr")


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64], name: str) -> float | None:
    import scipy.stats

    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(getattr(scipy.stats, name)(a, b).statistic)


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of a judge's Yes and No against the truth's."""

    true_yes: int
    false_yes: int
    false_no: int
    true_no: int

    @classmethod
    def of(cls, judge: NDArray[np.float64], truth: NDArray[np.float64]) -> Confusion:
        """judge, truth: float64 of 0 and 1, shape (n,), NaN where missing."""
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
        """None where there is nothing positive on either side."""
        return _ratio(2 * self.true_yes, 2 * self.true_yes + self.false_yes + self.false_no)

    @property
    def phi(self) -> float | None:
        """The correlation of two yes/no variables (Matthews's coefficient)."""
        a, b, c, d = self.true_yes, self.false_yes, self.false_no, self.true_no
        product = (a + b) * (c + d) * (a + c) * (b + d)
        return (a * d - b * c) / product**0.5 if product else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


Sums = NDArray[np.float64]


def fleiss_sums(ratings: NDArray[np.float64]) -> Sums:
    """What Fleiss's kappa needs of each subject: float64, shape (n_subjects, 2 + n_categories).

    Whether it counts (as it does from two ratings on), the share of its pairs of ratings that are
    equal, and its ratings by category as shares. Add up subjects, and give the sums to
    `fleiss_of_sums`.
    """
    categories = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == categories).sum(axis=1).astype(np.float64)
    n_ratings = (~np.isnan(ratings)).sum(axis=1)
    equal = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, n_ratings * (n_ratings - 1))
    shares = counts / np.maximum(1, n_ratings)[:, None]
    counted: Sums = np.column_stack([np.ones(len(ratings)), equal, shares])
    counted[n_ratings < 2] = 0
    return counted


def fleiss_of_sums(sums: Sums) -> NDArray[np.float64]:
    """Kappas of added sums, shape (..., m) to (...); NaN where they are undefined."""
    n = sums[..., 0]
    by_chance = ((sums[..., 2:] / n[..., None]) ** 2).sum(axis=-1)
    kappas: NDArray[np.float64] = (sums[..., 1] / n - by_chance) / (1 - by_chance)
    return kappas


def describe_raters(ratings: NDArray[np.float64]) -> str:
    """How many raters a subject has: `3`, or `2-4` where they differ."""
    counts = np.unique((~np.isnan(ratings)).sum(axis=1))
    return "-".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if len(counts) else "0"


def cohen_sums(a: NDArray[np.float64], b: NDArray[np.float64]) -> Sums:
    """The cell of each subject in the table of a against b: shape (n_subjects, k * k)."""
    both = ~(np.isnan(a) | np.isnan(b))
    categories = np.unique(np.concatenate([a[both], b[both]]))
    cells = (a[:, None] == categories)[:, :, None] & (b[:, None] == categories)[:, None, :]
    flat: Sums = (cells & both[:, None, None]).reshape(len(a), len(categories) ** 2).astype("f8")
    return flat


def cohen_of_sums(sums: Sums) -> NDArray[np.float64]:
    """Kappas of added cells, shape (..., k * k) to (...); NaN where they are undefined."""
    k = round(sums.shape[-1] ** 0.5)
    table = sums.reshape(*sums.shape[:-1], k, k)
    n = table.sum(axis=(-2, -1))
    observed = np.trace(table, axis1=-2, axis2=-1) / n
    rows, columns = table.sum(axis=-1) / n[..., None], table.sum(axis=-2) / n[..., None]
    by_chance = (rows * columns).sum(axis=-1)
    kappas: NDArray[np.float64] = (observed - by_chance) / (1 - by_chance)
    return kappas


def pearson_sums(a: NDArray[np.float64], b: NDArray[np.float64]) -> Sums:
    """Count, sums, squares and products of each pair: shape (n, 6)."""
    both = ~(np.isnan(a) | np.isnan(b))
    x, y = np.where(both, a, 0.0), np.where(both, b, 0.0)
    return np.column_stack([both.astype(np.float64), x, y, x * x, y * y, x * y])


def pearson_of_sums(sums: Sums) -> NDArray[np.float64]:
    """Correlations of added sums, shape (..., 6) to (...); NaN where they are undefined."""
    n, x, y, xx, yy, xy = (sums[..., k] for k in range(6))
    spread = np.round((n * xx - x * x) * (n * yy - y * y), 9)
    correlations: NDArray[np.float64] = (n * xy - x * y) / np.sqrt(spread)
    return correlations


def bootstrap_interval(
    value: float | None,
    sums: Sums,
    of_sums: Callable[[Sums], NDArray[np.float64]],
    groups: Sequence[object],
    *,
    seed: int,
    method: str,
    signature: str,
    n: int | None = None,
    n_resamples: int = N_RESAMPLES,
) -> Estimate:
    """A statistic of subjects with its 95 % percentile interval, resampling whole groups.

    sums: float64, shape (n_subjects, m), which add up to what `of_sums` makes the statistic from;
    so a resample costs a few additions. `groups` says what each subject belongs to (its story), so
    that ratings that are correlated stay together; a group whose sums are all 0 has no part in the
    statistic and does not count as a unit. `n` is how many subjects count, if not all of them.
    """
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    by_group = np.zeros((len(places), sums.shape[1]))
    np.add.at(by_group, [places[group] for group in groups], sums)
    n_units = int(by_group.any(axis=1).sum())
    ends: tuple[float | None, float | None] = (None, None)
    if value is not None:
        rng = np.random.default_rng(seed)
        draws = rng.integers(len(places), size=(n_resamples, len(places)))
        with np.errstate(divide="ignore", invalid="ignore"):
            resampled = of_sums(by_group[draws].sum(axis=1))
        ends = percentile_interval(resampled, n_units)
    return Estimate(value, *ends, len(groups) if n is None else n, method, signature, n_units)
