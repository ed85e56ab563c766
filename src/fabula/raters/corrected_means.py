"""Estimate what experts would have said: a judge's means corrected by the available labels.

A judge reads every document, experts read some. Means over documents, by item and by group, are
computed by prediction-powered inference (`stats/prediction_powered.py`). The experts' value of a
document is their mean, which preserves disagreement, or their majority. Where no honest estimate is
possible, the reason is given instead.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import InputError
from fabula.core.types import Contrast, Estimate, Item, Measurement, Rubric
from fabula.raters.agreement import Measurements
from fabula.raters.ratings import mean_scores, score_table
from fabula.stats import prediction_powered as powered
from fabula.stats.agreement import pearson
from fabula.stats.contrasts import adjusted
from fabula.stats.prediction_powered import MIN_LABELS, MIN_VERDICTS, Corrected
from fabula.stats.resampling import Units

Means = Mapping[str, float]
Groups = Mapping[str, Sequence[str]]
_Mean = tuple["CorrectedRow", Corrected | None]
Values = NDArray[np.float64]
Truth = Literal["mean", "majority"]
About = Literal["texts", "source"]
"""The mean over the documents that were judged, or over the source that they are a sample of."""
P_TRANSFER = 0.05


@dataclass(frozen=True, slots=True)
class CorrectedRow:
    """A judge's mean, and what experts would have said (None, with the reason, if unknown)."""

    name: str
    raw: float | None
    value: float | None
    low: float | None
    high: float | None
    n_labelled: int
    n: int
    n_worth: float | None = None
    """How many labelled documents would give the same precision without the judge."""
    n_worth_low: float | None = None
    n_worth_high: float | None = None
    weight: float | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        named = asdict(self)
        del named["name"]
        return {"raw": named.pop("raw"), "corrected": named.pop("value"), **named}


@dataclass(frozen=True, slots=True)
class Correction:
    """A judge corrected by labels; numbers are shares of Yes, or means on the rubric's scale."""

    judge: str
    overall: CorrectedRow
    items: tuple[CorrectedRow, ...]
    numbers: tuple[CorrectedRow, ...]
    """Items on scales other than the overall mean's: each by its own mean, on its own scale."""
    groups: tuple[CorrectedRow, ...]
    differences: tuple[Contrast, ...]
    """Between groups, as experts would have given their means; `raw` is by the judge alone."""
    transfers: tuple[Contrast, ...]
    """Whether the correction that the other groups' labels teach holds in a group: by how much its
    own labels differ from it. `level` is the group's by the others' labels; None where its own
    labels contradict them."""
    about: About
    width: float
    n_labels_for_width: int | None
    """Labels needed to make the overall interval as narrow as `width`; None if impossible."""
    to_label: tuple[str, ...]
    left_out: tuple[str, ...]
    """Items that the judge answered and that have no mean to correct."""
    n_without_verdict: int
    """Documents for which the judge gave no answers at all; they are excluded."""
    n_partly_labelled: int
    """Documents with only some items labelled; they count by item but not overall."""
    unit: str
    signature: str

    def to_json(self) -> dict[str, Any]:
        """Overall, items and groups, each with the raw and the corrected mean."""
        return {
            "judge": self.judge,
            "unit": self.unit,
            "overall": self.overall.to_json(),
            "items": {row.name: row.to_json() for row in (*self.items, *self.numbers)},
            "groups": {row.name: row.to_json() for row in self.groups},
            "differences": [contrast.to_json() for contrast in self.differences],
            "transfers": [contrast.to_json() for contrast in self.transfers],
            "about": self.about,
            "n_labels_for_width": {"width": self.width, "n": self.n_labels_for_width},
            "to_label": list(self.to_label),
            "left_out": list(self.left_out),
            "n_without_verdict": self.n_without_verdict,
            "n_partly_labelled": self.n_partly_labelled,
            "signature": self.signature,
        }


