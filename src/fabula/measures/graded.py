"""Agreement on items that are not yes-no: numbers, choices, ranks.

Kappa has quadratic weights for numbers and ordered choices, none for other choices; alpha uses the
distance of the scale's level. Kappas are over all pairs of two raters of a document, so documents
may have different numbers of raters; intervals are over documents. A judge is compared with people
on the same documents: as one more person, with each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from fabula.stats.agreement import Statistic, alpha, cohen, concordance, difference, icc, pearson
from fabula.types import Contrast, Estimate, Item, Measurement, Rubric

Values = NDArray[np.float64]
_METHODS = {
    "interval": "kappa with quadratic weights",
    "ordinal": "kappa with quadratic weights",
    "nominal": "Cohen kappa",
}
_OVER = "over pairs of raters and documents"
_SAME = "all answers are the same"
_ALONE = "no document has answers from two people"


@dataclass(frozen=True, slots=True)
class PeopleOnItem:
    """Agreement among people on one item, over the documents that several answered."""

    n: int
    kappa: Estimate
    alpha: Estimate
    """Krippendorff's, at the scale's level."""
    icc: Estimate
    """ICC(2,1) of numbers, if the same people answered about every document."""
    similarity: float | None
    """Mean over pairs of 1 - |a - b|, relative to the scale's span; for choices, share equal."""
    why_missing: Mapping[str, str]
    """Which of kappa, alpha and icc have no value."""


@dataclass(frozen=True, slots=True)
class JudgeOnItem:
    """A judge's agreement with people on one item, and people's on the same documents."""

    n: int
    kappa: Estimate
    people: Estimate
    difference: Estimate
    """The judge's kappa minus that of people."""
    correlation: Estimate
    """Pearson with people's means; none for choices without worth."""
    why_missing: Mapping[str, str]
    """Which of kappa, people, difference and correlation have no value."""


@dataclass(frozen=True, slots=True)
class GradedAgreement:
    """By item; judges by rater, then by item."""

    people: Mapping[str, PeopleOnItem]
    judges: Mapping[str, Mapping[str, JudgeOnItem]]


def graded_agreement(
    measurements: Sequence[Measurement],
    labels: Sequence[Measurement],
    rubric: Rubric,
    *,
    seed: int = 0,
) -> GradedAgreement:
    """Judges' measurements and people's labels on the items that are neither yes-no nor prose."""
    people: dict[str, PeopleOnItem] = {}
    judges: dict[str, dict[str, JudgeOnItem]] = {one.rater: {} for one in measurements}
    for item in graded_items(rubric):
        said = numbers_said(labels, item)
        if not said:
            continue
        people[item.id] = _people(said, item, labels[0].signature, seed)
        for rater, found in judges.items():
            mine = [one for one in measurements if (one.rater, one.item) == (rater, item.id)]
            given = {name: values[rater] for name, values in numbers_said(mine, item).items()}
            if any(name in said for name in given):
                found[item.id] = _judge(given, said, item, mine[0].signature, seed)
    return GradedAgreement(people, {rater: found for rater, found in judges.items() if found})


def graded_pairs(
    judges: Mapping[str, Sequence[Measurement]],
    labels: Sequence[Measurement],
    rubric: Rubric,
    *,
    seed: int = 0,
) -> list[Contrast]:
    """Each two judges on each item that is neither yes-no nor prose and that both answered.

    `judges` by name; `agreement` is kappa between the two. The interval of a difference is over
    documents, of both at once.
    """
    pairs = []
    for item in graded_items(rubric):
        people = numbers_said(labels, item)
        answers = {
            name: {
                document: next(iter(one.values()))
                for document, one in numbers_said(measurements, item).items()
            }
            for name, measurements in judges.items()
        }
        for first, second in combinations([name for name in answers if answers[name]], 2):
            if any(name in answers[second] for name in answers[first]):
                signature = f"{judges[first][0].signature}|against:{second}"
                pairs.append(_two_judges(first, second, answers, people, item, signature, seed))
    return pairs


def _two_judges(
    first: str,
    second: str,
    answers: Mapping[str, Mapping[str, float]],
    people: Mapping[str, Mapping[str, float]],
    item: Item,
    signature: str,
    seed: int,
) -> Contrast:
    a, b = answers[first], answers[second]
    both = [name for name in a if name in b]
    sides = []
    for mine in (a, b):
        own, theirs, names = _with_people({name: mine[name] for name in both}, people)
        sides.append((_statistic(own, theirs, item), names))
    apart = difference(
        sides[0],
        sides[1],
        method=f"difference of the kappas of two judges with people, {_OVER}",
        signature=signature,
    )
    agreement = _kappa(
        np.array([a[name] for name in both]),
        np.array([b[name] for name in both]),
        both,
        item,
        signature,
        seed,
    )
    labelled = any(name in people for name in both)
    alike = "a judge and people said the same" if labelled else "nobody labelled these documents"
    why = _reasons(difference=(apart, alike), agreement=(agreement, _SAME))
    details = {"agreement": agreement, "why_missing": why}
    return Contrast(item.id, first, second, apart, details=details)


def graded_items(rubric: Rubric) -> list[Item]:
    """The items that are neither yes-no nor prose."""
    return [one for one in rubric.items if one.scale.level and one.scale.agreement != "kappa"]


