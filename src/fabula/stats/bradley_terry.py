"""The model of Bradley and Terry 1952 with a place effect, and its fit.

The log-odds that the thing shown first is preferred are its strength minus that of the second, plus
the place effect (Davidson and Beaver 1977). The log-likelihood is concave; Newton's method finds
its maximum, for many sets of answers at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy
from fabula.stats.intervals import Floats

if TYPE_CHECKING:
    from scipy import sparse

_MAX_STEPS = 40
_TOLERANCE = 1e-9
_SLACK = 1e-9
_LARGEST_PLACE = 10.0
"""A finite place effect of this size would take 20,000 answers to show."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cells:
    """The orders in which two things were shown, with the contribution of each to the log-odds,
    and to the score and the curvature of the log-likelihood.

    rows: shape (n_cells, size), 1 for the first thing, -1 for the second, and 1 for the place
    effect if there is such a column. squares: shape (size * size, n_cells), the outer products of
    rows. centre: shape (size, size), 1 between things of a group, whose strengths sum to 0.
    """

    rows: sparse.csr_array
    squares: sparse.csr_array
    centre: Floats
    has_place: bool

    @classmethod
    def of(cls, first: Ints, second: Ints, groups: Ints, *, has_place: bool) -> Cells:
        n_things, n_cells = len(groups), len(first)
        size = n_things + has_place
        columns = np.stack([first, second, np.full(n_cells, n_things)][: 2 + has_place], axis=1)
        values = np.array([1.0, -1.0, 1.0])[: 2 + has_place]
        cells = np.repeat(np.arange(n_cells), len(values))
        csr_array = scipy("sparse").csr_array
        rows = csr_array((np.tile(values, n_cells), (cells, columns.ravel())), (n_cells, size))
        places = columns[:, :, None] * size + columns[:, None, :]
        squares = csr_array(
            (
                np.tile(np.outer(values, values).ravel(), n_cells),
                (places.ravel(), np.repeat(np.arange(n_cells), len(values) ** 2)),
            ),
            (size * size, n_cells),
        )
        centre = np.zeros((size, size))
        centre[:n_things, :n_things] = groups[:, None] == groups
        return cls(rows, squares, centre, has_place)

    def curvature(self, weights: Floats) -> Floats:
        """Minus the second derivatives, made invertible: weights (b, n_cells) to (b, size, size)"""
        size = len(self.centre)
        curvature: Floats = (self.squares @ weights.T).T.reshape(-1, size, size) + self.centre
        return curvature


def fit(cells: Cells, shown: Floats, preferred: Floats) -> Floats:
    """Strengths, and the place effect if the cells have one: float64, shape (b, size).

    shown, preferred: float64, shape (b, n_cells), how often each cell was asked, and how often the
    first was preferred; all b sets of answers are fitted at once. The strengths of a set are NaN if
    there is no finite maximum: Newton's steps would then continue by about 1 indefinitely.
    """
    theta = np.zeros((len(shown), len(cells.centre)))
    left = np.arange(len(shown))
    for _ in range(_MAX_STEPS):
        n, y, here = shown[left], preferred[left], theta[left]
        p = scipy("special").expit((cells.rows @ here.T).T)
        score = (cells.rows.T @ (y - n * p).T).T
        step = _solve(cells.curvature(n * p * (1 - p)), score)
        # The longest step guaranteed to increase the likelihood: the curvature changes by at most
        # e^|change of the log-odds| (Sun and Tran-Dinh 2019, section 4). Near the maximum it is
        # Newton's.
        reach = np.abs((cells.rows @ step.T).T).max(axis=1, initial=0.0, keepdims=True)
        safe = np.divide(np.log1p(reach), reach, out=np.ones_like(reach), where=reach > 0)
        step *= np.where(_gain(cells, n, y, here, step) >= 0, 1.0, safe)
        theta[left] += step
        left = left[np.abs(step).max(axis=1) > _TOLERANCE]
        if not len(left):
            break
    theta[left] = np.nan
    if cells.has_place:
        # A place effect this large has no finite maximum: only rounding ended its steps.
        theta[np.abs(theta[:, -1]) > _LARGEST_PLACE] = np.nan
    return theta


def _solve(curvature: Floats, score: Floats) -> Floats:
    """Newton's steps; a vanished curvature means a maximum at infinity, so the step is 1."""
    step: Floats = np.ones_like(score)
    try:
        step[:] = np.linalg.solve(curvature, score[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        ranks = np.linalg.matrix_rank(curvature, hermitian=True)
        whole = ranks == score.shape[1]
        step[whole] = np.linalg.solve(curvature[whole], score[whole, :, None])[:, :, 0]
    return step


def _gain(cells: Cells, n: Floats, y: Floats, theta: Floats, step: Floats) -> Floats:
    """The gain in log-likelihood from a step, plus rounding: float64, shape (b, 1)."""
    before, after = (cells.rows @ theta.T).T, (cells.rows @ (theta + step).T).T
    log_expit = scipy("special").log_expit
    gain = y * (log_expit(after) - log_expit(before))
    gain += (n - y) * (log_expit(-after) - log_expit(-before))
    total: Floats = gain.sum(axis=1, keepdims=True) + _SLACK
    return total


def knows_place(cells: Cells) -> bool:
    """Whether a place effect is identifiable: the column of ones is not a combination of rows."""
    n_cells = cells.rows.shape[0]
    whole = cells.curvature(np.ones((1, n_cells)))[0]
    with_things = whole[-1, :-1]
    apart = n_cells - with_things @ np.linalg.solve(whole[:-1, :-1], with_things)
    return bool(apart > _SLACK * max(1, n_cells))
