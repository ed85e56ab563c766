"""Compare groups of texts by the originality of their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.errors import InputError
from fabula.jobs.result_files import plot_setting
from fabula.provenance import check_recorded
from fabula.settings import Between, Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.measures.group_comparison import Comparison

_OF_DIVERSITY = re.compile(rb'\s*\{\s*"by"\s*:')
"""How a result of diversity begins."""


@dataclass(frozen=True, slots=True)
class ComparisonSettings(Settings):
    """Which groups are compared, and what counts as one text."""

    by: str | None = setting(
        None,
        help="Field to group the scores by, such as author or model; `file` for the score file.",
        unit="FIELD",
    )
    cluster: str | None = setting(
        None,
        help="Count texts that share this field (a prompt, an author) as one; near-duplicates "
        "always count as one.",
        unit="FIELD",
    )
    baseline: str | None = setting(
        None, help="Compare every group with this one only.", unit="NAME"
    )
    plot: Path | None = plot_setting("Draw curves and distributions here (.svg, .pdf or .png).")
    seed: int = setting(0, help="Seed for the permutations.", check=Between(0))

    def grouping_field(self) -> str:
        """The field that groups scores. Raises `SettingsError` if there is none."""
        if self.by is None:
            raise SettingsError("by", "is missing; set it to the field that groups the scores")
        return self.by


def compare_files(scores: Sequence[Path], settings: ComparisonSettings) -> Comparison:
    """Compare the originality of groups of texts, from files written by `fabula originality`.

    Draws `plot`. Raises `SettingsError` without `by`, `InputError`, and `MixError` for scores that
    were measured in different ways.
    """
    from fabula.measures.group_comparison import compare_scores

    for path in scores:
        _check_scores(path)
        check_recorded(path)
    comparison = compare_scores(
        scores,
        by=settings.grouping_field(),
        baseline=settings.baseline,
        cluster=settings.cluster,
        seed=settings.seed,
    )
    if settings.plot is not None:
        from fabula.presentation.charts import save_comparison

        save_comparison(comparison, settings.plot)
    return comparison


def _check_scores(path: Path) -> None:
    """Raise `InputError` for a file that cannot be read, or with a result of diversity."""
    try:
        with path.open("rb") as file:
            beginning = file.read(256)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if _OF_DIVERSITY.match(beginning):
        raise InputError(
            f"{path}: a result of diversity, and `compare` compares scores of originality; measure "
            "the groups together: `fabula diversity --by`"
        )
