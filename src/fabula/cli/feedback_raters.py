"""`fabula feedback rate` and `label`: what feedback is worth, and what it is about, by a model."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Option, settings_options
from fabula.cli.feedback_reading import check_overlap, feedback_rows, people_means
from fabula.cli.judging import print_end, print_json
from fabula.cli.options import check_outputs, json_option, yes_option
from fabula.cli.printing import print_tables
from fabula.cli.progress import progress_bar
from fabula.jobs.judging import LabelSettings, RateSettings

if TYPE_CHECKING:
    from fabula.jobs.judging import Judged
    from fabula.judging.plan import JudgePlan
    from fabula.measures.categories import CategoryShares
    from fabula.measures.ratings import RaterAgreement
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Estimate, Measurement, Rubric

__all__ = ["label", "rate"]

_BY = ("model", "method", "prompt", "shots")


_feedback_argument = click.argument(
    "files", metavar="FEEDBACK...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.command(cls=Command, short_help="Have a model rate each piece of feedback.")
@_feedback_argument
@settings_options(RateSettings)
@click.option(
    "--people", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="People's answers on the same feedback (measurements, or the released "
    "human_ratings.jsonl): shows how far the rater agrees with them.",
)  # fmt: skip
@yes_option
@json_option
def rate(
    files: tuple[Path, ...],
    people: tuple[Path, ...],
    settings: RateSettings,
    yes: bool,
    as_json: bool,
) -> None:
    """Let a model answer the seven questions of the human form about each piece of FEEDBACK.

    FEEDBACK is what `feedback elicit` wrote. The last question, whether following it would undo the
    planted change, is asked with the original and the recorded change in view. A model is not
    people: where --people has answers too, its agreement with them stands beside its means.
    Source: Rashkin et al. 2025, section 6 and appendix D.
    """
    from fabula.measures.ratings import agreements_with_people

    documents, plan = _asked(files, settings, "feedback", with_story=True)
    theirs = people_means(people, plan.rubric)
    for answered in filter(None, theirs.values()):
        check_overlap([document.id for document in documents], answered, "--people")
    judged = _ask(documents, plan, settings, yes=yes)
    measurements = judged.measurements
    stories = {one.id: str(one.meta.get("story_id", one.id)) for one in documents}
    found = agreements_with_people(
        measurements, theirs, plan.rubric, stories.__getitem__, seed=settings.asking.seed
    )
    if as_json:
        agreement = {
            rater: {item: asdict(one) for item, one in by_item.items()}
            for rater, by_item in found.items()
        }
        print_json(measurements, agreement_with_people=agreement)
    else:
        _print_ratings(measurements, documents, plan.rubric, found, settings.asking.seed)
    print_end(judged.spent, [settings.out / "measurements.jsonl"], quiet=as_json)


@click.command(cls=Command, short_help="Have a model label what each piece is about.")
@_feedback_argument
@settings_options(LabelSettings)
@click.option(
    "--labels", "gold", cls=Option, setting="labels", formerly=("gold",),
    type=click.Path(path_type=Path), metavar="FILE",
    help="Labels of people (.jsonl: id, labels), to measure how often the model is right; an id "
    "is that of the feedback and its model, as in s1_swap_spot_0_MODEL.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw shares by corruption (.svg, .pdf, .png).",
)  # fmt: skip
@yes_option
@json_option
def label(
    files: tuple[Path, ...],
    gold: Path | None,
    plot: Path | None,
    settings: LabelSettings,
    yes: bool,
    as_json: bool,
) -> None:
    """Let a model say what each piece of FEEDBACK is about: one of nine categories.

    What `study export` wrote is taken as it is: of it, people's own feedback. Other rows of people
    need `id`, `feedback`, and `method` for what was done to their story; without a `model` they
    count as people's. How often the model is right is measured on --labels, and not
    known without. Source: Rashkin et al. 2025, appendix G, Figures 5 and 6.
    """
    from fabula.measures.categories import read_gold
    from fabula.presentation.plots import check_plot_path

    if plot is not None:
        check_plot_path(plot)
    check_outputs([plot], files)
    documents, plan = _asked(files, settings, "feedback_category", with_story=False)
    categories = plan.rubric.items[0].scale.options
    right = read_gold(gold, categories) if gold is not None else {}
    check_overlap([document.id for document in documents], right, "--labels")
    judged = _ask(documents, plan, settings, yes=yes)
    measurements = judged.measurements
    found = _labelled(measurements, documents, categories, right, settings.asking.seed)
    if as_json:
        print_json(measurements, labels={
            rater: {
                "shares": [asdict(one) for one in shares],
                "accuracy": accuracy and asdict(accuracy),
            }
            for rater, (shares, accuracy) in found.items()
        })  # fmt: skip
    for k, (rater, (shares, accuracy)) in enumerate(found.items()):
        if not as_json:
            from fabula.presentation.rating_tables import category_tables

            signature = next(one.signature for one in measurements if one.rater == rater)
            print_tables(category_tables(shares, categories, accuracy, signature))
        if plot is not None and k == 0:
            from fabula.presentation.rating_tables import save_categories

            save_categories(shares, categories, plot)
    print_end(judged.spent, [settings.out / "measurements.jsonl", plot], quiet=as_json)


def _labelled(
    measurements: list[Measurement],
    documents: list[Document],
    categories: tuple[str, ...],
    gold: dict[str, frozenset[str]],
    seed: int,
) -> dict[str, tuple[list[CategoryShares], Estimate | None]]:
    """By labeller: shares by writer and corruption, and how often it is right on the gold set."""
    from fabula.measures.categories import category_shares, label_accuracy

    known = {document.id: document.meta for document in documents}
    found = {}
    for rater in dict.fromkeys(one.rater for one in measurements):
        mine = [one for one in measurements if one.rater == rater]
        labels = {one.document_id: None if one.value is None else str(one.value) for one in mine}
        groups = {
            id_: (str(meta.get("model", "people")), str(meta.get("method", "any story")))
            for id_, meta in known.items()
        }
        stories = {id_: str(meta.get("story_id", id_)) for id_, meta in known.items()}
        shares = category_shares(
            labels, categories, groups.__getitem__, stories.__getitem__,
            seed=seed, signature=mine[0].signature,
        )  # fmt: skip
        accuracy = label_accuracy(
            labels, gold, stories.__getitem__, seed=seed, signature=mine[0].signature
        )
        found[rater] = shares, accuracy if gold else None
    return found


def _asked(
    files: tuple[Path, ...], settings: RateSettings, shipped: str, *, with_story: bool
) -> tuple[list[Document], JudgePlan]:
    from fabula.errors import InputError
    from fabula.jobs.judging import plan_of
    from fabula.judging.feedback import feedback_template
    from fabula.rubrics import load_rubric
    from fabula.text.feedback import feedback_documents

    documents: list[Document] = []
    for path in files:
        rows = feedback_rows([path])
        documents += feedback_documents(rows, str(path), with_story=with_story)
    if not documents:
        raise InputError(f"{files[0]}: holds no feedback")
    template = feedback_template(settings.asking.style, with_story=with_story)
    plan = plan_of(settings.judging().judging, template=template)
    wanted = [item.id for item in load_rubric(shipped).items]
    if [item.id for item in plan.rubric.items] != wanted:
        raise InputError(
            f"{settings.rubric}: its items are not those of {shipped} "
            f"({', '.join(wanted)}); a rubric of your own may word them otherwise"
        )
    return documents, plan


def _ask(
    documents: list[Document], plan: JudgePlan, settings: RateSettings, *, yes: bool
) -> Judged:
    from fabula.jobs.judging import ask_judges

    with progress_bar("asking", None) as bar:
        return ask_judges(
            documents, plan, settings.judging(), progress=bar, confirm=confirm_on(bar, yes=yes)
        )


def _print_ratings(
    measurements: list[Measurement],
    documents: list[Document],
    rubric: Rubric,
    agreements: dict[str, dict[str, RaterAgreement]],
    seed: int,
) -> None:
    from fabula.measures.ratings import group_estimates, mean_scores, score_table
    from fabula.presentation.rating_tables import estimates_table, people_table
    from fabula.reasons import explain

    stories = {one.id: str(one.meta.get("story_id", one.id)) for one in documents}
    for rater, agreement in agreements.items():
        mine = [one for one in measurements if one.rater == rater]
        means = mean_scores(score_table(mine, rubric))
        parts: list[Block] = [f"answers of {rater}, which is not people"]
        for name in _BY:
            by = {document.id: str(document.meta.get(name, "any")) for document in documents}
            groups = group_estimates(
                means, by.get, stories.__getitem__, seed=seed, signature=mine[0].signature
            )
            if len(groups) > 1 or name == "model":
                parts += [*estimates_table(name, groups), ""]
        parts += (
            people_table(rater, agreement)
            if agreement
            else ["no answers of people are given (--people): how far to believe it is not known"]
        )
        missing = Counter(one.missing_reason for one in mine if one.missing_reason)
        n_spared = missing.pop("not_asked", 0)
        parts += [
            f"no answer: {n:,}, {explain(str(reason))}" for reason, n in sorted(missing.items())
        ]
        if n_spared:
            parts.append(f"not asked, since earlier answers rule it out: {n_spared:,}")
        print_tables([*parts, mine[0].signature])
