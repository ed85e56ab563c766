"""Compare groups of texts in the numbers of any instrument: scores, profiles, verdicts, others."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from fabula.core.errors import InputError
from fabula.core.types import Contrast, Estimate, Signature
from fabula.jobs.result import picked
from fabula.stats import contrasts as stats
from fabula.stats.contrasts import Clustered, Omnibus, adjusted, cell_means
from fabula.text.clusters import USUAL_FIELDS, Sketch, has_value, joined_keys

INDEX, CURVE = "creativity_index", "uniqueness"
_COLUMNS = INDEX, "log_likelihood", "log_rank", "curvature"
"""Numbers of rows of scores and of a model's probabilities; a profile has its own `values`."""
_NOT_STYLE = frozenset(("n_words", "n_sentences"))
"""Lengths, which are how a text was cut and not how it is written."""
_JUDGES = "judge|"
_ABSENT = math.inf
"""Of a text that no row has this number of; NaN is a number that is missing."""
_LARGEST = 1e300
NOT_SAID = "not_said"
"""The reason of a missing number whose row gives none."""


class MeasuredTexts:
    """The texts of rows of any instrument, each with its numbers, 8 bytes each, and few fields.

    by, cluster: the fields that texts are grouped and clustered by. fields: of the texts, by id,
    for what rows lack. are_rows: every row is a text of its own, whatever its id; otherwise the
    rows with one id are about one text.
    """

    def __init__(
        self,
        by: str,
        cluster: str | None = None,
        *,
        fields: Mapping[str, Mapping[str, Any]] | None = None,
        are_rows: bool = False,
    ) -> None:
        self.by, self.cluster, self.are_rows = by, cluster, are_rows
        self.signatures: dict[str, str] = {}
        """By number."""
        self.numbers: dict[str, array[float]] = {}
        """By number, for each text."""
        self.missing: dict[str, dict[int, str]] = {}
        """Why numbers of texts are missing, as far as rows say it."""
        self.fields: list[dict[str, Any]] = []
        self.sketches: list[Sketch | None] = []
        self.places: list[str] = []
        """Each text by its id, or its row's place, for errors."""
        self._known = fields or {}
        self._wanted = {by, *USUAL_FIELDS, *([cluster] if cluster else [])}
        self._of_id: dict[str, int] = {}
        self._answers: dict[tuple[int, str], list[float]] = {}

    def add(self, row: Mapping[str, Any], where: str) -> None:
        """Add a row of any instrument. Raises `InputError`, `MixError` if it does not fit."""
        name = row.get("id", row.get("document_id"))
        if name is None or not isinstance(row.get("signature"), str):
            raise InputError(
                f"{where}: not a row of a measurement, which has an `id` and a `signature`"
            )
        id_ = str(name)
        if self.are_rows or id_ not in self._of_id:
            self._of_id[id_] = len(self.fields)
            self.fields.append({})
            self.sketches.append(None)
            self.places.append(where if self.are_rows else id_)
        text = self._of_id[id_]
        fields = {**self._known.get(id_, {}), **row, **(row.get("details") or {})}
        self.fields[text] |= {k: v for k in self._wanted if has_value(v := fields.get(k))}
        if self.cluster is not None:
            self.sketches[text] = Sketch.of_row(row.get("sketch")) or self.sketches[text]
        values, numbers = row.get("values"), dict[str, float | None]()
        if "item" in row and "rater" in row:
            item, value = str(row["item"]), row["value"]
            if not _is_number(value) or item in _NOT_STYLE:
                return
            if row["signature"].startswith(_JUDGES):
                numbers[f"{item}, {row['rater']}"] = value
            else:
                # Of people, or an instrument, the mean so far.
                answers = self._answers.setdefault((text, item), [])
                answers += [] if value is None else [value]
                numbers[item] = math.fsum(answers) / len(answers) if answers else None
        else:
            if not isinstance(values, dict):
                # A frame has the metrics of a profile as columns.
                from fabula.linguistic.profile import PROFILE_METRICS

                names = (*_COLUMNS, *(metric.item for metric in PROFILE_METRICS))
                values = {name: row[name] for name in names if name in row}
                curve = row.get(CURVE)
                if isinstance(curve, dict):
                    # Curves are over the texts that have a value at every L.
                    is_whole = None not in curve.values()
                    values |= {f"{CURVE}_{k}": v if is_whole else None for k, v in curve.items()}
            if any(not _is_number(value) for value in values.values()):
                raise InputError(f"{where}: its numbers are damaged; measure the texts again")
            numbers = {key: value for key, value in values.items() if key not in _NOT_STYLE}
        if not numbers and "item" not in row:
            raise InputError(
                f"{where}: has no number to compare; use rows of `originality`, `profile`, "
                f"`detect score`, a judge's run or a study's export"
            )
        for number, value in numbers.items():
            self.add_number(id_, number, value, row["signature"], where)
            if value is None and row.get("missing_reason") is not None:
                self.missing.setdefault(number, {})[text] = str(row["missing_reason"])

    def add_number(
        self, id_: str, number: str, value: float | None, signature: str, where: str = ""
    ) -> None:
        """Add a number of a text that some row has."""
        text, expected = self._of_id[id_], self.signatures.setdefault(number, signature)
        if expected != signature:
            what = f"{number} in {where} and the rows before it"
            remedy = "measure all texts with the same settings before comparing them"
            Signature.parse(expected).check_same(signature, what, remedy)
        values = self.numbers.setdefault(number, array("d"))
        values.extend([_ABSENT] * (text + 1 - len(values)))
        if values[text] != _ABSENT and (text, number) not in self._answers:
            raise InputError(
                f"{where}: {self.places[text]} has {number} twice; are two texts called so?"
            )
        values[text] = math.nan if value is None else value

    def groups(self, unnamed: str | None) -> list[str]:
        """The group of each text; `unnamed` for those without the field. Raises `InputError`."""
        if unnamed is None:
            self._check(self.by, "group", "; name the group of such texts with `unnamed`, or the "
                        "texts that have it with `texts`")  # fmt: skip
        return [str(fields.get(self.by, unnamed)) for fields in self.fields]

    def clusters(self) -> tuple[list[str] | None, int]:
        """The cluster of each text, and how many were joined. Raises `InputError`."""
        if self.cluster is None:
            return None, 0
        self._check(self.cluster, "cluster", "")
        return joined_keys([str(fields[self.cluster]) for fields in self.fields], self.sketches)

    def _check(self, field: str, what: str, remedy: str) -> None:
        for place, fields in zip(self.places, self.fields, strict=True):
            if field not in fields:
                has = ", ".join(sorted(fields)) or "none of the usual ones"
                raise InputError(f"{place}: no field {field!r} to {what} by (it has {has}){remedy}")

    def shared_field(self) -> str | None:
        """A usual cluster field that several texts share, if texts were not clustered."""
        if self.cluster is not None:
            return None
        for field in USUAL_FIELDS:
            values = [str(fields[field]) for fields in self.fields if field in fields]
            if values:
                return field if field != self.by and len(set(values)) < len(values) else None
        return None