@dataclass(frozen=True, slots=True)
class _Method:
    is_finite: bool
    cluster_of: Callable[[str], str] | None

    def clusters(self, documents: Sequence[str]) -> list[str]:
        return list(map(self.cluster_of, documents)) if self.cluster_of else list(documents)


@dataclass(frozen=True, slots=True)
class _Table:
    """Means by document of the judge's and of the experts' answers."""

    judged: Means
    labelled: Means

    def of(self, documents: Sequence[str]) -> _Table:
        kept = set(documents)
        return _Table(
            {name: value for name, value in self.judged.items() if name in kept},
            {name: value for name, value in self.labelled.items() if name in kept},
        )

    def split(self) -> tuple[list[str], tuple[Values, Values, Values]]:
        """The documents, those with both first; their labels and predictions, and the rest's."""
        shared = [name for name in self.judged if name in self.labelled]
        unlabelled = [name for name in self.judged if name not in self.labelled]
        known = (self.labelled, shared), (self.judged, shared), (self.judged, unlabelled)
        labels, predicted, others = (
            np.array([means[name] for name in names], np.float64) for means, names in known
        )
        return shared + unlabelled, (labels, predicted, others)


def correct(
    measurements: Sequence[Measurement],
    labels: Sequence[Measurement],
    rubric: Rubric,
    *,
    group_of: Callable[[str], str] | None = None,
    truth: Truth = "mean",
    about: About = "texts",
    cluster_of: Callable[[str], str] | None = None,
    width: float = 0.1,
    n_next: int = 5,
    seed: int = 0,
) -> Correction:
    """Correct one judge's measurements by people's, document by document.

    `group_of` gives each document's group. `truth` is how several experts are combined: the mean,
    or for tests their majority, without ties. `width`, a share of the scale, is the desired width
    of the interval; `n_next` is how many documents to suggest for labelling next. Raises
    `InputError` if no item can be averaged, or nothing is labelled.
    """
    items = averaged_items(rubric)
    judged = _decided(measurements, rubric)
    known = _decided(labels, rubric)
    for name, means in known.items() if truth == "majority" else ():
        if rubric.item(name).scale.is_test:
            known[name] = {text: float(mean > 0.5) for text, mean in means.items() if mean != 0.5}
    tables = {
        item.id: _Table(judged.get(item.id, {}), known.get(item.id, {}))
        for item in rubric.items
        if item.scale.is_test or item.scale.is_grade or item.scale.values
    }
    by_item = {item.id: tables.pop(item.id) for item in items}
    table, n_partly = _overall(by_item)
    if not any(name in table.judged for name in table.labelled):
        raise InputError(
            "no document has both an answer of the judge and a label; check that the ids match"
        )
    documents = list(dict.fromkeys(answer.document_id for answer in measurements))
    by_group: dict[str, list[str]] = {}
    for name in documents:
        if group_of is not None and name in table.judged:
            by_group.setdefault(group_of(name), []).append(name)
    groups = dict(sorted(by_group.items()))
    how = _Method(about == "texts", cluster_of)
    rows = {name: _row(name, table.of(members), how) for name, members in groups.items()}
    overall, overall_mean = _stratified(table, rows, how)
    scale = items[0].scale
    numbers = {name: table for name, table in tables.items() if table.judged}
    answered = {answer.item for answer in measurements if answer.value is not None}
    corrected = {*by_item, *numbers}
    differences = []
    for (a, (row_a, mean_a)), (b, (row_b, mean_b)) in combinations(rows.items(), 2):
        if row_a.raw is not None and row_b.raw is not None:
            apart, p = Estimate(None, None, None, row_a.n + row_b.n, "", ""), None
            if mean_a is not None and mean_b is not None:
                apart, p = powered.corrected_difference(mean_a, mean_b)
            raw = {"raw": row_a.raw - row_b.raw}
            differences.append(Contrast("mean", a, b, apart, p, test="Welch", details=raw))
    return Correction(
        judge=measurements[0].rater,
        overall=overall,
        items=tuple(_row(name, table, how)[0] for name, table in by_item.items() if table.judged),
        numbers=tuple(_row(name, table, how)[0] for name, table in numbers.items()),
        groups=tuple(row for row, _ in rows.values()),
        differences=tuple(adjusted(differences)),
        transfers=tuple(_transfers(table, groups, how)),
        about=about,
        width=width * scale.span,
        n_labels_for_width=None
        if overall_mean is None
        else powered.n_labels_for(overall_mean, width * scale.span),
        to_label=_next(table, groups, rows, n_next, seed),
        left_out=tuple(
            item.id for item in rubric.items if item.id in answered and item.id not in corrected
        ),
        n_without_verdict=len(documents) - len(table.judged),
        n_partly_labelled=n_partly,
        unit="share of Yes" if scale.is_test else f"mean ({scale.range or scale.allowed})",
        signature=_signature(measurements, labels, how, truth, is_grouped=group_of is not None),
    )


