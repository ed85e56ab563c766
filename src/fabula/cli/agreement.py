"""`fabula agreement`: how far judges agree with experts, and experts with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.jobs.tables import TableFiles

if TYPE_CHECKING:
    from fabula.measures.agreement import JudgeAgreement
    from fabula.measures.ratings import GradedAgreement
    from fabula.presentation.sheet import Block
    from fabula.types import Measurement, Rubric

__all__ = ["agreement"]


@click.command(cls=Command, short_help="Measure how far judges agree with experts.")
@click.argument("runs", nargs=-1, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--experts", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="The experts' verdicts: ttcw_annotations.json, or measurements of people (.jsonl).",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(["item", "dimension", "author"]), default="item", show_default=True,
    help="What to show a row for.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of intervals."
)
@settings_options(TableFiles, "files")
@json_option
def agreement(
    runs: tuple[Path, ...],
    experts: Path,
    by: Any,
    seed: int,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Measure how far the judges of RUNs agree with experts.

    A RUN is a folder that `fabula judge` wrote. Kappas have 95 % intervals from a bootstrap over
    stories; a coefficient that cannot be said (everybody answered the same) is `-`, never 0. Items
    that count as numbers and are not yes-no have Krippendorff's alpha and correlations instead.
    """
    from fabula.errors import MixError
    from fabula.judging.folder import read_run
    from fabula.measures.agreement import (
        expert_correlation,
        judge_agreement,
        panel_agreement,
        read_experts,
    )
    from fabula.presentation.judging_tables import agreement_tables
    from fabula.rubrics import load_rubric

    check_outputs([files.csv, files.latex], [experts])
    files.check_files()
    read = [read_run(run) for run in runs]
    rubric = read[0][0] if read else load_rubric("ttcw")
    for run, (other, _) in zip(runs, read, strict=True):
        if {item.id for item in other.items} != {item.id for item in rubric.items}:
            raise MixError(f"{run}: judged on other items ({other.key}) than {runs[0]} did")
    by_rater = [
        [one for one in measurements if one.rater == rater]
        for _, measurements in read
        for rater in dict.fromkeys(one.rater for one in measurements)
    ]
    graded = _graded(by_rater, experts, rubric, seed)
    if graded and not any(item.scale.agreement == "kappa" for item in rubric.items):
        print_result(_graded_tables(graded), {"graded": asdict(graded)}, files, as_json=as_json)
        return
    panel = read_experts(experts, rubric)
    judges = [judge_agreement(mine, panel, rubric, by, seed=seed) for mine in by_rater]
    rows = panel_agreement(panel, rubric, by, seed=seed)
    correlation = expert_correlation(panel, rubric)
    tables = agreement_tables(judges, rows, correlation, rubric)
    tables += _graded_tables(graded) if graded else []
    content: dict[str, Any] = {
        "experts": [asdict(row) for row in rows],
        "experts_pearson": correlation,
        "judges": [_judge_json(judge) for judge in judges],
    }
    content |= {"graded": asdict(graded)} if graded else {}
    print_result(tables, content, files, as_json=as_json)


def _graded(
    by_rater: Sequence[Sequence[Measurement]], experts: Path, rubric: Rubric, seed: int
) -> GradedAgreement | None:
    """Agreement where answers are no yes-no verdicts but numbers; None where experts gave none."""
    from fabula.measures.ratings import graded_agreement
    from fabula.store import read_measurements

    if experts.suffix == ".json":
        # The release holds yes-no verdicts alone.
        return None
    judged = [one for mine in by_rater for one in mine]
    found = graded_agreement(judged, read_measurements(experts), rubric, seed=seed)
    return found if found.people else None


def _graded_tables(graded: GradedAgreement) -> list[Block]:
    from fabula.presentation.rating_tables import agreement_table, people_table

    parts: list[Block] = [
        "items that are not yes-no: similarity, and Krippendorff's alpha with |a - b| as the "
        "distance",
        agreement_table(graded.people),
    ]
    for name, one in graded.judges.items():
        parts += ["", *people_table(name, one)]
    return parts


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
