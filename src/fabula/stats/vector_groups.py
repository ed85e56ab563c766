"""Grouping vectors by nearness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["central", "group_vectors"]


def group_vectors(
    vectors: NDArray[np.float32], *, n_groups: int | None = None, distance: float = 0.55
) -> list[list[int]]:
    """Agglomerative groups: the places of their members, the largest group first.

    vectors: float32, shape (n, d), of length 1. `n_groups` of like spread (Ward's criterion);
    without a number, groups that lie farther apart than `distance` (mean 1 - cosine). The same
    vectors give the same groups.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

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
    """The members, the one nearest to the group's mean first."""
    chosen = np.asarray(vectors, np.float64)[members]
    closeness = chosen @ chosen.mean(axis=0)
    order = np.argsort(-closeness, kind="stable")
    return [members[k] for k in order]
