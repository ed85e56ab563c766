"""What is independent, what a statistic would be without it or with other draws of it: intervals.

Every 95 % interval is over `Units` (texts, stories, prompts), and none is given from fewer than
`MIN_UNITS`. A statistic is a function of sums over units, so leaving one out, or weighting them at
random, costs one matrix product. The signature of an estimate names the kind of its interval, with
the number of draws if there are any. `bench/intervals.py` measures how often each kind holds the
truth; docs/reliability.md has its table.

- A mean, or what is a sum over units to first order: Student's t, on either side widened to what
  Hall's transformation of skewed samples gives (1992, "On the removal of skewness by
  transformation"). That alone is too narrow for symmetric values with long tails, as t is for
  skewed ones.
- A ratio of means: Fieller's (1954).
- A share: Wilson's (1927), with the number of independent answers that its variance amounts to.
- Agreement (between -1 and 1, on the scale of Fisher's z). On one item: the posterior of Dirichlet
  weights of the units and of a prior worth one or two units, spread evenly over what raters could
  have said, so that rare answers which nobody gave are not taken for impossible. Over several
  items: the jackknife over units, its bias removed.
- An AUROC: Newcombe's score interval (2006, method 5), which holds for perfect separation too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.core.packages import scipy
from fabula.core.types import Estimate

MIN_UNITS = 10
"""Minimum number of independent units (texts, stories, prompts, chapters) for an interval."""
N_DRAWS = 4000
N_PERMUTATIONS = 10_000
WILSON, FIELLER, JACKKNIFE = "Wilson", "Fieller", "jackknife"
STUDENT = "t corrected for skewness"
POSTERIOR = f"posterior of {N_DRAWS:,} weighted draws"
"""Kinds of intervals, as methods and signatures name them."""
SLACK = 1e-9
"""Numbers that differ by less than this share of them are equal up to rounding."""
_MANY = 2000
"""With more units the prior makes no difference, and the jackknife is faster."""
_MIN_KNOWN = 0.5
_LEAST = 1e-12
Floats = NDArray[np.float64]
OfSums = Callable[[Floats], Floats]
Ends = tuple[float | None, float | None]
NONE: Ends = None, None


@dataclass(frozen=True, slots=True)
class Units:
    """Which rows belong together: those of one unit are drawn, left out and swapped as a whole.

    of: int64, shape (n_rows,), the unit of each row, from 0. n: the number of units.
    """

    of: NDArray[np.int64]
    n: int

    @classmethod
    def by(cls, names: Sequence[object] | NDArray[np.int64]) -> Units:
        """Numbered in order of appearance; an array of numbers in the order of these."""
        if isinstance(names, np.ndarray):
            distinct, of = np.unique(names, return_inverse=True)
            return cls(of.astype(np.int64), len(distinct))
        places: dict[object, int] = {}
        of = np.array([places.setdefault(name, len(places)) for name in names], np.int64)
        return cls(of, len(places))

    def take(self, kept: NDArray[np.bool_]) -> Units:
        """Those of the rows selected by a mask, numbered again."""
        return Units.by(self.of[kept])

    def sums(self, rows: Floats) -> Floats:
        """Rows added up within each unit: (n_rows, ...) to (n_units, ...)."""
        table = np.zeros((self.n, *rows.shape[1:]))
        np.add.at(table, self.of, rows)
        return table

    def known_sums(self, rows: Floats) -> Floats:
        """`sums` of (n_rows, m), without units that are all 0."""
        table = self.sums(rows)
        return table[table.any(axis=1)]

    def means(self, values: Floats) -> Floats:
        """The mean of the values of each unit: (n_rows,) to (n_units,)."""
        return self.sums(values) / np.bincount(self.of)


def estimate(
    value: float | None, ends: Ends, n: int, n_units: int, *, of: str, by: str, signature: str
) -> Estimate:
    """A statistic (`of` what) with its interval by this kind, which its signature names."""
    signature = f"{signature}|interval:{by}" if signature else ""
    return Estimate(value, *ends, n, f"{of}, {by}", signature, n_units)


def mean_interval(values: Floats) -> Ends:
    """Of the mean of independent values, shape (n,). None if nothing varies."""
    n = len(values)
    return influence_interval(float(values.mean()), (values - values.mean()) / n) if n else NONE


def influence_interval(value: float, *samples: Floats, least: int = MIN_UNITS) -> Ends:
    """Of a statistic that is a sum over units to first order.

    samples: float64, shape (n_units,), for each independent sample what each of its units adds to
    the statistic, beside its expected value. Degrees of freedom are Satterthwaite's. None if a
    sample has fewer than `least` units, or nothing varies.
    """
    if min(map(len, samples)) < least:
        return NONE
    # Near 1 no power of a number is lost, however small all are; a power of 2 rounds nothing.
    largest = max(abs(value), max(float(np.abs(parts).max()) for parts in samples))
    scale, exponent = math.frexp(largest)
    variance = third = freedom = 0.0
    for parts in (np.ldexp(parts, -exponent) for parts in samples):
        n = len(parts)
        square = n / (n - 1) * float((parts**2).sum())
        variance += square
        third += n**2 / ((n - 1) * (n - 2)) * float((parts**3).sum())
        freedom += square**2 / (n - 1)
    if not variance > (_LEAST * scale) ** 2:
        return NONE
    error = float(variance**0.5)
    t = float(scipy("stats").t.ppf(0.975, variance**2 / freedom))
    skew = third / error**3
    error = math.ldexp(error, exponent)

    def undone(x: float) -> float:
        """The value of Student's t that the transformation takes to `x`."""
        if abs(skew) < 1e-9:
            return x
        root = float(np.cbrt(1 + skew * (x - skew / 6)))
        return (root - 1) * 3 / skew

    return value - max(t, undone(t)) * error, value + max(t, -undone(-t)) * error


