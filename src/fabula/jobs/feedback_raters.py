"""Have models rate feedback, or say what it is about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.jobs.feedback import check_overlap, feedback_rows, people_means
from fabula.jobs.given import Labels, Rows
from fabula.jobs.judging import FOLDER_HELP, Asking, Judged, ask_judges, judging_of, plan_of
from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Result, Row
from fabula.jobs.result_files import plot_setting, restart_setting
from fabula.settings import Settings, SettingsError, part, setting
from fabula.types import Document, Estimate, by_rater

if TYPE_CHECKING:
    from fabula.measures.categories import CategoryShares
    from fabula.measures.ratings import RaterAgreement
    from fabula.presentation.sheet import Block


@dataclass(frozen=True, slots=True)
class RateSettings(Settings):
    """How a model is asked about feedback, and the people to compare it with."""

    rubric: str = setting(
        "feedback",
        help="Rubric with the questions, feedback or feedback_category; a .toml file with the "
        "same items may word them differently.",
        unit="NAME|FILE",
    )
    asking: Asking = part(Asking)
    models: ModelSettings = part(ModelSettings)
    out: Path | None = setting(
        None, help=FOLDER_HELP, unit="DIR", default_text="rated; of categories, labelled"
    )
    restart: bool = restart_setting()
    people: tuple[Path, ...] = setting(
        (),
        help="People's answers about the same feedback (measurements, or the released "
        "human_ratings.jsonl): shows how far the rater agrees with them.",
    )
    labels: Labels | None = setting(
        None,
        help="People's labels (.jsonl: id, labels), to measure how often the model assigns the "
        "right category; an id is that of the feedback and its model, as in "
        "s1_swap_spot_0_MODEL.",
    )
    plot: Path | None = plot_setting(
        "Draw the categories' shares by corruption here (.svg, .pdf or .png)."
    )


@dataclass(frozen=True, slots=True, repr=False)
class AnsweredFeedback(Result, ABC):
    """What each rater says about each piece of feedback."""

    judged: Judged
    left_out: Mapping[str, int]
    """Rows without feedback, by reason; raters were not asked about them."""
    out: Path

    @abstractmethod
    def answers(self) -> list[Block]:
        """The tables of what raters say."""

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """The same as plain values."""

    def tables(self) -> list[Block]:
        from fabula.reasons import explain

        left_out = (f"left out: {n:,} answers, {explain(why)}" for why, n in self.left_out.items())
        return [*self.answers(), *left_out]

    def rows(self) -> list[Row]:
        """The measurements."""
        return self.judged.rows()

    def to_json(self) -> dict[str, Any]:
        return {"measurements": self.rows(), **self.values(), "left_out": dict(self.left_out)}

    def notices(self) -> Sequence[str]:
        return self.judged.notices()

    def written(self) -> list[Path]:
        return [self.out / "measurements.jsonl"]


@dataclass(frozen=True, slots=True, repr=False)
class RatedFeedback(AnsweredFeedback):
    """Each rater's answers, and their agreement with people."""

    agreements: Mapping[str, Mapping[str, RaterAgreement]]
    """By rater and item; without people there are no items."""

    def answers(self) -> list[Block]:
        from fabula.measures.ratings import group_estimates, mean_scores, score_table
        from fabula.presentation.rating_tables import FIELDS, estimates_table, people_table
        from fabula.reasons import explain

        documents, plan = self.judged.documents, self.judged.plan
        stories, given = _stories(documents), by_rater(self.judged.said)
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
        return parts

    def values(self) -> dict[str, Any]:
        found = {
            rater: {item: asdict(one) for item, one in by_item.items()}
            for rater, by_item in self.agreements.items()
        }
        return {"agreement_with_people": found}


@dataclass(frozen=True, slots=True, repr=False)
class LabelledFeedback(AnsweredFeedback):
    """What each labeller says feedback is about, and how often it is right."""

    found: Mapping[str, tuple[Sequence[CategoryShares], Estimate | None]]
    """By labeller: shares by writer and corruption, and accuracy if people labelled."""

    def answers(self) -> list[Block]:
        from fabula.presentation.rating_tables import category_tables

        given = by_rater(self.judged.said)
        categories = self.judged.plan.rubric.items[0].scale.options
        return [
            block
            for rater, (shares, accuracy) in self.found.items()
            for block in category_tables(shares, categories, accuracy, given[rater][0].signature)
        ]

    def values(self) -> dict[str, Any]:
        labels = {
            rater: {
                "shares": [asdict(one) for one in shares],
                "accuracy": accuracy and asdict(accuracy),
            }
            for rater, (shares, accuracy) in self.found.items()
        }
        return {"labels": labels}


