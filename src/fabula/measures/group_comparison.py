"""Groups of scored texts beside each other: who is more original, by how much, and how sure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, MixError
from fabula.measures.clusters import find_clusters, has_value, repeated_field
from fabula.stats.clustered import Clustered, Omnibus, cell_means, compare_clusters, permutation_f
from fabula.stats.compare import Difference, compare_means, holm, kruskal_wallis, mean_estimate
from fabula.stats.resample import bootstrap_means, percentile_interval
from fabula.store import read_rows
from fabula.text.sketch import Sketch
from fabula.types import Estimate, Signature

__all__ = [
    "Comparison",
    "Group",
    "Pair",
    "compare_rows",
    "compare_scores",
    "difference",
    "omnibus",
]

_FILE_FIELD = "file"


@dataclass(frozen=True, slots=True)
class Group:
    """The scores of one value of the field."""

    name: str
    index: Estimate
    values: tuple[float, ...]
    """The Creativity Index of each text that has one, or the mean of each cluster's."""
    missing: dict[str, int]
    """How many texts have none, by reason."""
    uniqueness: dict[int, Estimate]
    """Mean L-uniqueness by L."""
    clusters: Clustered | None = None
    """The index of each text by cluster, where texts are clustered."""

    @property
    def n_texts(self) -> int:
        """How many texts have an index."""
        if self.clusters is None:
            return len(self.values)
        return sum(len(values) for values in self.clusters.values())


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
    """That of the scores, and the field of the clusters."""
    omnibus: Omnibus | None = None
    """Whether the groups differ at all; None of one group."""
    cluster: str | None = None
    """The field whose texts count as one."""
    n_joined: int = 0
    """How many clusters fewer there are because texts of several are copies of each other."""
    shared_field: str | None = None
    """A usual field that texts share, where they were not clustered."""

    def to_json(self) -> dict[str, Any]:
        """As plain values for JSON output."""
        return {
            "by": self.field,
            "cluster": self.cluster,
            "signature": self.signature,
            "omnibus": self.omnibus and asdict(self.omnibus),
            "groups": [
                {
                    "name": group.name,
                    "n": group.index.n,
                    "n_texts": group.n_texts,
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

    With `baseline`, every other group is compared with it; without, every pair is. With `cluster`,
    rows that share this field belong together, and so do near-duplicates: those of one group count
    as one, by their mean, and tests permute within what groups share (`permutation_f`).

    Raises `MixError` where rows were not all measured in the same way, and `InputError` where a
    row lacks a field.
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
    signature: str | None = None
    found: list[dict[str, Any]] = []
    names: list[str] = []
    for row, where in located:
        signature = _check_signature(row, signature, where)
        for field, purpose in ((by, "group"), *([] if cluster is None else [(cluster, "cluster")])):
            if field not in row or (purpose == "cluster" and not has_value(row[field])):
                own = ", ".join(map(repr, row))
                raise InputError(
                    f"{where}: no field {field!r} to {purpose} by; the fields are {own}"
                )
        found.append(row)
        names.append(f"(no {by})" if row[by] is None else str(row[by]))
    if signature is None:
        raise InputError("the score files hold no rows; run `fabula originality` first")
    if baseline is not None and baseline not in names:
        listed = ", ".join(dict.fromkeys(names))
        raise InputError(f"`baseline` {baseline}: no such group; there are {listed}")
    belongs, n_joined = _clusters(found, cluster)
    if cluster is not None:
        signature = f"{signature}|cluster:{cluster}"
    groups = []
    for name in sorted(set(names)):
        places = [place for place, own in enumerate(names) if own == name]
        rows = [found[place] for place in places]
        own_clusters = [belongs[place] for place in places] if cluster is not None else None
        groups.append(_group(name, rows, own_clusters, seed, signature))
    return Comparison(
        field=by,
        groups=tuple(groups),
        pairs=_pairs(groups, baseline, seed, signature),
        signature=signature,
        omnibus=omnibus(groups, seed=seed),
        cluster=cluster,
        n_joined=n_joined,
        shared_field=_shared_field(found, by) if cluster is None else None,
    )


def _shared_field(rows: list[dict[str, Any]], by: str) -> str | None:
    field = repeated_field(rows)
    return None if field == by else field


def _clusters(rows: list[dict[str, Any]], field: str | None) -> tuple[list[str], int]:
    """The cluster of each row, or none; and how many were joined, as their texts are copies."""
    if field is None:
        return [], 0
    keys = [str(row[field]) for row in rows]
    sketches = [Sketch.of_row(row.get("sketch")) for row in rows]
    known = [sketch for sketch in sketches if sketch is not None]
    if len(known) < len(rows):
        return keys, 0
    # Whose texts are people's is not known here, so that equal openings join none.
    found = find_clusters(keys, known, [False] * len(rows))
    return [found.names[number] for number in found.numbers], found.n_before - len(found)


def _pairs(
    groups: list[Group], baseline: str | None, seed: int, signature: str
) -> tuple[Pair, ...]:
    pairs = [
        (a, b)
        for a, b in combinations(groups, 2)
        if baseline is None or baseline in (a.name, b.name)
    ]
    if baseline is not None:
        pairs = [(b, a) if a.name == baseline else (a, b) for a, b in pairs]
    differences = [difference(a, b, seed=seed, signature=signature) for a, b in pairs]
    corrected = holm([one.p for one in differences])
    return tuple(
        Pair(a.name, b.name, one, p)
        for (a, b), one, p in zip(pairs, differences, corrected, strict=True)
    )


def omnibus(groups: Iterable[Group], *, seed: int) -> Omnibus | None:
    """Whether any of the groups differs from the others; None where fewer than two have values.

    Texts that are independent: Kruskal and Wallis's test, which extends the Mann-Whitney test of
    the pairs. Texts in clusters: the permutation F that the pairs have too.
    """
    known = [group for group in groups if group.values]
    if len(known) < 2:
        return None
    clustered = [group.clusters for group in known if group.clusters is not None]
    if clustered:
        return permutation_f(clustered, seed=seed)
    statistic, p = kruskal_wallis([group.values for group in known])
    n = sum(len(group.values) for group in known)
    return Omnibus("Kruskal-Wallis H", statistic, p, len(known), n, False)


def difference(a: Group, b: Group, *, seed: int, signature: str) -> Difference:
    """How group A differs from B: cluster by cluster where their values are of clusters."""
    if a.clusters is not None and b.clusters is not None:
        return compare_clusters(a.clusters, b.clusters, seed=seed, signature=signature)
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
    name: str, rows: list[dict[str, Any]], belongs: list[str] | None, seed: int, signature: str
) -> Group:
    """A group of its rows; `belongs` names the cluster of each, where they are clustered."""
    missing: dict[str, int] = {}
    for row in rows:
        if row["creativity_index"] is None:
            missing[row["missing_reason"]] = missing.get(row["missing_reason"], 0) + 1
    clusters: dict[str, list[float]] | None = None
    if belongs is not None:
        clusters = {}
        for row, own in zip(rows, belongs, strict=True):
            if row["creativity_index"] is not None:
                clusters.setdefault(own, []).append(row["creativity_index"])
        values = list(cell_means(clusters).values())
    else:
        values = [row["creativity_index"] for row in rows if row["creativity_index"] is not None]
    curves = [row["uniqueness"] for row in rows]
    return Group(
        name=name,
        index=mean_estimate(values, seed=seed, signature=signature),
        values=tuple(values),
        missing=missing,
        uniqueness=_curve(curves if belongs is None else _means(curves, belongs), seed, signature),
        clusters=clusters,
    )


def _means(
    curves: list[dict[str, float | None]], belongs: list[str]
) -> list[dict[str, float | None]]:
    """For each cluster the mean uniqueness at each L, of the texts that have it."""
    found: dict[str, list[dict[str, float | None]]] = {}
    for curve, own in zip(curves, belongs, strict=True):
        found.setdefault(own, []).append(curve)
    return [
        {level: _mean_known([curve[level] for curve in some]) for level in some[0]}
        for _, some in sorted(found.items())
    ]


def _mean_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _curve(curves: list[dict[str, float | None]], seed: int, signature: str) -> dict[int, Estimate]:
    """Mean uniqueness at each L, over the texts that have a value at every L."""
    levels = [int(level) for level in curves[0]]
    whole = [curve for curve in curves if None not in curve.values()]
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
