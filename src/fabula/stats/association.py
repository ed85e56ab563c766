"""The association of an answer with another variable, among subjects alike in what matters.

A judge that says Yes to long texts may be right: long texts may be better. So the association of
answers with length is measured within strata, such as the texts that experts gave the same answer
on the same question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fabula.stats.intervals import MIN_UNITS, NONE, Floats, jackknife_interval
from fabula.types import Estimate

Association = Literal["correlation", "slope"]


def association_within(
    x: Floats,
    y: Floats,
    strata: Sequence[object],
    clusters: Sequence[object],
    *,
    kind: Association,
    method: str,
    signature: str,
    n_units: int | None = None,
) -> Estimate:
    """The partial correlation of x and y given the stratum, or the slope of y on x within strata.

    x, y: float64, shape (n,). A stratum of one subject is ignored. If x is 0 or 1, the slope is
    the difference of the means of y, weighted over strata as Cochran and Mantel-Haenszel do. The
    interval is over clusters; `n_units` is the number of independent units, if not all clusters.
    The value is None if x or y does not vary within any stratum.
    """
    sums = _sums(x, y, strata, clusters)
    value = float(_of_sums(sums.sum(axis=0)[None], kind)[0])
    n_clusters = len(sums)
    n_units = n_clusters if n_units is None else n_units
    if not np.isfinite(value):
        return Estimate(None, None, None, len(x), method, signature, n_units)
    shape = sums.shape[1:]
    ends = NONE
    if n_units >= MIN_UNITS:
        ends = jackknife_interval(
            sums.reshape(n_clusters, -1),
            lambda flat: _of_sums(flat.reshape(*flat.shape[:-1], *shape), kind),
            on_z=kind == "correlation",
        )
    return Estimate(value, *ends, len(x), method, signature, n_units)


def _sums(x: Floats, y: Floats, strata: Sequence[object], clusters: Sequence[object]) -> Floats:
    """Count, sums, squares and products by cluster and stratum: (n_clusters, n_strata, 6)."""
    of_stratum = {name: k for k, name in enumerate(dict.fromkeys(strata))}
    of_cluster = {name: k for k, name in enumerate(dict.fromkeys(clusters))}
    sums = np.zeros((len(of_cluster), len(of_stratum), 6))
    places = [of_cluster[name] for name in clusters], [of_stratum[name] for name in strata]
    # Centred, to avoid cancellation when squares of sums are subtracted from sums of squares.
    x, y = x - (x.mean() if len(x) else 0), y - (y.mean() if len(y) else 0)
    np.add.at(sums, places, np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y]))
    return sums


def _of_sums(sums: Floats, kind: Association) -> Floats:
    """Associations from summed rows, shape (..., n_strata, 6) to (...); NaN if undefined."""
    n, x, y, xx, yy, xy = (sums[..., k] for k in range(6))
    n = np.maximum(n, 1)
    within_xx = np.round((xx - x * x / n).sum(axis=-1), 9)
    within_yy = np.round((yy - y * y / n).sum(axis=-1), 9)
    within_xy = (xy - x * y / n).sum(axis=-1)
    below = within_xx if kind == "slope" else np.sqrt(within_xx * within_yy)
    defined = (within_xx > 0) & ((within_yy > 0) | (kind == "slope"))
    found: Floats = np.where(defined, within_xy / np.where(defined, below, 1), np.nan)
    return found