def _is_number(value: Any) -> bool:
    """A finite number or None, as JSON has them."""
    return value is None or (type(value) in (float, int) and -_LARGEST < value < _LARGEST)


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """One number in one group."""

    number: str
    group: str
    mean: Estimate
    """`n` counts the independent units: texts, or clusters of them."""
    missing: Mapping[str, int]
    """How many of its texts have none, by reason."""
    values: Clustered
    """The numbers of its texts, by text or by cluster."""
    is_clustered: bool

    @property
    def n_texts(self) -> int:
        """Texts that have the number."""
        return sum(map(len, self.values.values()))

    @property
    def n_missing(self) -> int:
        return sum(self.missing.values())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Groups compared in every number that they have."""

    field: str
    cluster: str | None
    """The field whose texts count as one."""
    groups: tuple[ComparedGroup, ...]
    contrasts: tuple[Contrast, ...]
    """Two groups in one number; adjusted over all pairs of all numbers."""
    omnibus: Mapping[str, Omnibus]
    """By number: whether any of three groups or more differs from the others."""
    signatures: Mapping[str, str]
    shared_field: str | None = None
    """A usual cluster field that several texts share, if they were not clustered."""
    n_joined: int = 0
    """By how much joining near-duplicates reduced the number of clusters."""

    def rows(self) -> list[dict[str, Any]]:
        """For a frame: a row for each number and group."""
        return [
            {
                "number": group.number,
                "name": group.group,
                "mean": group.mean.value,
                **picked(group.mean, "low", "high", "n"),
                "n_missing": group.n_missing,
            }
            for group in self.groups
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "by": self.field,
            "cluster": self.cluster,
            "groups": [
                {
                    "number": group.number,
                    "name": group.group,
                    "mean": group.mean.ends(),
                    "n": group.mean.n,
                    **picked(group, "n_texts", "n_missing"),
                    "missing": {why: n for why, n in group.missing.items() if why != NOT_SAID},
                }
                for group in self.groups
            ],
            "omnibus": {number: asdict(test) for number, test in self.omnibus.items()},
            "contrasts": [pair.to_json() for pair in self.contrasts],
            "signatures": dict(self.signatures),
        }


def compare_groups(
    measured: MeasuredTexts,
    *,
    baseline: str | None = None,
    unnamed: str | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare the groups of texts with each value of a field, in each number.

    Pairs of groups are compared by the Mann-Whitney test, with `baseline` only those with it; with
    clusters by `compare_clusters`, and near-duplicates are one cluster. The curve of uniqueness is
    not tested, since the index is its sum. Raises `InputError`.
    """
    if not measured.fields:
        raise InputError("the files contain no rows; run `fabula originality` or another first")
    groups_of_texts = measured.groups(unnamed)
    names = sorted(set(groups_of_texts))
    if baseline is not None and baseline not in names:
        raise InputError(f"`baseline` {baseline}: no such group; the groups are {', '.join(names)}")
    clusters, n_joined = measured.clusters()
    clustered = "" if clusters is None else f"|cluster:{measured.cluster}"
    signatures = {number: part + clustered for number, part in measured.signatures.items()}
    groups: list[ComparedGroup] = []
    contrasts, omnibus = list[Contrast](), dict[str, Omnibus]()
    for number, signature in signatures.items():
        values: dict[str, dict[str, list[float]]] = {}
        missing: dict[str, Counter[str]] = {}
        why = measured.missing.get(number, {})
        for text, value in enumerate(measured.numbers[number]):
            if value == _ABSENT:
                continue
            name = groups_of_texts[text]
            of_group = values.setdefault(name, {})
            if math.isnan(value):
                missing.setdefault(name, Counter())[why.get(text, NOT_SAID)] += 1
            else:
                unit = f"{text:09}" if clusters is None else clusters[text]
                of_group.setdefault(unit, []).append(value)
        by_name = {}
        for name in sorted(values):
            mean = stats.mean_estimate(list(cell_means(values[name]).values()), signature=signature)
            by_name[name] = ComparedGroup(
                number, name, mean, dict(missing.get(name, {})), values[name], clusters is not None
            )
        groups += by_name.values()
        known = {name: group for name, group in by_name.items() if group.values}
        if number.startswith(f"{CURVE}_") or len(known) < 2:
            continue
        if len(known) > 2:
            omnibus[number] = compare_all(list(known.values()), seed=seed)
        for a, b in combinations(sorted(by_name), 2):
            if baseline is None or baseline in (a, b):
                first, second = (b, a) if a == baseline else (a, b)
                contrasts.append(contrast(by_name[first], by_name[second], signature, seed=seed))
    compared = tuple(groups), tuple(adjusted(contrasts)), omnibus, signatures
    return Comparison(measured.by, measured.cluster, *compared, measured.shared_field(), n_joined)


