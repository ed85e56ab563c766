"""`fabula judge`: a rubric put to language models, and how far to trust what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.judging import (
    judging_options,
    plan_of,
    print_end,
    print_measurements,
    run_shown,
    session_of,
)
from fabula.cli.options import json_option, model_options, text_options
from fabula.cli.reading import read_stories

if TYPE_CHECKING:
    from fabula.judging.plan import JudgePlan
    from fabula.measures.agreement import Panel
    from fabula.types import Measurement

__all__ = ["judge"]


class _DefaultGroup(click.Group):
    """`fabula judge STORIES` runs `stories`; `fabula judge calibrate DIR` its own command."""

    default = "stories"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_DefaultGroup)
def judge() -> None:
    """Put a rubric to language models: `fabula judge story.txt --rubric ttcw --model local`.

    `fabula judge STORIES...` is short for `fabula judge stories STORIES...`.
    """


@judge.command()
@click.argument("stories", nargs=-1, required=True, metavar="STORIES...")
@judging_options
@model_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("judged"),
    show_default=True,
    help="Folder of the run: every answer is kept there, and an interrupted run goes on.",
)
@click.option("--html", type=click.Path(path_type=Path), help="Write a page to read here.")
@click.option(
    "--retest",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Judge N of the stories a second time under another id, to see how often verdicts flip.",
)
@click.option("--pairwise", is_flag=True,
    help="Ask which of two stories passes more convincingly, in both orders; without --html, "
    "--retest, --samples, --template.",
)  # fmt: skip
@click.option(
    "--group", metavar="FIELD", help="Pairs only of stories that share this field (pairwise)."
)
@click.option("--restart", is_flag=True, help="Ask everything anew, whatever --out holds.")
@json_option
@text_options
def stories(
    stories: tuple[str, ...],
    out: Path,
    html: Path | None,
    retest: int,
    pairwise: bool,
    group: str | None,
    restart: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Put a rubric to language models, story by story.

    An answer without a verdict (a refusal, a cut or withheld answer, "yes and no") is missing with
    its reason, never a No. Beside each verdict stands the judge's measured agreement with experts.
    """
    from fabula.judging.pairwise import pairs_of

    if html is not None:
        from fabula.report.page_file import check_page_path

        check_page_path(html)
    if pairwise and (retest or html or options["samples"] > 1 or options["template_file"]):
        raise click.UsageError("--pairwise goes without --retest, --html, --samples, --template")
    if group and not pairwise:
        raise click.UsageError("--group goes with --pairwise")
    documents = read_stories(stories, options)
    plan = plan_of(options, pairwise=pairwise)
    session = session_of(
        options, documents, plan, out, restart,
        pairs=pairs_of(documents, group) if pairwise else None, n_retest=retest,
    )  # fmt: skip
    if session.pairs is not None and not session.pairs:
        raise click.UsageError("there is no pair of stories to compare")
    measurements, spent = run_shown(session, yes=options["yes"])
    if as_json:
        print_measurements(measurements)
    elif pairwise:
        _print_pairs(measurements)
    else:
        _print_judges(measurements, documents, plan)
    if html is not None:
        _write_page(html, measurements, documents, plan)
    print_end(spent, [out / "measurements.jsonl", html], quiet=as_json)


@judge.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@judging_options
@model_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("calibrated"),
    show_default=True,
    help="Folder of the run.",
)
@click.option("--restart", is_flag=True, help="Ask everything anew, whatever --out holds.")
@json_option
def calibrate(folder: Path, out: Path, restart: bool, as_json: bool, **options: Any) -> None:
    """Measure how far a judge agrees with experts, on the stories published with TTCW.

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval. It holds the texts
    of 36 of the 48 stories, so a judge is measured against the experts' majority on 36 x 14 = 504
    verdicts, beside what experts reach among themselves on the same 36. What is measured is kept
    by model, wording, style and mode, and stands beside every later verdict of that judge.
    """
    from dataclasses import asdict

    from fabula.judging.calibrate import calibrate as measure
    from fabula.judging.calibrate import released_folder
    from fabula.judging.plan import is_identified
    from fabula.judging.trust import TrustBook
    from fabula.measures.agreement import read_experts
    from fabula.store import dump_json

    documents, experts = released_folder(folder)
    plan = plan_of(options)
    # Before anything is paid for.
    panel = read_experts(experts, plan.rubric)
    book = TrustBook()
    measurements, spent = run_shown(
        session_of(options, documents, plan, out, restart), yes=options["yes"]
    )
    results = measure(measurements, panel, plan, book)
    if as_json:
        for _, trusts in results:
            for trust in trusts:
                click.echo(dump_json(asdict(trust)))
    else:
        from fabula.judging.people import panel_on
        from fabula.measures.agreement import expert_correlation, panel_agreement
        from fabula.report.judging_tables import calibration_tables

        here = panel_on(panel, {one.document_id for one in measurements})
        click.echo(
            calibration_tables(
                results,
                panel_agreement(here, plan.rubric, "item", seed=plan.seed),
                panel_agreement(panel, plan.rubric, "item", seed=plan.seed),
                expert_correlation(panel, plan.rubric),
                plan.rubric,
                (_n_documents(here), _n_documents(panel)),
            )
        )
    is_kept = any(is_identified(trust.model) for _, trusts in results for trust in trusts)
    print_end(spent, [book.path if is_kept else None], quiet=as_json)


def _n_documents(panel: Panel) -> int:
    return len({document for document, _ in panel.subjects})


def _print_judges(measurements: list[Measurement], documents: Any, plan: JudgePlan) -> None:
    from fabula.judging.summary import summarise
    from fabula.judging.trust import TrustBook
    from fabula.report.judging_tables import judge_tables

    summaries = summarise(measurements, documents, plan.rubric, TrustBook())
    click.echo(judge_tables(summaries, measurements, plan.rubric), nl=False)


def _print_pairs(measurements: list[Measurement]) -> None:
    from fabula.judging.pairwise import summarise_pairs
    from fabula.report.judging_tables import pair_table

    for rater in dict.fromkeys(one.rater for one in measurements):
        mine = [one for one in measurements if one.rater == rater]
        click.echo(pair_table(summarise_pairs(mine), mine[0].signature))


def _write_page(
    html: Path, measurements: list[Measurement], documents: Any, plan: JudgePlan
) -> None:
    from fabula.judging.summary import summarise
    from fabula.judging.trust import TrustBook
    from fabula.report.judging_page import write_judging_page

    summaries = summarise(measurements, documents, plan.rubric, TrustBook())
    write_judging_page(html, summaries, measurements, documents, plan.rubric)
