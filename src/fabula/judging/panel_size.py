"""How many stories, raters and people a study needs, by resampling the labels of a pilot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.core.errors import InputError
from fabula.core.settings import Between, Settings, SettingsError, seed_setting, setting
from fabula.jobs.result import Result, Row, picked
from fabula.judging.job import Labels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fabula.show.sheet import Block
    from fabula.stats.planning import Size

_MAX_SIZES = 100


def _fault(text: str) -> str | None:
    numbers = [numeral.strip() for numeral in text.split(",")]
    if not all(numeral.isdecimal() and 0 < int(numeral) <= 100_000 for numeral in numbers):
        return f"must be whole numbers from 1 to 100,000, separated by commas, got {text!r}"
    return f"must be at most {_MAX_SIZES} numbers" if len(numbers) > _MAX_SIZES else None


def _numbers(text: str) -> list[int]:
    return sorted({int(numeral) for numeral in text.split(",")})


@dataclass(frozen=True, slots=True)
class PlanSettings(Settings):
    """The sizes to try, and what a study should reach."""

    rubric: str = setting(
        "ttcw",
        help="Rubric that the pilot answered: a built-in one, or a .toml file.",
        unit="NAME|FILE",
    )
    stories: str = setting(
        "10,15,20,30,40,50,75,100,150,200,300,400,500",
        help="Numbers of stories to try, of each group if there are two.",
        unit="N,N",
        check=_fault,
    )
    raters: str | None = setting(
        None,
        help="Numbers of raters per story to try.",
        unit="N,N",
        default_text="one up to those of the pilot",
        check=_fault,
    )
    documents: Path | None = setting(
        None,
        help="The pilot's stories, whose authors count where labels name none (what `study export` "
        "writes names none).",
    )
    authors: str | None = setting(
        None,
        help="The two authors whose stories are compared.",
        unit="A,B",
        default_text="those of the pilot, if they are two with ten stories each",
    )
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
    power: float = setting(
        0.8,
        help="Target share of studies that find the groups' difference.",
        unit="SHARE",
        check=Between(0, 1, low_open=True, high_open=True),
    )
    per_person: int | None = setting(
        None,
        help="Number of stories that one person reads, to show the number of people.",
        check=Between(1),
    )
    seed: int = seed_setting()


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """All yes-no items together, or one item with numbers."""

    item: str | None
    """None for the yes-no items."""
    groups: tuple[str, ...]
    """The two that are compared; empty if none are."""
    n_pilot: tuple[int, ...]
    """The pilot's stories, by group."""
    n_raters: int
    """The raters that ten stories (of each group) of the pilot have."""
    mean_width: float
    """The target, in the units of the scale."""
    sizes: tuple[Size, ...]

    def smallest(self, n_raters: int, settings: PlanSettings) -> dict[str, int | None]:
        """The smallest number of stories tried that reaches each target, with so many raters."""
        sizes = [size for size in self.sizes if size.n_raters == n_raters]

        def first(reaches: Sequence[bool]) -> int | None:
            return next((s.n_stories for s, does in zip(sizes, reaches, strict=True) if does), None)

        smallest = {}
        for name, target in {"mean": self.mean_width, "kappa": settings.kappa_width}.items():
            known = [getattr(size, f"{name}_width") for size in sizes]
            smallest[name] = first([width is not None and width <= target for width in known])
        if self.groups:
            smallest["power"] = first([(size.power or 0.0) >= settings.power for size in sizes])
        return smallest


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Result):
    """What studies of each size would show."""

    settings: PlanSettings
    items: tuple[PlannedItem, ...]
    why_missing: Mapping[str, str]
    """Items whose answers cannot be planned for, and `tests`."""

    def readings(self, item: PlannedItem, n_stories: int, n_raters: int) -> int:
        """One rater reading one story, however many items it has."""
        return n_stories * n_raters * max(1, len(item.groups))

    def rows(self) -> list[Row]:
        """A row for each item and size; `item` is missing for all yes-no items together."""
        return [row for item in self.items for row in self._sizes(item)]

    def _sizes(self, item: PlannedItem) -> Iterator[Row]:
        per_person = self.settings.per_person
        for size in item.sizes:
            n = self.readings(item, size.n_stories, size.n_raters)
            n_people = None if per_person is None else math.ceil(n / per_person)
            yield {"item": item.item, **asdict(size), "n_readings": n, "n_people": n_people}

    def to_json(self) -> dict[str, Any]:
        settings = self.settings
        pilots = [
            {
                "item": item.item,
                "groups": list(item.groups),
                "n_stories": list(item.n_pilot),
                **picked(item, "n_raters", "mean_width"),
                "smallest": [
                    {"n_raters": m, **item.smallest(m, settings)}
                    for m in dict.fromkeys(size.n_raters for size in item.sizes)
                ],
            }
            for item in self.items
        ]
        return {
            "targets": picked(settings, "mean_width", "kappa_width", "power"),
            "pilots": pilots,
            "sizes": self.rows(),
            "why_missing": dict(self.why_missing),
        }

    def tables(self) -> list[Block]:
        from fabula.show.sheet import Column, Sheet

        blocks: list[Block] = []
        for item in self.items:
            has_people, has_groups = self.settings.per_person is not None, bool(item.groups)
            columns = [
                Column("raters", "d", name="n_raters"),
                Column("stories of each" if has_groups else "stories", ",d", name="n_stories"),
                Column("readings", ",d", name="n_readings"),
                *([Column("people", ",d", name="n_people")] if has_people else []),
                Column("mean: width", ".3f", name="mean_width"),
                Column("kappa: width", ".3f", name="kappa_width"),
            ]
            if has_groups:
                difference = Column("difference: width", ".3f", name="difference_width")
                columns += [difference, Column("power", ".0%")]
            about = ("item", item.item) if item.item else None
            of_whom = " and ".join(
                f"{n:,} stories{f' by {name}' if name else ''}"
                for n, name in zip(item.n_pilot, item.groups or ("",), strict=True)
            )
            blocks += [
                f"{f'{item.item}: ' if item.item else ''}the pilot has {of_whom}, and "
                f"{item.n_raters} raters per story",
                "",
                Sheet.of("plan", self._sizes(item), columns, about=about),
                "",
            ]
            settings = self.settings
            kappa = "quadratic-weighted kappa" if item.item else "Fleiss's kappa"
            targets = {
                "mean": f"{'mean' if item.item else 'share of Yes'} within {item.mean_width:g}",
                "kappa": f"{kappa} within {settings.kappa_width:g}",
            }
            if has_groups:
                targets["power"] = f"difference found in {settings.power:.0%}"
            for name, target in targets.items():
                reached = []
                for m in dict.fromkeys(size.n_raters for size in item.sizes):
                    if (n := item.smallest(m, settings).get(name)) is not None:
                        readings = self.readings(item, n, m)
                        reached.append(f"{n:,} stories with {m} ({readings:,} readings)")
                blocks.append(f"{target}: {'; '.join(reached) or 'by none of these sizes'}")
            blocks.append("")
        blocks += [f"not planned: {name}, {reason}" for name, reason in self.why_missing.items()]
        return [
            *blocks,
            "widths: of 95 % intervals; resampled from the pilot, and as good as it: other stories "
            "or raters may vary more, and so do stories if few people read them all",
        ]


