"""Compare groups of texts in the numbers of any instrument: scores, profiles, verdicts, others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

from fabula.errors import InputError
from fabula.measures.clusters import cluster_field, has_value, joined_keys
from fabula.stats.clustered import cell_means, compare_clusters
from fabula.stats.compare import Difference, compare_means, holm, mean_estimate
from fabula.text.sketch import Sketch
from fabula.types import Estimate, Signature

_COLUMNS = "creativity_index", "log_likelihood", "log_rank", "curvature"
"""Numbers of rows of scores and of a model's probabilities; a profile has its own `values`."""
_NOT_STYLE = frozenset(("n_words", "n_sentences"))
"""Lengths, which are how a text was cut and not how it is written."""
_JUDGES = "judge|"


@dataclass(slots=True)
class MeasuredText:
    """A text with its fields, and its numbers by name; one that is missing is None."""

    id: str
    fields: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, float | None] = field(default_factory=dict)
    sketch: Sketch | None = None


class MeasuredTexts:
    """The texts of files of rows, each with what every file says of it."""

    def __init__(self) -> None:
        self.texts: dict[str, MeasuredText] = {}
        self.signatures: dict[str, str] = {}
        """By number."""
        self._answers: dict[tuple[str, str], list[float | None]] = {}

    def add(self, row: Mapping[str, Any], where: str) -> None:
        """Add a row of any instrument. Raises `InputError`, `MixError` if it does not fit."""
        name = row.get("id", row.get("document_id"))
        if name is None or "signature" not in row:
            raise InputError(
                f"{where}: not a row of a measurement, which has an `id` and a `signature`"
            )
        text = self.texts.setdefault(str(name), MeasuredText(str(name)))
        text.fields |= {key: value for key, value in row.items() if value is not None}
        text.fields |= dict(row.get("details") or {})
        text.sketch = Sketch.of_row(row.get("sketch")) or text.sketch
        found = self._numbers(row)
        if not found and "item" not in row:
            raise InputError(
                f"{where}: has no number to compare; use rows of `originality`, `profile`, "
                f"`detect score`, a judge's run or a study's export"
            )
        for number, value in found:
            self.add_number(text.id, number, value, str(row["signature"]), where)

    def add_number(
        self, text: str, number: str, value: float | None, signature: str, where: str = ""
    ) -> None:
        """Add a number of a text that some row has."""
        expected = self.signatures.setdefault(number, signature)
        if expected != signature:
            Signature.parse(expected).check_same(
                signature,
                f"{number} in {where} and the rows before it",
                "measure all texts with the same settings before comparing them",
            )
        if number in self.texts[text].numbers:
            raise InputError(f"{where}: {text} has {number} twice; are two texts called so?")
        self.texts[text].numbers[number] = value

    def _numbers(self, row: Mapping[str, Any]) -> list[tuple[str, float | None]]:
        if "item" in row and "rater" in row:
            return self._verdict(row)
        values = row.get("values")
        if not isinstance(values, dict):
            # A frame has the metrics of a profile as columns.
            from fabula.measures.linguistic.profile import PROFILE_METRICS

            names = (*_COLUMNS, *(metric.id for metric in PROFILE_METRICS))
            values = {name: row[name] for name in names if name in row}
        return [(key, _finite(value)) for key, value in values.items() if key not in _NOT_STYLE]

    def _verdict(self, row: Mapping[str, Any]) -> list[tuple[str, float | None]]:
        """A judge's answer; of people, or an instrument, the mean so far."""
        item, value = str(row["item"]), _finite(row["value"])
        if isinstance(row["value"], str) or item in _NOT_STYLE:
            return []
        if str(row["signature"]).startswith(_JUDGES):
            return [(f"{item}, {row['rater']}", value)]
        key = str(row.get("id", row.get("document_id"))), item
        given = self._answers.setdefault(key, [])
        given.append(value)
        known = [one for one in given if one is not None]
        self.texts[key[0]].numbers.pop(key[1], None)
        return [(key[1], math.fsum(known) / len(known) if known else None)]


