"""Clustering vectors by distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabula.packages import scipy


def group_vectors(
    vectors: NDArray[np.float32], *, n_groups: int | None = None, distance: float = 0.55
) -> list[list[int]]:
    """Agglomerative clustering: the indices of each group's members, the largest group first.

    vectors: float32, shape (n, d), of length 1. `n_groups` of similar spread (Ward's criterion);
    without a number, groups that are farther apart than `distance` (mean 1 - cosine). The same
    vectors always give the same groups.
    """
    hierarchy = scipy("cluster.hierarchy")
    fcluster, linkage = hierarchy.fcluster, hierarchy.linkage
    n = len(vectors)
    if n < 2:
        return [[place] for place in range(n)]
    points = np.asarray(vectors, np.float64)
    if n_groups is not None:
        labels = fcluster(linkage(points, "ward"), min(n_groups, n), criterion="maxclust")
    else:
        labels = fcluster(linkage(points, "average", "cosine"), distance, criterion="distance")
    groups: dict[int, list[int]] = {}
    for place, label in enumerate(labels):
        groups.setdefault(int(label), []).append(place)
    return sorted(groups.values(), key=lambda members: (-len(members), members[0]))


def central(vectors: NDArray[np.float32], members: list[int]) -> list[int]:
    """The members, the one closest to the group's mean first."""
    chosen = np.asarray(vectors, np.float64)[members]
    closeness = chosen @ chosen.mean(axis=0)
    order = np.argsort(-closeness, kind="stable")
    return [members[k] for k in order]