def averaged_items(rubric: Rubric) -> list[Item]:
    """The items that share a mean: tests, or numbers of one scale.

    Raises `InputError` if there are none.
    """
    tests = [item for item in rubric.items if item.scale.is_test]
    grades = [item for item in rubric.items if item.scale.is_grade or item.scale.values]
    if tests:
        return tests
    if len({(item.scale.low, item.scale.high, item.scale.values) for item in grades}) != 1:
        raise InputError(
            f"{rubric.id}: has no items that can be averaged together (yes-no, or numbers of one "
            f"range)"
        )
    return grades


def _decided(measurements: Measurements, rubric: Rubric) -> dict[str, dict[str, float]]:
    """By item and document, the mean over raters of what each decided, without ties."""
    known = {item.id: item.scale for item in rubric.items}
    decided = [
        replace(answer, value=value)
        for answer in measurements
        if answer.item in known and answer.value is not None
        if (value := known[answer.item].decided(answer.value)) is not None
    ]
    return mean_scores(score_table(decided, rubric))


def _overall(by_item: Mapping[str, _Table]) -> tuple[_Table, int]:
    """Means over items. A document is labelled if all its items that anybody labelled are."""
    judged: dict[str, list[float]] = {}
    labelled: dict[str, list[float]] = {}
    for table in by_item.values():
        for values_of, means in ((judged, table.judged), (labelled, table.labelled)):
            for name, value in means.items():
                values_of.setdefault(name, []).append(value)
    n_items = sum(bool(table.labelled) for table in by_item.values())
    complete = {name: values for name, values in labelled.items() if len(values) == n_items}
    n_partly = sum(name in judged and name not in complete for name in labelled)
    sides = ({name: fmean(of_items[name]) for name in of_items} for of_items in (judged, complete))
    return _Table(*sides), n_partly


def _row(name: str, table: _Table, how: _Method) -> _Mean:
    documents, (labels, predicted, others) = table.split()
    clusters = how.clusters(documents)
    raw = fmean(table.judged.values()) if table.judged else None
    n, n_labelled = len(table.judged), len(labels)
    if not n_labelled:
        return CorrectedRow(name, raw, None, None, None, 0, n, reason="nothing is labelled"), None
    if not powered.is_covered(
        Units.by(clusters[:n_labelled]).means(predicted),
        Units.by(clusters[n_labelled:]).means(others),
    ):
        reason = "labelled documents are unlike the others"
        return CorrectedRow(name, raw, None, None, None, n_labelled, n, reason=reason), None
    sides = labels, predicted, others
    mean = powered.corrected_mean(*sides, is_finite=how.is_finite, clusters=clusters)
    assert mean is not None
    row = _of(name, raw, mean)
    if mean.n_worth is None:
        return row, mean
    r = pearson(labels, predicted).estimate(clusters[:n_labelled], seed=0, method="", signature="")
    # Predictions that run against the labels get no weight, so they are worth nothing.
    least, most = (
        None if end is None else powered.n_worth(1 - max(0.0, end) ** 2, n_labelled, n)
        for end in (r.low, r.high)
    )
    if least is not None and most is not None:
        least, most = min(least, mean.n_worth), max(most, mean.n_worth)
    return replace(row, n_worth_low=least, n_worth_high=most), mean


