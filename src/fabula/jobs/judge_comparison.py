"""Which judge to trust: several judges on the same documents, their panels, and their costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabula.judging.judges import JudgeCost, JudgeFigures, JudgePair
    from fabula.measures.corrected_means import CorrectedRow
    from fabula.measures.graded import GradedAgreement, JudgesOnItem
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Estimate, Measurement, Rubric


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """What one judge said in a run, and its cost, if that is known."""

    name: str
    """The run's, added to the judge's if it has several runs."""
    rater: str
    measurements: list[Measurement]
    cost: JudgeCost | None


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Judges, then their panels, each measured in the same way; and compared in pairs."""

    judges: Sequence[JudgeFigures]
    pairs: Sequence[JudgePair]
    costs: Mapping[str, JudgeCost]
    corrected: Mapping[str, CorrectedRow]
    """By judge, what experts would have said of everything it judged; empty without labels."""
    graded: GradedAgreement | None = None
    """On items other than yes-no; None if the rubric has none."""
    graded_pairs: Sequence[JudgesOnItem] = ()
    has_tests: bool = True
    """Whether the rubric has yes-no items."""

    def tables(self) -> list[Block]:
        from fabula.presentation.judge_comparison_tables import judge_comparison_tables

        return judge_comparison_tables(
            self.judges if self.has_tests else [],
            self.pairs,
            self.costs,
            self.corrected,
            self.graded,
            self.graded_pairs,
            everybody=self.judges,
        )

    def rows(self) -> list[dict[str, Any]]:
        """One entry per judge and panel."""
        return [self._entry(one) for one in self.judges]

    def _entry(self, one: JudgeFigures) -> dict[str, Any]:
        judge, counts, place, cost = (
            one.judge,
            one.confusion,
            one.judge.place,
            self.costs.get(one.judge.rater),
        )
        row = self.corrected.get(judge.rater)
        return {
            "rater": judge.rater,
            "kind": judge.kind,
            **_ends(one.kappa, "kappa"),
            "n": one.kappa.n,
            "n_documents": one.kappa.n_units,
            "baseline": one.baseline,
            "sensitivity": counts.recall,
            "specificity": counts.specificity,
            "accuracy": counts.accuracy,
            "share_yes": one.share_yes,
            "corrected": None if row is None else row.to_json(),
            "n_answers": judge.n_answers,
            "missing": dict(judge.missing),
            "retest": _ends(one.retest, "kappa") | {"n": one.retest.n},
            "wordings": _ends(one.wordings, "kappa") | {"n": one.wordings.n},
            "length": _ends(one.length, "correlation"),
            "own_family": _ends(one.own_family, "difference"),
            "first_place": None if place is None else place.first_share,
            "turned": None if place is None else place.n_turned / place.n_pairs,
            "n_calls": cost and cost.n_calls,
            "n_input": cost and cost.n_input,
            "n_output": cost and cost.n_output,
            "cost": cost and cost.cost,
            "against": _seen_from(judge.rater, self.pairs),
            "graded": self._graded(judge.rater),
            "why_missing": dict(one.why_missing),
            "signature": one.kappa.signature,
        }

    def _graded(self, rater: str) -> dict[str, dict[str, Any]]:
        """By item: agreement with people and among them, and with each other judge."""
        if self.graded is None:
            return {}
        found: dict[str, dict[str, Any]] = {}
        for item, one in self.graded.judges.get(rater, {}).items():
            found[item] = {
                **_ends(one.kappa, "kappa"),
                "n": one.n,
                "people": _ends(one.people, "kappa"),
                "difference": _ends(one.difference, "difference"),
                "correlation": _ends(one.correlation, "correlation"),
                "signature": one.kappa.signature,
            }
        for item in dict.fromkeys(pair.item for pair in self.graded_pairs):
            mine = [pair for pair in self.graded_pairs if pair.item == item]
            found.setdefault(item, {})["against"] = _seen_from(rater, mine)
        return found


