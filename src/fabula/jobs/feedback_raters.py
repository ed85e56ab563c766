"""Have models rate feedback, and say what it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.feedback_reading import check_overlap, feedback_rows, people_means
from fabula.jobs.judging import (
    FOLDER_HELP,
    RESTART_HELP,
    Asking,
    Judging,
    JudgingSettings,
    Questions,
    ask_judges,
    plan_of,
)
from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result_files import plot_setting
from fabula.settings import Settings, part, setting
from fabula.types import by_rater

if TYPE_CHECKING:
    from fabula.jobs.judging import Judged
    from fabula.judging.judging_plan import JudgePlan
    from fabula.measures.categories import CategoryShares
    from fabula.measures.ratings import RaterAgreement
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Estimate


@dataclass(frozen=True, slots=True)
class FeedbackSettings(Settings):
    """How a model is asked about feedback."""

    rubric: str = setting(
        "feedback",
        help="Rubric with the questions; a .toml file with the same items may word them "
        "differently.",
        unit="NAME|FILE",
    )
    asking: Asking = part(Asking)
    models: ModelSettings = part(ModelSettings)
    out: Path = setting(Path("rated"), help=FOLDER_HELP, unit="DIR")
    restart: bool = setting(False, help=RESTART_HELP)

    def judging(self) -> JudgingSettings:
        """The same settings in the form that all judges use."""
        judging = Judging(Questions(self.rubric), self.asking, self.models)
        return JudgingSettings(judging, self.out, self.restart)


@dataclass(frozen=True, slots=True)
class RateSettings(FeedbackSettings):
    """Settings of a rater, and the people to compare it with."""

    people: tuple[Path, ...] = setting(
        (),
        help="People's answers about the same feedback (measurements, or the released "
        "human_ratings.jsonl): shows how far the rater agrees with them.",
    )


@dataclass(frozen=True, slots=True)
class LabelSettings(FeedbackSettings):
    """Settings of a labeller, and the people to compare it with."""

    rubric: str = setting(
        "feedback_category",
        help="Rubric with the categories; a .toml file with the same items may word them "
        "differently.",
        unit="NAME|FILE",
    )
    out: Path = setting(Path("labelled"), help=FOLDER_HELP, unit="DIR")
    labels: Path | None = setting(
        None,
        help="People's labels (.jsonl: id, labels), to measure how often the model is right; an "
        "id is that of the feedback and its model, as in s1_swap_spot_0_MODEL.",
    )
    plot: Path | None = plot_setting("Draw shares by corruption here (.svg, .pdf or .png).")


@dataclass(frozen=True, slots=True)
class RatedFeedback:
    """Each rater's answers, and their agreement with people."""

    judged: Judged
    agreements: Mapping[str, Mapping[str, RaterAgreement]]
    """By rater and item; without people there are no items."""
    left_out: Mapping[str, int]
    """Rows without feedback, by reason; raters were not asked about them."""

    def tables(self) -> list[Block]:
        from fabula.measures.ratings import group_estimates, mean_scores, score_table
        from fabula.presentation.rating_tables import FIELDS, estimates_table, people_table
        from fabula.reasons import explain

        documents, plan = self.judged.documents, self.judged.plan
        stories, given = _stories(documents), by_rater(self.judged.measurements)
        parts: list[Block] = []
        for rater, agreement in self.agreements.items():
            mine = given[rater]
            means = mean_scores(score_table(mine, plan.rubric))
            parts.append(f"contains answers by {rater}, who is not a person")
            for name in FIELDS:
                by = {document.id: str(document.meta.get(name, "any")) for document in documents}
                groups = group_estimates(
                    means, by.get, stories.__getitem__, signature=mine[0].signature
                )
                if len(groups) > 1 or name == "model":
                    parts += [*estimates_table(name, groups), ""]
            parts += (
                people_table(rater, agreement)
                if agreement
                else [
                    "no answers by people were given (`people`): the rater's agreement with "
                    "people is unknown"
                ]
            )
            missing = Counter(one.missing_reason for one in mine if one.missing_reason)
            n_spared = missing.pop("not_asked", 0)
            parts += [
                f"no answer: {n:,}, {explain(str(reason))}" for reason, n in sorted(missing.items())
            ]
            if n_spared:
                parts.append(f"not asked, since earlier answers rule it out: {n_spared:,}")
            parts.append(mine[0].signature)
        return [*parts, *_shown_left_out(self.left_out)]

    def to_json(self) -> dict[str, Any]:
        agreement = {
            rater: {item: asdict(one) for item, one in by_item.items()}
            for rater, by_item in self.agreements.items()
        }
        return {
            "measurements": self.judged.rows(),
            "agreement_with_people": agreement,
            "left_out": dict(self.left_out),
        }


