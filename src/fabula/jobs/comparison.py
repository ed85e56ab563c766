"""Compare groups of scored texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.jobs.result_files import plot_setting
from fabula.settings import Between, Settings, setting

if TYPE_CHECKING:
    from fabula.measures.group_comparison import Comparison

__all__ = ["ComparisonSettings", "compare_files"]


@dataclass(frozen=True, slots=True)
class ComparisonSettings(Settings):
    """Which groups are compared, and what counts as one text."""

    by: str = setting(
        help="Field to group the texts by, such as author or model; `file` for the score file.",
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
    seed: int = setting(0, help="Seed for the bootstrap and the permutations.", check=Between(0))


def compare_files(scores: Sequence[Path], settings: ComparisonSettings) -> Comparison:
    """Compare the originality of groups of texts, from files written by `fabula originality`.

    Draws `plot`. Raises `InputError`, and `MixError` for scores that were measured in different
    ways.
    """
    from fabula.measures.group_comparison import compare_scores

    comparison = compare_scores(
        scores,
        by=settings.by,
        baseline=settings.baseline,
        cluster=settings.cluster,
        seed=settings.seed,
    )
    if settings.plot is not None:
        from fabula.presentation.charts import save_comparison

        save_comparison(comparison, settings.plot)
    return comparison
