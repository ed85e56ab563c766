"""Results of diversity that were measured apart, read from JSON and compared.

The texts of two results are independent samples, so the error of a difference is from the jackknife
errors of both groups, which the JSON holds with their degrees of freedom. Groups of one result keep
the tests that were made there: only there could texts be permuted, or compared prompt by prompt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from fabula.errors import DAMAGE, InputError
from fabula.formats import DIVERSITY
from fabula.measures.diversity.diversity_tests import (
    DiversityTest,
    StandardError,
    difference_estimate,
    t_test,
)
from fabula.measures.diversity.measure import ALL_TEXTS
from fabula.measures.diversity.result import Diversity, DiversityOmnibus, GroupDiversity
from fabula.stats.compare import holm, welch_f
from fabula.stats.resample import MIN_UNITS
from fabula.types import Estimate, Signature

__all__ = ["join_results", "read_result"]


def read_result(content: Mapping[str, Any], where: str) -> Diversity:
    """What `Diversity.to_json` gave, without phrases and pairs of texts.

    Raises `InputError`, also if another version of Fabula wrote it in a form that lacks the errors.
    """
    DIVERSITY.check(content, where)
    try:
        return _result(content)
    except DAMAGE as error:
        raise InputError(
            f"{where}: not a whole result of diversity ({error}); {DIVERSITY.remedy}"
        ) from error


def _result(content: Mapping[str, Any]) -> Diversity:
    signature = str(content["signature"])
    parts = dict(Signature.parse(signature).parts)
    groups = {name: _group(name, one, signature) for name, one in content["groups"].items()}
    if not groups or len({tuple(one.estimates) for one in groups.values()}) > 1:
        raise ValueError("its groups do not have the same measures")
    return Diversity(
        None if content["by"] is None else str(content["by"]),
        parts["draws"].partition(",")[0],
        [*groups.values()],
        [_test(one, groups, signature) for one in content["tests"]],
        [],
        None,
        dict(content["left_out"]),
        int(parts["words"]),
        signature,
    )


def _group(name: str, content: Mapping[str, Any], signature: str) -> GroupDiversity:
    estimates: dict[str, Estimate] = {}
    errors: dict[str, StandardError] = {}
    n, n_units = int(content["n"]), int(content["n_units"])
    for measure, one in _measures(content):
        estimates[measure], error = _estimate(one, n, n_units, signature)
        if error is not None:
            errors[measure] = error
    return GroupDiversity(
        name,
        int(content["n_texts"]),
        int(content["n_too_short"]),
        int(content["n_other_prompts"]),
        n,
        n_units,
        estimates,
        n_identical=int(content["n_identical"]),
        errors=errors,
        digest=str(content["digest"]),
    )


def _measures(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each measure as `Diversity` names it: `self_bleu`, `shared_ngrams.4`."""
    for name, one in content.items():
        if not isinstance(one, dict):
            continue
        if "value" in one:
            yield name, one
        else:
            for n, each in one.items():
                yield f"{name}.{int(n)}", each


def _estimate(
    content: Mapping[str, Any], n: int, n_units: int, signature: str
) -> tuple[Estimate, StandardError | None]:
    value, low, high, error = (
        None if content[key] is None else float(content[key])
        for key in ("value", "low", "high", "error")
    )
    if not all(one is None or math.isfinite(one) for one in (value, low, high, error)):
        raise ValueError("a number in it is not finite")
    found = Estimate(value, low, high, n, "jackknife", signature, n_units)
    if error is None:
        return found, None
    df = int(content["df"])
    if error <= 0 or df < 1:
        raise ValueError("an error or its degrees of freedom in it are not positive")
    return found, StandardError(error, df)


