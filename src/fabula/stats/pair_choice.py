"""Choosing which pairs to compare next, when the budget does not allow all.

The first round is two random cycles through the things, so that all are connected and each is
compared about four times; tests of a ranking use these pairs, since their choice does not depend on
answers. Later rounds ask the pairs expected to be the most informative given the answers so far:
those that increase the determinant of the information about all strengths most (D-optimality;
Grasshoff and Schwabe 2008 for Bradley and Terry's model). A pair is informative if its strengths
are uncertain and close to each other. For this, strengths have a normal prior of standard deviation
1; it affects which pairs are asked, but never a reported strength.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.bradley_terry import Cells, fit
from fabula.stats.ranking import Comparisons

CHOICE = "d-optimal-1"
"""How pairs are chosen, for signatures."""

_N_CYCLES = 2
_PRECISION = 1.0

Pair = tuple[int, int]


def round_size(n_things: int) -> int:
    """How many pairs are chosen at a time: the same for every budget, so that a larger one
    continues where a smaller one ended."""
    return max(1, n_things // 2)


def _parts(pairs: Sequence[Pair]) -> list[list[int]]:
    """The connected components of the pairs, each in the order of its first pair."""
    part_of: dict[int, list[int]] = {}
    for a, b in pairs:
        one, other = part_of.setdefault(a, [a]), part_of.setdefault(b, [b])
        if one is not other:
            one += other
            for thing in other:
                part_of[thing] = one
    return list({id(part): part for part in part_of.values()}.values())


def least_pairs(pairs: Sequence[Pair]) -> int:
    """The minimum number of these pairs that connects everything they connect."""
    return sum(len(part) - 1 for part in _parts(pairs))


def first_pairs(pairs: Sequence[Pair], n_pairs: int, rng: np.random.Generator) -> list[Pair]:
    """Random cycles through each part, up to `n_pairs`; first the pairs that connect everything.

    pairs: all pairs that may be asked; any two things of a part are a pair.
    """
    known = set(pairs)
    chosen: dict[Pair, None] = {}
    for _ in range(_N_CYCLES):
        paths: list[Pair] = []
        closing: list[Pair] = []
        for part in _parts(pairs):
            order = [int(thing) for thing in rng.permutation(part)]
            paths += pairwise(order)
            closing.append((order[-1], order[0]))
        both = ((a, b) if (a, b) in known else (b, a) for a, b in [*paths, *closing])
        chosen |= dict.fromkeys(both)
    return list(chosen)[:n_pairs]


def next_pairs(
    pairs: Sequence[Pair], answers: Comparisons, n_things: int, n_pairs: int, n_answers: int
) -> list[Pair]:
    """Choose the `n_pairs` of these pairs expected to be most informative after these answers.

    pairs: those not yet asked. n_answers: how many answers a pair gets. Each pair is chosen as if
    those before it had been asked. Ties go to the first.
    """
    if not pairs:
        return []
    theta, covariance = posterior(answers, n_things)
    first, second = np.array(pairs, np.int64).T
    p = scipy("special").expit(theta[first] - theta[second])
    weight = n_answers * p * (1 - p)
    is_left = np.ones(len(pairs), np.bool_)
    chosen: list[Pair] = []
    for _ in range(min(n_pairs, len(pairs))):
        variance = (
            covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
        )
        # Rounded, so that ties are the same on every machine.
        gain = np.where(is_left, np.round(weight * variance, 9), -1.0)
        best = int(np.argmax(gain))
        is_left[best] = False
        chosen.append(pairs[best])
        moved = covariance[first[best]] - covariance[second[best]]
        covariance -= np.outer(moved, moved) * weight[best] / (1 + weight[best] * variance[best])
    return chosen


def posterior(
    answers: Comparisons, n_things: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strengths, shape (n,), and their covariance, under a normal prior of standard deviation 1.

    The place effect is not included.
    """
    tally = answers.tally(n_things)
    cells = Cells.of(tally.first, tally.second, np.zeros(n_things, np.int64), has_place=True)
    theta = fit(cells, tally.shown[None], tally.preferred[None], precision=_PRECISION)[0]
    p = scipy("special").expit(cells.rows @ theta)
    curvature = cells.curvature((tally.shown * p * (1 - p))[None])[0]
    covariance = np.linalg.inv(curvature + _PRECISION * np.eye(n_things + 1))
    return theta[:n_things], covariance[:n_things, :n_things]
