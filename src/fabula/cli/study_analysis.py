"""What `fabula study analyse` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.printing import print_tables

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block
    from fabula.studies.design import StudyDesign
    from fabula.studies.units import Unit
    from fabula.types import Measurement

__all__ = ["analyse_feedback", "analyse_ttcw"]

_BY = ("model", "method", "prompt", "shots")


def analyse_ttcw(
    design: StudyDesign,
    units: Sequence[Unit],
    found: Sequence[Measurement],
    *,
    plot: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Tables 5 and 6 and Figures 3 and 4 of Chakrabarty et al. 2024, of these answers."""
    from fabula.errors import InputError
    from fabula.measures.agreement import panel_of
    from fabula.presentation.study_plots import save_study
    from fabula.presentation.study_tables import pass_rates, study_tables, tests_passed
    from fabula.replicate.ttcw import panel_replica, preferences_by_author
    from fabula.replicate.ttcw_tables import replica_tables
    from fabula.store import dump_json

    yes_no = tuple(item for item in design.rubric.items if item.scale.is_test)
    rubric = replace(design.rubric, items=yes_no)
    known = {item.id for item in yes_no}
    verdicts = [
        (one.document_id, one.item, one.rater, one.value)
        for one in found
        if one.item in known and isinstance(one.value, float)
    ]
    panel = panel_of(verdicts, design.id)
    if not panel.subjects:
        raise InputError(f"{design.path}: nobody has handed in anything yet")
    preferred = [one for one in found if one.item in ("preference", "origin")]
    authors = {d.id: d.author or "unknown" for unit in units for d in unit.documents}
    passed = tests_passed(panel, rubric, authors)
    ranks, origins = preferences_by_author(preferred, authors)
    if plot is not None:
        save_study(passed, ranks, origins, len(rubric.items), plot)
    if as_json:
        content = {
            "pass_rate": pass_rates(panel, rubric, authors),
            "tests_passed": passed,
            "ranks": ranks,
            "origins": origins,
            "n_verdicts": len(verdicts),
            "signature": found[0].signature,
        }
        click.echo(dump_json(content))
    elif _is_of_paper(design, authors):
        print_tables(replica_tables(panel_replica(panel, design.rubric, preferred)))
    else:
        print_tables(
            study_tables(panel, rubric, authors, ranks, origins, found[0].signature, seed=seed)
        )
    left_out = [item.id for item in design.rubric.items if item.id not in known]
    if left_out and not as_json:
        click.echo(f"not in these tables, since they are not yes-no: {', '.join(left_out)}")
    if plot is not None:
        click.echo(f"written: {plot}", err=as_json)


def _is_of_paper(design: StudyDesign, authors: Mapping[str, str]) -> bool:
    """Whether these are the stories of the paper, so that its figures can stand beside."""
    from fabula.replicate.ttcw import AUTHORS

    expected = {f"{group}_{author}" for group in range(12) for author in AUTHORS}
    return design.rubric.id == "ttcw" and set(authors) == expected


def analyse_feedback(
    design: StudyDesign, units: Sequence[Unit], found: Sequence[Measurement], *, as_json: bool
) -> None:
    """Tables 2 to 5 of Rashkin et al. 2025, of these answers."""
    from fabula.errors import InputError
    from fabula.measures.ratings import (
        group_means,
        item_agreement,
        mean_scores,
        score_table,
        spans_of,
    )
    from fabula.presentation.rating_tables import agreement_table, means_table, rubric_items
    from fabula.store import dump_json

    scores = score_table(found, design.rubric)
    if not any(scores.values()):
        raise InputError(f"{design.path}: nobody has handed in anything yet")
    known = {d.id: d.meta for unit in units for d in unit.documents}
    means = mean_scores(scores)
    items = rubric_items(design.rubric)
    agreement = item_agreement({item: scores[item] for item in items}, spans_of(design.rubric))
    tables = {}
    for name in _BY:
        by = {id_: str(meta.get(name, "any")) for id_, meta in known.items()}
        tables[name] = group_means(means, by.get)
    if as_json:
        content: dict[str, Any] = {
            "agreement": {item: asdict(one) for item, one in agreement.items()},
            "means": {
                name: {
                    group: {item: asdict(mean) for item, mean in by_item.items()}
                    for group, by_item in groups.items()
                }
                for name, groups in tables.items()
            },
            "n_people": len({one.rater for one in found}),
        }
        click.echo(dump_json(content))
        return
    parts: list[Block] = [
        f"{len({one.rater for one in found}):,} people; mean of 1 - |a - b| over pairs, "
        "Krippendorff's alpha with |a - b| as the distance",
        agreement_table(agreement),
        "",
    ]
    for name, groups in tables.items():
        if len(groups) > 1 or name == "model":
            parts += [means_table(name, groups, items), ""]
    print_tables([*parts, found[0].signature])