def _finite(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """One number in one group."""

    number: str
    group: str
    mean: Estimate
    n_texts: int
    n_missing: int


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """One number in two groups; `p_holm` is corrected over all pairs of all numbers."""

    number: str
    a: str
    b: str
    difference: Difference
    p_holm: float | None


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """Groups compared in every number that at least two of them have."""

    field: str
    cluster: str | None
    groups: tuple[ComparedGroup, ...]
    pairs: tuple[ComparedPair, ...]
    signatures: Mapping[str, str]
    shared_field: str | None = None
    """A usual cluster field that several texts share, if they were not clustered."""
    n_joined: int = 0
    """By how much joining near-duplicates reduced the number of clusters."""

    def rows(self) -> list[dict[str, Any]]:
        """For a frame: a row for each number and group."""
        return [
            {
                "number": one.number,
                "name": one.group,
                "mean": one.mean.value,
                "low": one.mean.low,
                "high": one.mean.high,
                "n": one.mean.n,
                "n_missing": one.n_missing,
            }
            for one in self.groups
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "by": self.field,
            "cluster": self.cluster,
            "groups": [asdict(one) for one in self.groups],
            "pairs": [asdict(one) for one in self.pairs],
            "signatures": dict(self.signatures),
        }


def compare_numbers(
    measured: MeasuredTexts,
    *,
    by: str,
    baseline: str | None = None,
    cluster: str | None = None,
    unnamed: str | None = None,
    fields: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
) -> NumberComparison:
    """Compare the groups of texts with each value of the field `by`, in each number.

    Pairs of groups are compared by the Mann-Whitney test; with `cluster`, cluster by cluster where
    they share clusters, by permutations (`compare_clusters`), and near-duplicates are one cluster.
    unnamed: the group of texts without the field. fields: of the texts, by id, for what rows lack.
    Raises `InputError`.
    """
    texts = list(measured.texts.values())
    for text in texts:
        text.fields = {**(fields or {}).get(text.id, {}), **text.fields}
    names = [_group(text, by, unnamed) for text in texts]
    if baseline is not None and baseline not in names:
        raise InputError(
            f"`baseline` {baseline}: no such group; the groups are {', '.join(sorted(set(names)))}"
        )
    belongs, n_joined = None, 0
    if cluster is not None:
        for text in texts:
            if not has_value(text.fields.get(cluster)):
                raise InputError(f"{text.id}: no field {cluster!r} to cluster by")
        keys = [str(text.fields[cluster]) for text in texts]
        belongs, n_joined = joined_keys(keys, [text.sketch for text in texts])
    groups, tested = [], []
    for number in measured.signatures:
        values: dict[str, dict[str, list[float]]] = {}
        missing: dict[str, int] = {}
        for k, (text, name) in enumerate(zip(texts, names, strict=True)):
            if number not in text.numbers:
                continue
            value = text.numbers[number]
            own = values.setdefault(name, {})
            missing[name] = missing.get(name, 0) + (value is None)
            if value is not None:
                own.setdefault(text.id if belongs is None else belongs[k], []).append(value)
        if sum(map(bool, values.values())) < 2:
            continue
        signature = measured.signatures[number]
        for name, own in sorted(values.items()):
            mean = mean_estimate(list(cell_means(own).values()), signature=signature)
            n = sum(map(len, own.values()))
            groups.append(ComparedGroup(number, name, mean, n, missing[name]))
        for a, b in combinations(sorted(values), 2):
            if baseline is not None:
                if baseline not in (a, b):
                    continue
                a, b = (b, a) if a == baseline else (a, b)
            if belongs is not None:
                found = compare_clusters(values[a], values[b], seed=seed, signature=signature)
            else:
                sides = (list(cell_means(values[name]).values()) for name in (a, b))
                found = compare_means(*sides, signature=signature)
            tested.append(ComparedPair(number, a, b, found, None))
    corrected = holm([one.difference.p for one in tested])
    return NumberComparison(
        by,
        cluster,
        tuple(groups),
        tuple(replace(one, p_holm=p) for one, p in zip(tested, corrected, strict=True)),
        measured.signatures,
        _shared_field(texts, by) if cluster is None else None,
        n_joined,
    )


def _shared_field(texts: Sequence[MeasuredText], by: str) -> str | None:
    field = cluster_field([text.fields for text in texts], None)
    if field is None or field == by:
        return None
    values = [str(text.fields[field]) for text in texts if has_value(text.fields.get(field))]
    return field if len(set(values)) < len(values) else None


def _group(text: MeasuredText, by: str, unnamed: str | None) -> str:
    value = text.fields.get(by)
    if has_value(value):
        return str(value)
    if unnamed is None:
        raise InputError(
            f"{text.id}: no field {by!r} to group by; name the group of such texts with `unnamed`, "
            f"or the texts that have it with `texts`"
        )
    return unnamed
