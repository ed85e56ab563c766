"""Estimating rater ability and the probable truth when no truth is known.

Dawid and Skene 1979: each rater has a confusion matrix, the probability of each answer for each
true category. Raters are people and models alike. They are assumed to err independently of each
other given the truth; if they share a bias, the "truth" shares it too.

Nothing is estimated from a table that does not determine it: two raters who disagree do not show
which of them is right, so a rater's ability needs subjects that two others answered too. A value
that cannot be estimated is None with its reason, never NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.resample import percentile_interval
from fabula.types import Estimate

Floats = NDArray[np.float64]

_MIN_RATERS = 3
_MIN_MASS = 1e-10
"""Minimum of expected answers in a cell, to avoid the logarithm of 0."""
_N_ITERATIONS = 1000
_TOLERANCE = 1e-9
_ROUGH_TOLERANCE = 1e-3
"""Tolerance for resamples, whose own noise is far larger."""
_N_RESAMPLES = 500
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class RaterSkill:
    """The ability of a rater.

    `ability` has a value, or `missing_reason` is set. It is the balanced accuracy: the mean of the
    diagonal of the confusion matrix, 1 / n_categories if guessing and 1 if always right.
    """

    ability: Estimate
    missing_reason: str | None = None
    confusion: tuple[tuple[float, ...] | None, ...] = ()
    """A row per true category, with the probability of each answer; None if the rater answered
    no subject likely to be of that category."""


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """The fit to a table of ratings, or in `missing_reason` why there is none."""

    categories: tuple[float, ...]
    probabilities: tuple[tuple[float, ...] | None, ...]
    """For each subject the probability of each category; None if nobody answered it."""
    raters: tuple[RaterSkill, ...]
    shares: tuple[float, ...] = ()
    """The share of each category among all subjects."""
    log_likelihood: float | None = None
    n_iterations: int = 0
    has_converged: bool = False
    missing_reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Table:
    """Ratings as patterns: subjects with the same answers are fitted as one, with a weight."""

    categories: Floats
    answers: Floats
    """1 if the rater gave this answer: shape (n_patterns, n_raters, n_categories)."""
    patterns: NDArray[np.intp]
    """The pattern of each subject, shape (n_subjects,)."""

    @classmethod
    def of(cls, ratings: Floats) -> _Table:
        categories = np.unique(ratings[~np.isnan(ratings)])
        codes = np.where(np.isnan(ratings), -1, np.searchsorted(categories, ratings))
        kinds, patterns = np.unique(codes, axis=0, return_inverse=True)
        answers = (kinds[:, :, None] == np.arange(len(categories))).astype(np.float64)
        return cls(categories, answers, patterns.reshape(-1))

    @property
    def weights(self) -> Floats:
        """The number of subjects with each pattern: shape (n_patterns,)."""
        return np.bincount(self.patterns, minlength=len(self.answers)).astype(np.float64)

    @property
    def is_answered(self) -> NDArray[np.bool_]:
        """Whether a rater answered, by pattern and rater."""
        given: NDArray[np.bool_] = np.any(self.answers > 0, axis=2)
        return given

    def missing_reason(self) -> str | None:
        """Why nothing can be estimated from it, or None."""
        given = self.is_answered
        if not given.any():
            return "there are no answers"
        if given.any(axis=0).sum() == 1:
            return "there is one rater only"
        if len(self.categories) == 1:
            return "everybody gave the same answer to everything"
        if given.sum(axis=1).max() < _MIN_RATERS:
            return f"no subject was answered by {_MIN_RATERS} raters"
        return None

    def without_ability(self) -> list[str | None]:
        """For each rater, why its ability cannot be estimated, or None."""
        given = self.is_answered
        shared = np.any(given[given.sum(axis=1) >= _MIN_RATERS], axis=0)
        answered = np.any(given, axis=0)
        return [
            None
            if is_shared
            else "shares no subject with two other raters"
            if has_answers
            else "gave no answer"
            for is_shared, has_answers in zip(shared, answered, strict=True)
        ]

    def by_group(self, groups: Sequence[object]) -> Floats:
        """How many subjects of each group have each pattern: shape (n_groups, n_patterns)."""
        places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
        counts = np.zeros((len(places), len(self.answers)))
        np.add.at(counts, (np.array([places[group] for group in groups]), self.patterns), 1)
        return counts

    def of_subjects(self, posteriors: Floats) -> tuple[tuple[float, ...] | None, ...]:
        """Probabilities by pattern, mapped to subjects; None for those nobody answered."""
        given = np.any(self.is_answered, axis=1)
        rows = [
            tuple(row) if some else None
            for row, some in zip(posteriors.tolist(), given, strict=True)
        ]
        return tuple(rows[pattern] for pattern in self.patterns)


def dawid_skene(
    ratings: Floats, groups: Sequence[object] | None = None, *, seed: int = 0, signature: str = ""
) -> DawidSkene:
    """Dawid and Skene 1979, by EM from the shares of votes (their section 3).

    ratings: float64 of any categories, shape (n_subjects, n_raters), NaN if missing. `groups`
    says what each subject belongs to (its document; the subject itself if None); intervals are by
    bootstrap over groups, if the rater answered at least ten. EM finds a maximum near the votes,
    not always the highest; its categories are labelled to agree best with the votes.
    """
    table = _Table.of(ratings)
    categories = tuple(table.categories.tolist())
    if reason := table.missing_reason():
        nobody = _nobody(ratings, reason, signature)
        return DawidSkene(categories, (None,) * len(ratings), nobody, missing_reason=reason)
    fit = _em(table, table.weights[None], _TOLERANCE)
    counts = table.by_group(range(len(ratings)) if groups is None else groups)
    # Groups drawn with replacement, as weights of patterns: shape (n_resamples, n_patterns).
    shares = np.full(len(counts), 1 / len(counts))
    draws = np.random.default_rng(seed).multinomial(len(counts), shares, _N_RESAMPLES) @ counts
    step = max(1, _BLOCK // table.answers.size)
    resampled = np.concatenate(
        [
            _em(table, draws[start : start + step], _ROUGH_TOLERANCE).abilities()
            for start in range(0, len(draws), step)
        ]
    )
    skills = _skills(table, fit.abilities()[0], resampled, counts, signature)
    return DawidSkene(
        categories=categories,
        probabilities=table.of_subjects(fit.posteriors[0]),
        raters=tuple(
            RaterSkill(skill.ability, skill.missing_reason, rows)
            for skill, rows in zip(skills, fit.confusions(), strict=True)
        ),
        shares=tuple(fit.shares[0].tolist()),
        log_likelihood=float(fit.log_likelihood[0]),
        n_iterations=fit.n_iterations,
        has_converged=bool(fit.has_converged[0]),
    )


def _nobody(ratings: Floats, reason: str, signature: str) -> tuple[RaterSkill, ...]:
    """Missing skills for all raters."""
    given = (~np.isnan(ratings)).sum(axis=0)
    return tuple(
        RaterSkill(Estimate(None, None, None, int(n), "Dawid-Skene", signature, None), reason)
        for n in given
    )


def _skills(
    table: _Table,
    abilities: Floats,
    resampled: Floats,
    by_group: Floats,
    signature: str,
) -> list[RaterSkill]:
    """abilities: shape (n_raters,); resampled: shape (n_resamples, n_raters); NaN if undefined."""
    method = "balanced accuracy by Dawid-Skene, percentile bootstrap over documents"
    answered = table.is_answered.astype(np.float64)
    n_answers, n_units = table.weights @ answered, (by_group @ answered > 0).sum(axis=0)
    skills = []
    for k, reason in enumerate(table.without_ability()):
        value = None if reason or np.isnan(abilities[k]) else float(abilities[k])
        if value is None:
            reason = reason or "answered no subject of one of the categories"
        ends = (None, None) if reason else percentile_interval(resampled[:, k], int(n_units[k]))
        estimate = Estimate(value, *ends, int(n_answers[k]), method, signature, int(n_units[k]))
        skills.append(RaterSkill(estimate, reason))
    return skills


@dataclass(slots=True)
class _Fit:
    """EM on several samples of one table at once; the first axis is the sample."""

    posteriors: Floats
    """Shape (n_samples, n_patterns, n_categories)."""
    masses: Floats
    """Expected answers by rater, answer and truth: (n_samples, n_raters, n_answers, n_truths)."""
    shares: Floats
    log_likelihood: Floats
    has_converged: NDArray[np.bool_]
    n_iterations: int

    def abilities(self) -> Floats:
        """Balanced accuracy, shape (n_samples, n_raters); NaN if a category has no answers."""
        of_truth = self.masses.sum(axis=2)
        right = np.diagonal(self.masses, axis1=2, axis2=3)
        known = of_truth > 1e-6
        recalls = np.where(known, right / np.where(known, of_truth, 1), np.nan)
        abilities: Floats = recalls.mean(axis=2)
        return abilities

    def confusions(self) -> list[tuple[tuple[float, ...] | None, ...]]:
        """For the first sample: by rater and truth, the probability of each answer."""
        return [
            tuple(
                tuple((row / row.sum()).tolist()) if row.sum() > 1e-6 else None
                for row in of_rater.T
            )
            for of_rater in self.masses[0]
        ]


def _em(table: _Table, weights: Floats, tolerance: float) -> _Fit:
    """Run EM until the log-likelihood of every sample gains less than `tolerance` per step.

    weights: shape (n_samples, n_patterns).
    """
    n_patterns, n_raters, n_categories = table.answers.shape
    answers = table.answers.reshape(n_patterns, n_raters * n_categories)
    votes = table.answers.sum(axis=1)
    # A pattern without answers has no influence, but still needs probabilities.
    start = votes + (votes.sum(axis=1, keepdims=True) == 0) / n_categories
    start /= start.sum(axis=1, keepdims=True)
    weights = weights * (votes.sum(axis=1) > 0)
    posteriors = np.repeat(start[None], len(weights), axis=0)
    before = np.full(len(weights), -np.inf)
    n_iterations, has_converged = 0, np.zeros(len(weights), bool)
    while n_iterations < _N_ITERATIONS and not has_converged.all():
        n_iterations += 1
        masses, shares = _m_step(posteriors, weights, answers, n_raters)
        posteriors, log_likelihood = _e_step(masses, shares, weights, answers)
        has_converged = log_likelihood - before < tolerance
        before = log_likelihood
    posteriors = _named_by_votes(posteriors, weights, votes)
    masses, shares = _m_step(posteriors, weights, answers, n_raters)
    return _Fit(posteriors, masses, shares, log_likelihood, has_converged, n_iterations)


def _m_step(
    posteriors: Floats, weights: Floats, answers: Floats, n_raters: int
) -> tuple[Floats, Floats]:
    """Expected answers by rater, answer and truth, and the share of each truth."""
    weighted = posteriors * weights[:, :, None]
    n_samples, _, n_categories = posteriors.shape
    masses = (answers.T @ weighted).reshape(n_samples, n_raters, n_categories, n_categories)
    shares = weighted.sum(axis=1)
    return masses, shares / np.maximum(shares.sum(axis=1, keepdims=True), _MIN_MASS)


def _e_step(
    masses: Floats, shares: Floats, weights: Floats, answers: Floats
) -> tuple[Floats, Floats]:
    """The probability of each truth by pattern, and the log-likelihood of each sample."""
    floored = np.maximum(masses, _MIN_MASS)
    logs = np.log(floored) - np.log(floored.sum(axis=2, keepdims=True))
    n_samples, n_raters, n_categories, _ = masses.shape
    logs = logs.reshape(n_samples, n_raters * n_categories, n_categories)
    joint = np.log(np.maximum(shares, _MIN_MASS))[:, None, :] + answers @ logs
    return _normalised(joint, weights)


def _normalised(joint: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Probabilities over the last axis from logarithms, and the weighted sum of their totals."""
    top = joint.max(axis=-1, keepdims=True)
    likely = np.exp(joint - top)
    totals = likely.sum(axis=-1, keepdims=True)
    log_likelihood = (weights * (top + np.log(totals))[..., 0]).sum(axis=-1)
    return likely / totals, log_likelihood


def _named_by_votes(posteriors: Floats, weights: Floats, votes: Floats) -> Floats:
    """Permute the categories so that they agree best with the votes.

    The likelihood does not depend on the labels of latent categories, so a fit may end with two of
    them exchanged.
    """
    linear_sum_assignment = scipy("optimize").linear_sum_assignment
    named = posteriors
    agreements = posteriors.transpose(0, 2, 1) @ (weights[:, :, None] * votes)
    for sample, agreement in enumerate(agreements):
        places, names = linear_sum_assignment(-agreement)
        if agreement[places, names].sum() > np.trace(agreement) + 1e-9:
            named[sample][:, names] = posteriors[sample][:, places].copy()
    return named
