"""Tables of a study of stories: pass rates, and how well the readers agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabula.core.types import Estimate, Rubric
from fabula.judging.tables import PANEL_SHARES, correlation_line
from fabula.raters.agreement import AmongPeople
from fabula.show.charts import COLOURS, LINE, figure_of
from fabula.show.sheet import Block, Cell, Column, Sheet

Counts = Mapping[str, Mapping[Any, float]]
_PLACE, _ORIGIN = "place in the group", "taken for"
"""The titles of ranks and of supposed origins."""


def study_tables(
    rubric: Rubric,
    rates: Mapping[str, Mapping[str, float]],
    agreement: Sequence[AmongPeople],
    passed: Counts,
    correlation: Estimate,
    ranks: Counts,
    origins: Counts,
) -> list[Block]:
    """Pass rates, agreement with intervals, tests passed, ranks and supposed origins."""
    first = Sheet(
        "passed",
        [Column("passed, %", name="test"), *(Column(author, ".1f") for author in rates)],
        [
            [f"{item.index} {item.title}", *(by_item.get(item.id) for by_item in rates.values())]
            for item in rubric.items
        ],
    )
    columns = [
        Column("agreement of readers", name="item", of="name"),
        Column("n", ",", of="kappa.n"),
        Column("Fleiss kappa", ".2f", with_interval=True, of="kappa"),
        *PANEL_SHARES,
    ]
    second = Sheet.of("agreement", agreement, columns)
    tests = range(len(rubric.items) + 1)
    third = by_author("tests_passed", "tests passed, readings", passed, tests, gap="·")
    parts = [first, "", *second.with_notes("stories"), "", third, "", correlation_line(correlation)]
    for name, title, counts in (("places", _PLACE, ranks), ("origins", _ORIGIN, origins)):
        if counts:
            parts += ["", by_author(name, title, counts)]
    return parts


def by_author(
    name: str, title: str, counts: Counts, names: Sequence[Any] = (), form: str = "d", gap: Cell = 0
) -> Sheet:
    """A row per author; the columns are `names`, or those that any author has."""
    names = names or _names(counts)
    columns = [Column(title, name="author"), *(Column(str(value), form) for value in names)]
    rows: list[list[Cell]] = [
        [author, *(row.get(value, gap) for value in names)] for author, row in counts.items()
    ]
    return Sheet(name, columns, rows)


def _names(counts: Counts) -> list[Any]:
    return sorted({name for row in counts.values() for name in row}, key=str)


@dataclass(frozen=True, slots=True)
class PairItem:
    """An item that people answered about pairs of stories."""

    item: str
    n: int
    n_neither: int
    first_share: float | None
    """Of the answers with a preference, how often it was the story shown first."""
    n_shared: int
    """Pairs that several people compared."""
    share_same: float | None
    """How often two answers to one question about a pair are the same."""


def pair_items(items: Sequence[PairItem], n_people: int, at_once: int) -> list[Block]:
    """People's answers to each item about stories side by side, and their agreement."""
    columns = [
        Column("item"),
        Column("answers", "d", name="n"),
        Column("neither", "d", name="n_neither"),
        Column("first preferred", ".0%", name="first_share"),
        Column("pairs of several people", "d", name="n_shared"),
        Column("two agree", ".0%", name="share_same"),
    ]
    chance = "two people who toss coins agree on 50%"
    if any(item.n_neither for item in items):
        chance = (
            "two people who choose one at random agree on 50%, and less often with a third answer"
        )
    heading = f"{n_people:,} people on pairs of stories"
    if at_once > 2:
        heading = (
            f"{n_people:,} people on the best and the worst of {at_once} stories; each answer "
            "counts as five about two stories"
        )
    return [heading, Sheet.of("pair_items", items, columns), chance]


def save_study(passed: Counts, ranks: Counts, origins: Counts, n_items: int, path: Path) -> None:
    """Tests passed, ranks in the group and supposed origins, by author, in percent of readings.

    Questions that were not asked have no panel. The same counts give the same bytes. Raises
    `InputError` for an unknown extension.
    """
    panels: list[tuple[str, Counts, Sequence[Any]]] = [("tests passed", passed, range(n_items + 1))]
    for title, counts in ((_PLACE, ranks), (_ORIGIN, origins)):
        if values := _names(counts):
            panels.append((title, counts, values))
    with figure_of(path, len(panels), 1, figsize=(7.2, 2.9 * len(panels))) as (_, drawn):
        for axes, (title, counts, names) in zip(drawn, panels, strict=True):
            width = 0.84 / max(1, len(counts))
            places = np.arange(len(names))
            for k, (author, row) in enumerate(counts.items()):
                total = sum(row.values())
                axes.bar(
                    places + (k - (len(counts) - 1) / 2) * width,
                    [100 * row.get(name, 0) / total if total else 0.0 for name in names],
                    width * 0.92,
                    color=COLOURS[k % len(COLOURS)],
                    label=f"{author} (n = {total})",
                )
            axes.set_xticks(places, [str(name) for name in names])
            axes.set_xlabel(title)
            axes.set_ylabel("% of readings")
            axes.grid(axis="y", color=LINE, linewidth=0.8)
            axes.set_axisbelow(True)
        drawn[0].legend(frameon=False, fontsize=8)
