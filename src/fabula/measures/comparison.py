"""Groups of scored texts beside each other: who is more original, by how much, and how sure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, MixError
from fabula.stats.clustered import compare_clusters
from fabula.stats.compare import Difference, compare_means, holm, mean_estimate
from fabula.stats.resample import bootstrap_means, percentile_interval
from fabula.store import read_rows
from fabula.types import Estimate, Signature

__all__ = ["Comparison", "Group", "Pair", "compare_rows", "compare_scores", "difference"]

_FILE_FIELD = "file"


@dataclass(frozen=True, slots=True)
class Group:
    """The scores of one value of the field."""

    name: str
    index: Estimate
    values: tuple[float, ...]
    """The Creativity Index of each text that has one."""
    missing: dict[str, int]
    """How many texts have none, by reason."""
    uniqueness: dict[int, Estimate]
    """Mean L-uniqueness by L."""
    clusters: tuple[str, ...] = ()
    """The cluster of each value, where a value is a cluster's mean."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups compared; `p_holm` is corrected over all pairs of the comparison."""

    a: str
    b: str
    difference: Difference
    p_holm: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All groups, and the pairs that were tested."""

    field: str
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]
    signature: str

    def to_json(self) -> dict[str, Any]:
        """As plain values for JSON output."""
        return {
            "by": self.field,
            "signature": self.signature,
            "groups": [
                {
                    "name": group.name,
                    "n": group.index.n,
                    "missing": group.missing,
                    "creativity_index": _interval(group.index),
                    "uniqueness": {str(k): _interval(e) for k, e in group.uniqueness.items()},
                }
                for group in self.groups
            ],
            "pairs": [
                {
                    "a": pair.a,
                    "b": pair.b,
                    "difference_percent": _interval(pair.difference.percent),
                    "mann_whitney_u": pair.difference.u,
                    "superiority": pair.difference.superiority,
                    "p": pair.difference.p,
                    "p_holm": pair.p_holm,
                }
                for pair in self.pairs
            ],
        }


def compare_scores(
    paths: Iterable[Path],
    *,
    by: str,
    baseline: str | None = None,
    cluster: str | None = None,
    seed: int = 0,
) -> Comparison:
    """Group the rows of score files by a field (`file`: the file's name) and compare the groups.

    With `baseline`, every other group is compared with it; without, every pair is. Rows of a group
    that share the field `cluster` count as one, by their mean.

    Raises `MixError` where rows were not all measured in the same way, and `InputError` where a
    row lacks the field.
    """
    paths = list(paths)
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a score file was given twice, which would count its texts twice")
    are_named = len({path.name for path in paths}) == len(paths)

    def located() -> Iterator[tuple[dict[str, Any], str]]:
        for path in paths:
            for number, row in enumerate(read_rows(path), 1):
                if by == _FILE_FIELD:
                    row = {**row, _FILE_FIELD: path.name if are_named else str(path)}
                yield row, f"{path}, line {number}"

    return compare_rows(located(), by=by, baseline=baseline, cluster=cluster, seed=seed)


def compare_rows(
    located: Iterable[tuple[dict[str, Any], str]],
    *,
    by: str,
    baseline: str | None = None,
    cluster: str | None = None,
    seed: int = 0,
) -> Comparison:
    """As `compare_scores`, of rows of scores, each with the words that tell where it is from."""
    rows: dict[str, list[dict[str, Any]]] = {}
    signature: str | None = None
    for row, where in located:
        signature = _check_signature(row, signature, where)
        if by not in row:
            own = ", ".join(map(repr, row))
            raise InputError(f"{where}: no field {by!r} to group by; the fields are {own}")
        name = f"(no {by})" if row[by] is None else str(row[by])
        rows.setdefault(name, []).append(row)
    if signature is None:
        raise InputError("the score files hold no rows; run `fabula originality` first")
    if baseline is not None and baseline not in rows:
        raise InputError(f"`baseline` {baseline}: no such group; there are {', '.join(rows)}")
    groups = [_group(name, rows[name], cluster, seed, signature) for name in sorted(rows)]
    pairs = [
        (a, b)
        for a, b in combinations(groups, 2)
        if baseline is None or baseline in (a.name, b.name)
    ]
    if baseline is not None:
        pairs = [(b, a) if a.name == baseline else (a, b) for a, b in pairs]
    differences = [difference(a, b, seed=seed, signature=signature) for a, b in pairs]
    corrected = holm([one.p for one in differences])
    return Comparison(
        field=by,
        groups=tuple(groups),
        pairs=tuple(
            Pair(a.name, b.name, one, p)
            for (a, b), one, p in zip(pairs, differences, corrected, strict=True)
        ),
        signature=signature,
    )


def difference(a: Group, b: Group, *, seed: int, signature: str) -> Difference:
    """How group A differs from B: cluster by cluster where their values are of clusters."""
    if a.clusters or b.clusters:
        return compare_clusters(
            dict(zip(a.clusters, a.values, strict=True)),
            dict(zip(b.clusters, b.values, strict=True)),
            seed=seed,
            signature=signature,
        )
    return compare_means(a.values, b.values, seed=seed, signature=signature)


def _check_signature(row: dict[str, Any], expected: str | None, where: str) -> str:
    found = row.get("signature")
    if not isinstance(found, str) or "creativity_index" not in row:
        raise InputError(f"{where}: not a row of scores; give files of `fabula originality --out`")
    if expected is None or found == expected:
        return found
    differences = Signature.parse(expected).differences(Signature.parse(found))
    if not differences:
        return expected
    raise MixError(
        f"{where}: measured in another way than the rows before it ({'; '.join(differences)}); "
        f"score all texts with the same settings before comparing them"
    )


def _group(
    name: str, rows: list[dict[str, Any]], cluster: str | None, seed: int, signature: str
) -> Group:
    missing: dict[str, int] = {}
    for row in rows:
        if row["creativity_index"] is None:
            missing[row["missing_reason"]] = missing.get(row["missing_reason"], 0) + 1
    if cluster is not None:
        rows = _means(rows, cluster)
    known = [row for row in rows if row["creativity_index"] is not None]
    values = [row["creativity_index"] for row in known]
    return Group(
        name=name,
        index=mean_estimate(values, seed=seed, signature=signature),
        values=tuple(values),
        missing=missing,
        uniqueness=_curve(rows, seed, signature),
        clusters=() if cluster is None else tuple(row[cluster] for row in known),
    )


def _means(rows: list[dict[str, Any]], cluster: str) -> list[dict[str, Any]]:
    """A row for each cluster, with the means of the scores that its rows have."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row[cluster]), []).append(row)
    return [
        {
            cluster: name,
            "creativity_index": _mean_known([row["creativity_index"] for row in some]),
            "uniqueness": {
                level: _mean_known([row["uniqueness"][level] for row in some])
                for level in some[0]["uniqueness"]
            },
        }
        for name, some in sorted(found.items())
    ]


def _mean_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _curve(rows: list[dict[str, Any]], seed: int, signature: str) -> dict[int, Estimate]:
    """Mean uniqueness at each L, over the texts that have a value at every L."""
    levels = [int(level) for level in rows[0]["uniqueness"]]
    whole = [row["uniqueness"] for row in rows if None not in row["uniqueness"].values()]
    table: NDArray[np.float64] = np.array(
        [[row[str(level)] for level in levels] for row in whole], np.float64
    )
    if not whole:
        return {level: mean_estimate([], seed=seed, signature=signature) for level in levels}
    means = bootstrap_means(table, np.random.default_rng(seed))
    return {
        level: Estimate(
            float(table[:, k].mean()),
            *percentile_interval(means[:, k], len(whole)),
            len(whole),
            "mean, percentile bootstrap",
            signature,
            len(whole),
        )
        for k, level in enumerate(levels)
    }


def _interval(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
