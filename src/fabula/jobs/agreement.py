"""Agreement of judges with people, and of people with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.settings import Between, Settings, setting
from fabula.types import by_rater

if TYPE_CHECKING:
    from fabula.measures.graded import GradedAgreement
    from fabula.measures.rater_agreement import JudgeAgreement, PanelRow
    from fabula.presentation.sheet import Block
    from fabula.types import Estimate, Measurement, Rubric


@dataclass(frozen=True, slots=True)
class AgreementSettings(Settings):
    """What agreement is computed for."""

    by: Literal["item", "dimension", "author"] = setting("item", help="What each row stands for.")
    seed: int = setting(0, help="Seed for the intervals.", check=Between(0))


@dataclass(frozen=True, slots=True)
class Agreements:
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

    def content(self) -> dict[str, Any]:
        """For JSON."""
        found: dict[str, Any] = {}
        if self.expert_correlation is not None:
            found = {
                "experts": [asdict(row) for row in self.experts],
                "experts_pearson": asdict(self.expert_correlation),
                "judges": [_judge_json(judge) for judge in self.judges],
            }
        return found | ({"graded": asdict(self.graded)} if self.graded else {})


def agree_runs(runs: Sequence[Path], experts: Path, settings: AgreementSettings) -> Agreements:
    """Agreement of the judges of runs with the labels of a file.

    Raises `InputError`, and `MixError` for runs of different items.
    """
    from fabula.errors import MixError
    from fabula.judging.folder import read_run
    from fabula.measures.labels import read_labels, sides
    from fabula.rubrics.load import load_rubric

    read = [read_run(run) for run in runs]
    rubric = read[0][0] if read else load_rubric("ttcw")
    for run, (other, _) in zip(runs, read, strict=True):
        if {item.id for item in other.items} != {item.id for item in rubric.items}:
            raise MixError(f"{run}: judged on different items ({other.key}) from {runs[0]}")
    judges = [mine for _, measurements in read for mine in by_rater(sides(measurements)).values()]
    return agree(judges, read_labels(experts, rubric), rubric, settings, experts.name)


def agree(
    judges: Sequence[Sequence[Measurement]],
    labels: Sequence[Measurement],
    rubric: Rubric,
    settings: AgreementSettings,
    source: str,
) -> Agreements:
    """Agreement of each judge's measurements with labels, which are from `source`."""
    from fabula.measures.graded import graded_agreement
    from fabula.measures.rater_agreement import (
        expert_correlation,
        judge_agreement,
        panel_agreement,
        panel_of_labels,
    )

    graded = graded_agreement(
        [one for mine in judges for one in mine], labels, rubric, seed=settings.seed
    )
    panel = panel_of_labels(labels, rubric, source)
    has_panel = bool(panel.subjects)
    return Agreements(
        rubric=rubric,
        judges=[
            judge_agreement(mine, panel, rubric, settings.by, seed=settings.seed)
            for mine in judges
            if has_panel
        ],
        experts=panel_agreement(panel, rubric, settings.by, seed=settings.seed)
        if has_panel
        else [],
        expert_correlation=expert_correlation(panel, rubric, seed=settings.seed)
        if has_panel
        else None,
        graded=graded if graded.people else None,
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
