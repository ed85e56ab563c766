"""People's agreement on the documents of a judge: the yardstick for the judge's agreement.

Agreement depends on the documents: over obviously different texts, people agree on more than
over texts of one kind. So the yardstick is measured on the same documents as the judge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabula.measures.rater_agreement import Panel, Ratings
from fabula.stats.agreement import cohen, difference, fleiss
from fabula.types import Estimate


@dataclass(frozen=True, slots=True)
class PeopleAgreement:
    """Agreement on one item, or on all (`all`)."""

    item: str
    n_documents: int
    one_with_rest: float | None
    """Cohen's kappa of one person with the majority of the others, if there is one."""
    fleiss: float | None
    fleiss_mean: float | None = None
    """The mean of the items' kappas; None for a single item."""
    judge_less: Estimate | None = None
    """The judge's kappa minus people's, where both answer to the same references: the judge takes
    each person's place before the majority of the others (Calderon, Reichart and Dror 2025)."""


def panel_on(panel: Panel, documents: Collection[str]) -> Panel:
    """The part of a panel that covers these documents."""
    kept = [k for k, (document, _) in enumerate(panel.subjects) if document in documents]
    subjects = tuple(panel.subjects[k] for k in kept)
    return Panel(subjects, panel.ratings[kept], panel.source)


def people_agreement(
    panel: Panel, documents: Collection[str], judge: Ratings | None = None
) -> dict[str, PeopleAgreement]:
    """By item, and `all`, over the documents; with a judge's verdicts on them if given."""
    here = panel_on(panel, documents)
    places: dict[str, list[int]] = {}
    for k, (_, item) in enumerate(here.subjects):
        places.setdefault(item, []).append(k)
    found = {item: _agreement(item, here, own, judge) for item, own in places.items()}
    kappas = [one.fleiss for one in found.values() if one.fleiss is not None]
    everything = _agreement("all", here, list(range(len(here.subjects))), judge)
    mean = float(np.mean(kappas)) if kappas else None
    return found | {"all": replace(everything, fleiss_mean=mean)}


def _agreement(
    item: str, panel: Panel, rows: Sequence[int], judge: Ratings | None
) -> PeopleAgreement:
    ratings, items = panel.ratings[rows], [panel.subjects[k][1] for k in rows]
    one, rest, subjects = _one_with_rest(ratings)
    documents = [panel.subjects[k][0] for k in rows]
    among, strata = [documents[k] for k in subjects], [items[k] for k in subjects]
    found = PeopleAgreement(
        item=item,
        n_documents=len(set(documents)),
        one_with_rest=cohen(one, rest, strata).value,
        fleiss=fleiss(ratings, items).value,
    )
    if judge is None:
        return found
    mine = np.array([judge.get(panel.subjects[rows[k]], np.nan) for k in subjects])
    theirs = np.where(np.isnan(mine), np.nan, one)
    less = difference(
        (cohen(mine, rest, strata), among),
        (cohen(theirs, rest, strata), among),
        method="difference of Cohen kappas with the majorities of the others",
        signature=f"experts:{panel.source}",
    )
    return replace(found, judge_less=less)


def _one_with_rest(
    ratings: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int]]:
    """Each rating, the majority of the others of its subject, and the subject's row.

    ratings: float64 of 0 and 1, shape (n_subjects, n_raters), NaN if missing. Ratings are left out
    if the others are tied or fewer than two; with only two people, each is compared with the other.
    """
    n_least = 2 if ratings.shape[1] > 2 else 1
    one: list[float] = []
    rest: list[float] = []
    subjects: list[int] = []
    for row, values in enumerate(ratings):
        given = values[~np.isnan(values)]
        for k, value in enumerate(given):
            others = np.delete(given, k)
            if len(others) >= n_least and 2 * others.sum() != len(others):
                one.append(float(value))
                rest.append(float(2 * others.sum() > len(others)))
                subjects.append(row)
    return np.array(one), np.array(rest), subjects
