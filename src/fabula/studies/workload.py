"""Workload of a design before anybody is invited: people, readings, and what it reveals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabula.studies.assigning import choose_unit
from fabula.studies.design import StudyDesign
from fabula.studies.units import Seen, Unit, count_for_one_person

_MOST_STEPS = 500_000


@dataclass(frozen=True, slots=True)
class Workload:
    """The number of people needed. A reading is a unit read by one person."""

    n_readings: int
    n_for_one_person: int
    """Maximum units per person: limited by `per_participant`, and by what would reveal a story."""
    n_people: int
    """Lower bound: fewer people cannot suffice under any assignment."""
    n_people_shared_out: int | None
    """People needed with the actual assignment, if each reads all that they are given; None if that
    is too expensive to compute.
    """
    giving_away: tuple[str, ...]
    """Units that contain several versions of one story."""


def workload_of(design: StudyDesign, units: Sequence[Unit]) -> Workload:
    """Return the workload of the design with these units.

    A person reads one of the units about a story (or `per_story` that show the same version); so a
    story with K units takes K times `raters` people. If each unit is about one story, the maximum
    of these and of all readings divided by readings per person is enough: assigned in turn, story
    by story, nobody gets two of one.
    """
    n_readings = design.raters * len(units)
    n_for_one = min(count_for_one_person(units, design.per_story), design.per_participant)
    # Nobody reads a unit twice.
    n_people = max(math.ceil(n_readings / n_for_one), design.raters, *_by_story(design, units))
    return Workload(
        n_readings=n_readings,
        n_for_one_person=n_for_one,
        n_people=n_people,
        n_people_shared_out=_shared_out(design, units, n_for_one, n_people),
        giving_away=tuple(
            unit.key for unit in units if unit.n_versions > 1 and len(unit.documents) > 1
        ),
    )


def _by_story(design: StudyDesign, units: Sequence[Unit]) -> Iterator[int]:
    """Yield the number of people per story: nobody reads two versions of it."""
    versions: dict[str, Counter[str | None]] = {}
    for unit in units:
        for mark, version in unit.stories.items():
            versions.setdefault(mark, Counter())[version] += 1
    for counts in versions.values():
        n_people = 0
        for version, n in counts.items():
            per_story = 1 if version is None else design.per_story
            n_people += math.ceil(n * design.raters / per_story)
        yield n_people


def _shared_out(
    design: StudyDesign, units: Sequence[Unit], n_for_one: int, n_people: int
) -> int | None:
    """Simulate assignment; return how many people arrive until everything is read.

    Each person gets units until none is left for them.
    """
    if n_people * n_for_one * len(units) > _MOST_STEPS:
        return None
    known = {unit.key: unit for unit in units}
    taken: Counter[str] = Counter()
    person = 0
    while any(taken[key] < design.raters for key in known):
        person += 1
        seen, mine = Seen(design.per_story), set[str]()
        while len(mine) < design.per_participant:
            key = choose_unit(design, known, taken, seen, person, mine)
            if key is None:
                break
            seen.add(known[key])
            mine.add(key)
            taken[key] += 1
    return person