def rate(
    feedback: Sequence[Rows],
    settings: RateSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> AnsweredFeedback:
    """Have a model answer the seven questions of the human form about each piece of FEEDBACK.

    FEEDBACK is what `feedback elicit` wrote. The last question, whether following it would undo the
    planted change, is asked with the original and the recorded change in view. A model does not
    replace people: if `people` has answers too, the model's agreement with them is shown beside its
    means. Source: Rashkin et al. 2025, section 6 and appendix D.

    With the rubric feedback_category the model assigns each piece to one of nine categories.
    FEEDBACK may then be a file from `study export`, of which people's own feedback is used. Other
    rows by people need `id`, `feedback`, and `method`, the corruption of their story; rows that
    name no model count as written by people. How often the model is right is measured on `labels`,
    and unknown without them. Source: Rashkin et al. 2025, appendix G, Figures 5 and 6.

    Raises `InputError`, `SettingsError`, `ModelError`, `BusyError`.
    """
    from fabula.judging.judge_prompts import feedback_template
    from fabula.measures.categories import category_shares, label_accuracy, read_gold
    from fabula.measures.ratings import agreements_with_people
    from fabula.presentation.rating_tables import save_categories
    from fabula.provenance import note_output
    from fabula.text.feedback_pieces import count_missing, feedback_documents

    is_labelling = _is_labelling(settings)
    out = settings.out or Path("labelled" if is_labelling else "rated")
    documents: list[Document] = []
    names: list[str] = []
    left_out: Counter[str] = Counter()
    for given in (each for one in feedback for each in one.parts):
        rows = feedback_rows([given])
        names.append(str(given) if isinstance(given, Path) else given[1])
        documents += feedback_documents(rows, names[-1], with_story=not is_labelling)
        left_out.update(count_missing(rows))
    if not documents:
        raise InputError(f"{', '.join(names)}: contains no feedback")
    how = judging_of(settings.rubric, settings.asking, settings.models, out, settings.restart)
    template = feedback_template(settings.asking.style, with_story=not is_labelling)
    plan = plan_of(how.judging, template=template)
    ids = [document.id for document in documents]
    theirs = {} if is_labelling else people_means(settings.people, plan.rubric, ids)
    gold: dict[str, frozenset[str]] = {}
    categories = plan.rubric.items[0].scale.options
    if settings.labels is not None:
        labels = Rows.of(settings.labels.source)
        gold = read_gold(labels, categories, str(settings.labels.path or settings.labels.name))
        check_overlap(ids, gold, "labels")
    note_output("out", out)
    judged = ask_judges(documents, plan, how, progress=progress, confirm=confirm)
    story_of = _stories(documents).__getitem__
    if not is_labelling:
        agreements = agreements_with_people(
            judged.said, theirs, plan.rubric, story_of, seed=plan.seed
        )
        return RatedFeedback(judged, dict(left_out), out, agreements)
    groups = {
        one.id: (str(one.meta.get("model", "people")), str(one.meta.get("method", "any story")))
        for one in documents
    }
    found = {}
    for rater, mine in by_rater(judged.said).items():
        said = {one.document_id: None if one.value is None else str(one.value) for one in mine}
        terms: Any = {"signature": mine[0].signature}
        shares = category_shares(said, categories, groups.__getitem__, story_of, **terms)
        found[rater] = shares, label_accuracy(said, gold, story_of, **terms) if gold else None
    if settings.plot is not None and found:
        save_categories(next(iter(found.values()))[0], categories, settings.plot)
    return LabelledFeedback(judged, dict(left_out), out, found)


def _is_labelling(settings: RateSettings) -> bool:
    """Whether the rubric asks for categories. Raises `InputError`, `SettingsError`."""
    from fabula.rubrics.load import load_rubric

    items = {
        name: [item.id for item in load_rubric(name).items]
        for name in ("feedback", "feedback_category")
    }
    asked = [item.id for item in load_rubric(settings.rubric).items]
    if asked not in items.values():
        known = " or ".join(f"{name} ({', '.join(ids)})" for name, ids in items.items())
        raise InputError(
            f"{settings.rubric}: its items are not those of {known}; your own rubric may change "
            "only their wording"
        )
    is_labelling = asked == items["feedback_category"]
    for name in ("labels", "plot"):
        if getattr(settings, name) is not None and not is_labelling:
            raise SettingsError(name, "is only for the categories: `rubric` feedback_category")
    if settings.people and is_labelling:
        raise SettingsError("people", "cannot be used with categories, only `labels`")
    return is_labelling


def _stories(documents: Sequence[Document]) -> dict[str, str]:
    """The story that each piece is about."""
    return {one.id: str(one.meta.get("story_id", one.id)) for one in documents}