def plan(labels: Labels, settings: PlanSettings) -> Plan:
    """Resample a pilot to see how narrow intervals get, and how often a difference is found.

    LABELS are people's verdicts on yes-no items or numbers, on at least ten stories: a table with
    document, item, rater and value (.csv, .jsonl, .xlsx, .parquet), and author if two groups of
    stories are compared; what `fabula study export` writes; or the authors' ttcw_annotations.json.

    Raises `InputError`, also if the pilot is too small or too uniform to plan from.
    """
    import numpy as np

    from fabula.raters.agreement import graded_items, numbers_said, panel_of_labels
    from fabula.rubrics.load import load_rubric
    from fabula.text import read_documents

    rubric = load_rubric(settings.rubric)
    answers = labels.read(rubric)
    panel = panel_of_labels(answers, rubric, labels.name)
    stories = [] if settings.documents is None else read_documents([settings.documents])
    authors = {text.id: text.author for text in stories if text.author} | dict(panel.authors)
    known = list(dict.fromkeys(authors.values()))
    # The two authors that are compared; none if the pilot has no two.
    groups = tuple(sorted(known)) if len(known) == 2 else ()
    if settings.authors is not None:
        groups = tuple(name.strip() for name in settings.authors.split(","))
        if len(set(groups)) != 2 or not set(groups) <= set(known):
            hint = ", ".join(sorted(known)) or "none, since the labels have no `author`"
            raise SettingsError("authors", f"must be two of the pilot's authors: {hint}")
    why, items = dict[str, str](), list[PlannedItem]()

    def add(item: str | None, ratings: Mapping[str, NDArray[np.float64]], span: float) -> None:
        planned = _planned(item, ratings, groups, authors, span, settings)
        if isinstance(planned, str):
            why[item or "tests"] = planned
        else:
            items.append(planned)

    # By story, of shape (n_items, n_raters), NaN where missing.
    ratings: dict[str, NDArray[np.float64]] = {}
    places = {item: k for k, item in enumerate(dict.fromkeys(i for _, i in panel.subjects))}
    for (story, item_id), row in zip(panel.subjects, panel.ratings, strict=True):
        ratings.setdefault(story, np.full((len(places), len(row)), np.nan))[places[item_id]] = row
    if ratings:
        add(None, ratings, 1.0)
    for item in graded_items(rubric):
        by_story = numbers_said(answers, item)
        if by_story and item.scale.level != "interval":
            why[item.id] = "only yes-no items and numbers are planned"
        elif by_story:
            n_most = max(map(len, by_story.values()))
            ratings = {story: np.full((1, n_most), np.nan) for story in by_story}
            for story, numbers in by_story.items():
                ratings[story][0, : len(numbers)] = list(numbers.values())
            add(item.id, ratings, item.scale.span)
    if not items:
        reason = next(iter(why.values()), f"has no verdicts on items of {rubric.id} to plan from")
        raise InputError(f"{labels}: {reason}")
    return Plan(settings, tuple(items), why)


