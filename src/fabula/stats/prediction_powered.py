"""Prediction-powered inference: means of what experts would say, from many cheap predictions.

A few documents have labels, all have predictions. The mean of the predictions is corrected by the
difference of predictions and labels where both are known (Angelopoulos et al. 2023), and weighted
by its reliability (PPI++, Angelopoulos, Duchi and Zrnic 2023), so a useless predictor does no harm.
For few labels the published normal interval is too narrow: with 8 to 20 it covers the truth in 84
to 92 % of trials (`bench/label_coverage.py`). Here it is Student's, widened if labels are skewed,
with one degree of freedom less for the weight; and if every label is 0 or 1, Clopper and Pearson's
for the effective number of independent answers given the variance (Korn and Graubard 1998), which
does not collapse if all labels are equal. A document is a unit, however many items it has.

An interval is about the source that the documents are a sample of, or, with `is_finite`, about the
mean over these documents, of which the labelled ones are a random sample without replacement
(Cochran 1977, section 7.3): it is 0 wide if all are labelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabula.core.packages import scipy
from fabula.core.types import Estimate
from fabula.stats.resampling import NONE, Floats, estimate, influence_interval

_N_DRAWS = 20_000


def clopper_pearson_high(n_hits: int, n: int, confidence: float = 0.95) -> float:
    """One-sided upper bound of a share of n independent cases (Clopper and Pearson 1934)."""
    return float(scipy("stats").beta.ppf(confidence, n_hits + 1, n - n_hits)) if n_hits < n else 1.0


def share_high(shares: Floats, confidence: float = 0.95) -> float:
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
"""Minimum labelled units for an interval."""
MIN_VERDICTS = 8
"""The same if labels are Yes and No; with fewer it would hold the truth in 89 to 93 % only."""
_RARE, _RARE_SIDE = 0.001, 0.025
_NORMAL = 1.959964


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
    """The part of the variance that more labels do not reduce: 0 about these documents."""
    freedom: float
    """Degrees of freedom of the variance."""
    is_finite: bool = False
    n_worth: float | None = None
    """How many labelled documents would give the same precision without predictions."""

    @property
    def variance(self) -> float:
        return self.of_labels(self.n_labelled) + self.shared

    def of_labels(self, n_labelled: int) -> float:
        """The part of the variance that is due to `n_labelled` documents only having labels."""
        return self.spread * (1 / n_labelled - (1 / self.n if self.is_finite else 0))


def corrected_mean(
    labels: Floats,
    predicted: Floats,
    others: Floats,
    *,
    weight: float | None = None,
    is_finite: bool = False,
    clusters: Sequence[object] = (),
) -> Corrected | None:
    """The mean of the labels that all documents would have; None without any label.

    labels, predicted: float64 (n,), of the labelled documents. others: float64 (m,), the
    predictions of the rest. clusters: of all n + m, a prompt or author that makes documents alike,
    or that was drawn for labelling as a whole; by default each document is one. `weight` is by
    default chosen as in PPI++: the covariance of labels and predictions over the variance of
    predictions, times m / (n + m), between 0 and 1. Those labelled must be a random sample.
    """
    n, m = len(labels), len(others)
    if n == 0:
        return None
    if weight is None:
        weight, predictions = 0.0, np.concatenate([predicted, others])
        variance = predictions.var(ddof=1) if n >= 3 and m and np.ptp(predictions) > 0 else 0.0
        if variance > 0:  # it is 0 also where tiny predictions differ
            covariance = ((labels - labels.mean()) * (predicted - predicted.mean())).mean()
            weight = float(np.clip(covariance / variance / (1 + n / m), 0.0, 1.0))
    residuals = labels - weight * predicted
    value = float(residuals.mean() + (weight * others.mean() if m else 0.0))
    if _is_share(labels):
        value = min(1.0, max(0.0, value))
    places = np.unique(list(map(str, clusters)) or np.arange(n + m), return_inverse=True)[1]
    n_all, labelled = int(places.max()) + 1, np.unique(places[:n])
    # One degree for the mean, one for the weight if there is one.
    freedom = len(labelled) - (2 if weight else 1)
    corrected = Corrected(value, None, None, weight, n, n + m, math.nan, 0.0, freedom, is_finite)
    if is_finite and not m:
        return replace(corrected, spread=0.0, low=value, high=value)
    if freedom < 1:
        return corrected
    if is_finite:
        # The same estimate with the mean of all predictions, which has no error.
        residuals = labels - weight * (n + m) / m * predicted
    influence = (residuals - residuals.mean()) / n * ((len(labelled) - 1) / freedom) ** 0.5
    units = np.bincount(places[:n], influence, n_all).astype(np.float64)
    spread = n * _variance(units[labelled])
    if is_finite:
        samples = [units[labelled] * (m / (n + m)) ** 0.5]
    else:
        rest = np.setdiff1d(places, labelled)
        if weight and m:
            units += np.bincount(places[n:], weight * (others - others.mean()) / m, n_all)
        samples = [units[labelled], *([units[rest]] if weight and len(rest) > 2 else [])]
    shared = 0.0 if is_finite else max(0.0, math.fsum(map(_variance, samples)) - spread / n)
    corrected = replace(corrected, spread=spread, shared=shared)
    is_test = np.ptp(labels) > 0 and set(np.unique(labels)) <= {0.0, 1.0}
    if len(labelled) < (MIN_VERDICTS if is_test else MIN_LABELS):
        return corrected
    # If clusters were not labelled as a whole, as many more as their documents are of all.
    low, high = _interval(corrected, labels, samples, max(n_all, len(labelled) * (n + m) // n))
    if spread == 0 and high > low:
        # In a difference or a stratified mean, equal labels do not mean that there is no error.
        corrected = replace(corrected, spread=1.0)
        spread = ((high - low) / (2 * _NORMAL)) ** 2 / corrected.of_labels(n)
        corrected = replace(corrected, spread=spread)
    units = np.bincount(places[:n], (labels - labels.mean()) / n, n_all).astype(np.float64)
    by_labels = n * _variance(units[labelled])
    worth = n_worth(spread / by_labels, n, n + m) if spread > 0 and by_labels > 0 else None
    return replace(corrected, low=low, high=high, n_worth=worth)


def _variance(units: Floats) -> float:
    """Of a sum over independent units, each beside its expected value."""
    n = len(units)
    return float((units**2).sum()) * n / (n - 1)


def n_worth(left: float, n_labelled: int, n: int) -> float:
    """How many labels would do alone what `n_labelled` of n do with predictions.

    left: how much of the variance of labels the predictions leave: 1 - r^2 at a correlation of r.
    """
    return 1 / ((1 / n_labelled - 1 / n) * left + 1 / n)


def stratified(parts: Sequence[Corrected]) -> Corrected:
    """The mean over groups that were each corrected separately, weighted by their documents.

    So a judge that is biased by group, or labels distributed unlike the documents, do no harm.
    Degrees of freedom after Satterthwaite; no interval if a group has none.
    """
    n, n_labelled = sum(part.n for part in parts), sum(part.n_labelled for part in parts)
    weighted = [(part.n / n, part) for part in parts]
    value = math.fsum(w * part.value for w, part in weighted)
    of_labels = math.fsum(w * w * part.of_labels(part.n_labelled) for w, part in weighted)
    shared = math.fsum(w * w * part.shared for w, part in weighted)
    variance = of_labels + shared
    below = math.fsum(
        (w * w * part.variance) ** 2 / part.freedom for w, part in weighted if part.freedom > 0
    )
    freedom = variance**2 / below if below else 0.0
    whole = Corrected(
        value=value,
        low=None,
        high=None,
        weight=math.fsum(w * part.weight for w, part in weighted),
        n_labelled=n_labelled,
        n=n,
        spread=1.0,
        shared=shared,
        freedom=freedom,
        is_finite=all(part.is_finite for part in parts),
    )
    if n_labelled < n or not whole.is_finite:
        whole = replace(whole, spread=of_labels / whole.of_labels(n_labelled))
    if any(part.low is None for part in parts):
        return whole
    if not variance > 0:
        return replace(whole, low=value, high=value) if n_labelled == n else whole
    half = float(scipy("stats").t.ppf(0.975, whole.freedom)) * math.sqrt(whole.variance)
    low, high = value - half, value + half
    ends = [end for part in parts for end in (part.low, part.high) if end is not None]
    if min(ends) >= 0 and max(ends) <= 1:
        low, high = max(0.0, low), min(1.0, high)
    return replace(whole, low=low, high=high)


def _interval(
    mean: Corrected, labels: Floats, samples: Sequence[Floats], n_all: int
) -> tuple[float, float]:
    stats, n_units, is_share = scipy("stats"), len(samples[0]), _is_share(labels)
    factor = (1 - n_units / n_all) ** 0.5 if mean.is_finite else 1.0
    if np.ptp(labels) == 0 and is_share:
        # All equal: their variance says nothing, but their number does.
        if mean.is_finite and labels[0] in {0, 1}:
            # The most units of the other kind with which none would be drawn once in forty times.
            hidden = stats.hypergeom.cdf(0, n_all, np.arange(n_all - n_units + 1), n_units)
            reach = float(np.count_nonzero(hidden >= _RARE_SIDE) - 1) / n_all
            return max(0.0, mean.value - reach), min(1.0, mean.value + reach)
        high = share_high(np.full(n_units, labels[0]), 1 - _RARE_SIDE)
        low = 1 - share_high(1 - np.full(n_units, labels[0]), 1 - _RARE_SIDE)
        return mean.value - factor * (mean.value - low), mean.value + factor * (high - mean.value)
    if mean.spread == 0 and mean.is_finite:
        # Predictions that were never wrong may be so elsewhere, as often as their number allows.
        reach = factor * clopper_pearson_high(0, n_units, 1 - _RARE_SIDE) * float(np.ptp(labels))
        low, high = mean.value - reach, mean.value + reach
    elif set(np.unique(labels)) <= {0.0, 1.0} and 0 < mean.value < 1 and mean.variance > 0:
        n = mean.value * (1 - mean.value) / mean.variance
        if n_units < mean.n_labelled:
            wider = stats.t.ppf(0.975, mean.n_labelled - 1) / stats.t.ppf(0.975, n_units - 1)
            n *= float(wider) ** 2
        hits = mean.value * n
        low, high = stats.beta.ppf([0.025, 0.975], [hits, hits + 1], [n - hits + 1, n - hits])
        return float(low), float(high)
    else:
        ends = influence_interval(mean.value, *samples, least=3)
        low, high = (mean.value if end is None else end for end in ends)
    return (max(0.0, low), min(1.0, high)) if is_share else (low, high)


def _is_share(labels: Floats) -> bool:
    return bool(((labels >= 0) & (labels <= 1)).all())


def corrected_difference(a: Corrected, b: Corrected) -> tuple[Estimate, float | None]:
    """The difference of two groups' means, and p that it is 0.

    The groups' documents are independent; degrees of freedom after Welch and Satterthwaite. There
    is no interval if one of the groups has none, or neither varies; p is None then, and if every
    document is labelled, so that there is nothing to test.
    """
    t = scipy("stats").t
    value = a.value - b.value
    variance = a.variance + b.variance
    p, ends = None, NONE
    if a.low is not None and b.low is not None:
        if variance > 0:
            below = math.fsum(x.variance**2 / x.freedom for x in (a, b) if x.variance)
            freedom, error = variance**2 / below, math.sqrt(variance)
            half = float(t.ppf(0.975, freedom)) * error
            ends = value - half, value + half
            p = float(2 * t.sf(abs(value) / error, freedom))
        elif a.low == a.high and b.low == b.high:
            ends = value, value
    n, n_units = a.n + b.n, a.n_labelled + b.n_labelled
    of = "difference of corrected means"
    return estimate(value, ends, n, n_units, of=of, by="Welch", signature=""), p


def transfer(
    here: tuple[Floats, Floats, Floats],
    rest: tuple[Floats, Floats, Floats],
    clusters: tuple[Sequence[object], Sequence[object]] = ((), ()),
) -> tuple[float, Estimate, float | None]:
    """Does the correction that the rest of the groups teach hold here?

    here, rest: labels, predictions and other predictions, as of `corrected_mean`. The level here by
    the rest's labels, by regression on predictions; and by how much the labels here differ from it,
    with its interval and p: the difference of what that regression leaves of both (Welch).
    """
    labels, predicted, _ = rest
    spread = float(predicted.var())
    covariance = float(((labels - labels.mean()) * (predicted - predicted.mean())).mean())
    # A judge that runs against the labels teaches only what their mean is.
    slope = max(0.0, covariance / spread) if spread else 0.0
    means = []
    for (labels, predicted, _), units in zip((here, rest), clusters, strict=True):
        apart = labels - slope * predicted
        mean = corrected_mean(apart, apart, np.empty(0), weight=0, clusters=units[: len(labels)])
        assert mean is not None
        means.append(mean)
    level = slope * float(np.concatenate(here[1:]).mean()) + means[1].value
    return level, *corrected_difference(*means)


def n_labels_for(found: Corrected, width: float) -> int | None:
    """How many labels give an interval of at most `width`; None if all documents would not suffice.

    From Student's interval and the observed variances, so it is only a guide.
    """
    t = scipy("stats").t
    used = 2 if found.weight else 1
    for n in range(max(MIN_LABELS, used + 1), found.n + 1):
        half = float(t.ppf(0.975, n - used)) * math.sqrt(found.of_labels(n) + found.shared)
        if 2 * half <= width:
            return n
    return None


def is_covered(predicted: Floats, others: Floats) -> bool:
    """Whether the labelled documents could be a random sample of all, judging by the predictions.

    predicted: of the labelled, shape (n,); others: of the rest, shape (m,). A correction learnt on
    documents of one kind does not apply to another. In a random sample, the share of the rest
    outside the range of the labelled is at most as in Beta(2, n - 1), and ranks are mixed (Mann and
    Whitney); anything that would happen once in 1,000 samples is refused.
    """
    n, stats = len(predicted), scipy("stats")
    if n < 2 or not len(others):
        return True
    outside = float(((others < predicted.min()) | (others > predicted.max())).mean())
    if outside > float(stats.beta.ppf(1 - _RARE, 2, n - 1)):
        return False
    if np.ptp(np.concatenate([predicted, others])) == 0:
        return True
    return bool(stats.mannwhitneyu(predicted, others).pvalue >= _RARE)
