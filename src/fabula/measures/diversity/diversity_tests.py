"""Values of groups with their intervals, and tests between groups.

Intervals are by the jackknife: the measures are recomputed without each text (or prompt; if there
are many, without blocks of them), and their spread gives the error of the value (Tukey 1958). A
bootstrap would draw some texts twice, and a text shares everything with its copy. Tests permute the
group of the texts, then draw and measure again each time; where that would take too long
(compression of many texts), the difference is tested against its jackknife error (t).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fabula.measures.diversity.grouped_texts import Pool
from fabula.packages import scipy
from fabula.stats.contrasts import adjusted
from fabula.stats.prediction_powered import clopper_pearson_high
from fabula.stats.resampling import JACKKNIFE, MIN_UNITS, SLACK, estimate, jackknife_error, reach
from fabula.types import Contrast, Estimate

_ROWS_AT_ONCE = 512
_CELLS_AT_ONCE = 1 << 25
"""Subsets times texts that are measured at the same time, which bounds memory."""
_MIN_PERMUTATIONS = 199
"""If time allows fewer, a t-test replaces the permutations."""


class Measures(Protocol):
    """Measures of a set of texts. A larger value need not mean more similar."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def max_draws(self) -> int: ...

    @property
    def max_blocks(self) -> int: ...

    @property
    def max_permutations(self) -> int: ...

    def narrowed(self, kept: NDArray[np.int64]) -> Measures:
        """The same for these texts only."""

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """members: uint8 (n_subsets, n_texts). Returns float64 (n_subsets, n_measures)."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """Number of draws and permutations."""

    n_draws: int = 5
    n_permutations: int = 1000
    seed: int = 0


_SHARES = "shared_ngrams", "self_bleu", "distinct"


@dataclass(frozen=True, slots=True)
class _GroupValues:
    """draws: uint8 (n_draws, n_texts); replicates: float64 (n_blocks, n_measures), without each
    block; None if there are too few units."""

    draws: NDArray[np.uint8]
    values: NDArray[np.float64]
    replicates: NDArray[np.float64] | None
    n_units: int


def measure_groups(
    measures: Measures,
    pool: Pool,
    groups: Sequence[str],
    pairs: Sequence[tuple[str, str]] | None,
    how: Resampling,
    signature: str,
    advance: Callable[[int], None] = lambda n: None,
) -> tuple[dict[str, dict[str, Estimate]], list[Contrast]]:
    """Each measure of each group, by the names of both; tests of each for each pair (or for all).

    `advance` is called for each group, and each pair, that is done.
    """
    found, estimates = {}, {}
    for group, name in enumerate(groups):
        one = found[name] = _of_group(measures, pool, group, how)
        estimates[name] = {
            measure: _estimate(
                one.values[k],
                _error(one.replicates, k),
                pool,
                one,
                signature,
                most=1.0 if measure.startswith(_SHARES) else np.inf,
            )
            for k, measure in enumerate(measures.names)
        }
        advance(1)
    listed = list(combinations(groups, 2)) if pairs is None else list(pairs)
    p_values = {}
    for a, b in listed:
        p_values[a, b] = _p_values(measures, pool, groups.index(a), groups.index(b), found, how)
        advance(1)
    tests: list[Contrast] = []
    for k, measure in enumerate(measures.names):
        contrasts = []
        for a, b in listed:
            one, other = found[a], found[b]
            fewer = min(one, other, key=lambda values: values.n_units)
            difference = _estimate(
                one.values[k] - other.values[k], _joint_error(one, other, k, pool), pool, fewer,
                signature, least=-np.inf,
            )  # fmt: skip
            ps, n = p_values[a, b]
            p = None if np.isnan(ps[k]) else float(ps[k])
            test, why = "permutation" if n else "jackknife t", "few_texts" if p is None else None
            details = {"n_permutations": 0 if p is None else n}
            contrasts.append(
                Contrast(measure, a, b, difference, p, None, test, why, details=details)
            )
        tests += adjusted(contrasts)
    return estimates, tests


def _of_group(measures: Measures, pool: Pool, group: int, how: Resampling) -> _GroupValues:
    rng = np.random.default_rng([how.seed, 0, group])
    own = np.flatnonzero(pool.labels == group)
    mine, here = measures.narrowed(own), pool.narrowed(own)
    n_draws = 1 if pool.is_whole(group) else min(how.n_draws, measures.max_draws)
    draws = here.draws(here.labels, group, n_draws, rng)
    if pool.n_drawn < 2:
        nothing = np.full(len(measures.names), np.nan)
        return _GroupValues(draws, nothing, None, pool.n_units(group))
    values = mine.values(draws).mean(axis=0)
    # The block of each text: texts of one unit are in one block. Shared prompts are assigned in the
    # same way in every group, which makes differences paired.
    distinct, place = np.unique(here.units, return_inverse=True)
    n_blocks = min(measures.max_blocks, len(distinct))
    dealt = np.random.default_rng([how.seed, 1, pool.n_drawn]).permutation(len(distinct))
    blocks = (dealt % max(1, n_blocks))[place]
    rows = (
        draws * (blocks != block).astype(np.uint8)
        for block in range(int(blocks.max(initial=-1)) + 1)
    )
    n_units = pool.n_units(group)
    replicates = None
    if n_units >= MIN_UNITS:
        replicates = np.concatenate(
            [
                part.reshape(-1, n_draws, len(values)).mean(axis=1)
                for part in _valued(mine, rows, n_draws)
            ]
        )
    return _GroupValues(draws, values, replicates, n_units)


def _valued(
    measures: Measures, rows: Iterator[NDArray[np.uint8]], n_draws: int
) -> Iterator[NDArray[np.float64]]:
    """The values of all rows, a few at a time, those of one item together."""
    waiting: list[NDArray[np.uint8]] = []
    for some in rows:
        waiting.append(some)
        n_at_once = min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // max(1, some.shape[1]))
        if len(waiting) * n_draws >= n_at_once:
            yield measures.values(np.concatenate(waiting))
            waiting = []
    if waiting:
        yield measures.values(np.concatenate(waiting))


def _error(replicates: NDArray[np.float64] | None, k: int) -> tuple[float, int] | None:
    """The jackknife error of a measure, and the number of blocks."""
    if replicates is None or (error := jackknife_error(replicates[:, k])) is None:
        return None
    return error, len(replicates)


def _estimate(
    value: float,
    error: tuple[float, int] | None,
    pool: Pool,
    one: _GroupValues,
    signature: str,
    *,
    least: float = 0.0,
    most: float = np.inf,
) -> Estimate:
    known = float(value) if np.isfinite(value) else None
    low = high = None
    if known is not None and error is not None:
        wide = reach(*error)
        # No measure is negative, and no share above 1.
        low, high = max(least, known - wide), min(most, known + wide)
    elif known == 0 and most == 1 and one.n_units >= MIN_UNITS:
        # Of so many pairs of texts, no two of them with a text in common, none shared anything.
        low, high = 0.0, clopper_pearson_high(0, one.n_units // 2, 0.975)
    units = "texts" if pool.design == "texts" else "prompts"
    return estimate(
        known, (low, high), pool.n_drawn, one.n_units,
        of=f"mean of {len(one.draws)} draws over {units}", by=JACKKNIFE, signature=signature,
    )  # fmt: skip


def _p_values(
    measures: Measures,
    pool: Pool,
    a: int,
    b: int,
    found: Mapping[str, _GroupValues],
    how: Resampling,
) -> tuple[NDArray[np.float64], int]:
    """Two-sided p-values of all measures, NaN where unknown, and the number of permutations.

    Without permutations they are of the differences by their jackknife errors.
    """
    nothing = np.full(len(measures.names), np.nan)
    if pool.n_drawn < 2:
        return nothing, 0
    both = np.flatnonzero((pool.labels == a) | (pool.labels == b))
    mine, here = measures.narrowed(both), pool.narrowed(both)
    values = list(found.values())
    seen = values[a].values - values[b].values
    n_a, n_b = len(values[a].draws), len(values[b].draws)
    n = min(how.n_permutations, mine.max_permutations)
    if n < min(how.n_permutations, _MIN_PERMUTATIONS):
        for k, difference in enumerate(seen):
            error = _joint_error(values[a], values[b], k, pool)
            if error is not None:
                t = abs(difference) / error[0]
                nothing[k] = float(2 * scipy("stats").t.sf(t, error[1] - 1))
        return nothing, 0

    def rows() -> Iterator[NDArray[np.uint8]]:
        # Each pair has its own random stream, independent of which pairs are tested.
        rng = np.random.default_rng([how.seed, 2, a, b])
        for _ in range(n):
            labels = here.permuted(rng)
            # The same number of draws as for the values, or their spreads would differ.
            yield np.concatenate([here.draws(labels, a, n_a, rng), here.draws(labels, b, n_b, rng)])

    n_extreme = np.zeros(len(seen), np.int64)
    for part in _valued(mine, rows(), n_a + n_b):
        each = part.reshape(-1, n_a + n_b, len(seen))
        apart = np.abs(each[:, :n_a].mean(axis=1) - each[:, n_a:].mean(axis=1))
        slack = SLACK * np.maximum(1e-300, np.maximum(np.abs(seen), apart))
        n_extreme += np.count_nonzero(apart >= np.abs(seen) - slack, axis=0)
    p = (n_extreme + 1) / (n + 1)
    return np.where(np.isfinite(seen), p, np.nan), n


def _joint_error(
    one: _GroupValues, other: _GroupValues, k: int, pool: Pool
) -> tuple[float, int] | None:
    """For a difference: prompt by prompt where groups share prompts, else of independent groups."""
    if one.replicates is None or other.replicates is None:
        return None
    if pool.design == "prompts":
        return _error(one.replicates - other.replicates, k)
    mine, theirs = _error(one.replicates, k), _error(other.replicates, k)
    if mine is None or theirs is None:
        return None
    return float(np.hypot(mine[0], theirs[0])), min(mine[1], theirs[1])
