"""Compare groups of texts in what was measured of their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.jobs.result_files import plot_setting
from fabula.settings import Between, Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.measures.group_comparison import Comparison
    from fabula.measures.number_comparison import MeasuredTexts, NumberComparison

_OF_DIVERSITY = re.compile(rb'\s*\{\s*"by"\s*:')
"""How a result of diversity begins."""


@dataclass(frozen=True, slots=True)
class ComparisonSettings(Settings):
    """Which groups are compared, and what counts as one text."""

    by: str | None = setting(
        None,
        help="Field to group the texts by, such as author or model; for scores of originality also "
        "`file`, the score file.",
        unit="FIELD",
    )
    unnamed: str | None = setting(
        None, help="Name of the group of texts that lack this field, such as human.", unit="NAME"
    )
    texts: str | None = setting(
        None, help="The texts that were measured, for fields that rows lack.", unit="TEXTS"
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


def compare_files(
    results: Sequence[Path], settings: ComparisonSettings
) -> Comparison | NumberComparison:
    """Compare groups of texts in the rows of one or several instruments.

    Scores of originality alone are compared with their curves, which `plot` draws. Raises
    `SettingsError` without `by`, `InputError`, and `MixError` for numbers that were measured in
    different ways.
    """
    from fabula.measures.group_comparison import compare_scores
    from fabula.measures.number_comparison import compare_numbers

    by = settings.grouping_field()
    how: dict[str, Any] = {
        "baseline": settings.baseline,
        "cluster": settings.cluster,
        "seed": settings.seed,
    }
    for path in results:
        _check_scores(path)
    extra = settings.texts is not None or settings.unnamed is not None
    if not extra and all(map(_is_scores, results)):
        comparison = compare_scores(results, by=by, **how)
        if settings.plot is not None:
            from fabula.presentation.charts import save_comparison

            save_comparison(comparison, settings.plot)
        return comparison
    if settings.plot is not None:
        raise SettingsError("plot", "is only for scores of originality alone")
    return compare_numbers(
        _measured(results), by=by, unnamed=settings.unnamed, fields=_fields(settings.texts), **how
    )


def _measured(results: Sequence[Path]) -> MeasuredTexts:
    from fabula.judging.folder import read_run
    from fabula.judging.run import RETEST
    from fabula.measures.number_comparison import MeasuredTexts
    from fabula.measures.rater_agreement import aggregates, ratings_of
    from fabula.store import measurement_row, read_rows
    from fabula.types import by_rater

    found = MeasuredTexts()
    for path in results:
        if not path.is_dir():
            for number, row in enumerate(read_rows(path), 1):
                found.add(row, f"{path}, line {number}")
            continue
        rubric, measurements = read_run(path)
        once = [one for one in measurements if not one.document_id.endswith(RETEST)]
        for one in once:
            found.add(measurement_row(one), str(path))
        for rater, own in by_rater(once).items():
            title = rubric.aggregate.title
            for text, score in aggregates(ratings_of(own), rubric).items():
                found.add_number(text, f"{title}, {rater}", score, own[0].signature)
    return found


def _fields(texts: str | None) -> dict[str, dict[str, Any]]:
    from fabula.text import read_documents

    return {} if texts is None else {one.id: one.fields for one in read_documents([texts])}


def _is_scores(path: Path) -> bool:
    from fabula.store import read_rows

    nothing = {"creativity_index": None}
    return not path.is_dir() and "creativity_index" in next(iter(read_rows(path)), nothing)


def _check_scores(path: Path) -> None:
    """Raise `InputError` for a file that cannot be read, or with a result of diversity."""
    if path.is_dir():
        return
    try:
        with path.open("rb") as file:
            beginning = file.read(256)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if _OF_DIVERSITY.match(beginning):
        raise InputError(
            f"{path}: a result of diversity, whose numbers are of groups and not of texts; "
            "`fabula diversity --by` compares the groups"
        )
