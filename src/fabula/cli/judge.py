"""`fabula judge`: a rubric put to language models, and how far to trust what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group, settings_options
from fabula.cli.judging import print_end
from fabula.cli.options import check_outputs, rows_option, yes_option
from fabula.cli.printing import JsonRows, print_tables
from fabula.cli.progress import progress_bar
from fabula.cli.reading import read_stories
from fabula.jobs.judging import CalibrateSettings, StoriesSettings
from fabula.jobs.reading import Reading
from fabula.jobs.tables import TableFiles

if TYPE_CHECKING:
    from fabula.jobs.judging import Judged
    from fabula.measures.agreement import Panel
    from fabula.presentation.sheet import Block

__all__ = ["judge"]


class _DefaultGroup(Group):
    """`fabula judge STORIES` runs `stories`; `fabula judge calibrate DIR` its own command."""

    default = "stories"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_DefaultGroup, short_help="Ask language models the questions of a rubric.")
def judge() -> None:
    """Put a rubric to language models: `fabula judge story.txt --rubric ttcw --model local`.

    `fabula judge STORIES...` is short for `fabula judge stories STORIES...`.
    """


@judge.command(short_help="Judge stories by a rubric.")
@click.argument("stories", nargs=-1, required=True, metavar="STORIES...")
@settings_options(StoriesSettings)
@click.option("--html", type=click.Path(path_type=Path), help="Write a page to read here.")
@settings_options(TableFiles, "files")
@yes_option
@rows_option
@settings_options(Reading, "how_to_read")
def stories(
    stories: tuple[str, ...],
    settings: StoriesSettings,
    how_to_read: Reading,
    html: Path | None,
    files: TableFiles,
    yes: bool,
    as_json: str | None,
) -> None:
    """Put a rubric to language models, story by story.

    An answer without a verdict (a refusal, a cut or withheld answer, "yes and no") is missing with
    its reason, never a No. Beside each verdict stands the judge's measured agreement with experts.
    """
    from fabula.jobs.judging import judge_stories
    from fabula.store import measurement_row

    if html is not None:
        from fabula.presentation.page_file import check_page_path

        check_page_path(html)
        if settings.pairwise:
            raise click.UsageError("--html cannot be used with --pairwise")
    check_outputs([html, files.csv, files.latex], [])
    files.check_files()
    documents = read_stories(stories, how_to_read)
    with progress_bar("asking", None) as bar:
        judged = judge_stories(documents, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    tables = _pair_tables(judged) if settings.pairwise else _tables(judged)
    written = files.write(tables)
    if as_json:
        with JsonRows(as_json) as rows:
            for one in judged.measurements:
                rows.print(measurement_row(one))
    else:
        print_tables(tables)
    if html is not None:
        judged.save_page(html)
    print_end(judged.spent, [settings.measurements_path, html, *written], quiet=bool(as_json))


def _tables(judged: Judged) -> list[Block]:
    from fabula.presentation.judging_tables import judge_tables

    return judge_tables(judged.summaries(), judged.measurements, judged.plan.rubric)


@judge.command(short_help="Measure how far a judge agrees with experts.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@settings_options(CalibrateSettings)
@settings_options(TableFiles, "files")
@yes_option
@rows_option
def calibrate(
    folder: Path, settings: CalibrateSettings, files: TableFiles, yes: bool, as_json: str | None
) -> None:
    """Measure how far a judge agrees with experts, on the stories published with TTCW.

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval. It holds the texts
    of 36 of the 48 stories, so a judge is measured against the experts' majority on 36 x 14 = 504
    verdicts, beside what experts reach among themselves on the same 36. The result is kept by
    model, wording, style and mode, and stands beside every later verdict of that judge.
    """
    from dataclasses import asdict

    from fabula.jobs.judging import ask_judges, plan_of
    from fabula.judging.calibrate import calibrate as measure
    from fabula.judging.calibrate import released_folder
    from fabula.judging.people import panel_on
    from fabula.judging.plan import is_identified
    from fabula.judging.trust import TrustBook
    from fabula.measures.agreement import expert_correlation, panel_agreement, read_experts
    from fabula.presentation.judging_tables import calibration_tables

    check_outputs([files.csv, files.latex], [])
    files.check_files()
    documents, experts = released_folder(folder)
    plan = plan_of(settings.judging)
    # Before anything is paid for.
    panel = read_experts(experts, plan.rubric)
    book = TrustBook()
    with progress_bar("asking", None) as bar:
        judged = ask_judges(
            documents, plan, settings, progress=bar, confirm=confirm_on(bar, yes=yes)
        )
    results = measure(judged.measurements, panel, plan, book)
    here = panel_on(panel, {one.document_id for one in judged.measurements})
    tables = calibration_tables(
        results,
        panel_agreement(here, plan.rubric, "item", seed=plan.seed),
        panel_agreement(panel, plan.rubric, "item", seed=plan.seed),
        expert_correlation(panel, plan.rubric),
        plan.rubric,
        (_n_documents(here), _n_documents(panel)),
    )
    written = files.write(tables)
    if as_json:
        with JsonRows(as_json) as rows:
            for _, trusts in results:
                for trust in trusts:
                    rows.print(asdict(trust))
    else:
        print_tables(tables)
    is_kept = any(is_identified(trust.model) for _, trusts in results for trust in trusts)
    print_end(judged.spent, [book.path if is_kept else None, *written], quiet=bool(as_json))


def _n_documents(panel: Panel) -> int:
    return len({document for document, _ in panel.subjects})


def _pair_tables(judged: Judged) -> list[Block]:
    from fabula.judging.pairwise import summarise_pairs
    from fabula.presentation.judging_tables import pair_table

    parts: list[Block] = []
    for rater in dict.fromkeys(one.rater for one in judged.measurements):
        mine = [one for one in judged.measurements if one.rater == rater]
        parts += pair_table(summarise_pairs(mine), mine[0].signature)
    return parts
