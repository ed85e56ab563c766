"""Why stories pass a test, and why they fail it: raters' reasons grouped into themes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Result, Row
from fabula.settings import Between, Settings, part, setting

if TYPE_CHECKING:
    from fabula.tasks.reason_themes import Theme
    from fabula.types import Rubric

_LABEL_TOKENS = 60


@dataclass(frozen=True, slots=True)
class ThemeSettings(Settings):
    """Which reasons are grouped, and how."""

    out: Path | None = setting(
        None,
        help="Write the themes here (.jsonl), to edit their labels; labels edited there are kept.",
    )
    items: str | None = setting(
        None, help="Use only these items, separated by commas.", unit="ID,ID"
    )
    n_themes: int = setting(4, help="Number of themes for each item and side.", check=Between(1))
    name_with_model: bool = setting(False, help="Have `models` name the themes.")
    models: ModelSettings = part(ModelSettings)


@dataclass(frozen=True, slots=True, repr=False)
class GroupedReasons(Result):
    """Themes in the order of the rubric's items."""

    themes: Sequence[Theme]
    rubric: Rubric
    out: Path | None = None
    names_settings: ClassVar[bool] = False

    def rows(self) -> list[Row]:
        return [asdict(theme) for theme in self.themes]

    def lines(self) -> Sequence[str]:
        from fabula.presentation.judging_tables import theme_lines

        found = theme_lines(self.themes, self.rubric)
        if self.out is None:
            return found
        return [
            *found,
            f"written: {self.out}; edit the labels there and run this again to see them",
        ]


def themes(
    sources: Annotated[Sequence[Path], "RUN|FILE"],
    settings: ThemeSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> GroupedReasons:
    """Group the reasons that raters gave into themes, separately for passing and failing each test.

    A source is a run of `fabula judge`, or the experts' ttcw_annotations.json. Reasons are grouped
    by the meaning of their sentences; the most typical ones are shown beside each theme.

    Raises `InputError`, also if a label edited in `out` would be lost, and `ModelError`.
    """
    from fabula.jobs.writing import confirm_prompts
    from fabula.store import write_rows
    from fabula.tasks.reason_themes import find_themes, keep_labels, read_rationales

    items, out, spec = settings.items, settings.out, settings.models.models[0]
    rubric, rationales = read_rationales(sources, items.split(",") if items else None)
    progress.begin("grouping reasons", len(rationales))
    terms = settings.models.options()
    found = find_themes(
        rationales,
        rubric,
        n_themes=settings.n_themes,
        model=spec if settings.name_with_model else None,
        options=terms,
        agree=confirm_prompts(spec, terms.prices, _LABEL_TOKENS, confirm),
        meter=progress.advance,
    )
    others: list[dict[str, Any]] = []
    if out is not None and out.exists():
        found, others = keep_labels(found, out)
    grouped = GroupedReasons(found, rubric, out)
    if out is not None:
        write_rows(out, [*grouped.rows(), *others])
    return grouped