def _test(
    content: Mapping[str, Any], groups: Mapping[str, GroupDiversity], signature: str
) -> DiversityTest:
    measure = str(content["measure"])
    if content["n"] is not None:
        measure = f"{measure}.{int(content['n'])}"
    a, b = str(content["a"]), str(content["b"])
    n_units = min(groups[a].n_units, groups[b].n_units)
    difference, error = _estimate(content["difference"], groups[a].n, n_units, signature)
    p = None if content["p"] is None else float(content["p"])
    return DiversityTest(
        measure,
        a,
        b,
        difference,
        p,
        None,
        int(content["n_permutations"]),
        None if p is not None else str(content["missing_reason"]),
        error,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """A group with its unique name, and the result that it is from."""

    name: str
    own: GroupDiversity
    result: int


def join_results(
    results: Sequence[tuple[str, Diversity]], *, baseline: str | None = None
) -> Diversity:
    """All groups of several results, and a test of each pair (or of each and the `baseline`).

    results: each with a name, which tells groups of the same name apart. P-values are corrected
    over the pairs of a measure (Holm). Raises `MixError` if results were measured in different
    ways, `InputError` for an unknown `baseline`.
    """
    signature = _common_signature(results)
    groups = _named(results)
    names = [one.name for one in groups]
    if baseline is not None and baseline not in names:
        raise InputError(f"`baseline` {baseline}: no such group; the groups are {', '.join(names)}")
    pairs, same = _pairs(groups, baseline)
    known = {
        (number, one.measure, one.a, one.b): one
        for number, (_, result) in enumerate(results)
        for one in result.tests
    }
    first = results[0][1]
    tests: list[DiversityTest] = []
    for measure in first.measures:
        some = [_compared(a, b, measure, known, signature) for a, b in pairs]
        corrected = holm([one.p for one in some])
        tests += [replace(one, p_holm=p) for one, p in zip(some, corrected, strict=True)]
    fields = {result.by for _, result in results}
    return Diversity(
        first.by if len(fields) == 1 else None,
        first.design,
        [replace(one.own, name=one.name) for one in groups],
        tests,
        [],
        None,
        first.left_out,
        first.n_words,
        signature,
        [*_omnibus(groups, first.measures)],
        [*_notes(first.design, same, pairs)],
    )


def _common_signature(results: Sequence[tuple[str, Diversity]]) -> str:
    """That of all results."""
    name, first = results[0]
    expected = Signature.parse(first.signature)
    for other, result in results[1:]:
        expected.check_same(
            result.signature,
            f"{name} and {other}",
            "measure both with the same numbers of words and texts and the same settings",
        )
    return first.signature


def _named(results: Sequence[tuple[str, Diversity]]) -> list[_Group]:
    """Every group, with the name of its result where its own name is not unique."""
    times = Counter(group.name for _, result in results for group in result.groups)
    found = []
    for number, (source, result) in enumerate(results):
        for group in result.groups:
            name = group.name
            if times[name] > 1:
                name = source if name == ALL_TEXTS else f"{name} ({source})"
            found.append(_Group(name, group, number))
    return found


def _pairs(
    groups: Sequence[_Group], baseline: str | None
) -> tuple[list[tuple[_Group, _Group]], list[tuple[_Group, _Group]]]:
    """The pairs to test, and those that are the same texts."""
    pairs: list[tuple[_Group, _Group]] = []
    same: list[tuple[_Group, _Group]] = []
    for a, b in combinations(groups, 2):
        if baseline is not None and baseline not in (a.name, b.name):
            continue
        ordered = (b, a) if a.name == baseline else (a, b)
        (same if a.own.digest == b.own.digest and a.own.n else pairs).append(ordered)
    return pairs, same


def _compared(
    a: _Group,
    b: _Group,
    measure: str,
    known: Mapping[tuple[int, str, str, str], DiversityTest],
    signature: str,
) -> DiversityTest:
    """The test that was made where both were measured together, else one of independent groups."""
    if a.result == b.result:
        own = known.get((a.result, measure, a.own.name, b.own.name))
        if own is not None:
            return replace(own, a=a.name, b=b.name)
        turned = known.get((a.result, measure, b.own.name, a.own.name))
        if turned is not None:
            difference = _negative(turned.difference)
            return replace(turned, a=a.name, b=b.name, difference=difference)
    mine, theirs = a.own.errors.get(measure), b.own.errors.get(measure)
    values = a.own.estimates[measure].value, b.own.estimates[measure].value
    n_units = min(a.own.n_units, b.own.n_units)
    apart = None if values[0] is None or values[1] is None else values[0] - values[1]
    error = None if mine is None or theirs is None else mine.of_difference(theirs)
    p = None if apart is None or error is None else t_test(apart, error)
    return DiversityTest(
        measure,
        a.name,
        b.name,
        difference_estimate(apart, error, a.own.n, n_units, signature),
        p,
        None,
        0,
        _reason(apart, p, n_units),
        error,
    )


def _reason(apart: float | None, p: float | None, n_units: int) -> str | None:
    """Why a difference has no test."""
    if p is not None:
        return None
    if apart is None:
        return "few_texts"
    return "few_units" if n_units < MIN_UNITS else "no_spread"


def _negative(one: Estimate) -> Estimate:
    value, low, high = (None if end is None else -end for end in (one.value, one.high, one.low))
    return replace(one, value=value, low=low, high=high)


def _omnibus(groups: Sequence[_Group], measures: Sequence[str]) -> Iterator[DiversityOmnibus]:
    """For three groups or more; the same texts count once."""
    distinct = list({one.own.digest: one for one in groups}.values())
    for measure in measures:
        found = [
            (one.own.estimates[measure].value, one.own.errors[measure])
            for one in distinct
            if measure in one.own.errors
        ]
        values = [value for value, _ in found if value is not None]
        if len(found) < 3 or len(values) < len(found):
            continue
        f, within, p = welch_f(
            values, [error.value for _, error in found], [error.df for _, error in found]
        )
        yield DiversityOmnibus(measure, f, len(found) - 1, within, p, len(found))


def _notes(
    design: str,
    same: Sequence[tuple[_Group, _Group]],
    pairs: Sequence[tuple[_Group, _Group]],
) -> Iterator[str]:
    for a, b in same:
        yield f"{a.name} and {b.name} are the same texts, and are not compared"
    if design == "prompts" and any(a.result != b.result for a, b in pairs):
        yield (
            "groups measured apart are compared as independent; on the same prompts this gives "
            "wider intervals than measuring them together, which compares them prompt by prompt"
        )