def _of(name: str, raw: float | None, mean: Corrected) -> CorrectedRow:
    why = f"fewer than {MIN_LABELS} labels, {MIN_VERDICTS} of one test; a cluster counts once"
    reason = None if mean.low is not None else why
    figures = mean.value, mean.low, mean.high, mean.n_labelled, mean.n, mean.n_worth
    return CorrectedRow(name, raw, *figures, weight=mean.weight, reason=reason)


def _transfers(table: _Table, groups: Groups, how: _Method) -> list[Contrast]:
    tested = []
    for name, members in groups.items():
        inner = set(members)
        inside, of_mine = table.of(members).split()
        outside, of_rest = table.of([text for text in table.judged if text not in inner]).split()
        if min(len(of_mine[0]), len(of_rest[0])) >= MIN_LABELS:
            clusters = how.clusters(inside), how.clusters(outside)
            level, apart, p = powered.transfer(of_mine, of_rest, clusters)
            if p is not None:
                about = {"level": level, "n_labelled": len(of_mine[0])}
                names = name, "by the others' labels"
                tested.append(Contrast("mean", *names, apart, p, test="Welch", details=about))
    return [
        replace(contrast, details={**contrast.details, "level": None})
        if (contrast.p_adjusted or 0) < P_TRANSFER
        else contrast
        for contrast in adjusted(tested)
    ]


def _stratified(table: _Table, rows: Mapping[str, _Mean], how: _Method) -> _Mean:
    """Over all documents; group by group where there are groups, since bias may differ."""
    row, mean = _row("all", table, how)
    if not rows:
        return row, mean
    known = [estimate for _, estimate in rows.values() if estimate is not None]
    if len(known) < len(rows):
        n = row.n_labelled, row.n
        why = f"see {', '.join(name for name, (_, estimate) in rows.items() if estimate is None)}"
        return CorrectedRow("all", row.raw, None, None, None, *n, reason=why), None
    mean = powered.stratified(known)
    return _of("all", row.raw, mean), mean


def _next(
    table: _Table, groups: Groups, rows: Mapping[str, _Mean], n_next: int, seed: int
) -> tuple[str, ...]:
    """Documents to label next, alternating between the groups that reduce the variance most; one
    without an estimate comes first. Within a group they are drawn at random: choosing those that
    look hardest would make the labelled documents unrepresentative."""
    rng = np.random.default_rng(seed)
    means = {name: mean for name, (_, mean) in rows.items()}
    free = {}
    for name, members in (groups or {"all": list(table.judged)}).items():
        unlabelled = [text for text in members if text not in table.labelled]
        free[name] = [unlabelled[k] for k in rng.permutation(len(unlabelled))]
    n_labelled = Counter({name: mean.n_labelled for name, mean in means.items() if mean})

    def gain(name: str) -> float:
        """How much another label reduces the variance of the mean over all documents (Neyman)."""
        m, n = means.get(name), n_labelled[name]
        return math.inf if m is None or n < 2 else m.n**2 * m.spread * (1 / n - 1 / (n + 1))

    chosen: list[str] = []
    while len(chosen) < n_next and any(free.values()):
        best = max((name for name in free if free[name]), key=gain)
        chosen.append(free[best].pop())
        n_labelled[best] += 1
    return tuple(chosen)


def _signature(
    judged: Measurements, labels: Measurements, how: _Method, truth: Truth, *, is_grouped: bool
) -> str:
    answers = sorted((each.document_id, each.item, each.rater, str(each.value)) for each in labels)
    digest = hashlib.sha256(repr(answers).encode()).hexdigest()[:8]
    source = labels[0].signature.removeprefix("labels:")
    strata = "groups" if is_grouped else "none"
    return (
        f"{judged[0].signature}|correction:ppi++|experts:{source}@{digest}|truth:{truth}"
        f"|strata:{strata}|about:{'texts' if how.is_finite else 'source'}"
        f"|units:{'clusters' if how.cluster_of else 'documents'}"
    )
