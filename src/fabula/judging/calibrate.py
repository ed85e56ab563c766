"""Measuring a judge on stories judged by experts, so that its verdicts show how reliable it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabula.errors import InputError
from fabula.judging.judging_plan import JudgePlan, is_identified
from fabula.judging.people import people_agreement
from fabula.judging.trust import Trust, TrustBook, trust_in_item, trust_of
from fabula.measures.graded import GradedAgreement
from fabula.measures.rater_agreement import JudgeAgreement, Panel, judge_agreement, ratings_of
from fabula.rubrics.released import EXPERTS_FILE, STORIES_FILE, read_released_stories
from fabula.types import Document, Measurement, by_rater


def released_folder(folder: Path) -> tuple[list[Document], Path]:
    """The stories of the authors' release that include their text, and the file of verdicts."""
    for name in (STORIES_FILE, EXPERTS_FILE):
        if not (folder / name).exists():
            raise InputError(
                f"{folder}: lacks {name}; download the folder Art_or_Artifice from "
                "github.com/salesforce/creativity_eval"
            )
    return read_released_stories(folder / STORIES_FILE), folder / EXPERTS_FILE


def calibrate(
    measurements: Sequence[Measurement],
    panel: Panel,
    plan: JudgePlan,
    book: TrustBook,
    date: str = "",
) -> list[tuple[JudgeAgreement, list[Trust]]]:
    """Each judge's agreement with the experts, stored in the book with the date, as 2026-05-31.

    The agreement is not stored for a URL whose server does not say which model it serves: another
    model could be there tomorrow.
    """
    results = []
    for mine in by_rater(measurements).values():
        agreement = judge_agreement(mine, panel, plan.rubric, "item", seed=plan.seed)
        judged = {one.document_id for one in mine}
        people = people_agreement(panel, judged, ratings_of(mine))
        trusts = trust_of(agreement, plan.rubric, people, date)
        if plan.only:
            # What holds over some items does not hold over all of them.
            trusts = [trust for trust in trusts if trust.item != "all"]
        if is_identified(trusts[0].model):
            book.add(trusts)
        results.append((agreement, trusts))
    return results


def graded_trust(
    measurements: Sequence[Measurement],
    graded: GradedAgreement,
    plan: JudgePlan,
    book: TrustBook,
    source: str,
    date: str = "",
) -> list[Trust]:
    """The same for items that are not yes-no, each by its own kappa, beside that of people."""
    found = []
    given = by_rater(measurements)
    for rater, by_item in graded.judges.items():
        mine = given[rater]
        for item, one in by_item.items():
            owed = [m for m in mine if m.item == item and m.value is None]
            found.append(
                trust_in_item(
                    mine[0].signature,
                    plan.rubric,
                    item,
                    one,
                    n_missing=len(owed),
                    source=source,
                    date=date,
                )
            )
    book.add([trust for trust in found if is_identified(trust.model)])
    return found
