"""Prediction-powered inference: means of what experts would say, from many cheap predictions.

A few documents have labels, all have predictions. The mean of the predictions is corrected by the
difference of predictions and labels where both are known (Angelopoulos et al. 2023), and weighted
by its reliability (PPI++, Angelopoulos, Duchi and Zrnic 2023), so a useless predictor does no harm.
For few labels the published normal interval is too narrow: with 8 to 20 it covers the truth in 84
to 92 % of trials (`bench/label_coverage.py`). Here it is Student's, widened if labels are skewed,
with one degree of freedom less for the weight; and if every label is 0 or 1, Clopper and Pearson's
for the effective number of independent answers given the variance (Korn and Graubard 1998), which
does not collapse if all labels are equal. A document is a unit, however many items it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.resample import influence_interval

_N_DRAWS = 20_000


def clopper_pearson_high(n_hits: int, n: int, confidence: float = 0.95) -> float:
    """One-sided upper bound of a share, given n_hits in n independent cases (Clopper and Pearson
    1934)."""
    beta = scipy("stats").beta
    return float(beta.ppf(confidence, n_hits + 1, n - n_hits)) if n_hits < n else 1.0


def share_high(shares: NDArray[np.float64], confidence: float = 0.95) -> float:
    """One-sided upper bound of the mean share over all clusters, from a sample of clusters.

    shares: float64 (n,), between 0 and 1: the share of each cluster's cases. Within a cluster they
    may be correlated in any way. Gaffke's bound (2005; Learned-Miller and Thomas 2020): the
    clusters and one more, whose share is 1, get random weights (uniform over all weights that sum
    to 1), and the bound is the quantile of their weighted mean. If each share is 0 or 1, it equals
    Clopper and Pearson's. `bench/false_alarms.py` shows how often it is exceeded.
    """
    values, counts = np.unique(np.append(shares, 1.0), return_counts=True)
    if set(values) <= {0.0, 1.0}:
        return clopper_pearson_high(int((shares == 1).sum()), len(shares), confidence)
    # Weights of clusters with the same share sum to a gamma variable, over the total of all.
    weights = np.random.default_rng(0).standard_gamma(counts, size=(_N_DRAWS, len(counts)))
    return float(np.quantile((weights @ values) / weights.sum(axis=1), confidence))


MIN_LABELS = 4
"""Minimum labelled units for an interval; docs/rubrics.md shows its coverage there."""

_RARE = 0.001
_NORMAL = 1.959964
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean as experts would give it, with its 95 % interval (None if there is none)."""

    value: float
    low: float | None
    high: float | None
    weight: float
    """How much the predictions are used: 0 if they are uninformative about the labels, 1 fully."""
    n_labelled: int
    n: int
    spread: float
    """Variance over documents of the difference of labels and weighted predictions."""
    shared: float
    """Variance of the weighted mean of all predictions, which more labels do not reduce."""
    freedom: float
    """Degrees of freedom of the variance."""
    n_worth: float | None = None
    """How many labelled documents would give the same precision without predictions."""

    @property
    def variance(self) -> float:
        return self.spread / self.n_labelled + self.shared


