"""What is promised at 5 % and 95 %, by simulation from distributions whose truth is known.

Seeds are fixed, so a test either always passes or never. The bounds are four standard errors, or
two where an interval is known to be narrow. `docs/reliability.md` lists where each simulation is.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests
from tests.stats.contrasted import clusters, means, percent
from tests.stats.test_ranking import by_cluster, ranked, simulated, values

from fabula.core.types import Estimate
from fabula.stats.agreement import association_within, cohen, difference
from fabula.stats.contrasts import exact_p, holm, kruskal_wallis, permutation_f
from fabula.stats.prediction_powered import is_covered
from fabula.stats.ranking import is_told_apart

Floats = NDArray[np.float64]


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand draws have the ends of four thousand to within the noise of these trials."""
    monkeypatch.setattr("fabula.stats.resampling.N_DRAWS", 1000)
    monkeypatch.setitem(permutation_f.__kwdefaults__, "n_permutations", 99)
    # statsmodels collects all garbage of the process at each call.
    monkeypatch.setattr("gc.collect", lambda: 0)


def holds(found: Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


def check_coverage(n_held: int, n: int, least: float = 0.9) -> None:
    """About 95 %: at least `least`, and not all."""
    assert least * n <= n_held < n, f"{n_held} of {n}"


def check_level(n_rejected: int, n: int) -> None:
    """About 5 %, within four standard errors."""
    assert abs(n_rejected - 0.05 * n) <= 4 * math.sqrt(0.05 * 0.95 * n), f"{n_rejected} of {n}"


def test_a_difference_of_independent_means():
    rng = np.random.default_rng(1)
    n, n_held, n_rejected = 150, 0, 0
    for _seed in range(n):
        a, b = rng.gamma(4, 2.5, 40), rng.gamma(4, 2.0, 30)
        n_held += holds(percent(means(a.tolist(), b.tolist())), 25)
        p = means(a.tolist(), (1.25 * b).tolist()).p
        n_rejected += p < 0.05
    check_coverage(n_held, n)
    check_level(n_rejected, n)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_difference_of_clustered_means(is_shared: bool):
    """Values of a cluster are alike: of all values as if they were independent, few would hold."""
    rng = np.random.default_rng(3)
    n, n_held, n_held_alone = 100, 0, 0
    for seed in range(n):
        groups, values = [], []
        own = rng.normal(0, 2, 24)
        for k, middle in enumerate((11.0, 10.0)):
            own = own if is_shared else rng.normal(0, 2, 24)
            drawn = middle + own[:, None] + rng.normal(0, 1, (24, 5))
            name = 0 if is_shared else k
            groups.append({f"{name}-{c}": list(row) for c, row in enumerate(drawn)})
            values.append(drawn.ravel().tolist())
        n_held += holds(percent(clusters(*groups, seed=seed)), 10)
        n_held_alone += holds(means(*values).details["percent"], 10)
    check_coverage(n_held, n)
    assert (n_held_alone < 0.8 * n) is not is_shared


@pytest.mark.parametrize("draw", [
    lambda rng: rng.normal(size=20), lambda rng: rng.integers(0, 4, 20).astype(float)
])  # fmt: skip
def test_kruskal_and_wallis_of_equal_groups(draw: Callable[[np.random.Generator], Floats]):
    rng = np.random.default_rng(4)
    n = 500
    check_level(sum(kruskal_wallis([draw(rng) for _ in range(3)])[1] < 0.05 for _ in range(n)), n)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holms_correction_is_that_of_statsmodels(ps: list[float]):
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist(), abs=1e-12)


def test_holm_rejects_any_true_one_of_five_in_one_of_twenty():
    rng = np.random.default_rng(5)
    n = 2000
    check_level(sum(min(p or 0 for p in holm(rng.random(5).tolist())) < 0.05 for _ in range(n)), n)


