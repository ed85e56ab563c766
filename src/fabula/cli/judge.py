"""`fabula judge`: a rubric put to language models, and how far to trust what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.options import json_option, model_options, model_terms, text_options
from fabula.cli.progress import Bar, progress_bar
from fabula.cli.reading import read_stories

if TYPE_CHECKING:
    from fabula.judging.cost import Estimate
    from fabula.judging.run import JudgePlan
    from fabula.judging.session import Session, Spent
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


def _judging_options(command: Any) -> Any:
    """How to ask; the same for stories and for calibration."""
    options = (
        click.option(
            "--rubric", "rubric_name", default="ttcw", show_default=True, metavar="NAME|FILE",
            help="A rubric that ships (see `fabula rubric list`), or a .toml file.",
        ),
        click.option(
            "--items", metavar="ID,ID", help="Ask only these items of the rubric, with commas."
        ),
        click.option(
            "--style", type=click.Choice(["reason-first", "verdict-first"]),
            default="reason-first", show_default=True,
            help="Reasons before the verdict, or after it (quicker and cheaper).",
        ),
        click.option(
            "--template", "template_file", type=click.Path(path_type=Path), metavar="FILE",
            help="A prompt with [STORY], [BACKGROUND], [QUESTION] in place of ours, such as the "
            "authors' with_background.txt.",
        ),
        click.option(
            "--samples", type=click.IntRange(1, 1000), default=1, show_default=True,
            help="Ask this often; the value is the share of Yes.",
        ),
        click.option(
            "--temperature", type=click.FloatRange(0, 2),
            help="[default: 0 for one sample, 1 for more]",
        ),
        click.option(
            "--max-tokens", type=click.IntRange(min=1), help="Longest answer.  [default: 1024; 200 "
            "for verdict-first]",
        ),
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True,
            help="Seed of the order of items, of sampling, and of intervals.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@judge.command()
@click.argument("stories", nargs=-1, required=True, metavar="STORIES...")
@_judging_options
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
        from fabula.report.originality_page import check_page_path

        check_page_path(html)
    if pairwise and (retest or html or options["samples"] > 1 or options["template_file"]):
        raise click.UsageError("--pairwise goes without --retest, --html, --samples, --template")
    if group and not pairwise:
        raise click.UsageError("--group goes with --pairwise")
    documents = read_stories(stories, options)
    plan = _plan(options, pairwise=pairwise)
    session = _session(
        options, documents, plan, out, restart,
        pairs=pairs_of(documents, group) if pairwise else None, n_retest=retest,
    )  # fmt: skip
    if session.pairs is not None and not session.pairs:
        raise click.UsageError("there is no pair of stories to compare")
    measurements, spent = _run(session, yes=options["yes"])
    if as_json:
        _print_json(measurements)
    elif pairwise:
        _print_pairs(measurements)
    else:
        _print_judges(measurements, documents, plan)
    if html is not None:
        _write_page(html, measurements, documents, plan)
    _print_end(spent, [out / "measurements.jsonl", html], quiet=as_json)


@judge.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_judging_options
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
    """Measure how far a judge agrees with experts, on the verdicts published with TTCW.

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval. What is measured is
    kept by model, wording and style, and stands beside every later verdict of that judge.
    """
    from dataclasses import asdict

    from fabula.judging.calibrate import calibrate as measure
    from fabula.judging.calibrate import released_folder
    from fabula.judging.trust import TrustBook
    from fabula.store import dump_json

    documents, experts = released_folder(folder)
    plan = _plan(options)
    book = TrustBook()
    measurements, spent = _run(_session(options, documents, plan, out, restart), yes=options["yes"])
    results = measure(measurements, experts, plan, book)
    if as_json:
        for _, trusts in results:
            for trust in trusts:
                click.echo(dump_json(asdict(trust)))
    else:
        from fabula.measures.agreement import expert_correlation, panel_agreement, read_experts
        from fabula.report.judging_tables import agreement_tables

        panel = read_experts(experts, plan.rubric)
        rows = panel_agreement(panel, plan.rubric, "item", seed=plan.seed)
        agreements = [agreement for agreement, _ in results]
        click.echo(
            agreement_tables(agreements, rows, expert_correlation(panel, plan.rubric), plan.rubric)
        )
    _print_end(spent, [book.path], quiet=as_json)


def _plan(options: dict[str, Any], *, pairwise: bool = False) -> JudgePlan:
    from fabula.errors import InputError
    from fabula.judging import JudgePlan, Template, read_template
    from fabula.rubrics import Condition, load_rubric

    rubric = load_rubric(options["rubric_name"])
    only = tuple(name.strip() for name in (options["items"] or "").split(",") if name.strip())
    known = [item.id for item in rubric.items]
    for name in only:
        if name not in known:
            raise InputError(f"--items {name}: {rubric.id} has {', '.join(known)}")
    asked = [item for item in rubric.items if not only or item.id in only]
    for item in asked:
        lacking = Condition.parse(item.show_if).names - set(only) if only and item.show_if else ()
        if lacking:
            raise InputError(
                f"--items {item.id}: is asked only after {', '.join(sorted(lacking))}; add it"
            )
        if item.scale.kind == "rank" and not pairwise:
            raise InputError(
                f"{rubric.id}: {item.id} ranks the stories of a group, and a model is shown one "
                f"story at a time; leave it out with --items, or compare with --pairwise"
            )
    style, samples = options["style"], options["samples"]
    file = options["template_file"]
    default = 0.0 if samples == 1 else 1.0
    return JudgePlan(
        rubric=rubric,
        template=read_template(file, style) if file else Template(style),
        n_samples=samples,
        temperature=default if options["temperature"] is None else options["temperature"],
        max_tokens=options["max_tokens"] or (1024 if style == "reason-first" else 200),
        seed=options["seed"],
        only=only,
        kind="pairs" if pairwise else "stories",
    )


def _session(
    options: dict[str, Any],
    documents: Any,
    plan: JudgePlan,
    out: Path,
    restart: bool,
    **more: Any,
) -> Session:
    from fabula.judging.cost import parse_price
    from fabula.judging.session import Session

    return Session(
        documents,
        options["models"],
        plan,
        out,
        options=model_terms(options),
        price=parse_price(options["price"]) if options["price"] else None,
        max_cost=options["max_cost"],
        restart=restart,
        **more,
    )


def _run(session: Session, *, yes: bool) -> tuple[list[Measurement], list[Spent]]:
    """Judge under a progress bar, after the user has agreed to the cost."""
    from fabula.judging.session import run_session

    with progress_bar("asking", None) as bar:

        def begin(model: str, n_calls: int) -> None:
            bar.begin(model, n_calls)

        return run_session(
            session,
            agree=lambda model, estimate: _agree(model, estimate, yes=yes, bar=bar),
            begin=begin,
            meter=bar.advance,
        )


def _agree(model: str, estimate: Estimate, *, yes: bool, bar: Bar) -> None:
    """Say what is to come; ask first where it costs money. Raises `click.UsageError`."""
    if estimate.cost == 0 or not estimate.n_calls:
        return
    cost = "price unknown, give it with --price IN/OUT"
    if estimate.cost is not None:
        cost = f"about {estimate.cost:.2f} dollars"
    usage = estimate.usage
    with bar.paused():
        click.echo(
            f"{model}: {estimate.n_calls:,} calls, about {usage.n_input:,} tokens to read "
            f"({usage.n_cached:,} of them shared prefixes), {usage.n_output:,} to write, {cost}",
            err=True,
        )
        if yes or (estimate.cost is None and model.startswith(("http://", "https://"))):
            return
        if not sys.stdin.isatty():
            raise click.UsageError("nobody is here to agree to the cost; add --yes")
        click.confirm("go on?", abort=True, err=True)


def _print_json(measurements: list[Measurement]) -> None:
    from fabula.store import dump_json, measurement_row

    for one in measurements:
        # A model may write half of a surrogate pair, which no terminal can show.
        click.echo(dump_json(measurement_row(one)).encode(errors="replace").decode())


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


def _print_end(spent: list[Spent], written: list[Path | None], *, quiet: bool) -> None:
    from fabula.report.judging_tables import spent_lines

    for line in spent_lines(spent):
        click.echo(line, err=quiet)
    for path in written:
        if path is not None:
            click.echo(f"written: {path}", err=quiet)
