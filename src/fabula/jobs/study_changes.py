"""Changes to a study after its start, shown and recorded as a version."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.studies import StudyPlace, open_study
from fabula.settings import Settings, setting

if TYPE_CHECKING:
    from fabula.studies.versions import Change, Version

__all__ = ["AmendSettings", "Amended", "amend_study"]


@dataclass(frozen=True, slots=True)
class AmendSettings(Settings):
    """Why a study is changed."""

    why: str | None = setting(
        None,
        help="Record the changes, with this reason.",
        unit="TEXT",
        default_text="show them only",
        check=lambda text: None if text.strip() else "says nothing; give the reason",
    )


@dataclass(frozen=True, slots=True)
class Amended:
    """What a study shows now, compared with what it showed before."""

    file: Path
    changes: Sequence[Change]
    """Since the previous version."""
    versions: Sequence[Version]
    is_recorded: bool
    is_begun: bool
    """Whether any participant has been given a text."""

    def lines(self) -> list[str]:
        from fabula.studies.exporting import time_of
        from fabula.studies.versions import NOBODY_YET

        if not self.is_begun:
            return [f"{self.file}: {NOBODY_YET}"]
        found = []
        for one in self.versions:
            found.append(f"version {one.number}, {str(time_of(one.at_ms))[:16]}Z: {one.why}")
            found += [f"  {change.line()}" for change in one.changes]
        if not self.changes:
            return [*found, f"{self.file} shows what version {len(self.versions)} shows"]
        if self.is_recorded:
            return [
                *found,
                "a running `study serve` gives out nothing new until it is started again",
            ]
        file = shlex.quote(str(self.file))
        return [
            *found,
            f"changed since version {len(self.versions)}:",
            *(f"  {one.line()}" for one in self.changes),
            f"nothing was recorded; to record it, run `fabula study amend {file} --why REASON`",
        ]

    def to_json(self) -> dict[str, Any]:
        from fabula.studies.exporting import time_of

        return {
            "begun": self.is_begun,
            "recorded": self.is_recorded,
            "changes": [_change(one) for one in self.changes],
            "versions": [
                {
                    "number": one.number,
                    "at": time_of(one.at_ms),
                    "why": one.why,
                    "changes": [_change(change) for change in one.changes],
                }
                for one in self.versions
            ],
        }


def _change(one: Change) -> dict[str, str | None]:
    return {"where": one.where, "before": one.before, "after": one.after}


def amend_study(file: Path, place: StudyPlace, settings: AmendSettings) -> Amended:
    """Compare a study's file and documents with what participants were shown.

    With a reason, record the differences as a new version. Raises `InputError` if a change would
    affect the answers.
    """
    from fabula.studies.versions import amend, has_begun, read_versions

    why = (settings.why or "").strip()
    with open_study(file, place, amends=True) as opened:
        changes = amend(opened.store, opened.design, opened.units, why)
        with opened.store.reading() as connection:
            kept = read_versions(connection)
            return Amended(file, changes, kept, bool(why and changes), has_begun(connection))
