"""Tables of how many stories and raters a study needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fabula.presentation.sheet import Block, Cell, Column, Sheet
from fabula.stats.planning import PilotFigures, PlanRow

People = Callable[[int | None], int | None]
_WEIGHTED = "kappa with quadratic weights"


def rater_plan_tables(
    plans: Mapping[str, tuple[Sequence[PlanRow], PilotFigures, float, People | None]],
    kappa_width: float,
    why_missing: Mapping[str, str],
) -> list[Block]:
    """What each number of raters requires; then the pilot next to its model's predictions.

    By item the rows, the pilot, the requested width of its mean, and the number of people for each
    number of readings, if known; the item for all yes-no items is "".
    """
    parts: list[Block] = []
    for item, (rows, pilot, mean_width, people) in plans.items():
        mean, kappa = ("mean", _WEIGHTED) if item else ("share of Yes", "Fleiss's kappa")
        parts += [
            f"{f'{item}: ' if item else ''}95 % intervals no wider than {mean_width:g} ({mean}) "
            f"and {kappa_width:g} ({kappa}); reading: one story read by one rater",
            "",
            _rows(rows, item, people),
            "",
            f"the pilot: {pilot.n_stories:,} stories, {pilot.n_raters:.1f} raters per story; its "
            "own intervals, and their widths as predicted from it",
            "",
            _pilot(pilot, item, (mean, kappa)),
            "",
        ]
    parts += [f"not planned: {name}, {reason}" for name, reason in why_missing.items()]
    return [
        *parts,
        "The figures are as good as the pilot: they may not hold for other stories or raters.",
    ]


def _rows(plan: Sequence[PlanRow], item: str, people: People | None) -> Sheet:
    columns = [Column("raters", "d", name="n_raters")]
    rows: list[list[Cell]] = [[row.n_raters] for row in plan]
    for statistic in ("mean", "kappa"):
        columns += [
            Column(f"{statistic}: stories", ",d", name=f"{statistic}_stories"),
            Column("readings", ",d", name=f"{statistic}_readings"),
        ]
        if people is not None:
            columns.append(Column("people", ",d", name=f"{statistic}_people"))
        for cells, row in zip(rows, plan, strict=True):
            n_stories, n_readings = (
                (row.mean_stories, row.mean_readings)
                if statistic == "mean"
                else (row.kappa_stories, row.kappa_readings)
            )
            cells += [n_stories, n_readings]
            if people is not None:
                cells.append(people(n_readings))
    return Sheet("plan", columns, rows, about=("item", item) if item else None)


def _pilot(pilot: PilotFigures, item: str, names: tuple[str, str]) -> Sheet:
    columns = [
        Column("", name="statistic"),
        Column("value", ".2f", with_interval=True),
        Column("width", ".2f"),
        Column("predicted", ".2f", name="predicted_width"),
    ]
    rows: list[list[Cell]] = []
    for name, estimate, predicted in (
        (names[0], pilot.mean, pilot.predicted.mean),
        (names[1], pilot.kappa, pilot.predicted.kappa),
    ):
        width = None
        if estimate.low is not None and estimate.high is not None:
            width = estimate.high - estimate.low
        rows.append([name, estimate, width, predicted])
    return Sheet("pilot", columns, rows, about=("item", item) if item else None)
