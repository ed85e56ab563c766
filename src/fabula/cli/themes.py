"""`fabula themes`: why stories pass a test, and why they fail it, from the raters' reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, in_options, settings_options
from fabula.cli.options import rows_option, yes_option
from fabula.cli.printing import print_rows
from fabula.cli.progress import progress_bar
from fabula.jobs.models import ModelSettings
from fabula.jobs.writing import confirm_prompts

__all__ = ["themes"]

_LABEL_TOKENS = 60


@click.command(cls=Command, short_help="Group raters' reasons into themes.")
@click.argument(
    "sources", nargs=-1, required=True, metavar="RUN|FILE...", type=click.Path(path_type=Path)
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the themes here (.jsonl), to edit their labels; labels edited there are kept.",
)  # fmt: skip
@click.option("--items", metavar="ID,ID", help="Only these items, with commas.")
@click.option(
    "--themes", "n_themes", type=click.IntRange(min=1), default=4, show_default=True,
    help="Themes of each item and side.",
)  # fmt: skip
@click.option("--name-with-model", is_flag=True, help="Have --model name the themes.")
@settings_options(ModelSettings, "asked")
@yes_option
@rows_option
def themes(
    sources: tuple[Path, ...],
    out: Path | None,
    items: str | None,
    n_themes: int,
    name_with_model: bool,
    asked: ModelSettings,
    yes: bool,
    as_json: str | None,
) -> None:
    """Group the reasons that raters gave into themes, for what passes and what fails each test.

    A source is a run of `fabula judge`, or the experts' ttcw_annotations.json. Reasons are grouped
    by the meaning of their sentences; beside each theme stand the most typical of them.
    """
    from fabula.store import write_rows
    from fabula.tasks.rationales import read_rationales
    from fabula.tasks.themes import find_themes, keep_labels, theme_row

    rubric, rationales = read_rationales(sources, items.split(",") if items else None)
    with progress_bar("grouping reasons", len(rationales)) as bar:
        found = find_themes(
            rationales, rubric, n_themes=n_themes,
            model=asked.models[0] if name_with_model else None,
            options=asked.options(),
            agree=confirm_prompts(
                asked.models[:1], asked.options().prices, _LABEL_TOKENS, confirm_on(bar, yes=yes)
            ),
            meter=bar.advance,
        )  # fmt: skip
    others: list[dict[str, Any]] = []
    if out is not None and out.exists():
        found, others = keep_labels(found, out)
    rows = [theme_row(theme) for theme in found]
    if out is not None:
        write_rows(out, [*rows, *others])
    if as_json:
        print_rows(rows, as_json)
        return
    from fabula.presentation.theme_tables import theme_lines

    click.echo(in_options(theme_lines(found, rubric)), nl=False)
    if out is not None:
        click.echo(f"written: {out}; edit the labels there and run this again to see them")