@dataclass(frozen=True, slots=True)
class Rate:
    """A share counted elsewhere: `hits` of `n`."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        return self.hits / self.n


def corrected_mean(
    labels: Values, predicted: Values, others: Values, *, weight: float | None = None
) -> Corrected | None:
    """The mean of the labels that all documents would have; None without any label.

    labels, predicted: float64 (n,), of the labelled documents. others: float64 (m,), the
    predictions of the rest. `weight` is by default chosen as in PPI++: the covariance of labels and
    predictions over the variance of predictions, times m / (n + m), between 0 and 1. The labelled
    documents are assumed to be a random sample of all.
    """
    n, m = len(labels), len(others)
    if n == 0:
        return None
    if weight is None:
        weight = _weight(labels, predicted, others)
    apart = labels - weight * predicted
    value = float(apart.mean() + (weight * others.mean() if m else 0.0))
    if _is_share(labels):
        value = min(1.0, max(0.0, value))
    # One degree for the mean, one for the weight if there is one.
    freedom = n - (2 if weight else 1)
    spread = float(apart.var() * n / freedom) if freedom > 0 else math.nan
    shared = float(weight**2 * others.var(ddof=1) / m) if m > 1 and weight else 0.0
    found = Corrected(value, None, None, weight, n, n + m, spread, shared, freedom)
    if n < MIN_LABELS or freedom < 1:
        return found
    beside = [(apart - apart.mean()) / n * ((n - 1) / freedom) ** 0.5]
    if shared:
        beside.append(weight * (others - others.mean()) / m)
    low, high = _interval(found, labels, beside)
    if spread == 0:
        # In a difference or a stratified mean, equal labels do not mean that there is no error.
        spread = n * ((high - low) / (2 * _NORMAL)) ** 2
        found = replace(found, spread=spread)
    own = float(labels.var(ddof=1))
    worth = own / found.variance if found.variance > 0 and own > 0 else None
    return replace(found, low=low, high=high, n_worth=worth)


def stratified(parts: Sequence[Corrected]) -> Corrected:
    """The mean over groups that were each corrected separately, weighted by their documents.

    So a judge that is biased by group, or labels distributed unlike the documents, do no harm.
    Degrees of freedom after Satterthwaite; no interval if a group has none.
    """
    n, n_labelled = sum(one.n for one in parts), sum(one.n_labelled for one in parts)
    shares = [one.n / n for one in parts]
    weighted = list(zip(shares, parts, strict=True))
    value = math.fsum(w * one.value for w, one in weighted)
    spread = math.fsum(w * w * one.spread / one.n_labelled for w, one in weighted)
    shared = math.fsum(w * w * one.shared for w, one in weighted)
    variance = spread + shared
    below = math.fsum(
        (w * w * one.variance) ** 2 / one.freedom for w, one in weighted if one.freedom > 0
    )
    freedom = variance**2 / below if below else 0.0
    found = Corrected(
        value=value,
        low=None,
        high=None,
        weight=math.fsum(w * one.weight for w, one in weighted),
        n_labelled=n_labelled,
        n=n,
        spread=spread * n_labelled,
        shared=shared,
        freedom=freedom,
    )
    if any(one.low is None for one in parts) or not variance > 0:
        return found
    low, high = _students(found)
    ends = [end for one in parts for end in (one.low, one.high) if end is not None]
    if min(ends) >= 0 and max(ends) <= 1:
        low, high = max(0.0, low), min(1.0, high)
    return replace(found, low=low, high=high)


def _weight(labels: Values, predicted: Values, others: Values) -> float:
    everything = np.concatenate([predicted, others])
    if len(labels) < 3 or not len(others) or np.ptp(everything) == 0:
        return 0.0
    covariance = ((labels - labels.mean()) * (predicted - predicted.mean())).mean()
    best = covariance / everything.var(ddof=1) / (1 + len(labels) / len(others))
    return float(np.clip(best, 0.0, 1.0))


def _interval(found: Corrected, labels: Values, beside: Sequence[Values]) -> tuple[float, float]:
    beta = scipy("stats").beta
    is_share = _is_share(labels)
    if np.ptp(labels) == 0 and is_share:
        # All equal: their variance says nothing, but their number does.
        return 1 - share_high(1 - labels, 0.975), share_high(labels, 0.975)
    if set(np.unique(labels)) <= {0.0, 1.0} and 0 < found.value < 1 and found.variance > 0:
        n_worth = found.value * (1 - found.value) / found.variance
        hits = found.value * n_worth
        low, high = beta.ppf([0.025, 0.975], [hits, hits + 1], [n_worth - hits + 1, n_worth - hits])
        return float(low), float(high)
    low, high = influence_interval(found.value, *beside, least=3)
    if low is None or high is None:
        return found.value, found.value
    return (max(0.0, low), min(1.0, high)) if is_share else (low, high)


def _is_share(labels: Values) -> bool:
    return bool(((labels >= 0) & (labels <= 1)).all())


def _students(found: Corrected) -> tuple[float, float]:
    t = scipy("stats").t
    half = float(t.ppf(0.975, found.freedom)) * math.sqrt(found.variance)
    return found.value - half, found.value + half


def corrected_difference(
    a: Corrected, b: Corrected
) -> tuple[float, float | None, float | None, float | None]:
    """The difference of two groups' means: value, low, high, and p that it is 0.

    The groups' documents are independent; degrees of freedom after Welch and Satterthwaite. The
    last three are None if one of the groups has no interval, or neither varies.
    """
    t = scipy("stats").t
    value = a.value - b.value
    variance = a.variance + b.variance
    if a.low is None or b.low is None or not variance > 0:
        return value, None, None, None
    freedom = variance**2 / (a.variance**2 / a.freedom + b.variance**2 / b.freedom)
    error = math.sqrt(variance)
    half = float(t.ppf(0.975, freedom)) * error
    p = float(2 * t.sf(abs(value) / error, freedom))
    return value, value - half, value + half, p


def n_labels_for(found: Corrected, width: float) -> int | None:
    """How many labels give an interval of at most `width`; None if all documents would not suffice.

    From Student's interval and the observed variances, so it is only a guide.
    """
    t = scipy("stats").t
    used = 2 if found.weight else 1
    for n in range(max(MIN_LABELS, used + 1), found.n + 1):
        half = float(t.ppf(0.975, n - used)) * math.sqrt(found.spread / n + found.shared)
        if 2 * half <= width:
            return n
    return None


def is_covered(predicted: Values, others: Values) -> bool:
    """Whether the labelled documents could be a random sample of all, judging by the predictions.

    predicted: of the labelled, shape (n,); others: of the rest, shape (m,). A correction learnt on
    documents of one kind does not apply to another. In a random sample, the share of the rest
    outside the range of the labelled is at most as in Beta(2, n - 1), and ranks are mixed (Mann and
    Whitney); anything that would happen once in 1,000 samples is refused.
    """
    stats = scipy("stats")
    beta, mannwhitneyu = stats.beta, stats.mannwhitneyu
    n = len(predicted)
    if n < 2 or not len(others):
        return True
    outside = float(((others < predicted.min()) | (others > predicted.max())).mean())
    if outside > float(beta.ppf(1 - _RARE, 2, n - 1)):
        return False
    if np.ptp(np.concatenate([predicted, others])) == 0:
        return True
    return bool(mannwhitneyu(predicted, others).pvalue >= _RARE)


def rogan_gladen(
    shares: Sequence[float] | Values, sensitivity: Rate, specificity: Rate
) -> tuple[float | None, float | None, float | None]:
    """A share of Yes, corrected for a judge with known error rates, with its interval.

    shares: float64 (n,), the share of each document that the judge passed. (Rogan and Gladen 1978;
    the interval by the delta method with a pseudo-observation in each cell, Lang and Reiczigel
    2014.) None if the judge is no better than chance, so that nothing can be corrected; no interval
    from fewer than `MIN_LABELS` documents.
    """
    norm = scipy("stats").norm
    data = np.asarray(shares, np.float64)
    rates = [(one.hits + 1) / (one.n + 2) for one in (sensitivity, specificity)]
    informed = sensitivity.value + specificity.value - 1
    if informed <= 0 or math.fsum(rates) <= 1 or not len(data):
        return None, None, None
    value = (float(data.mean()) + specificity.value - 1) / informed
    value = min(1.0, max(0.0, value))
    if len(data) < MIN_LABELS:
        return value, None, None
    informed = math.fsum(rates) - 1
    mean = (float(data.mean()) * len(data) + 1) / (len(data) + 2)
    middle = (mean + rates[1] - 1) / informed
    of_data = max(float(data.var(ddof=1)), mean * (1 - mean) / len(data)) / len(data)
    of_yes = rates[0] * (1 - rates[0]) / (sensitivity.n + 2)
    of_no = rates[1] * (1 - rates[1]) / (specificity.n + 2)
    variance = of_data + middle**2 * of_yes + (1 - middle) ** 2 * of_no
    half = float(norm.ppf(0.975)) * math.sqrt(variance) / informed
    return value, max(0.0, min(value, middle - half)), min(1.0, max(value, middle + half))