def _seen_from(
    rater: str, pairs: Sequence[JudgePair] | Sequence[JudgesOnItem]
) -> dict[str, dict[str, Any]]:
    """By other judge: how much better this one is, and how far the two agree."""
    found: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        if rater not in (pair.first, pair.second):
            continue
        is_first = rater == pair.first
        ends = _ends(pair.difference, "difference")
        if not is_first:
            value, low, high = (None if v is None else -v for v in ends.values())
            ends = {"difference": value, "low": high, "high": low}
        agreement = _ends(pair.agreement, "agreement")
        found[pair.second if is_first else pair.first] = {
            **ends,
            "n": pair.difference.n,
            "agreement": agreement["agreement"],
            "agreement_low": agreement["low"],
            "agreement_high": agreement["high"],
            "agreement_n": pair.agreement.n,
        }
    return found


def _ends(estimate: Estimate, name: str) -> dict[str, float | None]:
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


def compare_runs(
    runs: Sequence[JudgeRun],
    rubric: Rubric,
    labels: Sequence[Measurement],
    source: str,
    stories: Sequence[Document],
    *,
    seed: int,
) -> JudgeComparison:
    """Compare judges with people's labels, from `source`, and with each other.

    With `stories`, the texts that were judged, length bias is measured. Raises `InputError` for a
    run that is named twice.
    """
    from fabula.judging.judges import Yardstick, judge_answers, judge_figures, judge_panels, pair_of
    from fabula.judging.run import RETEST
    from fabula.measures.graded import graded_agreement, graded_items, graded_pairs
    from fabula.measures.rater_agreement import panel_of_labels
    from fabula.text import count_words

    said, costs = _named(runs)
    judges = [judge_answers(name, mine, rubric) for name, mine in said.items()]
    n_words = {story.id: count_words(story.text) for story in stories}
    panel = panel_of_labels(labels, rubric, source)
    yardstick = Yardstick(panel if labels else None, n_words, seed)
    everybody = [*judges, *judge_panels(judges)]
    pairs = [
        pair_of(first, second, yardstick)
        for k, first in enumerate(everybody)
        for second in everybody[k + 1 :]
        if first.answers and second.answers
    ]
    figures = [judge_figures(judge, yardstick) for judge in everybody]
    corrected = {
        name: row for name, mine in said.items() if (row := _corrected(mine, labels, rubric))
    }
    first = {
        # Answers about pairs, and repeats, are not about documents that people have labelled.
        name: [
            replace(one, rater=name)
            for one in mine
            if not one.document_id.endswith(RETEST) and "orders" not in one.details
        ]
        for name, mine in said.items()
    }
    is_graded, everything = bool(graded_items(rubric)), [one for m in first.values() for one in m]
    return JudgeComparison(
        figures,
        pairs,
        costs,
        corrected,
        graded_agreement(everything, labels, rubric, seed=seed) if is_graded else None,
        graded_pairs(first, labels, rubric, seed=seed),
        has_tests=any(item.scale.agreement == "kappa" for item in rubric.items),
    )


def _corrected(
    said: Sequence[Measurement], labels: Sequence[Measurement], rubric: Rubric
) -> CorrectedRow | None:
    """The mean that experts would have given, over the items that can be averaged, if any."""
    from fabula.errors import InputError
    from fabula.jobs.correction import CorrectSettings, correct_measurements
    from fabula.measures.corrected_means import averaged_items

    try:
        items = averaged_items(rubric)
    except InputError:
        return None
    ids = {item.id for item in items}
    own, people = ([one for one in many if one.item in ids] for many in (said, labels))
    known = {one.document_id for one in people}
    if not any(one.document_id in known and one.value is not None for one in own):
        return None
    settings = CorrectSettings(judge=own[0].rater)
    part = replace(rubric, items=tuple(items))
    return correct_measurements(own, people, part, settings).correction.overall


def _named(runs: Sequence[JudgeRun]) -> tuple[dict[str, list[Measurement]], dict[str, JudgeCost]]:
    """What each judge said, under a unique name, and its cost."""
    from fabula.errors import InputError

    n_runs = Counter(one.rater for one in runs)
    said: dict[str, list[Measurement]] = {}
    costs: dict[str, JudgeCost] = {}
    for one in runs:
        judge = one.rater if n_runs[one.rater] == 1 else f"{one.rater} ({one.name})"
        if judge in said:
            raise InputError(f"{one.name}: is named twice; name each run once")
        said[judge] = one.measurements
        if one.cost is not None:
            costs[judge] = one.cost
    return said, costs