def _planned(
    item: str | None,
    ratings: Mapping[str, NDArray[np.float64]],
    groups: tuple[str, ...],
    authors: Mapping[str, str],
    span: float,
    settings: PlanSettings,
) -> PlannedItem | str:
    """The plan from ratings by story, or why there is none."""
    import numpy as np

    from fabula.stats.planning import most_raters, plan_sizes, too_little

    of_groups = [
        [values for story, values in ratings.items() if not groups or authors.get(story) == group]
        for group in groups or ("",)
    ]
    if not all(of_groups):
        return "no answers about stories of one of the groups"
    arrays = [np.stack(values) for values in of_groups]
    if few := too_little(arrays):
        # Nobody asked for these groups; all stories together may be enough.
        alone = groups and settings.authors is None
        return _planned(item, ratings, (), authors, span, settings) if alone else few
    n_raters = most_raters(arrays)
    raters = list(range(1, n_raters + 1)) if settings.raters is None else _numbers(settings.raters)
    sizes = plan_sizes(
        arrays, _numbers(settings.stories), raters, is_graded=item is not None, seed=settings.seed
    )
    n_pilot, mean_width = tuple(map(len, arrays)), settings.mean_width * span
    return PlannedItem(item, groups, n_pilot, n_raters, mean_width, tuple(sizes))