def ratio_interval(a: float, b: float, *samples: tuple[Floats, Floats]) -> Ends:
    """Of a / b, two means over the same or other units (Fieller 1954).

    samples: for each independent sample what its units add to a and to b, beside their expected
    values, float64, shape (n_units,) twice. None also if b cannot be told from 0.
    """
    if b == 0 or min(len(numerators) for numerators, _ in samples) < MIN_UNITS:
        return NONE
    # As in `influence_interval`; a ratio is that of both parts, however small.
    _, exponent = math.frexp(max(abs(a), abs(b)))
    a, b = math.ldexp(a, -exponent), math.ldexp(b, -exponent)
    samples = tuple((np.ldexp(x, -exponent), np.ldexp(y, -exponent)) for x, y in samples)

    def shared(first: int, second: int) -> float:
        return math.fsum(
            len(sample[0]) / (len(sample[0]) - 1) * float((sample[first] * sample[second]).sum())
            for sample in samples
        )

    residuals = [x - a / b * y for x, y in samples]
    squares = [len(parts) / (len(parts) - 1) * float((parts**2).sum()) for parts in residuals]
    least = (_LEAST * max(abs(a), abs(b))) ** 2
    variance = math.fsum(squares)
    if not variance > least:
        return NONE
    below = math.fsum(x**2 / (len(y) - 1) for x, y in zip(squares, residuals, strict=True))
    freedom = variance**2 / below
    t2 = float(scipy("stats").t.ppf(0.975, freedom)) ** 2
    # The ratios r at which t of a - r * b does not reach its quantile, between two roots.
    square, linear = b**2 - t2 * shared(1, 1), a * b - t2 * shared(0, 1)
    rest = linear**2 - square * (a**2 - t2 * shared(0, 0))
    if square <= 0 or rest < 0:
        return NONE
    return (linear - rest**0.5) / square, (linear + rest**0.5) / square


def share_interval(parts: Floats, wholes: Floats) -> Ends:
    """Of a share over units: shape (n_units,) twice, how many of each unit's answers count.

    If the units are answers this is Wilson's interval. If nothing varies, a unit counts as one.
    """
    n_units, n = len(wholes), float(wholes.sum())
    if n_units < MIN_UNITS:
        return NONE
    share = float(parts.sum()) / n
    residuals = (parts - share * wholes) / n
    variance = n_units / (n_units - 1) * float((residuals**2).sum())
    is_single = bool((wholes == 1).all())
    n_known = share * (1 - share) / variance if variance > 0 else float(n_units)
    n_known = n if is_single else min(n, n_known)
    stats = scipy("stats")
    z = float(stats.norm.ppf(0.975) if is_single else stats.t.ppf(0.975, n_units - 1))
    middle = (share + z**2 / (2 * n_known)) / (1 + z**2 / n_known)
    reach = share * (1 - share) / n_known + z**2 / (4 * n_known**2)
    reach = z * reach**0.5 / (1 + z**2 / n_known)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def auroc_interval(value: float, n_a: float, n_b: float) -> Ends:
    """Newcombe 2006, method 5: the values that are not rejected by their own standard error.

    value: the probability that one of A is above one of B. n_a, n_b: how many independent texts
    there are of each, which may be fractions.
    """
    z2 = float(scipy("stats").norm.ppf(0.975)) ** 2
    more = (n_a + n_b) / 2 - 1

    def is_beside(theta: float) -> float:
        spread = 1 + more * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (value - theta) ** 2 - z2 * theta * (1 - theta) * spread / (n_a * n_b)

    root = scipy("optimize").brentq
    low = 0.0 if value <= 0 else float(root(is_beside, 1e-12, value if value < 1 else 1 - 1e-12))
    high = 1.0 if value >= 1 else float(root(is_beside, max(value, 1e-12), 1 - 1e-12))
    return low, high


