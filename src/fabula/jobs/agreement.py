"""Agreement of judges with people and with each other, and of people with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.given import GivenSource, Labels, Run
from fabula.jobs.models import Pricing
from fabula.jobs.result import Result, Row
from fabula.settings import SettingsError, seed_setting, setting
from fabula.types import by_rater

if TYPE_CHECKING:
    from fabula.jobs.judge_comparison import JudgeComparison, JudgeRun
    from fabula.measures.graded import GradedAgreement
    from fabula.measures.rater_agreement import JudgeAgreement, PanelRow
    from fabula.presentation.sheet import Block
    from fabula.types import Estimate, Measurement, Rubric


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


@dataclass(frozen=True, slots=True)
class WithPeople:
    """Judges with people, and people with each other: on yes-no items, then on all others."""

    rubric: Rubric
    judges: list[JudgeAgreement]
    experts: list[PanelRow]
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
    from fabula.errors import InputError, MixError
    from fabula.jobs.judge_comparison import JudgeRun, compare_runs
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


def _with_people(
    judges: Sequence[Sequence[Measurement]],
    labels: Sequence[Measurement],
    rubric: Rubric,
    settings: AgreementSettings,
    source: str,
) -> WithPeople:
    """Agreement of each judge's measurements with labels, which are from `source`."""
    from fabula.measures.graded import graded_agreement
    from fabula.measures.rater_agreement import (
        expert_correlation,
        judge_agreement,
        panel_agreement,
        panel_of_labels,
    )

    by, seed = settings.by, settings.seed
    graded = graded_agreement([one for mine in judges for one in mine], labels, rubric, seed=seed)
    panel = panel_of_labels(labels, rubric, source)
    rest = graded if graded.people else None
    if not panel.subjects:
        return WithPeople(rubric, [], [], None, rest)
    truth = panel.majority()
    return WithPeople(
        rubric,
        [
            judge_agreement(mine, panel, rubric, by, seed=seed)
            for mine in judges
            # The comparison of judges says that the others have no document in common with people.
            if any((one.document_id, one.item) in truth for one in mine)
        ],
        panel_agreement(panel, rubric, by, seed=seed),
        expert_correlation(panel, rubric, seed=seed),
        rest,
    )


def _judge_json(judge: JudgeAgreement) -> dict[str, Any]:
    rows = []
    for row in (*judge.rows, judge.overall):
        counts = row.confusion
        rows.append(
            asdict(row)
            | {
                "balanced_accuracy": counts.balanced_accuracy,
                "precision": counts.precision,
                "recall": counts.recall,
                "f1": counts.f1,
                "phi": counts.phi,
                "percent": None if counts.accuracy is None else 100 * counts.accuracy,
            }
        )
    return {
        "rater": judge.rater,
        "signature": judge.signature,
        "rows": rows,
        "pearson": asdict(judge.pearson),
        "spearman": judge.spearman,
        "n_stories": judge.n_stories,
        "n_ties": judge.n_ties,
    }


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
