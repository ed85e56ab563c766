"""What people reach among themselves on the documents of a judge: the yardstick for its agreement.

Agreement depends on the documents: over texts that nobody takes for the same, people agree on much
that they do not agree on over texts of one kind. So the yardstick is measured where the judge was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabula.measures.agreement import Panel
from fabula.stats.agreement import cohen_kappa, fleiss_kappa

__all__ = ["PeopleAgreement", "panel_on", "people_agreement"]


@dataclass(frozen=True, slots=True)
class PeopleAgreement:
    """On one item, or on all (`all`)."""

    item: str
    n_documents: int
    one_with_rest: float | None
    """Cohen's kappa of one person with the majority of the others, where these have one."""
    fleiss: float | None
    fleiss_mean: float | None = None
    """The mean of the items' kappas; None of a single item."""


def panel_on(panel: Panel, documents: Collection[str]) -> Panel:
    """The part of a panel that is about some documents."""
    kept = [k for k, (document, _) in enumerate(panel.subjects) if document in documents]
    subjects = tuple(panel.subjects[k] for k in kept)
    return Panel(subjects, panel.ratings[kept], panel.source)


def people_agreement(panel: Panel, documents: Collection[str]) -> dict[str, PeopleAgreement]:
    """By item, and `all`, over the documents."""
    here = panel_on(panel, documents)
    items = list(dict.fromkeys(item for _, item in here.subjects))
    found = {
        item: _agreement(
            item, here, [k for k, (_, name) in enumerate(here.subjects) if name == item]
        )
        for item in items
    }
    kappas = [one.fleiss for one in found.values() if one.fleiss is not None]
    everything = _agreement("all", here, range(len(here.subjects)))
    mean = float(np.mean(kappas)) if kappas else None
    return found | {"all": replace(everything, fleiss_mean=mean)}


def _agreement(item: str, panel: Panel, places: Iterable[int]) -> PeopleAgreement:
    rows = list(places)
    ratings = panel.ratings[rows]
    one, rest = _one_with_rest(ratings)
    return PeopleAgreement(
        item=item,
        n_documents=len({panel.subjects[k][0] for k in rows}),
        one_with_rest=cohen_kappa(one, rest),
        fleiss=fleiss_kappa(ratings),
    )


def _one_with_rest(
    ratings: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each rating, and the majority of the others of its subject: shape (n_pairs,) twice.

    ratings: float64 of 0 and 1, shape (n_subjects, n_raters), NaN where missing. Pairs in which
    the others are equally divided, or there are fewer than two of them, are left out.
    """
    one: list[float] = []
    rest: list[float] = []
    for row in ratings:
        given = row[~np.isnan(row)]
        for k, value in enumerate(given):
            others = np.delete(given, k)
            if len(others) > 1 and 2 * others.sum() != len(others):
                one.append(float(value))
                rest.append(float(2 * others.sum() > len(others)))
    return np.array(one), np.array(rest)
