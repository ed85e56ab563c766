"""Compare groups of texts: their scores, or results of diversity."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.formats import DIVERSITY
from fabula.jobs.result_files import plot_setting
from fabula.settings import Between, Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.measures.diversity import Diversity
    from fabula.measures.group_comparison import Comparison

__all__ = ["ComparisonSettings", "are_diversity", "compare_diversity", "compare_files"]

_BEGINNING = re.compile(rb'\s*\{\s*"(?:%s|by)"\s*:' % DIVERSITY.field.encode())
"""Of a result of diversity; those of format 1 begin with their field."""


@dataclass(frozen=True, slots=True)
class ComparisonSettings(Settings):
    """Which groups are compared, and what counts as one text."""

    by: str | None = setting(
        None,
        help="Field to group the scores by, such as author or model; `file` for the score file. "
        "Results of diversity have their groups already.",
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

    def grouping_field(self) -> str:
        """The field that groups scores. Raises `SettingsError` if there is none."""
        if self.by is None:
            raise SettingsError("by", "is missing; set it to the field that groups the scores")
        return self.by

    def check_diversity(self) -> None:
        """Raise `SettingsError` for what only scores have."""
        for name in ("by", "cluster", "plot"):
            if getattr(self, name) is not None:
                raise SettingsError(
                    name, "applies to scores only; results of diversity are compared as they are"
                )


def are_diversity(paths: Sequence[Path]) -> bool:
    """Whether these files are results of diversity, not scores. Raises `InputError` for a mix."""
    kinds = {path: _is_diversity(path) for path in paths}
    if len(set(kinds.values())) > 1:
        one, other = (next(path for path in paths if kinds[path] is kind) for kind in (True, False))
        raise InputError(
            f"{one} is a result of diversity, but {other} is not; compare files of one kind"
        )
    return any(kinds.values())


def _is_diversity(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _BEGINNING.match(file.read(256)) is not None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def compare_diversity(
    results: Sequence[Path | Diversity], settings: ComparisonSettings
) -> Diversity:
    """Compare groups whose diversity was measured apart.

    results: what `diversity` gave, or files with what `fabula diversity --json` printed. Raises
    `InputError`, and `MixError` for results that were measured in different ways.
    """
    from fabula.measures.diversity.separate_results import join_results, read_result
    from fabula.packages import check_scipy

    check_scipy("the intervals of diversity")
    settings.check_diversity()
    paths = [one for one in results if isinstance(one, Path)]
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a result is listed twice; list each file once")
    are_named = len({path.stem for path in paths}) == len(paths)
    read = [
        (one.stem if are_named else str(one), read_result(_content(one), str(one)))
        if isinstance(one, Path)
        else (f"result {number}", one)
        for number, one in enumerate(results, 1)
    ]
    return join_results(read, baseline=settings.baseline)


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); {DIVERSITY.remedy}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object; {DIVERSITY.remedy}")
    return content


def compare_files(scores: Sequence[Path], settings: ComparisonSettings) -> Comparison:
    """Compare the originality of groups of texts, from files written by `fabula originality`.

    Draws `plot`. Raises `SettingsError` without `by`, `InputError`, and `MixError` for scores that
    were measured in different ways.
    """
    from fabula.measures.group_comparison import compare_scores

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
