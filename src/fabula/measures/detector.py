"""Tell human from machine by a score, with the accuracy and its uncertainty.

Lu et al. 2024, section "Evaluation": texts of higher Creativity Index are more likely human, which
is measured by the area under the ROC curve (AUROC): the probability that a human text ranks above a
machine one. Other scores, from a language model's log-probabilities, take their direction from the
papers that propose them, never from the data.

A score may be unable to tell the two apart, or rank them the wrong way round. If the interval of
the AUROC includes 0.5, or lies below it, there are no verdicts: they would accuse people falsely.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.measures.kind import Kind
from fabula.measures.scores import DIRECTIONS
from fabula.packages import scipy
from fabula.stats.prediction_powered import clopper_pearson_high, share_high
from fabula.stats.resampling import MIN_UNITS, auroc_interval
from fabula.types import Estimate

INSTRUMENTS: Mapping[str, str] = {
    "creativity_index": "originality",
    "log_likelihood": "probability",
    "log_rank": "probability",
    "curvature": "probability",
}
"""The instrument, as named in signatures, that gives each score."""

Outcome = Literal["separates", "cannot tell", "reversed", "too few"]

_N_FOLDS = 5
_N_BINS = 10
_MIN_GROUPS = MIN_UNITS


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts known to be by people or machines, with one score each.

    scores: float64 (n,), oriented so that human texts should be higher. is_human: bool (n,).
    clusters: int64 (n,), texts of one cluster (a prompt, an author) count as one independent unit:
    they are held out together, and intervals and guarantees are over clusters.
    """

    scores: NDArray[np.float64]
    is_human: NDArray[np.bool_]
    clusters: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where to call a text machine-written so that few human ones are."""

    target: float
    """The allowed share of human texts that are called machine-written."""
    value: float
    """Texts with an oriented score below it are called machine-written."""
    false_positives: float
    """The share of these human texts that are."""
    false_positives_high: float
    """Upper bound of that share among texts of other clusters, with 95 % confidence."""
    true_positives: float
    """The share of these machine texts that are."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What is known about the texts besides their scores."""

    kind: Kind
    n_copies: int
    """Texts that nearly repeat a text of another cluster; such clusters were joined."""
    n_clusters_before: int
    cluster: str | None
    """The field whose texts count as one, besides copies; None if no text has a usual one."""
    layout: Mapping[str, float]
    """How well length and layout alone tell people's texts from machines': AUROC by trait."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a score tells human from machine on labelled texts."""

    score: str
    direction: int
    outcome: Outcome
    auroc: Estimate
    n_human: int
    n_machine: int
    n_missing: int
    n_clusters: int
    n_human_clusters: int
    """Independent people, or prompts that people responded to."""
    calibration_error: float | None
    """Expected difference between stated probability and truth, over texts whose cluster was not in
    the fit; None with too few clusters."""
    slope: float
    intercept: float
    """The probability of being human is the logistic function of slope * score + intercept."""
    score_range: tuple[float, float]
    """The lowest and the highest score, oriented, of all texts."""
    thresholds: tuple[Threshold, ...]
    signature: str
    curve: tuple[tuple[float, float], ...]
    """ROC: (share of human texts called machine-written, share of machine texts)."""
    collected: Collected | None = None
    """Origin and kind of the texts, if known."""

    def probability(self, oriented: float) -> float:
        """The probability that a text is human, for a mixture like the calibration texts."""
        return float(_logistic(np.array([self.slope * oriented + self.intercept]))[0])


def calibrate(
    texts: Labelled,
    *,
    score: str,
    signature: str,
    n_missing: int,
    targets: Sequence[float] = (0.01, 0.05, 0.1),
    seed: int = 0,
    collected: Collected | None = None,
) -> Calibration:
    """Evaluate a score on these texts.

    Raises `InputError` if there are no human texts or no machine texts.
    """
    n_human, n_machine = int(texts.is_human.sum()), int((~texts.is_human).sum())
    if not n_human or not n_machine:
        raise InputError(
            f"{score}: {n_human} human and {n_machine} machine texts with a score; both are needed"
        )
    distinct, groups = np.unique(texts.clusters, return_inverse=True)
    n_groups = len(distinct)
    value = auroc(texts.scores, texts.is_human)
    low, high = _auroc_interval(value, texts, groups)
    outcome: Outcome = "separates"
    if low is None or high is None:
        outcome = "too few"
    elif low <= 0.5:
        outcome = "cannot tell" if high >= 0.5 else "reversed"
    slope, intercept = _fit(texts.scores, texts.is_human)
    how = f"AUROC, score interval over {n_groups} clusters"
    field = collected and collected.cluster
    own = signature if field is None else f"{signature}|cluster:{field}"
    return Calibration(
        score=score,
        direction=DIRECTIONS[score],
        signature=signature,
        n_human=n_human,
        n_machine=n_machine,
        n_missing=n_missing,
        n_clusters=n_groups,
        n_human_clusters=len(set(groups[texts.is_human])),
        auroc=Estimate(value, low, high, n_human + n_machine, how, own),
        outcome=outcome,
        thresholds=tuple(find_threshold(texts, target) for target in targets),
        curve=_curve(texts),
        slope=slope,
        intercept=intercept,
        calibration_error=_calibration_error(texts, groups, n_groups, seed),
        score_range=(float(texts.scores.min()), float(texts.scores.max())),
        collected=collected,
    )


