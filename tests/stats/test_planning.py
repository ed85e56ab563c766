from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from statsmodels.stats.power import TTestIndPower

from fabula.stats.agreement import concordance, fleiss, pooled_pairs
from fabula.stats.planning import most_raters, plan_sizes, too_little

Floats = NDArray[np.float64]
Study = Callable[[int, int, np.random.Generator], Floats]
"""Ratings of a study of so many stories and raters: (n_stories, n_items, n_raters)."""


def normal_stories(n: int, mean: float = 0.0) -> Floats:
    """Stories of one rater whose ratings are normal, as evenly as they can be: (n, 1, 1)."""
    quantiles: Floats = norm.ppf((np.arange(n) + 0.5) / n)
    return (quantiles / quantiles.std() + mean)[:, None, None]


@pytest.mark.parametrize(("n", "effect"), [(10, 1.0), (25, 0.6), (25, 1.0), (100, 0.3), (50, 0.0)])
def test_power_is_that_of_the_closed_form(n: int, effect: float):
    groups = [normal_stories(4000), normal_stories(4000, effect)]
    (size,) = plan_sizes(groups, [n], [1], is_graded=True, seed=1)
    (alone,) = plan_sizes(groups[:1], [n], [1], is_graded=True, seed=0)
    assert alone.mean_width == pytest.approx(2 * 1.96 / n**0.5, rel=0.08)
    power = 0.05 if effect == 0 else TTestIndPower().power(effect, n, 0.05)
    # Four standard errors of a share of 2,000 studies.
    assert size.power == pytest.approx(power, abs=4 * (power * (1 - power) / 2000) ** 0.5 + 0.005)
    assert size.difference_width == pytest.approx(2 * 1.96 * (2 / n) ** 0.5, rel=0.08)


def test_small_pilots_predict_what_large_ones_do_on_average():
    """Twelve stories vary less than all that they are drawn from, by n / (n - 1): 4 % of width."""
    pilots = np.random.default_rng(3).standard_normal((12, 12, 1, 1))
    sizes = [
        next(plan_sizes([one], [50], [1], is_graded=True, seed=k)) for k, one in enumerate(pilots)
    ]
    ratios = [size.mean_width / one.std(ddof=1) for size, one in zip(sizes, pilots, strict=True)]
    assert np.mean(ratios) == pytest.approx(3.92 / 50**0.5, rel=0.02)


def by_beta(n_stories: int, n_raters: int, rng: np.random.Generator) -> Floats:
    """Verdicts on six items, whose chances of Yes are from beta distributions."""
    quality = rng.beta(1.5, 2, (n_stories, 1, 1))
    chance = rng.beta(4 * quality + 0.2, 4 * (1 - quality) + 0.2, (n_stories, 6, 1))
    return (rng.random((n_stories, 6, n_raters)) < chance).astype(np.float64)


def by_noise(n_stories: int, n_raters: int, rng: np.random.Generator) -> Floats:
    """Marks from 0 to 100 of a skewed quality."""
    quality = 100 * rng.beta(2, 4, (n_stories, 1, 1))
    return np.clip(np.round(quality + rng.normal(0, 15, (n_stories, 1, n_raters))), 0, 100)


def kappa_of(ratings: Floats, *, is_graded: bool) -> float:
    if not is_graded:
        return fleiss(ratings.reshape(-1, ratings.shape[2])).value or 0.0
    a, b, _ = pooled_pairs(ratings[:, 0])
    return concordance(a, b).value or 0.0


@pytest.mark.parametrize(("study", "is_graded"), [(by_beta, False), (by_noise, True)])
@pytest.mark.parametrize(("n_stories", "n_raters"), [(30, 2), (80, 3), (60, 1), (40, 6)])
def test_predicted_widths_are_those_of_simulated_studies(
    study: Study, is_graded: bool, n_stories: int, n_raters: int
):
    """From three raters a story, also for fewer, and for more: those of the mean."""
    pilot = study(800, 3, np.random.default_rng(4))
    (size,) = plan_sizes([pilot], [n_stories], [n_raters], is_graded=is_graded, seed=0)
    rng = np.random.default_rng(11)
    studies = [study(n_stories, n_raters, rng) for _ in range(1500)]
    mean = np.ptp(np.percentile([one.mean() for one in studies], [2.5, 97.5]))
    assert size.mean_width == pytest.approx(mean, rel=0.1)
    assert (size.difference_width, size.power) == (None, None), "of one group"
    if n_raters in (1, 6):
        assert size.kappa_width is None, "one has nobody to agree with; six are more than asked"
        return
    kappas = [kappa_of(one, is_graded=is_graded) for one in studies]
    assert size.kappa_width == pytest.approx(np.ptp(np.percentile(kappas, [2.5, 97.5])), rel=0.1)


def test_ratings_that_are_missing_at_random_change_little():
    rng = np.random.default_rng(0)
    whole = by_beta(1500, 3, rng)
    gaps = whole.copy()
    gaps[rng.random((1500, 1, 3)).repeat(6, axis=1) < 0.2] = np.nan
    gaps[rng.random(gaps.shape) < 0.05] = np.nan
    (a,), (b,) = (plan_sizes([one], [60], [2], is_graded=False, seed=0) for one in (whole, gaps))
    assert b.mean_width == pytest.approx(a.mean_width, rel=0.08)
    assert b.kappa_width == pytest.approx(a.kappa_width, rel=0.1)


def test_nobody_is_drawn_twice_to_agree_with_themselves():
    """Two raters who never agree: with themselves, they would half of the time."""
    pilot = np.tile([[[0.0, 1.0]]], (40, 1, 1))
    pilot[::2] = pilot[::2, :, ::-1]
    (size,) = plan_sizes([pilot], [30], [2], is_graded=False, seed=0)
    assert size.kappa_width == pytest.approx(0, abs=1e-9)
    assert size.mean_width == pytest.approx(0, abs=1e-9)


def test_groups_are_as_large_as_each_other_and_the_seed_decides():
    groups = [by_beta(30, 2, np.random.default_rng(k)) for k in (1, 2)]
    plan = partial(plan_sizes, groups, [10, 20], [1, 2], is_graded=False)
    sizes, again, others = ([*plan(seed=seed)] for seed in (5, 5, 6))
    assert [(one.n_raters, one.n_stories) for one in sizes] == [(1, 10), (1, 20), (2, 10), (2, 20)]
    assert sizes == again != others


def test_a_pilot_that_says_too_little_is_refused():
    assert "fewer than 10 stories" in str(too_little([np.ones((9, 2, 3))]))
    groups = [np.zeros((20, 2, 1)), np.ones((9, 2, 1))]
    assert "fewer than 10 stories of each group" in str(too_little(groups))
    assert "fewer than 10 stories" in str(too_little([np.full((20, 2, 3), np.nan)]))
    assert "everybody gave the same answer" in str(too_little([np.ones((20, 2, 3))]))
    # Its raters are those that ten stories have.
    ratings = np.ones((25, 2, 4))
    ratings[5:, :, 3] = ratings[:, 0, 1] = np.nan
    assert most_raters([ratings]) == 3
    assert most_raters([ratings[:, :, :1], ratings]) == 1
