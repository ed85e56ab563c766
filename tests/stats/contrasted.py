"""Two groups, A and B, compared in some number."""

from collections.abc import Sequence

from fabula.core.types import Contrast, Estimate
from fabula.stats.contrasts import Clustered, compare_clusters, compare_means


def means(a: Sequence[float], b: Sequence[float]) -> Contrast:
    return compare_means("x", {"a": a, "b": b}, signature="")


def clusters(a: Clustered, b: Clustered, *, seed: int = 0) -> Contrast:
    return compare_clusters("x", {"a": a, "b": b}, seed=seed, signature="")


def percent(found: Contrast) -> Estimate:
    estimate: Estimate = found.details["percent"]
    return estimate