def contrast(a: ComparedGroup, b: ComparedGroup, signature: str, *, seed: int) -> Contrast:
    """How group A differs from B in a number: cluster by cluster if its texts are clustered."""
    sides = {a.group: a.values, b.group: b.values}
    if a.is_clustered:
        pair = stats.compare_clusters(a.number, sides, seed=seed, signature=signature)
    else:
        texts = {name: list(cell_means(values).values()) for name, values in sides.items()}
        pair = stats.compare_means(a.number, texts, signature=signature)
    if a.number == INDEX:
        return pair
    # A share of the mean says something of a number that begins at 0.
    return replace(pair, details={k: v for k, v in pair.details.items() if k != "percent"})


def compare_all(groups: Sequence[ComparedGroup], *, seed: int) -> Omnibus:
    """Whether any of the groups, each with values, differs from the others.

    Independent texts: the Kruskal-Wallis test, which extends the Mann-Whitney test of the pairs.
    Clustered texts: the permutation F that the pairs have too.
    """
    if groups[0].is_clustered:
        return stats.permutation_f([group.values for group in groups], seed=seed)
    values = [list(cell_means(group.values).values()) for group in groups]
    statistic, p = stats.kruskal_wallis(values)
    return Omnibus("Kruskal-Wallis H", statistic, p, len(groups), sum(map(len, values)), False)