@dataclass(frozen=True, slots=True)
class LabelledFeedback:
    """What each labeller says feedback is about, and how often it is right."""

    judged: Judged
    found: Mapping[str, tuple[Sequence[CategoryShares], Estimate | None]]
    """By labeller: shares by writer and corruption, and accuracy if people labelled."""
    left_out: Mapping[str, int]
    """Rows without feedback, by reason."""

    @property
    def categories(self) -> tuple[str, ...]:
        return self.judged.plan.rubric.items[0].scale.options

    def tables(self) -> list[Block]:
        from fabula.presentation.rating_tables import category_tables

        parts: list[Block] = []
        given = by_rater(self.judged.measurements)
        for rater, (shares, accuracy) in self.found.items():
            signature = given[rater][0].signature
            parts += category_tables(shares, self.categories, accuracy, signature)
        return [*parts, *_shown_left_out(self.left_out)]

    def to_json(self) -> dict[str, Any]:
        labels = {
            rater: {
                "shares": [asdict(one) for one in shares],
                "accuracy": accuracy and asdict(accuracy),
            }
            for rater, (shares, accuracy) in self.found.items()
        }
        rows = self.judged.rows()
        return {"measurements": rows, "labels": labels, "left_out": dict(self.left_out)}


def rate_feedback(
    files: Sequence[Path],
    settings: RateSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> RatedFeedback:
    """Have models answer the questions of the human form about each piece of feedback.

    Raises `InputError`, `ModelError`, `BusyError`. Source: Rashkin et al. 2025, section 6 and
    appendix D.
    """
    from fabula.measures.ratings import agreements_with_people

    documents, plan, left_out = _plan(files, settings, "feedback", with_story=True)
    theirs = people_means(settings.people, plan.rubric, [document.id for document in documents])
    judged = _ask(documents, plan, settings, progress, confirm)
    found = agreements_with_people(
        judged.measurements, theirs, plan.rubric, _stories(documents).__getitem__, seed=plan.seed
    )
    return RatedFeedback(judged, found, left_out)


def label_feedback(
    files: Sequence[Path],
    settings: LabelSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> LabelledFeedback:
    """Have models say what each piece of feedback is about: one of nine categories.

    Draws `plot` for the first of them. Raises `InputError`, `ModelError`, `BusyError`. Source:
    Rashkin et al. 2025, appendix G, Figures 5 and 6.
    """
    from fabula.measures.categories import category_shares, label_accuracy, read_gold
    from fabula.presentation.rating_tables import save_categories

    documents, plan, left_out = _plan(files, settings, "feedback_category", with_story=False)
    categories = plan.rubric.items[0].scale.options
    gold = {} if settings.labels is None else read_gold(settings.labels, categories)
    check_overlap([document.id for document in documents], gold, "labels")
    judged = _ask(documents, plan, settings, progress, confirm)
    groups = {
        one.id: (str(one.meta.get("model", "people")), str(one.meta.get("method", "any story")))
        for one in documents
    }
    story_of = _stories(documents).__getitem__
    found = {}
    for rater, mine in by_rater(judged.measurements).items():
        labels = {one.document_id: None if one.value is None else str(one.value) for one in mine}
        terms: Any = {"signature": mine[0].signature}
        shares = category_shares(labels, categories, groups.__getitem__, story_of, **terms)
        found[rater] = shares, label_accuracy(labels, gold, story_of, **terms) if gold else None
    if settings.plot is not None and found:
        save_categories(next(iter(found.values()))[0], categories, settings.plot)
    return LabelledFeedback(judged, found, left_out)


def _plan(
    files: Sequence[Path], settings: FeedbackSettings, shipped: str, *, with_story: bool
) -> tuple[list[Document], JudgePlan, dict[str, int]]:
    """The pieces, how they are asked about, and how many rows have no feedback, by reason."""
    from fabula.errors import InputError
    from fabula.judging.feedback_rater import feedback_template
    from fabula.rubrics.load import load_rubric
    from fabula.text.feedback_pieces import count_withheld, feedback_documents

    documents: list[Document] = []
    left_out: Counter[str] = Counter()
    for path in files:
        rows = feedback_rows([path])
        documents += feedback_documents(rows, str(path), with_story=with_story)
        left_out.update(count_withheld(rows))
    if not documents:
        raise InputError(f"{files[0]}: contains no feedback")
    template = feedback_template(settings.asking.style, with_story=with_story)
    plan = plan_of(settings.judging().judging, template=template)
    wanted = [item.id for item in load_rubric(shipped).items]
    if [item.id for item in plan.rubric.items] != wanted:
        raise InputError(
            f"{settings.rubric}: its items are not those of {shipped} ({', '.join(wanted)}); your "
            "own rubric may change only their wording"
        )
    return documents, plan, dict(left_out)


def _shown_left_out(left_out: Mapping[str, int]) -> list[str]:
    from fabula.reasons import explain

    return [f"left out: {n:,} answers, {explain(why)}" for why, n in left_out.items()]


def _ask(
    documents: list[Document],
    plan: JudgePlan,
    settings: FeedbackSettings,
    progress: Progress,
    confirm: Confirm,
) -> Judged:
    return ask_judges(documents, plan, settings.judging(), progress=progress, confirm=confirm)


def _stories(documents: Sequence[Document]) -> dict[str, str]:
    """The story that each piece is about."""
    return {one.id: str(one.meta.get("story_id", one.id)) for one in documents}
