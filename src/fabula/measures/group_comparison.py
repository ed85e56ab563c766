"""Compare groups of scored texts: which is more original, by how much, and how certain it is."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.measures.clusters import USUAL_FIELDS, has_value, joined_keys
from fabula.stats.clustered import Clustered, Omnibus, cell_means, compare_clusters, permutation_f
from fabula.stats.compare import Difference, compare_means, holm, kruskal_wallis, mean_estimate
from fabula.text.sketch import Sketch
from fabula.types import Estimate, Signature


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
    """The scores' signature, the field of the clusters, and how intervals of many are made."""
    omnibus: Omnibus | None = None
    """Whether the groups differ at all; None for a single group."""
    cluster: str | None = None
    """The field whose texts count as one."""
    n_joined: int = 0
    """By how much joining copies across clusters reduced the number of clusters."""
    shared_field: str | None = None
    """A usual cluster field that the texts have, if they were not clustered."""

    def rows(self) -> list[dict[str, Any]]:
        """For a frame: a row for each group."""
        return [
            {
                "name": group.name,
                "creativity_index": group.index.value,
                "low": group.index.low,
                "high": group.index.high,
                "n": group.index.n,
                "n_missing": sum(group.missing.values()),
            }
            for group in self.groups
        ]

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


def compare_rows(
    located: Iterable[tuple[dict[str, Any], str]],
    *,
    by: str,
    baseline: str | None = None,
    cluster: str | None = None,
    seed: int = 0,
) -> Comparison:
    """Group rows of scores by a field and compare the groups; each row comes with its place.

    With `baseline`, every other group is compared with it; without, every pair is. With `cluster`,
    rows that share this field belong together, and so do near-duplicates: those of one group count
    as one, by their mean, and tests permute within what groups share (`permutation_f`).

    Raises `MixError` if rows were not all measured in the same way, and `InputError` if a row lacks
    a field.
    """
    table = _Table(by, cluster)
    for row, where in located:
        table.add(row, where)
    if table.signature is None:
        raise InputError("the score files contain no rows; run `fabula originality` first")
    if baseline is not None and baseline not in table.numbers:
        raise InputError(
            f"`baseline` {baseline}: no such group; the groups are {', '.join(table.numbers)}"
        )
    belongs, n_joined = None, 0
    if cluster is not None:
        belongs, n_joined = joined_keys(table.keys, table.sketches)
    signature = table.signature if cluster is None else f"{table.signature}|cluster:{cluster}"
    groups = [_group(name, table, belongs, signature) for name in sorted(table.numbers)]
    return Comparison(
        field=by,
        groups=tuple(groups),
        pairs=_pairs(groups, baseline, seed, signature),
        signature=signature,
        omnibus=omnibus(groups, seed=seed),
        cluster=cluster,
        n_joined=n_joined,
        shared_field=table.shared_field() if cluster is None else None,
    )


