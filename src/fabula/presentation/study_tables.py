"""Tables of a study of stories: who passes what, and how far the readers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from fabula.measures.agreement import Panel, panel_agreement
from fabula.presentation.tables import interval_notes, number, render, shown_interval
from fabula.types import Rubric

__all__ = ["pass_rates", "study_tables", "tests_passed"]


def pass_rates(
    panel: Panel, rubric: Rubric, authors: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """Percent of the verdicts that are Yes, by author and item."""
    found: dict[str, dict[str, float]] = {}
    for author in sorted({authors[story] for story, _ in panel.subjects}):
        rates = {}
        for item in rubric.items:
            places = [
                k
                for k, (story, of_item) in enumerate(panel.subjects)
                if of_item == item.id and authors[story] == author
            ]
            given = panel.ratings[places]
            if not np.isnan(given).all():
                rates[item.id] = 100 * float(np.nanmean(given))
        found[author] = rates
    return found


def tests_passed(
    panel: Panel, rubric: Rubric, authors: Mapping[str, str]
) -> dict[str, dict[int, int]]:
    """How often a reader let a story of an author pass so many tests, where they answered all."""
    stories: dict[str, list[int]] = {}
    for place, (story, _) in enumerate(panel.subjects):
        stories.setdefault(story, []).append(place)
    found: dict[str, Counter[int]] = {}
    for story, places in stories.items():
        counts = found.setdefault(authors[story], Counter())
        for total in panel.ratings[places].sum(axis=0):
            if len(places) == len(rubric.items) and not np.isnan(total):
                counts[int(total)] += 1
    return {author: dict(sorted(found[author].items())) for author in sorted(found)}


def study_tables(
    panel: Panel,
    rubric: Rubric,
    authors: Mapping[str, str],
    ranks: Mapping[str, Mapping[int, int]],
    origins: Mapping[str, Mapping[str, int]],
    signature: str,
    *,
    seed: int = 0,
) -> str:
    """Pass rates, agreement with intervals, tests passed, places and supposed origins."""
    rates = pass_rates(panel, rubric, authors)
    first = _table("passed, %", *rates)
    for item in rubric.items:
        cells = [number(by_item.get(item.id), ".1f") for by_item in rates.values()]
        first.add_row(Text(f"{item.index} {item.title}"), *cells)
    titles = ("n", "Fleiss kappa", "95 %", "alpha", "equal, %", "Yes, %")
    second = _table("agreement of readers", *titles)
    agreement = panel_agreement(panel, rubric, "item", seed=seed)
    for row in agreement:
        second.add_row(
            row.name, f"{row.kappa.n:,}", number(row.kappa.value, ".2f"),
            shown_interval(row.kappa, ".2f"), number(row.alpha, ".2f"), number(row.percent, ".0f"),
            "-" if row.share_yes is None else f"{100 * row.share_yes:.0f}",
        )  # fmt: skip
    passed = tests_passed(panel, rubric, authors)
    totals = list(range(len(rubric.items) + 1))
    third = _table("tests passed, readings", *map(str, totals))
    for author, counts in passed.items():
        third.add_row(Text(author), *(str(counts.get(k, "·")) for k in totals))
    notes = interval_notes([row.kappa for row in agreement], "stories")
    parts: list[Table | str] = [first, "", second, *notes, "", third]
    if ranks:
        parts += ["", _counted("place in the group", ranks)]
    if origins:
        parts += ["", _counted("taken for", origins)]
    n_stories = len({story for story, _ in panel.subjects})
    n = int((~np.isnan(panel.ratings)).sum())
    parts += ["", f"{n_stories:,} stories, {n:,} verdicts"]
    return render(*parts, signature)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if k else "left", overflow="fold")
    return table


def _counted(title: str, counts: Mapping[str, Mapping[Any, int]]) -> Table:
    names: Sequence[Any] = sorted({name for row in counts.values() for name in row}, key=str)
    table = _table(title, *map(str, names))
    for author, row in counts.items():
        table.add_row(Text(author), *(str(row.get(name, 0)) for name in names))
    return table