def numbers_said(measurements: Sequence[Measurement], item: Item) -> dict[str, dict[str, float]]:
    """The answers on an item, by document and rater, as numbers.

    Worths, ranks, or the number of an option.
    """
    scale = item.scale
    found: dict[str, dict[str, float]] = {}
    for one in measurements:
        if one.item != item.id:
            continue
        value = scale.decided(one.value)
        if value is None:
            continue
        number = scale.worth(value)
        if number is None:
            number = scale.answers.index(value) if isinstance(value, str) else value
        found.setdefault(one.document_id, {})[one.rater] = float(number)
    return found


def _statistic(a: Values, b: Values, item: Item) -> Statistic:
    return cohen(a, b) if item.scale.level == "nominal" else concordance(a, b)


def _pairs_of_people(
    said: Mapping[str, Mapping[str, float]], documents: Sequence[str]
) -> tuple[Values, Values, list[str]]:
    """All ordered pairs of two people of a document, and the documents of the pairs."""
    return _columns(
        [(*pair, name) for name in documents for pair in permutations(said[name].values(), 2)]
    )


def _columns(pairs: Sequence[tuple[float, float, str]]) -> tuple[Values, Values, list[str]]:
    """The first answers of pairs, the second, and the documents."""
    table = np.array([pair[:2] for pair in pairs], np.float64).reshape(len(pairs), 2)
    return table[:, 0], table[:, 1], [name for *_, name in pairs]


def _people(
    said: Mapping[str, Mapping[str, float]], item: Item, signature: str, seed: int
) -> PeopleOnItem:
    several = [name for name, values in said.items() if len(values) > 1]
    raters = list(dict.fromkeys(rater for name in several for rater in said[name]))
    table = np.array(
        [[said[name].get(rater, np.nan) for rater in raters] for name in several], np.float64
    ).reshape(len(several), len(raters))
    a, b, names = _pairs_of_people(said, several)
    level = item.scale.level or "nominal"
    apart = (a != b) if level == "nominal" else np.abs(a - b) / item.scale.span
    kappa = _kappa(a, b, names, item, signature, seed)
    # Non-numeric values have no table, and so no value.
    numbers = table if level == "interval" else table[:0]
    alphas, iccs = (
        statistic.estimate(names, seed=seed, method=method, signature=signature)
        for statistic, names, method in (
            (alpha(table, level), several, f"Krippendorff's alpha ({level})"),
            (icc(numbers), several[: len(numbers)], "ICC(2,1)"),
        )
    )
    same = _SAME if several else _ALONE
    return PeopleOnItem(
        n=len(several),
        kappa=kappa,
        alpha=alphas,
        icc=iccs,
        similarity=float(1 - apart.mean()) if len(apart) and level != "ordinal" else None,
        why_missing=_reasons(
            kappa=(kappa, same), alpha=(alphas, same), icc=(iccs, _why_no_icc(table, level) or same)
        ),
    )


def _reasons(**figures: tuple[Estimate, str]) -> dict[str, str]:
    """By name, the reasons of the estimates without a value."""
    return {name: why for name, (one, why) in figures.items() if one.value is None}


def _why_no_icc(table: Values, level: str) -> str | None:
    """None if all answers are equal, or no document has two."""
    if level != "interval":
        return "the answers are not numbers"
    if len(table) and np.isnan(table).any():
        return "not everybody answered about every document"
    if len(table) == 1:
        return "several answered about one document only"
    return "it would divide by zero" if len(table) and np.ptp(table) > 0 else None


def _kappa(
    a: Values, b: Values, names: Sequence[str], item: Item, signature: str, seed: int
) -> Estimate:
    method = f"{_METHODS[item.scale.level or 'nominal']} {_OVER}"
    found = _statistic(a, b, item).estimate(names, seed=seed, method=method, signature=signature)
    return replace(found, n=len(set(names)))


def _with_people(
    given: Mapping[str, float], said: Mapping[str, Mapping[str, float]]
) -> tuple[Values, Values, list[str]]:
    """A judge's answers with each person's of the same document, and the documents."""
    return _columns(
        [
            (mine, value, name)
            for name, mine in given.items()
            for value in said.get(name, {}).values()
        ]
    )


def _judge(
    given: Mapping[str, float],
    said: Mapping[str, Mapping[str, float]],
    item: Item,
    signature: str,
    seed: int,
) -> JudgeOnItem:
    both = [name for name in given if name in said]
    mine, theirs, names = _with_people(given, said)
    a, b, among = _pairs_of_people(said, both)
    means = np.array([np.mean(list(said[name].values())) for name in both])
    own = np.array([given[name] for name in both])
    has_order = item.scale.level != "nominal"
    kappa = _kappa(mine, theirs, names, item, signature, seed)
    people = _kappa(a, b, among, item, signature, seed)
    apart = difference(
        (_statistic(mine, theirs, item), names),
        (_statistic(a, b, item), among),
        method=f"difference of kappas, {_OVER}",
        signature=signature,
    )
    ordered = means if has_order else np.full(len(means), np.nan)
    correlation = pearson(own, ordered).estimate(
        both, seed=seed, method="Pearson with people's means over documents", signature=signature
    )
    alone = _SAME if among else _ALONE
    return JudgeOnItem(
        n=len(both),
        kappa=kappa,
        people=people,
        difference=apart,
        correlation=correlation,
        why_missing=_reasons(
            kappa=(kappa, _SAME),
            people=(people, alone),
            difference=(apart, alone if people.value is None else _SAME),
            correlation=(correlation, _why_uncorrelated(own, means, has_order=has_order)),
        ),
    )


def _why_uncorrelated(own: Values, means: Values, *, has_order: bool) -> str:
    if not has_order:
        return "the options have no order"
    if len(own) < 2:
        return "judge and people answered about one document only"
    return f"{'people' if np.ptp(own) else 'the judge'} said the same of every document"
