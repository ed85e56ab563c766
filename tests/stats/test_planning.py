from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fabula.stats.planning import (
    GradedPilot,
    Pilot,
    StoryPool,
    _draw,
    _draw_numbers,
    _joint_excess,
    fit_graded,
    fit_pilot,
    pair_sums,
)
from fabula.stats.reliability import (
    concordance_of_sums,
    fleiss_kappa,
    pearson_of_sums,
    pearson_sums,
    pooled_pairs,
)

Floats = NDArray[np.float64]
Study = Callable[[int, int, np.random.Generator], Floats]
"""Verdicts of a study of so many stories and raters: (n_stories, n_items, n_raters)."""

TRUE = Pilot((0.5, -0.2, 0.1, 1.0, 0.0), same_item=0.45, same_story=0.25, same_rater=0.4)


def by_probit(n_stories: int, n_raters: int, rng: np.random.Generator) -> Floats:
    return _draw(TRUE, n_stories, n_raters, rng).astype(np.float64)


def by_beta(n_stories: int, n_raters: int, rng: np.random.Generator) -> Floats:
    """Another model than the one that is fitted: chances of Yes from beta distributions."""
    quality = rng.beta(1.5, 2, (n_stories, 1, 1))
    chance = rng.beta(4 * quality + 0.2, 4 * (1 - quality) + 0.2, (n_stories, 6, 1))
    return (rng.random((n_stories, 6, n_raters)) < chance).astype(np.float64)


def simulated(study: Study, n_stories: int, n_raters: int) -> tuple[float, float]:
    """The widths of the central 95 % in 1,500 studies."""
    rng = np.random.default_rng(11)
    means, kappas = [], []
    for _ in range(1500):
        ratings = study(n_stories, n_raters, rng)
        means.append(ratings.mean())
        kappas.append(fleiss_kappa(ratings.reshape(-1, n_raters)))
    ends = [np.percentile(np.array(v, np.float64), [2.5, 97.5]) for v in (means, kappas)]
    return float(np.ptp(ends[0])), float(np.ptp(ends[1]))


@pytest.mark.parametrize("study", [by_probit, by_beta])
@pytest.mark.parametrize(("n_stories", "n_raters"), [(30, 2), (80, 3), (40, 6)])
def test_predicted_widths_are_those_of_simulated_studies(
    study: Study, n_stories: int, n_raters: int
) -> None:
    pilot = fit_pilot(study(800, 3, np.random.default_rng(4)))
    assert isinstance(pilot, Pilot)
    predicted = StoryPool.drawn(pilot, n_raters, seed=0).widths(n_stories)
    mean, kappa = simulated(study, n_stories, n_raters)
    assert predicted.mean == pytest.approx(mean, rel=0.1)
    assert predicted.kappa == pytest.approx(kappa, rel=0.1)


@pytest.mark.parametrize(("statistic", "width"), [("mean", 0.15), ("kappa", 0.3), ("kappa", 0.08)])
def test_so_many_stories_have_an_interval_of_the_wanted_width(statistic: str, width: float) -> None:
    pool = StoryPool.drawn(TRUE, 3, seed=0)
    n = pool.n_for(statistic, width)
    assert n is not None
    assert pool.widths(n).of(statistic) == pytest.approx(width, rel=0.05)


def test_more_raters_take_fewer_stories() -> None:
    needed = [StoryPool.drawn(TRUE, m, seed=0).n_for("kappa", 0.1) or 0 for m in (2, 4, 8)]
    assert needed == sorted(needed, reverse=True)
    assert StoryPool.drawn(TRUE, 1, seed=0).n_for("kappa", 0.1) is None


def test_the_model_of_a_large_pilot_is_found_again() -> None:
    rng = np.random.default_rng(0)
    ratings = by_probit(4000, 3, rng)
    # Also where a third of the verdicts is missing, for whole raters and for single ones.
    ratings[rng.random((4000, 1, 3)).repeat(5, axis=1) < 0.2] = np.nan
    ratings[rng.random(ratings.shape) < 0.15] = np.nan
    pilot = fit_pilot(ratings)
    assert isinstance(pilot, Pilot)
    assert pilot.thresholds == pytest.approx(TRUE.thresholds, abs=0.05)
    for name in ("same_item", "same_story", "same_rater"):
        assert getattr(pilot, name) == pytest.approx(getattr(TRUE, name), abs=0.04)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9, 0.999])