@pytest.mark.parametrize("kind", ["slope", "correlation"])
def test_an_association_within_strata_of_clustered_subjects(kind: str):
    """x and y share a part within a cluster; strata shift both, and count for nothing."""
    rng = np.random.default_rng(6)
    n, n_held = 100, 0
    strata, clusters = np.tile([0, 1, 2], 60), np.repeat(np.arange(60), 3)
    for _seed in range(n):
        x = rng.normal(0, 1, 60).repeat(3) + rng.normal(0, 1, 180)
        y = 0.5 * x + rng.normal(0, 1, 60).repeat(3) + rng.normal(0, 0.5, 180)
        found = association_within(
            x + 9 * strata, y - 4 * strata, strata.tolist(), clusters.tolist(),
            kind=kind, method="", signature="",
        )  # fmt: skip
        # Var x = 2; Var y = 2 / 4 + 1 + 1 / 4; their covariance is 1.
        n_held += holds(found, 0.5 if kind == "slope" else 1 / math.sqrt(2 * 1.75))
    check_coverage(n_held, n)


def agreeing(rng: np.random.Generator, n: int, *shares: float) -> list[Floats]:
    """A yes or no to each subject, and raters who say the same with these probabilities."""
    truth = rng.integers(0, 2, n).astype(float)
    return [truth, *(np.where(rng.random(n) < share, truth, 1 - truth) for share in shares)]


def test_a_kappa_and_the_difference_of_two():
    rng = np.random.default_rng(7)
    n, n_held, n_held_apart = 100, 0, 0
    for seed in range(n):
        truth, one, other = agreeing(rng, 80, 0.8, 0.9)
        found = cohen(truth, one).estimate(range(80), seed=seed, method="", signature="")
        sides = [(cohen(truth, rater), range(80)) for rater in (one, other)]
        apart = difference(*sides, method="", signature="")
        # Where half are Yes, kappa is twice the agreement less 1.
        n_held += holds(found, 0.6)
        n_held_apart += holds(apart, 0.6 - 0.8)
    check_coverage(n_held, n)
    check_coverage(n_held_apart, n)


def test_strengths_and_gaps_of_a_ranking():
    strengths = [1.0, 0.5, 0.0, 0.0, -0.5, -1.0]
    n, n_held, n_known, n_apart = 80, 0, 0, 0
    for seed in range(n):
        found = ranked(simulated(strengths, 0, 4, np.random.default_rng(seed)), 6)
        for one in found.strengths:
            if one.estimate.low is not None:
                n_known += 1
                n_held += holds(one.estimate, strengths[one.thing])
        for gap in found.gaps:
            n_apart += {int(gap.a), int(gap.b)} == {2, 3} and bool(is_told_apart(gap))
    assert n_known > 0.9 * n * len(strengths)
    check_coverage(n_held, n_known)
    # The two that are equal, where they are neighbours: corrected over five gaps.
    assert n_apart <= 0.05 * n


def test_strengths_of_a_ranking_over_clusters():
    """Twelve prompts, on each of which things are better or worse than on others."""
    n, n_held, n_known = 80, 0, 0
    # Strengths over all prompts: those of a million comparisons of things that vary so.
    truth = values(ranked(by_cluster(6000, 99), 3))
    for seed in range(n):
        for one in ranked(by_cluster(12, seed), 3).strengths:
            if one.estimate.low is not None:
                n_known += 1
                n_held += holds(one.estimate, truth[one.thing] or 0.0)
    assert n_known > 0.9 * n * 3
    check_coverage(n_held, n_known)


def test_labels_of_a_random_sample_are_seldom_refused():
    rng = np.random.default_rng(12)
    n = 500
    n_refused = sum(not is_covered(rng.normal(size=12), rng.normal(size=50)) for _ in range(n))
    # Two tests, of which each refuses one sample in a thousand.
    assert n_refused <= 0.002 * n + 4 * math.sqrt(0.002 * n)


def test_a_phrase_that_both_groups_use_alike_is_seldom_a_key_phrase():
    """The test is exact, so 5 % is a bound; a phrase that many texts hold comes near it."""
    rng = np.random.default_rng(10)
    n_all, n_rejected = 2000, 0
    for _ in range(n_all):
        strata = [(30, 14, 12), (24, 12, 9)]
        held = [rng.hypergeometric(n_held, n - n_held, n_a) for n, n_a, n_held in strata]
        n_rejected += exact_p(strata, int(sum(held))) < 0.05
    assert 0.01 * n_all < n_rejected <= 0.05 * n_all + 4 * math.sqrt(0.05 * 0.95 * n_all)
