"""`fabula feedback rate` and `label`: what feedback is worth, and what it is about, by a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.feedback_reading import feedback_rows, people_means
from fabula.cli.judging import (
    asking_options,
    plan_of,
    print_end,
    print_measurements,
    run_shown,
    session_of,
)
from fabula.cli.options import check_outputs, json_option, model_options

if TYPE_CHECKING:
    from fabula.judging.plan import JudgePlan
    from fabula.types import Document, Measurement, Rubric

__all__ = ["label", "rate"]

F = TypeVar("F", bound=Callable[..., Any])

_BY = ("model", "method", "prompt", "shots")


def _rater_options(rubric: str, out: str) -> Callable[[F], F]:
    """How feedback is put to a rater."""

    def add(command: F) -> F:
        options = (
            click.argument("files", metavar="FEEDBACK...", nargs=-1, required=True,
                type=click.Path(path_type=Path)),
            click.option(
                "--rubric", "rubric_name", default=rubric, show_default=True, metavar="NAME|FILE",
                help="The questions; a .toml file of the same items may word them otherwise.",
            ),
            click.option(
                "--out", type=click.Path(path_type=Path), default=Path(out), show_default=True,
                help="Folder of the run: every answer is kept there; an interrupted run goes on.",
            ),
            click.option(
                "--restart", is_flag=True, help="Ask everything anew, whatever --out holds."
            ),
        )  # fmt: skip
        command = asking_options(model_options(json_option(command)))
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command()
@_rater_options("feedback", "rated")
@click.option(
    "--people", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="People's answers on the same feedback (measurements, or the released "
    "human_ratings.jsonl): shows how far the rater agrees with them.",
)  # fmt: skip
def rate(
    files: tuple[Path, ...],
    people: tuple[Path, ...],
    out: Path,
    restart: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Let a model answer the seven questions of the human form about each piece of FEEDBACK.

    FEEDBACK is what `feedback elicit` wrote. The last question, whether following it would undo the
    planted change, is asked with the original and the recorded change in view. A model is not
    people: where --people has answers too, its agreement with them stands beside its means.
    Source: Rashkin et al. 2025, section 6 and appendix D.
    """
    documents, plan = _asked(files, options, with_story=True)
    theirs = people_means(people)
    session = session_of(options, documents, plan, out, restart)
    measurements, spent = run_shown(session, yes=options["yes"])
    if as_json:
        print_measurements(measurements)
    else:
        _print_ratings(measurements, documents, plan.rubric, theirs, options["seed"])
    print_end(spent, [out / "measurements.jsonl"], quiet=as_json)


@click.command()
@_rater_options("feedback_category", "labelled")
@click.option(
    "--gold", type=click.Path(path_type=Path), metavar="FILE",
    help="Labels of people (.jsonl: id, labels), to measure how often the model is right.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw shares by corruption (.svg, .pdf, .png).",
)  # fmt: skip
def label(
    files: tuple[Path, ...],
    gold: Path | None,
    plot: Path | None,
    out: Path,
    restart: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Let a model say what each piece of FEEDBACK is about: one of nine categories.

    Rows of people need `id`, `feedback`, and `method` for what was done to their story; without a
    `model` they count as people's. How often the model is right is measured on --gold, and not
    known without. Source: Rashkin et al. 2025, appendix G, Figures 5 and 6.
    """
    from fabula.measures.categories import category_shares, label_accuracy, read_gold
    from fabula.report.plots import check_plot_path

    if plot is not None:
        check_plot_path(plot)
    check_outputs([plot], files)
    documents, plan = _asked(files, options, with_story=False)
    categories = plan.rubric.items[0].scale.options
    right = read_gold(gold, categories) if gold is not None else None
    measurements, spent = run_shown(
        session_of(options, documents, plan, out, restart), yes=options["yes"]
    )
    written: list[Path | None] = [out / "measurements.jsonl", plot]
    if as_json:
        print_measurements(measurements)
    known = {document.id: document.meta for document in documents}
    for rater in dict.fromkeys(one.rater for one in measurements):
        mine = [one for one in measurements if one.rater == rater]
        labels = {one.document_id: None if one.value is None else str(one.value) for one in mine}
        shares = category_shares(
            labels,
            categories,
            lambda id_: (
                str(known[id_].get("model", "people")), str(known[id_].get("method", "any story"))
            ),
        )  # fmt: skip
        accuracy = right and label_accuracy(
            labels, right, lambda id_: str(known[id_].get("story_id", id_)), seed=options["seed"],
            signature=mine[0].signature,
        )  # fmt: skip
        if not as_json:
            from fabula.report.rating_tables import category_table

            click.echo(category_table(shares, categories, accuracy or None, [mine[0].signature]))
        if plot is not None and rater == measurements[0].rater:
            from fabula.report.rating_tables import save_categories

            save_categories(shares, categories, plot)
    print_end(spent, written, quiet=as_json)


def _asked(
    files: tuple[Path, ...], options: dict[str, Any], *, with_story: bool
) -> tuple[list[Document], JudgePlan]:
    from fabula.errors import InputError
    from fabula.judging.feedback import feedback_documents, feedback_template

    documents: list[Document] = []
    for path in files:
        rows = feedback_rows([path])
        documents += feedback_documents(rows, str(path), with_story=with_story)
    if not documents:
        raise InputError(f"{files[0]}: holds no feedback")
    options |= {"items": None, "template_file": None}
    template = feedback_template(options["style"], with_story=with_story)
    return documents, plan_of(options, template=template)


def _print_ratings(
    measurements: list[Measurement],
    documents: list[Document],
    rubric: Rubric,
    people: Any,
    seed: int,
) -> None:
    from fabula.judging import MISSING
    from fabula.measures.ratings import group_means, mean_scores, rater_agreement, score_table
    from fabula.report.rating_tables import means_table, people_table, rubric_items
    from fabula.report.tables import render

    known = {document.id: document.meta for document in documents}
    items = rubric_items(rubric)
    for rater in dict.fromkeys(one.rater for one in measurements):
        mine = [one for one in measurements if one.rater == rater]
        means = mean_scores(score_table(mine, rubric))
        parts: list[Any] = [f"answers of {rater}, which is not people: mean, standard error"]
        for name in _BY:
            by = {id_: str(meta.get(name, "any")) for id_, meta in known.items()}
            groups = group_means(means, by.get)
            if len(groups) > 1 or name == "model":
                parts += [means_table(name, groups, items), ""]
        agreement = {
            item: rater_agreement(
                means[item], people[item], lambda id_: str(known[id_].get("story_id", id_)),
                seed=seed, signature=mine[0].signature,
            )
            for item in items
            if people.get(item)
        }  # fmt: skip
        parts.append(
            people_table(rater, agreement)
            if agreement
            else "no answers of people are given (--people): how far to believe it is not known"
        )
        missing = Counter(one.missing_reason for one in mine if one.missing_reason)
        n_spared = missing.pop("not_asked", 0)
        parts += [
            f"no answer: {n:,}, {MISSING[str(reason)]}" for reason, n in sorted(missing.items())
        ]
        if n_spared:
            parts.append(f"not asked, since earlier answers rule it out: {n_spared:,}")
        click.echo(render(*parts, mine[0].signature), nl=False)
