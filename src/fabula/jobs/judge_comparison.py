"""Which judge to trust: several judges on the same documents, their panels, and their costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.models import Pricing
from fabula.settings import Between, setting
from fabula.types import by_rater

if TYPE_CHECKING:
    from fabula.judging.judges import JudgeCost, JudgeFigures, JudgePair
    from fabula.measures.corrected_means import CorrectedRow
    from fabula.measures.graded import GradedAgreement, JudgesOnItem
    from fabula.models.cost import Prices
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Estimate, Measurement, Rubric


@dataclass(frozen=True, slots=True)
class JudgeComparisonSettings(Pricing):
    """What judges are measured against."""

    labels: Path | None = setting(
        None,
        help="People's verdicts to measure the judges against; without them, judges are only "
        "compared with each other.",
    )
    seed: int = setting(0, help="Seed for the intervals.", check=Between(0))


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """What the judges of one run said, and the cost of each."""

    name: str
    """Added to a judge's name if it has several runs."""
    rubric: Rubric
    measurements: Sequence[Measurement]
    costs: Mapping[str, JudgeCost] = field(default_factory=dict)


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

    def to_json(self) -> list[dict[str, Any]]:
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
            "against": self._against(judge.rater),
            "graded": self._graded(judge.rater),
            "why_missing": dict(one.why_missing),
            "signature": one.kappa.signature,
        }

    def _against(self, rater: str) -> dict[str, dict[str, Any]]:
        return _seen_from(rater, self.pairs)

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


def compare_judges(
    runs: Sequence[Path], settings: JudgeComparisonSettings, stories: Sequence[Document] = ()
) -> JudgeComparison:
    """Compare the judges of finished runs.

    `stories` are the texts that were judged; with them, length bias is measured. Raises
    `InputError`, `MixError`.
    """
    from fabula.measures.labels import read_labels

    read, path = [read_judge_run(run, settings.prices()) for run in runs], settings.labels
    if path is None:
        return compare_runs(read, stories=stories, seed=settings.seed)
    labels = read_labels(path, read[0].rubric)
    return compare_runs(read, labels, path.name, stories, seed=settings.seed)


def read_judge_run(folder: Path, prices: Prices | None = None) -> JudgeRun:
    """Read a finished run, with the cost of its answers. Raises `InputError`."""
    from fabula.judging.folder import read_run
    from fabula.measures.labels import sides
    from fabula.models.cost import Prices

    rubric, measurements = read_run(folder)
    answers = folder / "answers.jsonl"
    raters = dict.fromkeys(one.rater for one in measurements) if answers.exists() else ()
    costs = {rater: _cost(answers, rater, prices or Prices()) for rater in raters}
    return JudgeRun(str(folder), rubric, sides(measurements), costs)


def compare_runs(
    runs: Sequence[JudgeRun],
    labels: Sequence[Measurement] = (),
    source: str = "",
    stories: Sequence[Document] = (),
    *,
    seed: int = 0,
) -> JudgeComparison:
    """Compare runs and people's labels, from `source`, that are already read.

    Raises `InputError`, `MixError`.
    """
    from fabula.judging.judges import Yardstick, judge_answers, judge_figures, judge_panels, pair_of
    from fabula.judging.run import RETEST
    from fabula.measures.graded import graded_agreement, graded_items, graded_pairs
    from fabula.measures.rater_agreement import panel_of_labels
    from fabula.text import count_words

    said, costs = _said_in(runs)
    rubric = runs[0].rubric
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


def _said_in(runs: Sequence[JudgeRun]) -> tuple[dict[str, list[Measurement]], dict[str, JudgeCost]]:
    """What each judge of the runs said, under a unique name, and its cost."""
    from fabula.errors import InputError, MixError

    first = runs[0]
    found: list[tuple[JudgeRun, str, list[Measurement]]] = []
    for run in runs:
        if {item.id for item in run.rubric.items} != {item.id for item in first.rubric.items}:
            raise MixError(
                f"{run.name}: judged on different items ({run.rubric.key}) from {first.name}"
            )
        found += [(run, rater, mine) for rater, mine in by_rater(run.measurements).items()]
    if not any(item.scale.level for item in first.rubric.items):
        raise InputError(f"{first.name}: has only free-text items, which cannot be compared")
    n_runs = Counter(rater for _, rater, _ in found)
    judges: dict[str, list[Measurement]] = {}
    costs: dict[str, JudgeCost] = {}
    for run, rater, measurements in found:
        name = rater if n_runs[rater] == 1 else f"{rater} ({run.name})"
        if name in judges:
            raise InputError(f"{run.name}: is named twice; name each run once")
        judges[name] = measurements
        if rater in run.costs:
            costs[name] = run.costs[rater]
    return judges, costs


def _cost(path: Path, model: str, prices: Prices) -> JudgeCost:
    """The cost of a model's answers in a run."""
    from fabula.judging.judges import JudgeCost
    from fabula.models.base import Usage
    from fabula.models.replay import recorded
    from fabula.store import read_rows

    mine = [row for row in read_rows(path) if row.get("model") == model]
    usage = Usage()
    for row in mine:
        if not row.get("failed"):
            usage += recorded(row).usage
    # After `@` comes what the server reported.
    price = prices.of(model) or prices.of(model.rpartition("@")[0])
    return JudgeCost(
        len(mine), usage.n_input, usage.n_output, None if price is None else price.of(usage)
    )