def test_the_chance_of_two_yes_is_that_of_the_bivariate_normal(correlation: float) -> None:
    from scipy.stats import multivariate_normal, norm

    thresholds = np.array([-1.5, 0.0, 0.7])
    found = _joint_excess(thresholds, correlation)
    normal = multivariate_normal(np.zeros(2), np.array([[1, correlation], [correlation, 1]]))
    for i, a in enumerate(thresholds):
        for j, b in enumerate(thresholds):
            wanted = float(normal.cdf([-a, -b])) - norm.cdf(-a) * norm.cdf(-b)
            assert found[i, j] == pytest.approx(wanted, abs=2e-4)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        (np.ones((9, 2, 3)), "fewer than 10 stories"),
        (np.ones((20, 2, 1)), "fewer than 10 stories of the pilot have two raters"),
        (np.ones((20, 2, 3)), "everybody gave the same answer to each item"),
    ],
)
def test_a_pilot_that_says_too_little_is_refused(ratings: Floats, reason: str) -> None:
    assert reason in str(fit_pilot(ratings))


GRADES = GradedPilot((1.0, 2.0, 3.0, 4.0, 5.0), (-1.4, -0.3, 0.4, 1.5), same_item=0.55)


def marks_by_probit(n_stories: int, n_raters: int, rng: np.random.Generator) -> Floats:
    return _draw_numbers(GRADES, n_stories, n_raters, rng)


def marks_by_noise(n_stories: int, n_raters: int, rng: np.random.Generator) -> Floats:
    """Another model than the one that is fitted: a skewed quality, and marks of 0 to 100."""
    quality = 100 * rng.beta(2, 4, (n_stories, 1))
    return np.clip(np.round(quality + rng.normal(0, 15, (n_stories, n_raters))), 0, 100)


@pytest.mark.parametrize("study", [marks_by_probit, marks_by_noise])
@pytest.mark.parametrize(("n_stories", "n_raters"), [(30, 2), (60, 4)])
def test_predicted_widths_of_numbers_are_those_of_simulated_studies(
    study: Callable[[int, int, np.random.Generator], Floats], n_stories: int, n_raters: int
) -> None:
    pilot = fit_graded(study(1500, 3, np.random.default_rng(4)))
    assert isinstance(pilot, GradedPilot)
    predicted = StoryPool.drawn(pilot, n_raters, seed=0).widths(n_stories)
    rng = np.random.default_rng(11)
    means, kappas = [], []
    for _ in range(1500):
        marks = study(n_stories, n_raters, rng)
        a, b = pooled_pairs(marks)
        means.append(marks.mean())
        kappas.append(float(concordance_of_sums(pearson_sums(a, b).sum(axis=0))))
    for found, drawn in ((predicted.mean, means), (predicted.kappa, kappas)):
        assert found == pytest.approx(np.ptp(np.percentile(drawn, [2.5, 97.5])), rel=0.1)


def test_the_model_of_a_large_pilot_of_numbers_is_found_again() -> None:
    rng = np.random.default_rng(0)
    marks = marks_by_probit(4000, 4, rng)
    marks[rng.random(marks.shape) < 0.3] = np.nan
    pilot = fit_graded(marks)
    assert isinstance(pilot, GradedPilot)
    assert pilot.values == GRADES.values
    assert pilot.thresholds == pytest.approx(GRADES.thresholds, abs=0.05)
    assert pilot.same_item == pytest.approx(GRADES.same_item, abs=0.04)


def test_sums_of_stories_are_those_of_their_pairs() -> None:
    marks = np.array([[1.0, 4.0, np.nan], [2.0, 2.0, 5.0], [3.0, np.nan, np.nan]])
    a, b = pooled_pairs(marks)
    sums = [pair_sums(marks).sum(axis=0), pearson_sums(a, b).sum(axis=0)]
    for of_sums in (pearson_of_sums, concordance_of_sums):
        assert of_sums(sums[0]) == pytest.approx(of_sums(sums[1]))


@pytest.mark.parametrize(
    ("marks", "reason"),
    [
        (np.ones((9, 3)), "fewer than 10 stories"),
        (np.ones((20, 1)), "fewer than 10 stories of the pilot have two raters"),
        (np.full((20, 3), 4.0), "everybody gave the same answer"),
    ],
)
def test_a_pilot_of_numbers_that_says_too_little_is_refused(marks: Floats, reason: str) -> None:
    assert reason in str(fit_graded(marks))
