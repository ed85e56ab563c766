"""How many stories and raters a study needs, from the verdicts of a pilot."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.settings import Between, Settings, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fabula.measures.rater_agreement import Panel
    from fabula.presentation.sheet import Block
    from fabula.stats.planning import GradedPilot, Pilot, PilotFigures, PlanRow
    from fabula.studies.design import StudyDesign
    from fabula.studies.units import Unit
    from fabula.types import Estimate, Item, Measurement, Rubric


@dataclass(frozen=True, slots=True)
class WidthSettings(Settings):
    """The intervals to aim for."""

    mean_width: float = setting(
        0.1,
        help="Target width of the 95 % interval of the share of Yes, or of a mean of numbers as a "
        "share of their range.",
        unit="WIDTH",
        check=Between(0, 1, low_open=True),
    )
    kappa_width: float = setting(
        0.2,
        help="Target width of the 95 % interval of Fleiss's kappa or, for numbers, of kappa with "
        "quadratic weights.",
        unit="WIDTH",
        check=Between(0, 2, low_open=True),
    )
    max_raters: int = setting(
        6, help="Plan for up to N raters per story.", unit="N", check=Between(2, 50)
    )
    seed: int = setting(0, help="Seed of all random draws.", check=Between(0))


@dataclass(frozen=True, slots=True)
class RaterPlanSettings(WidthSettings):
    """The intervals to aim for, and the rubric."""

    rubric: str = setting(
        "ttcw",
        help="Rubric that the pilot answered: a built-in one, or a .toml file.",
        unit="NAME|FILE",
    )


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """What a study of one statistic needs, and how well the underlying model fits the pilot."""

    pilot: PilotFigures
    rows: Sequence[PlanRow]
    mean_width: float
    """In the units of the scale."""
    stories_per_person: float | None = None
    """The number of stories one person reads, if known."""

    def people(self, readings: int | None) -> int | None:
        """The number of people needed for this many readings."""
        if readings is None or self.stories_per_person is None:
            return None
        return math.ceil(readings / self.stories_per_person)

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": [
                asdict(row)
                | {"mean_readings": row.mean_readings, "kappa_readings": row.kappa_readings}
                | (
                    {}
                    if self.stories_per_person is None
                    else {
                        "mean_people": self.people(row.mean_readings),
                        "kappa_people": self.people(row.kappa_readings),
                    }
                )
                for row in self.rows
            ],
            "pilot": asdict(self.pilot),
        }


@dataclass(frozen=True, slots=True)
class RaterPlan:
    """What a study needs: for the yes-no items together, and for each numeric item."""

    settings: WidthSettings
    tests: PlannedItem | None
    """None without yes-no verdicts."""
    items: Mapping[str, PlannedItem]
    why_missing: Mapping[str, str]
    """Items whose answers cannot be planned for, and `tests`."""

    def tables(self) -> list[Block]:
        from fabula.presentation.rater_plan_tables import rater_plan_tables

        planned = {} if self.tests is None else {"": self.tests}
        return rater_plan_tables(
            {
                item: (
                    one.rows,
                    one.pilot,
                    one.mean_width,
                    one.people if one.stories_per_person else None,
                )
                for item, one in {**planned, **self.items}.items()
            },
            self.settings.kappa_width,
            self.why_missing,
        )

    def to_json(self) -> dict[str, Any]:
        tests: dict[str, Any] = {"rows": [], "pilot": None}
        return {
            "mean_width": self.settings.mean_width,
            "kappa_width": self.settings.kappa_width,
            **(tests if self.tests is None else self.tests.to_json()),
            "items": {
                item: {"mean_width": one.mean_width, **one.to_json()}
                for item, one in self.items.items()
            },
            "why_missing": dict(self.why_missing),
        }


def plan_raters(labels: Path, settings: RaterPlanSettings) -> RaterPlan:
    """From a pilot's verdicts, compute how many stories each number of raters requires.

    Raises `InputError`, also if the pilot is too small or too uniform to plan from.
    """
    from fabula.measures.labels import read_labels
    from fabula.rubrics import load_rubric

    rubric = load_rubric(settings.rubric)
    return plan_from(read_labels(labels, rubric), rubric, settings, labels.name, where=str(labels))


def plan_study(
    design: StudyDesign,
    units: Sequence[Unit],
    found: Sequence[Measurement],
    settings: WidthSettings,
) -> RaterPlan:
    """Plan from a study's own answers so far, with the number of people each plan requires.

    Raises `InputError`, also if it is too early to plan from them.
    """
    from fabula.errors import InputError
    from fabula.studies.workload import workload_of

    if design.kind == "pairs":
        raise InputError(
            f"{design.path}: only answers about single texts can be planned from, not about pairs"
        )
    n_units = workload_of(design, units).n_for_one_person
    per_person = n_units * statistics.fmean(len(unit.documents) for unit in units)
    plan = plan_from(found, design.rubric, settings, design.id, where=str(design.path))
    tests, items = plan.tests, plan.items
    return replace(
        plan,
        tests=None if tests is None else replace(tests, stories_per_person=per_person),
        items={item: replace(one, stories_per_person=per_person) for item, one in items.items()},
    )


def plan_from(
    labels: Sequence[Measurement],
    rubric: Rubric,
    settings: WidthSettings,
    source: str,
    *,
    where: str = "",
) -> RaterPlan:
    """Plan from verdicts that are already read; `where` is their origin, for errors."""
    from fabula.errors import InputError
    from fabula.measures.graded import graded_agreement
    from fabula.measures.rater_agreement import panel_of_labels

    panel = panel_of_labels(labels, rubric, source)
    why: dict[str, str] = {}
    tests = _plan_tests(panel, rubric, settings) if panel.subjects else None
    if isinstance(tests, str):
        why["tests"] = tests
        tests = None
    items: dict[str, PlannedItem] = {}
    for name, people in graded_agreement([], labels, rubric, seed=settings.seed).people.items():
        item = rubric.item(name)
        found = (
            _plan_item(labels, item, people.kappa, settings, source)
            if item.scale.level == "interval"
            else "only yes-no items and numbers are planned"
        )
        if isinstance(found, str):
            why[name] = found
        else:
            items[name] = found
    if tests is None and not items:
        reason = next(iter(why.values()), f"has no verdicts on items of {rubric.id} to plan from")
        raise InputError(f"{where or source}: {reason}")
    return RaterPlan(settings, tests, items, why)


def _plan_tests(panel: Panel, rubric: Rubric, settings: WidthSettings) -> PlannedItem | str:
    """The plan for all yes-no items together, or why there is none."""
    import numpy as np

    from fabula.measures.rater_agreement import panel_agreement
    from fabula.stats.planning import fit_pilot

    ratings = _by_story(panel)
    pilot = fit_pilot(ratings)
    if isinstance(pilot, str):
        return pilot
    kappa = panel_agreement(panel, rubric, "item", seed=settings.seed)[-1].kappa
    n_raters = (~np.isnan(ratings)).any(axis=1).sum(axis=1)
    means = np.nanmean(ratings, axis=(1, 2))
    return _planned(pilot, means, n_raters, kappa, settings, settings.mean_width, panel.source)


def _plan_item(
    labels: Sequence[Measurement],
    item: Item,
    kappa: Estimate,
    settings: WidthSettings,
    source: str,
) -> PlannedItem | str:
    """The plan for one numeric item, or why there is none."""
    import numpy as np

    from fabula.measures.graded import numbers_said
    from fabula.stats.planning import fit_graded

    said = list(numbers_said(labels, item).values())
    ratings = np.full((len(said), max(map(len, said))), np.nan)
    for row, given in zip(ratings, said, strict=True):
        row[: len(given)] = list(given.values())
    pilot = fit_graded(ratings)
    if isinstance(pilot, str):
        return pilot
    n_raters, width = (~np.isnan(ratings)).sum(axis=1), settings.mean_width * item.scale.span
    return _planned(pilot, np.nanmean(ratings, axis=1), n_raters, kappa, settings, width, source)


def _planned(
    pilot: Pilot | GradedPilot,
    means: NDArray[np.float64],
    n_raters: NDArray[np.intp],
    kappa: Estimate,
    settings: WidthSettings,
    mean_width: float,
    source: str,
) -> PlannedItem:
    """means, n_raters: per story of the pilot; kappa: that of the pilot."""
    from fabula.stats.compare import mean_estimate
    from fabula.stats.planning import PilotFigures, PlanRow, StoryPool

    seed = settings.seed
    mean_raters = float(n_raters.mean())
    drawn = {m: StoryPool.drawn(pilot, m, seed=seed) for m in range(1, settings.max_raters + 1)}
    like_pilot = StoryPool.drawn(pilot, max(1, round(mean_raters)), seed=seed)
    rows = [
        PlanRow(
            m,
            stories.n_for("mean", mean_width),
            stories.n_for("kappa", settings.kappa_width) if m > 1 else None,
        )
        for m, stories in drawn.items()
    ]
    figures = PilotFigures(
        n_stories=len(means),
        n_raters=mean_raters,
        mean=mean_estimate(means, seed=seed, signature=f"experts:{source}"),
        kappa=kappa,
        predicted=like_pilot.widths(len(means)),
        model=pilot,
    )
    return PlannedItem(figures, rows, mean_width)


def _by_story(panel: Panel) -> NDArray[np.float64]:
    """The panel's verdicts: shape (n_stories, n_items, n_raters), NaN where missing."""
    import numpy as np

    stories = {story: k for k, story in enumerate(dict.fromkeys(s for s, _ in panel.subjects))}
    items = {item: k for k, item in enumerate(dict.fromkeys(i for _, i in panel.subjects))}
    ratings = np.full((len(stories), len(items), panel.ratings.shape[1]), np.nan)
    for (story, item), row in zip(panel.subjects, panel.ratings, strict=True):
        ratings[stories[story], items[item]] = row
    return ratings
