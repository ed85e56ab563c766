"""Texts as a reference group: the usual range of each number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.job import Texts
from fabula.jobs.progress import SILENT, Progress
from fabula.jobs.report import GroupSettings
from fabula.jobs.result import Result
from fabula.settings import Settings, part, setting

if TYPE_CHECKING:
    from fabula.measures.groups import GroupNumbers
    from fabula.review import LeftOut


@dataclass(frozen=True, slots=True)
class NamedGroupSettings(Settings):
    """What the group is called, and what is measured."""

    name: str = setting(help="A short name, such as my-students.")
    kind: Literal["people", "models", "other"] = setting(help="Who wrote the texts.")
    out: Path = setting(
        help="Write the numbers here, one line per group (.jsonl); groups with other names in the "
        "file are kept."
    )
    title: str | None = setting(
        None, help="Title shown on the page.", default_text="the number of texts, and the name"
    )
    measured: GroupSettings = part(GroupSettings)


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredGroup(Result):
    """A group of texts by its numbers, one entry for each way of measuring."""

    out: Path
    found: Sequence[GroupNumbers]
    left_out: Sequence[LeftOut]

    def lines(self) -> list[str]:
        return [
            *(f"{one.group}: {len(one.items)} numbers by {one.signature}" for one in self.found),
            *(
                f"not included: {one.part}, {one.reason}; to include it: {one.remedy}"
                for one in self.left_out
            ),
            f"written: {self.out}",
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "groups": {one.signature: len(one.items) for one in self.found},
            "left_out": [asdict(entry) for entry in self.left_out],
        }

    def lacking(self) -> str | None:
        # For scripts: some numbers are of fewer texts than were given.
        return "" if any(entry.is_failure for entry in self.left_out) else None


def group(
    texts: Texts, settings: NamedGroupSettings, *, progress: Progress = SILENT
) -> MeasuredGroup:
    """Measure TEXTS as a group. Only the numbers are kept, not the texts.

    Give the file to `fabula report --groups`.

    Raises `InputError`, `CorpusError`.
    """
    from fabula.jobs.reviewer import Reviewer
    from fabula.measures.groups import read_groups, write_groups
    from fabula.review import group_numbers

    out, plan = settings.out, settings.measured.report()
    kept = read_groups(out) if out.exists() else []
    with Reviewer(plan) as reviewer:
        review = reviewer.run(texts, progress)
    title = settings.title or f"{len(texts):,} texts, {settings.name}"
    found = group_numbers(review, settings.name, settings.kind, title)
    write_groups(out, [*(one for one in kept if one.group != settings.name), *found])
    left_out = [entry for entry in review.left_out if entry.part not in plan.without]
    return MeasuredGroup(out, found, left_out)