def agreement_interval(
    units: Floats, of_sums: OfSums, prior: Floats, *, seed: int, n_prior: float = 2.0
) -> tuple[Ends, str]:
    """Of an agreement on one item, between -1 and 1, and the kind of this interval.

    units: the sums of each unit, shape (n_units, m), which `of_sums` turns into the agreement.
    prior: the same of what a unit could be, each with the same weight, together worth `n_prior`
    units. Resamples without a value are left out; None if at most half have one.
    """
    n = len(units)
    if n < MIN_UNITS:
        return NONE, POSTERIOR
    if n > _MANY:
        return jackknife_interval(units, of_sums), JACKKNIFE
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        weighted = rng.standard_exponential((N_DRAWS, n)) @ units
        weighted += rng.standard_gamma(n_prior / len(prior), (N_DRAWS, len(prior))) @ prior
        drawn = of_sums(weighted)
    known = _on_z(drawn[np.isfinite(drawn)])
    if len(known) <= _MIN_KNOWN * N_DRAWS:
        return NONE, POSTERIOR
    with np.errstate(divide="ignore", invalid="ignore"):
        every = float(of_sums(units.sum(axis=0)[None])[0])
    low, middle, high = np.percentile(known, [2.5, 50, 97.5])
    stats = scipy("stats")
    wider = float(stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975))
    # Weights of n units vary as n + 1 would, not n - 1; a prior of two units makes up for that.
    wider *= ((n + 1) / (n + 2 * n_prior - 3)) ** 0.5
    low, high = (float(np.tanh(middle + wider * (end - middle))) for end in (low, high))
    return (min(every, low), max(every, high)), POSTERIOR


def jackknife_interval(units: Floats, of_sums: OfSums, *, on_z: bool = True) -> Ends:
    """Of a statistic of sums over units, its bias removed; on the scale of Fisher's z, or its own.

    units as above. None with too few, if undefined without one, or if none makes a difference.
    """
    n = len(units)
    if n < MIN_UNITS:
        return NONE
    total = units.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        every, left = of_sums(total[None])[0], of_sums(total - units)
    if not (np.isfinite(every) and np.isfinite(left).all()):
        return NONE
    if on_z:
        every, left = _on_z(every), _on_z(left)
    pseudo = n * every - (n - 1) * left
    error = float(pseudo.std(ddof=1)) / n**0.5
    if not error > _LEAST:
        return NONE
    reach = float(scipy("stats").t.ppf(0.975, n - 1)) * error
    low, high = float(pseudo.mean()) - reach, float(pseudo.mean()) + reach
    return (float(np.tanh(low)), float(np.tanh(high))) if on_z else (low, high)


def jackknife_error(left: Floats) -> float | None:
    """The standard error of a statistic from its values without each unit, or block of units.

    left: float64 (n_blocks,). Student's t of the statistic has n_blocks - 1 degrees of freedom.
    None if it is undefined without one, or if none makes a difference.
    """
    if not np.isfinite(left).all() or np.ptp(left) == 0:
        return None
    n = len(left)
    return float(np.sqrt((n - 1) / n * np.square(left - left.mean()).sum()))


def reach(error: float, n_blocks: int) -> float:
    """Half the width of the 95 % interval of Student's t, from a `jackknife_error`."""
    return float(scipy("stats").t.ppf(0.975, n_blocks - 1)) * error


def _on_z(values: Floats) -> Floats:
    edge = 1 - 1e-6
    return np.arctanh(np.clip(values, -edge, edge))
