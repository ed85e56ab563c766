"""Agreement of judges with people and with each other, and of people with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fabula.errors import InputError, MixError
from fabula.jobs.given import GivenSource, Labels, Run
from fabula.jobs.models import Pricing
from fabula.jobs.result import Result, Row
from fabula.settings import SettingsError, seed_setting, setting
from fabula.types import Contrast, Document, Estimate, Measurement, Rubric, by_rater

if TYPE_CHECKING:
    from fabula.judging.judges import JudgeCost, JudgeFigures
    from fabula.measures.agreement import AmongPeople, GradedAgreement, JudgeAgreement
    from fabula.measures.corrected_means import CorrectedRow
    from fabula.presentation.sheet import Block


@dataclass(frozen=True, slots=True)
class AgreementSettings(Pricing):
    """What judges are measured against, and what agreement is computed for."""

    labels: Labels | None = setting(
        None,
        help="People's labels to measure the judges against: a table of document, item, rater, "
        "value, a study's export, or TTCW's; without them, judges are only compared with each "
        "other.",
    )
    by: Literal["item", "dimension", "author"] = setting(
        "item", help="What each row of agreement with `labels` stands for."
    )
    texts: GivenSource | None = setting(
        None,
        help="The texts that were judged; needed to measure length bias.",
        unit="STORIES",
        option="stories",
    )
    seed: int = seed_setting("Seed for the intervals.")


_COSTS = ("n_calls", "n_input", "n_output", "cost")


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
    pairs: Sequence[Contrast]
    costs: Mapping[str, JudgeCost]
    corrected: Mapping[str, CorrectedRow]
    """By judge, what experts would have said of everything it judged; empty without labels."""
    graded: GradedAgreement | None = None
    """On items other than yes-no; None if the rubric has none."""
    graded_pairs: Sequence[Contrast] = ()
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
        judge, counts, place = one.judge, one.confusion, one.judge.place
        row, cost = self.corrected.get(judge.rater), self.costs.get(judge.rater)
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
            **{name: cost and getattr(cost, name) for name in _COSTS},
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
        for item in dict.fromkeys(pair.number for pair in self.graded_pairs):
            mine = [pair for pair in self.graded_pairs if pair.number == item]
            found.setdefault(item, {})["against"] = _seen_from(rater, mine)
        return found


def _seen_from(rater: str, pairs: Sequence[Contrast]) -> dict[str, dict[str, Any]]:
    """By other judge: how much better this one is, and how far the two agree."""
    found: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        if rater not in (pair.a, pair.b):
            continue
        is_first = rater == pair.a
        ends = _ends(pair.difference, "difference")
        if not is_first:
            value, low, high = (None if v is None else -v for v in ends.values())
            ends = {"difference": value, "low": high, "high": low}
        agreement = pair.details["agreement"]
        found[pair.b if is_first else pair.a] = {
            **ends,
            "n": pair.difference.n,
            "agreement": agreement.value,
            "agreement_low": agreement.low,
            "agreement_high": agreement.high,
            "agreement_n": agreement.n,
        }
    return found


def _ends(estimate: Estimate, name: str) -> dict[str, float | None]:
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


@dataclass(frozen=True, slots=True)
class WithPeople:
    """Judges with people, and people with each other: on yes-no items, then on all others."""

    rubric: Rubric
    judges: list[JudgeAgreement]
    experts: list[AmongPeople]
    expert_correlation: Estimate | None
    """Of the number of tests passed; None if there are no yes-no items."""
    graded: GradedAgreement | None
    """None if there are no answers on items other than yes-no."""

    def tables(self) -> list[Block]:
        from fabula.presentation.judging_tables import agreement_tables
        from fabula.presentation.rating_tables import graded_tables

        parts: list[Block] = []
        if self.expert_correlation is not None:
            parts += agreement_tables(
                self.judges, self.experts, self.expert_correlation, self.rubric
            )
        return parts + (graded_tables(self.graded) if self.graded else [])

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.expert_correlation is not None:
            found = {
                "experts": [asdict(row) for row in self.experts],
                "experts_pearson": asdict(self.expert_correlation),
                "judges": [_judge_json(judge) for judge in self.judges],
            }
        return found | ({"graded": asdict(self.graded)} if self.graded else {})


@dataclass(frozen=True, slots=True, repr=False)
class Agreements(Result):
    """Judges beside people and beside each other."""

    comparison: JudgeComparison | None
    """None without runs."""
    people: WithPeople | None
    """None without labels."""

    def tables(self) -> list[Block]:
        parts = [one.tables() for one in (self.comparison, self.people) if one is not None]
        return [*parts[0], *(block for part in parts[1:] for block in ("", *part))]

    def rows(self) -> list[Row]:
        """A row for each judge and panel."""
        return [] if self.comparison is None else self.comparison.rows()

    def frame_rows(self) -> list[Row]:
        """A row for each judge and panel, with every numeric figure.

        `kappa` with people's majority, its `low` and `high`, and the kappa of one person
        (`baseline`); `n_missing` counts the answers without a verdict. The differences between each
        two judges are in `to_json`.
        """
        return [_figures(row) for row in self.rows()]

    def to_json(self) -> dict[str, Any]:
        with_people = {} if self.people is None else {"agreement": self.people.to_json()}
        return {"judges": self.rows(), **with_people}


def agreement(settings: AgreementSettings, runs: Sequence[Run] = ()) -> Agreements:
    """Compare the judges of RUNs with people's verdicts and with each other.

    A RUN is a folder that `fabula judge` wrote. On yes-no items, with three or more judges, the
    majority of the judges is measured too; numbers and choices are compared item by item, with the
    statistic of their scale. Intervals are over documents.

    With `labels`, agreement with experts, and of experts with each other, follows for each item,
    dimension or author (`by`); without RUNs that of experts alone. Over several items, kappa has
    the chance of each item. Kappas have 95 % intervals over stories; an undefined coefficient
    (everybody answered the same) is shown as `-`, never as 0. On items that are not yes-no, kappa
    is weighted (numbers, ordered choices) and shown beside that of people on the same documents.

    Raises `InputError`, `SettingsError`, and `MixError` for runs of different items.
    """
    from fabula.measures.labels import sides
    from fabula.rubrics.load import load_rubric

    if not runs and settings.labels is None:
        raise SettingsError(
            "labels", "are needed without runs: give folders that `fabula judge` wrote, or labels"
        )
    names = [f"run {k}" if one.folder is None else one.name for k, one in enumerate(runs, 1)]
    said: list[JudgeRun] = []
    rubric = None
    for run, name in zip(runs, names, strict=True):
        own, measurements = run.read()
        rubric = rubric or own
        if {item.id for item in own.items} != {item.id for item in rubric.items}:
            raise MixError(f"{name}: judged on different items ({own.key}) from {names[0]}")
        costs = run.costs(settings.prices())
        said += [
            JudgeRun(name, rater, mine, costs.get(rater))
            for rater, mine in by_rater(sides(measurements)).items()
        ]
    rubric = rubric or load_rubric("ttcw")
    if not any(item.scale.level for item in rubric.items):
        raise InputError(f"{names[0]}: has only free-text items, which cannot be compared")
    labels = [] if settings.labels is None else settings.labels.read(rubric)
    source = "" if settings.labels is None else settings.labels.name
    comparison = None
    if runs:
        stories = [one for run in runs for one in run.documents()]
        if settings.texts:
            stories = settings.texts.read()
        comparison = compare_runs(said, rubric, labels, source, stories, seed=settings.seed)
    people = None
    if settings.labels is not None:
        people = _with_people([one.measurements for one in said], labels, rubric, settings, source)
    return Agreements(comparison, people)


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
    from fabula.measures.agreement import (
        graded_agreement,
        graded_items,
        graded_pairs,
        panel_of_labels,
    )
    from fabula.text import count_words

    n_runs = Counter(one.rater for one in runs)
    said: dict[str, list[Measurement]] = {}
    costs: dict[str, JudgeCost] = {}
    for one in runs:
        name = one.rater if n_runs[one.rater] == 1 else f"{one.rater} ({one.name})"
        if name in said:
            raise InputError(f"{one.name}: is named twice; name each run once")
        said[name] = one.measurements
        if one.cost is not None:
            costs[name] = one.cost
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


def _with_people(
    judges: Sequence[Sequence[Measurement]],
    labels: Sequence[Measurement],
    rubric: Rubric,
    settings: AgreementSettings,
    source: str,
) -> WithPeople:
    """Agreement of each judge's measurements with labels, which are from `source`."""
    from fabula.measures import agreement as measures
    from fabula.measures.agreement import graded_agreement

    by, seed = settings.by, settings.seed
    graded = graded_agreement([one for mine in judges for one in mine], labels, rubric, seed=seed)
    panel = measures.panel_of_labels(labels, rubric, source)
    rest = graded if graded.people else None
    if not panel.subjects:
        return WithPeople(rubric, [], [], None, rest)
    truth = panel.majority()
    return WithPeople(
        rubric,
        [
            measures.judge_agreement(mine, panel, rubric, by, seed=seed)
            for mine in judges
            # The comparison of judges says that the others have no document in common with people.
            if any((one.document_id, one.item) in truth for one in mine)
        ],
        measures.panel_agreement(panel, rubric, by, seed=seed),
        measures.expert_correlation(panel, rubric, seed=seed),
        rest,
    )


def _judge_json(judge: JudgeAgreement) -> dict[str, Any]:
    found = asdict(judge)
    del found["why_no_correlation"]
    found["rows"] = [*found["rows"], found.pop("overall")]
    for row, kept in zip((*judge.rows, judge.overall), found["rows"], strict=True):
        counts = row.confusion
        for name in ("balanced_accuracy", "precision", "recall", "f1", "phi"):
            kept[name] = getattr(counts, name)
        kept["percent"] = None if counts.accuracy is None else 100 * counts.accuracy
    return found


def _figures(entry: Row) -> Row:
    """A judge's figures in one row; those with an interval have columns for its ends."""
    row: Row = {}
    for name, value in entry.items():
        if name == "missing":
            row["n_missing"] = sum(value.values())
        elif isinstance(value, dict) and "low" in value:
            key = name if name in value else next(iter(value))
            rest = {f"{name}_{end}": number for end, number in value.items() if end != key}
            row |= {name: value[key], **rest}
        elif not isinstance(value, dict | list | tuple):
            row[name] = value
    return row