class _Table:
    """The stored part of the rows of scores: numbers, 8 bytes each, without texts and spans.

    For clustered rows also their keys and sketches. Missing numbers are NaN here.
    """

    def __init__(self, by: str, cluster: str | None) -> None:
        self.by, self.cluster = by, cluster
        self.signature: str | None = None
        self.levels: tuple[str, ...] = ()
        self.numbers: dict[str, int] = {}
        """The groups, in order of first appearance."""
        self.missing: dict[str, dict[str, int]] = {}
        self._groups = array("q")
        self._index = array("d")
        self._curves = array("d")
        self.keys: list[str] = []
        self.sketches: list[Sketch | None] = []
        self._usual = {field: _Repeats() for field in USUAL_FIELDS}

    def add(self, row: dict[str, Any], where: str) -> None:
        """Add a row. Raises `InputError` and `MixError` if it does not match the others."""
        first = self.signature is None
        self._check_signature(row, where)
        for field, purpose in ((self.by, "group"), (self.cluster, "cluster")):
            if field is not None and (
                field not in row or (purpose == "cluster" and not has_value(row[field]))
            ):
                own = ", ".join(map(repr, row))
                raise InputError(
                    f"{where}: no field {field!r} to {purpose} by; the fields are {own}"
                )
        index, curve = row["creativity_index"], row.get("uniqueness")
        if first and isinstance(curve, dict) and all(k.isascii() and k.isdecimal() for k in curve):
            self.levels = tuple(curve)
        if (
            not isinstance(curve, dict)
            or tuple(curve) != self.levels
            or not _are_numbers((index, *curve.values()))
        ):
            raise InputError(f"{where}: its numbers are damaged; run `fabula originality` again")
        name = f"(no {self.by})" if row[self.by] is None else str(row[self.by])
        self._groups.append(self.numbers.setdefault(name, len(self.numbers)))
        self._index.append(math.nan if index is None else index)
        self._curves.extend(math.nan if one is None else one for one in curve.values())
        if index is None:
            reasons = self.missing.setdefault(name, {})
            reason = str(row.get("missing_reason"))
            reasons[reason] = reasons.get(reason, 0) + 1
        if self.cluster is not None:
            self.keys.append(str(row[self.cluster]))
            self.sketches.append(Sketch.of_row(row.get("sketch")))
        else:
            for field, repeats in self._usual.items():
                if (value := row.get(field)) is not None:
                    repeats.add(value)

    def _check_signature(self, row: dict[str, Any], where: str) -> None:
        found = row.get("signature")
        if not isinstance(found, str) or "creativity_index" not in row:
            raise InputError(
                f"{where}: not a row of scores; use files of `fabula originality --out`"
            )
        self.signature = self.signature or found
        if found != self.signature:
            Signature.parse(self.signature).check_same(
                found,
                f"{where} and the rows before it",
                "score all texts with the same settings before comparing them",
            )

    def of(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """For a group: its row indices, the index of each, and the uniqueness, (n, n_levels)."""
        places = np.flatnonzero(np.frombuffer(self._groups, np.int64) == self.numbers[name])
        curves = np.frombuffer(self._curves, np.float64).reshape(-1, len(self.levels))
        return places, np.frombuffer(self._index, np.float64)[places], curves[places]

    def shared_field(self) -> str | None:
        """The usual field that groups some rows into clusters: the first that any row has."""
        field = next((field for field, one in self._usual.items() if one.n), None)
        return field if field is not None and field != self.by and self._usual[field].any else None


class _Repeats:
    """Whether any value of a field repeats; only hashes of values are stored."""

    def __init__(self) -> None:
        self.n = 0
        self.any = False
        self._seen: set[bytes] = set()

    def add(self, value: Any) -> None:
        if not has_value(value):
            return
        self.n += 1
        if self.any:
            return
        digest = hashlib.blake2b(str(value).encode(errors="surrogatepass"), digest_size=12).digest()
        if digest in self._seen:
            self.any = True
            self._seen.clear()
        else:
            self._seen.add(digest)


def _are_numbers(values: Iterable[object]) -> bool:
    """Each a finite number or None, as JSON has them."""
    return all(
        value is None or (type(value) in (float, int) and -1e300 < value < 1e300)  # type: ignore[operator]
        for value in values
    )


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
    """Whether any of the groups differs from the others; None if fewer than two have values.

    Independent texts: the Kruskal-Wallis test, which extends the Mann-Whitney test of the pairs.
    Clustered texts: the permutation F that the pairs have too.
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
    """How group A differs from B: cluster by cluster if their values are of clusters."""
    if a.clusters is not None and b.clusters is not None:
        return compare_clusters(a.clusters, b.clusters, seed=seed, signature=signature)
    return compare_means(a.values, b.values, signature=signature)


def _group(name: str, table: _Table, belongs: list[str] | None, signature: str) -> Group:
    """A group from its rows; `belongs` gives the cluster of each row, if clustered."""
    places, index, curves = table.of(name)
    clusters: dict[str, list[float]] | None = None
    if belongs is not None:
        clusters = {}
        own = [belongs[place] for place in places]
        for cluster, value in zip(own, index.tolist(), strict=True):
            if not math.isnan(value):
                clusters.setdefault(cluster, []).append(value)
        values = list(cell_means(clusters).values())
        curves = _means(curves, own)
    else:
        values = index[~np.isnan(index)].tolist()
    # Over the texts that have a value at every L.
    whole = curves[~np.isnan(curves).any(axis=1)]
    return Group(
        name=name,
        index=mean_estimate(values, signature=signature),
        values=tuple(values),
        missing=table.missing.get(name, {}),
        uniqueness={
            int(level): mean_estimate(whole[:, k], signature=signature)
            for k, level in enumerate(table.levels)
        },
        clusters=clusters,
    )


def _means(curves: NDArray[np.float64], belongs: list[str]) -> NDArray[np.float64]:
    """For each cluster the mean uniqueness at each L, over the texts that have it."""
    found: dict[str, list[list[float]]] = {}
    for curve, own in zip(curves.tolist(), belongs, strict=True):
        found.setdefault(own, []).append(curve)
    means = [
        [_mean_known(level) for level in zip(*found[name], strict=True)] for name in sorted(found)
    ]
    return np.array(means, np.float64).reshape(len(means), curves.shape[1])


def _mean_known(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _interval(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