def auroc(scores: NDArray[np.float64], is_human: NDArray[np.bool_]) -> float:
    """The share of pairs in which the human text scores higher, ties counting half."""
    return float(_shares_below(scores[is_human], scores[~is_human]).mean())


def _shares_below(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each value the share of the others that are below it, ties counting half: shape (n,)."""
    others = np.sort(others)
    below = np.searchsorted(others, values, "left") + np.searchsorted(others, values, "right")
    return below / (2 * len(others))


def _auroc_interval(
    value: float, texts: Labelled, groups: NDArray[np.int64]
) -> tuple[float | None, float | None]:
    """The 95 % interval, as of so many independent texts as the clusters are worth.

    Texts of a cluster are worth less by as much as they increase DeLong's variance; if the groups
    are perfectly separated, a cluster counts once. None with fewer than ten clusters of either.
    """
    sides = groups[texts.is_human], groups[~texts.is_human]
    n_clusters = [len(set(side)) for side in sides]
    if min(n_clusters) < _MIN_GROUPS:
        return None, None
    n_human, n_machine = map(len, sides)
    people, machines = texts.scores[texts.is_human], texts.scores[~texts.is_human]
    added = np.empty(len(groups))
    added[texts.is_human] = (_shares_below(people, machines) - value) / n_human
    added[~texts.is_human] = (1 - _shares_below(machines, people) - value) / n_machine
    alone = math.fsum(
        n / (n - 1) * float((added[mask] ** 2).sum())
        for mask, n in ((texts.is_human, n_human), (~texts.is_human, n_machine))
    )
    if not alone > 0:
        return auroc_interval(value, *n_clusters)
    by_cluster = np.bincount(groups, added)
    n = len(by_cluster)
    worth = max(1.0, n / (n - 1) * float((by_cluster**2).sum()) / alone)
    return auroc_interval(value, n_human / worth, n_machine / worth)


def find_threshold(texts: Labelled, target: float) -> Threshold:
    """The threshold with at most a share of `target` of the human texts below it.

    The bound on that share is over clusters of human texts (`share_high`), since texts by one
    author or to one prompt are flagged together.
    """
    people = np.sort(texts.scores[texts.is_human])
    machines = texts.scores[~texts.is_human]
    value = float(people[min(len(people) - 1, int(target * len(people) + 1e-9))])
    flagged = texts.scores[texts.is_human] < value
    _, which = np.unique(texts.clusters[texts.is_human], return_inverse=True)
    shares = np.bincount(which, flagged) / np.bincount(which)
    n_false = int(flagged.sum())
    return Threshold(
        target=target,
        value=value,
        false_positives=n_false / len(people),
        # One cluster may hold most of the texts; then they say more than the mean of clusters.
        false_positives_high=max(share_high(shares), clopper_pearson_high(n_false, len(people))),
        true_positives=float((machines < value).mean()),
    )


def _curve(texts: Labelled) -> tuple[tuple[float, float], ...]:
    people, machines = np.sort(texts.scores[texts.is_human]), np.sort(texts.scores[~texts.is_human])
    cuts = np.append(np.unique(texts.scores), np.inf)
    return tuple(
        (float(a) / len(people), float(b) / len(machines))
        for a, b in zip(np.searchsorted(people, cuts), np.searchsorted(machines, cuts), strict=True)
    )


def _logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    y: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(x, -500, 500)))
    return y


def _fit(scores: NDArray[np.float64], is_human: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of the logistic curve (Platt 1999, with his smoothed targets, so that
    classes that do not overlap have one too)."""
    minimize = scipy("optimize").minimize
    n_human, n_machine = int(is_human.sum()), int((~is_human).sum())
    goal = np.where(is_human, (n_human + 1) / (n_human + 2), 1 / (n_machine + 2))
    centre, scale = float(scores.mean()), float(scores.std()) or 1.0
    x = (scores - centre) / scale

    def loss(line: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = line[0] * x + line[1]
        p = _logistic(z)
        value = np.logaddexp(0, z).sum() - (goal * z).sum()
        return float(value), np.array([((p - goal) * x).sum(), (p - goal).sum()])

    line = minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    slope = float(line[0]) / scale
    return slope, float(line[1]) - slope * centre


def _calibration_error(
    texts: Labelled, groups: NDArray[np.int64], n_groups: int, seed: int
) -> float | None:
    """Expected calibration error in ten bins of equal size, each text judged by a curve that was
    fitted to other clusters."""
    if n_groups < 2 * _N_FOLDS:
        return None
    fold = np.random.default_rng([seed, 1]).permutation(n_groups)[groups] % _N_FOLDS
    stated = np.full(len(groups), np.nan)
    for k in range(_N_FOLDS):
        rest, here = fold != k, fold == k
        if not here.any() or len(set(texts.is_human[rest])) < 2:
            continue
        slope, intercept = _fit(texts.scores[rest], texts.is_human[rest])
        stated[here] = _logistic(slope * texts.scores[here] + intercept)
    known = np.isfinite(stated)
    truth = texts.is_human[known].astype(np.float64)
    _, which, counts = np.unique(stated[known], return_inverse=True, return_counts=True)
    # Texts of equal probability share a bin, so that the order of texts does not matter.
    middle = (np.cumsum(counts) - counts / 2) / max(1, int(known.sum()))
    bins = (middle * _N_BINS).astype(np.int64)[which]
    total = np.bincount(bins, minlength=_N_BINS)
    gap = np.bincount(bins, stated[known] - truth, minlength=_N_BINS)
    return float(np.abs(gap).sum() / total.sum())
