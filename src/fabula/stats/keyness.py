"""Words or phrases that distinguish two groups of texts: log-odds, and an exact test by text.

Monroe, Colaresi and Quinn 2008, "Fightin' Words", section 3.5. Their z treats the words of a text
as independent, which they are not: a story about a lamp says *lamp* twenty times. So z only
compares a difference with the noise of word counts; significance is tested on which texts hold the
phrase, where a text counts once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fabula.core.packages import scipy
from fabula.stats.resampling import Floats

_SLACK = 1e-9
"""Tolerance within which two outcomes are equally far from the expected value."""


def log_odds(
    a: Floats, b: Floats, n_a: float, n_b: float, prior_size: float
) -> tuple[Floats, Floats]:
    """Log-odds ratios with an informative Dirichlet prior, and their z (equations 16 to 22).

    a, b: float64 (n_phrases,), how often each phrase occurs in the groups, out of `n_a` and `n_b`
    occurrences in total. The prior is the distribution over both groups, worth `prior_size`
    occurrences: it shrinks the differences of rare phrases.
    """
    prior = prior_size * (a + b) / (n_a + n_b)
    with_a, with_b = a + prior, b + prior
    difference = np.log(with_a / (n_a + prior_size - with_a)) - np.log(
        with_b / (n_b + prior_size - with_b)
    )
    return difference, difference / np.sqrt(1 / with_a + 1 / with_b)


Stratum = tuple[int, int, int]
"""The number of texts, of those in group A, and of those that hold the phrase."""


def exact_p(strata: Sequence[Stratum], n_holders_a: int) -> float:
    """Probability that as many texts of A, or an equally unlikely number, hold a phrase by chance.

    Within each stratum all texts are equally likely to belong to A, and strata are independent: for
    one stratum this is Fisher's exact test, for several the exact test of Cochran, Mantel and
    Haenszel. `n_holders_a` is over all strata. Two-sided, by the distance from the mean. It equals
    a permutation test of the texts over all permutations.
    """
    # A stratum held by all or none of the texts, or with only one group, has a single outcome.
    fixed = 0
    open_: list[Stratum] = []
    for n, n_a, n_holders in strata:
        if n_holders in (0, n) or n_a in (0, n):
            fixed += n_a if n_holders == n else n_holders if n_a == n else 0
        else:
            open_.append((n, n_a, n_holders))
    first, chances = _distribution(tuple(sorted(open_)))
    values = first + np.arange(len(chances))
    mean = float(values @ chances)
    distance = abs(n_holders_a - fixed - mean)
    is_as_far = np.abs(values - mean) >= distance - _SLACK
    return min(1.0, math.fsum(chances[is_as_far].tolist()))


@lru_cache(maxsize=1 << 16)
def _distribution(strata: tuple[Stratum, ...]) -> tuple[int, Floats]:
    """Like `_hypergeometric`, over several strata."""
    first, chances = 0, np.ones(1)
    for stratum in strata:
        low, factor = _hypergeometric(*stratum)
        first += low
        chances = np.convolve(chances, factor)
    return first, chances


@lru_cache(maxsize=1 << 16)
def _hypergeometric(n: int, n_a: int, n_holders: int) -> tuple[int, Floats]:
    """The smallest number of holders in A, and the probabilities of it and each larger number."""
    low, high = max(0, n_a + n_holders - n), min(n_a, n_holders)
    k = np.arange(low, high + 1)
    logs = _log_choices(np.array(n_holders), k) + _log_choices(np.array(n - n_holders), n_a - k)
    return low, np.exp(logs - _log_choices(np.array(n), np.array(n_a)))


def smallest_p(which: NDArray[np.int64], strata: NDArray[np.int64], n_tests: int) -> Floats:
    """The smallest p that each test can give, whatever the outcome: float64 (n_tests,).

    It is known without looking at which texts belong to A. which: int64 (n_rows,), the test that a
    stratum belongs to. strata: int64 (n_rows, 3), each a `Stratum`.
    """
    n, n_a, n_holders = strata.T
    ends = np.maximum(0, n_a + n_holders - n), np.minimum(n_a, n_holders)
    logs = [
        np.bincount(
            which,
            _log_choices(n_holders, k)
            + _log_choices(n - n_holders, n_a - k)
            - _log_choices(n, n_a),
            minlength=n_tests,
        )
        for k in ends
    ]
    p_values: Floats = np.exp(np.minimum(*logs))
    return p_values


def _log_choices(n: NDArray[np.int64], k: NDArray[np.int64]) -> Floats:
    gammaln = scipy("special").gammaln
    logs: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return logs


def can_pass(smallest: Floats, max_p: float) -> NDArray[np.bool_]:
    """Which tests could be significant after correction for all that could (Tarone 1990).

    smallest: float64 (n_tests,), the smallest p that each can give. A phrase held by three texts of
    a thousand cannot, and correcting for it would only hide phrases that can. The selection does
    not look at the groups, so a correction over the remaining tests keeps its level.
    """
    ordered = np.sort(smallest)
    n = 1
    while n < len(ordered) and np.searchsorted(ordered, max_p / n, "right") > n:
        n += 1
    passing: NDArray[np.bool_] = smallest <= max_p / n
    return passing
