"""How large a study must be, by resampling a pilot.

A study of N stories with m raters each is drawn from the pilot: N stories with replacement, and of
each story m of its own raters without replacement, so that nobody is counted twice and agrees with
themselves. The width of an interval is the central 95 % of a statistic over such studies; power is
the share of them whose two groups differ by Welch's t test of the stories' means, at 5 %.

What this assumes: stories and raters are like the pilot's; raters belong to a story, as in all
intervals of Fabula, so one who judges many stories adds nothing that these share (if few people
read everything, intervals are wider); how many raters a story of the pilot has does not depend on
the story; two groups differ by as much as in the pilot, which in a small pilot may be luck.

What it cannot do: more raters than stories of the pilot have. Drawing raters with replacement would
keep the pilot's chance in each story's mean and call twins agreement. So beyond them there is no
kappa, and for means the pilot's stories are moved together by what further raters would average out
(the variance within stories, over the number of raters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.core.packages import scipy
from fabula.stats.agreement import concordance_parts, fleiss_parts, fleiss_sums, ratios
from fabula.stats.resampling import MIN_UNITS, Floats

_N_DRAWS = 2000
_N_CHOICES, _MAX_ROWS = 50, 50_000
"""Random choices of raters of each story, from which studies are drawn; and of all stories."""
_BLOCK = 1 << 21


@dataclass(frozen=True, slots=True)
class Size:
    """A study of so many stories (of each group) and raters a story, and what it would show.

    Widths are of 95 % intervals. None: undefined, or not known from this pilot.
    """

    n_stories: int
    n_raters: int
    mean_width: float | None
    kappa_width: float | None
    difference_width: float | None
    """Of the second group's mean minus the first's."""
    power: float | None


def too_little(groups: Sequence[Floats]) -> str | None:
    """Why a pilot (as in `plan_sizes`) cannot be planned from, or None."""
    if min((len(_told(ratings)) for ratings in groups), default=0) < MIN_UNITS:
        of_each = " of each group" if len(groups) > 1 else ""
        return f"the pilot has fewer than {MIN_UNITS} stories{of_each}"
    answers = np.concatenate([ratings[~np.isnan(ratings)] for ratings in groups])
    return "everybody gave the same answer to everything" if np.ptp(answers) == 0 else None


def most_raters(groups: Sequence[Floats]) -> int:
    """The raters that at least ten stories (of each group) have."""
    counts = [np.sort(_n_raters(_told(ratings)))[::-1] for ratings in groups]
    return int(min(n_readings[MIN_UNITS - 1] for n_readings in counts))


def plan_sizes(
    groups: Sequence[Floats],
    n_stories: Sequence[int],
    n_raters: Sequence[int],
    *,
    is_graded: bool,
    seed: int,
) -> Iterator[Size]:
    """Each number of raters with each number of stories, in this order.

    groups: one or two arrays of ratings, float64 of shape (n_stories, n_items, n_raters), NaN if
    missing, for which `too_little` is None. Kappa is Fleiss's over all items or, if `is_graded`
    (numbers, on one item), that of two raters with quadratic weights.
    """
    for m in n_raters:
        rng = np.random.default_rng([seed, m])
        pools = [_pool(_told(ratings), m, is_graded=is_graded, rng=rng) for ratings in groups]
        # A variance is larger than that of drawing from a sample of so many stories.
        wider = np.mean([n_pilot / (n_pilot - 1) for _, n_pilot in pools]) ** 0.5
        for n in n_stories:
            rng = np.random.default_rng([seed, m, n])
            # Sums of n rows drawn with replacement, shape (_N_DRAWS, n_columns), for each group.
            sums = []
            for rows, _ in pools:
                step = max(1, _BLOCK // (n * rows.shape[1]))
                blocks = [
                    rows[rng.integers(len(rows), size=(min(step, _N_DRAWS - at), n))].sum(axis=1)
                    for at in range(0, _N_DRAWS, step)
                ]
                sums.append(np.concatenate(blocks))
            drawn = np.stack(sums)
            means, difference, is_found = drawn[..., 0] / n, None, None
            with np.errstate(divide="ignore", invalid="ignore"):
                total = drawn.sum(axis=0)[:, 2:]
                # Each yes-no item has the chance of its own base rate.
                n_items = groups[0].shape[1]
                parts = concordance_parts(total) if is_graded else fleiss_parts(total, n_items)
                kappa_width = _width(ratios(*parts))
                if len(pools) == 2:
                    difference = means[1] - means[0]
                    squares = (drawn[..., 1] / n - means**2) / (n - 1)
                    t = np.abs(difference) / np.sqrt(squares.sum(axis=0))
                    freedom = squares.sum(axis=0) ** 2 / (squares**2 / (n - 1)).sum(axis=0)
                    is_found = t > scipy("stats").t.ppf(0.975, freedom)
            kappa_width = None if kappa_width is None else kappa_width * float(wider)
            difference_width = None if difference is None else _width(difference)
            power = None if is_found is None else float(is_found.mean())
            yield Size(n, m, _width(means.mean(axis=0)), kappa_width, difference_width, power)


def _width(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    if 2 * len(known) <= len(values):
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(high - low)


def _told(ratings: Floats) -> Floats:
    """The stories with any rating."""
    return ratings[~np.isnan(ratings).all(axis=(1, 2))]


def _n_raters(ratings: Floats) -> NDArray[np.intp]:
    counts: NDArray[np.intp] = (~np.isnan(ratings)).any(axis=1).sum(axis=1)
    return counts


def _pool(
    ratings: Floats, m: int, *, is_graded: bool, rng: np.random.Generator
) -> tuple[Floats, int]:
    """Rows to draw stories from, as many of each story, and how many stories they are of.

    A row has the story's mean, its square, and what kappa sums: shape (n_rows, 2 + n_sums).
    """
    counts = _n_raters(ratings)
    able = ratings[counts >= m]
    if len(able) < MIN_UNITS:
        # The means of stories, varying as much as with m raters, which are more than they have.
        n_given = (~np.isnan(ratings)).sum(axis=1)
        by_rater = np.nansum(ratings, axis=1) / np.maximum(1, n_given)
        by_rater[n_given == 0] = np.nan
        means = np.nanmean(by_rater, axis=1)
        if not (counts > 1).any() or means.var() == 0:
            means = np.full(len(means), np.nan)
        else:
            within = float(np.nanvar(by_rater[counts > 1], axis=1, ddof=1).mean())
            averaged_out = within * (float((1 / counts).mean()) - 1 / m)
            variance = max(0.0, float(means.var(ddof=1)) - averaged_out)
            means = means.mean() + (means - means.mean()) * np.sqrt(variance / means.var())
        n_sums = 6 if is_graded else 4 * ratings.shape[1]
        return np.column_stack([means, means**2, np.full((len(means), n_sums), np.nan)]), len(means)
    n_choices = max(1, min(_N_CHOICES, _MAX_ROWS // len(able)))
    chosen = np.repeat(able, n_choices, axis=0)
    # Raters in random order, those that rated nothing last.
    keys = rng.random((len(chosen), chosen.shape[2])) + np.isnan(chosen).all(axis=1)
    order = np.argsort(keys, axis=1)[:, None, :m]
    chosen = np.take_along_axis(chosen, np.broadcast_to(order, (*chosen.shape[:2], m)), axis=2)
    means = np.nanmean(chosen, axis=(1, 2))
    means = means.mean() + (means - means.mean()) * np.sqrt(len(able) / (len(able) - 1))
    if is_graded:
        # Those of `concordance`, of all ordered pairs of raters.
        rated = chosen[:, 0]
        n = (~np.isnan(rated)).sum(axis=1)
        total, squares = np.nansum(rated, axis=1), np.nansum(rated**2, axis=1)
        each, square = (n - 1) * total, (n - 1) * squares
        sums = np.column_stack([n * (n - 1), each, each, square, square, total**2 - squares])
    else:
        # The sums of Yes and No, also where only one of them was said.
        both = np.vstack([chosen.reshape(-1, m), np.zeros((1, m)), np.ones((1, m))])
        sums = fleiss_sums(both)[:-2].reshape(len(chosen), -1)
    return np.column_stack([means, means**2, sums]), len(able)
