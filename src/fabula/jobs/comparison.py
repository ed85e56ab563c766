"""Compare groups of texts in what was measured of their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.jobs.given import GivenSource, Part, Rows, located_in
from fabula.jobs.result import Result, Row
from fabula.jobs.result_files import plot_setting
from fabula.settings import Settings, of_field, seed_setting, setting

if TYPE_CHECKING:
    from fabula.measures.comparison import Comparison, MeasuredTexts
    from fabula.presentation.sheet import Block

_OF_DIVERSITY = re.compile(rb'\s*\{\s*"by"\s*:')
"""How a result of diversity begins."""


@dataclass(frozen=True, slots=True)
class ComparisonSettings(Settings):
    """Which groups are compared, and what counts as one text."""

    by: str = setting(
        help="Field to group the texts by, such as author or model; for scores of originality also "
        "`file`, the score file.",
        unit="FIELD",
    )
    unnamed: str | None = setting(
        None, help="Name of the group of texts that lack this field, such as human.", unit="NAME"
    )
    texts: GivenSource | None = setting(
        None, help="The texts that were measured, for fields that rows lack.", unit="TEXTS"
    )
    cluster: str | None = of_field(
        "Count texts that share this field (a prompt, an author) as one; near-duplicates "
        "always count as one."
    )
    baseline: str | None = setting(
        None, help="Compare every group with this one only.", unit="NAME"
    )
    plot: Path | None = plot_setting("Draw curves and distributions here (.svg, .pdf or .png).")
    seed: int = seed_setting("Seed for the permutations.")


@dataclass(frozen=True, slots=True, repr=False)
class Compared(Result):
    """Groups of texts beside each other."""

    comparison: Comparison

    def tables(self) -> list[Block]:
        from fabula.presentation.contrast_tables import comparison_tables

        return comparison_tables(self.comparison)

    def to_json(self) -> dict[str, Any]:
        return self.comparison.to_json()

    def rows(self) -> list[Row]:
        """A row per group: its mean with the interval, and n; per number too, if there are more."""
        return list(self.comparison.rows())

    def writers(self) -> dict[str, Any]:
        """Curves and distributions of scores of originality."""
        return dict.fromkeys((".svg", ".pdf", ".png"), self._draw)

    def _draw(self, path: Path) -> None:
        from fabula.measures.comparison import INDEX
        from fabula.presentation.charts import save_comparison

        if all(one.number != INDEX for one in self.comparison.groups):
            raise InputError(f"{path}: only scores of originality can be drawn")
        save_comparison(self.comparison, path)


def compare(results: Sequence[Rows], settings: ComparisonSettings) -> Compared:
    """Compare groups of texts in RESULTS: rows that `originality`, `profile` or `detect score`
    wrote, runs of `judge`, exports of a study, one or several together.

    Shows the mean of each number in each group of `by` with a 95 % interval, and for each pair of
    groups the difference, the Mann-Whitney test (whether texts of A tend to be above those of B;
    not whether means differ), and Holm's correction over everything that is shown. With `cluster`,
    intervals are over clusters and all tests are permutation tests of means: they permute texts
    within a cluster that the groups share, such as a prompt that all wrote to, and whole clusters
    otherwise. Three groups or more are tested all at once too (Kruskal-Wallis). The difference of
    the Creativity Index is also in per cent, (A - B) / B.

    Numbers that were not measured in the same way are refused.

    Raises `InputError` and `MixError`.
    """
    from fabula.measures.comparison import MeasuredTexts, compare_groups

    parts = [part for one in results for part in one.parts]
    for part in parts:
        if isinstance(part, Path) and not part.is_dir():
            _check_file(part)
    texts = [] if settings.texts is None else settings.texts.read()
    fields = {one.id: one.fields for one in texts}
    # Ids of scores alone need not differ from file to file.
    are_rows = not texts and settings.unnamed is None and all(map(_are_scores, parts))
    measured = MeasuredTexts(settings.by, settings.cluster, fields=fields, are_rows=are_rows)
    _add(measured, parts)
    how: Any = {name: getattr(settings, name) for name in ("baseline", "unnamed", "seed")}
    found = Compared(compare_groups(measured, **how))
    if settings.plot is not None:
        found.save(settings.plot)
    return found


def _with_files(parts: Sequence[Part], by: str) -> Iterator[tuple[Row, str]]:
    """All rows with their places; if they are grouped by `file`, with the name of their file."""
    paths = [part for part in parts if isinstance(part, Path)]
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a score file is listed twice, so its texts would count twice")
    are_named = len({path.name for path in paths}) == len(paths)
    for part in parts:
        own = {}
        if by == "file" and isinstance(part, Path):
            own["file"] = part.name if are_named else str(part)
        for row, where in located_in(part):
            yield {**row, **own}, where


def _add(measured: MeasuredTexts, parts: Sequence[Part]) -> None:
    from fabula.judging.folder import read_run
    from fabula.judging.run import RETEST
    from fabula.measures.agreement import aggregates, ratings_of
    from fabula.store import measurement_row
    from fabula.types import by_rater

    folders = [part for part in parts if isinstance(part, Path) and part.is_dir()]
    for row, where in _with_files([part for part in parts if part not in folders], measured.by):
        measured.add(row, where)
    for part in folders:
        rubric, measurements = read_run(part)
        once = [one for one in measurements if not one.document_id.endswith(RETEST)]
        for one in once:
            measured.add(measurement_row(one), str(part))
        for rater, own in by_rater(once).items():
            title = rubric.aggregate.title
            for text, score in aggregates(ratings_of(own), rubric).items():
                measured.add_number(text, f"{title}, {rater}", score, own[0].signature)


def _are_scores(part: Part) -> bool:
    if isinstance(part, Path) and part.is_dir():
        return False
    first, _ = next(located_in(part), ({"creativity_index": None}, ""))
    return "creativity_index" in first


def _check_file(path: Path) -> None:
    """Raise `InputError` for a file that cannot be read, or with a result of diversity."""
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
