"""`fabula report`: every instrument on the same texts, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.judging import agree_to_cost
from fabula.cli.options import (
    check_outputs,
    further_model_options,
    json_option,
    model_terms,
    review_options,
    seed_option,
    text_options,
    texts_argument,
)
from fabula.cli.progress import Bar, progress_bar
from fabula.cli.reading import read_stories

if TYPE_CHECKING:
    from fabula.review import GroupTest, Review, ReviewPlan

__all__ = ["report"]

_PARTS = ("originality", "fluency", "profile", "verdicts", "feedback")


@click.command()
@texts_argument("texts")
@review_options
@click.option(
    "--match", type=click.Choice(["verbatim", "near"]), default="verbatim", show_default=True,
    help="near: also what stands in the reference in other words.",
)  # fmt: skip
@click.option(
    "--rubric", default="ttcw", show_default=True, metavar="NAME|FILE",
    help="What the models judge by (with --model).",
)  # fmt: skip
@click.option(
    "--style", type=click.Choice(["reason-first", "verdict-first"]), default="reason-first",
    show_default=True, help="Reasons before the verdict, or after it (quicker and cheaper).",
)  # fmt: skip
@click.option(
    "--readings", type=click.IntRange(1, 50), default=5, show_default=True,
    help="How often each model is asked for feedback.",
)  # fmt: skip
@click.option(
    "--without", multiple=True, type=click.Choice(_PARTS), help="Leave an instrument out."
)
@click.option(
    "--by", metavar="FIELD", help="Compare the texts in groups by this field: author, model, ..."
)
@click.option(
    "--groups", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Further reference groups, as `fabula groups measure` writes them.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="PAGE",
    help="The page.  [default: report.html]",
)  # fmt: skip
@click.option(
    "--latex", type=click.Path(path_type=Path), metavar="FILE", help="Write the tables here."
)
@further_model_options
@seed_option
@text_options
@json_option
def report(
    texts: tuple[str, ...],
    out: Path | None,
    latex: Path | None,
    by: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show on one page all that can be said of TEXTS: what is borrowed, how they read, and more.

    Runs every instrument that can run, and says what was left out and how to have it. With --model
    a model judges by the Torrance tests and says what to mend; what it answers is kept beside the
    page, so that an interrupted run does not pay twice. Several texts are set side by side.
    """
    from fabula.report.page_file import check_page_path
    from fabula.report.review_tables import check_latex_path, latex_tables, review_tables
    from fabula.review import Reviewer, compare_groups
    from fabula.review.comparing import group_of
    from fabula.store import dump_json, write_whole

    page = out if out is not None or as_json else Path("report.html")
    check_outputs([page, latex], [Path(text) for text in texts])
    if page is not None:
        check_page_path(page)
    if latex is not None:
        check_latex_path(latex)
    documents = read_stories(texts, options)
    if by is not None:
        for document in documents:
            group_of(document, by)
    keep = None if page is None else page.with_suffix(".answers")
    if keep is not None and keep.is_file():
        raise click.UsageError(
            f"{keep}: answers are kept in a folder of this name; name another --out"
        )
    plan = _plan(options, keep)
    _check_price(plan)
    with progress_bar("measuring", None) as bar, Reviewer(plan) as reviewer:
        review = reviewer.run(documents, _progress(bar, yes=options["yes"]))
    tests = [] if by is None else compare_groups(review, by, seed=options["seed"])
    if page is not None:
        from fabula.report.review_page import write_review_page

        write_review_page(page, review, by=by, tests=tests)
    if latex is not None:
        write_whole(latex, latex_tables(review, tests).encode(errors="replace"))
    if as_json:
        content = _json(review, by, tests)
        click.echo(dump_json(content).encode(errors="replace").decode())
    else:
        click.echo(review_tables(review, tests), nl=False)
    for path in (page, latex):
        if path is not None:
            click.echo(f"written: {path}", err=as_json)
    if any(entry.is_failure for entry in review.left_out):
        # For scripts: something that was asked for is lacking.
        click.get_current_context().exit(1)


def _plan(options: dict[str, Any], keep: Path | None) -> ReviewPlan:
    from fabula.models.cost import parse_price
    from fabula.review import ReviewPlan
    from fabula.workers import default_jobs

    return ReviewPlan(
        references=options["references"],
        levels=options["levels"],
        near=options["match"] == "near",
        exclude_copies=options["exclude"] == "auto",
        fluency_model=options["fluency_model"],
        models=options["models"],
        rubric=options["rubric"],
        style=options["style"],
        n_readings=options["readings"],
        without=frozenset(options["without"]),
        grammar=options["grammar"],
        groups=options["groups"],
        seed=options["seed"],
        n_jobs=options["jobs"] or default_jobs(),
        keep=keep,
        options=model_terms(options),
        price=parse_price(options["price"]) if options["price"] else None,
        max_cost=options["max_cost"],
    )


def _progress(bar: Bar, *, yes: bool) -> Any:
    from fabula.review import Declined, Progress

    def begin(stage: str, total: int | None) -> None:
        bar.begin(stage, total or 0)

    def agree(model: str, estimate: Any) -> None:
        try:
            agree_to_cost(model, estimate, yes=yes, bar=bar)
        except (click.Abort, click.UsageError) as error:
            # What the other instruments found is not lost for it.
            raise Declined(model) from error

    return Progress(begin=begin, advance=bar.advance, agree=agree)


def _check_price(plan: ReviewPlan) -> None:
    """Raise `InputError` for a limit without a price before anything is measured."""
    from fabula.models.cost import Budget, Purse, known_price

    if plan.asks("verdicts") or plan.asks("feedback"):
        for spec in plan.models:
            Budget(plan.price or known_price(spec), Purse(plan.max_cost))


def _json(review: Review, by: str | None, tests: list[GroupTest]) -> dict[str, Any]:
    from fabula.report.methods import bibtex_of, methods_of
    from fabula.report.review_groups import was_tested
    from fabula.report.review_tables import review_json

    tested = by if was_tested(tests) else None
    content = review_json(review, tests)
    return content | {"methods": methods_of(review, tested), "bibtex": bibtex_of(review)}
