"""A rubric put to language models: what is asked, how, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.settings import Between, Settings, SettingsError, part, setting

if TYPE_CHECKING:
    from fabula.judging.plan import JudgePlan
    from fabula.judging.prompts import Template
    from fabula.judging.session import Spent
    from fabula.judging.summary import JudgeSummary
    from fabula.models.function import FunctionModel
    from fabula.types import Document, Measurement, Rubric

__all__ = [
    "Asking",
    "CalibrateSettings",
    "Judged",
    "Judging",
    "JudgingSettings",
    "LabelSettings",
    "Questions",
    "RateSettings",
    "StoriesSettings",
    "ask_judges",
    "judge_stories",
    "plan_of",
]


_FOLDER_HELP = "Folder of the run: keeps every answer; interrupted runs resume."
_RESTART_HELP = "Ask everything again, ignoring what `out` holds."


@dataclass(frozen=True, slots=True)
class Questions(Settings):
    """What is asked."""

    rubric: str = setting(
        "ttcw",
        help="A built-in rubric (see `fabula rubric list`), or a .toml file.",
        unit="NAME|FILE",
    )
    items: str | None = setting(
        None, help="Ask only these items of the rubric, separated by commas.", unit="ID,ID"
    )
    template: Path | None = setting(
        None,
        help="A prompt with [STORY], [BACKGROUND], [QUESTION] to replace the built-in one, such as "
        "the authors' with_background.txt.",
        unit="FILE",
    )


@dataclass(frozen=True, slots=True)
class Asking(Settings):
    """How often each question is asked, and how answers are drawn."""

    style: Literal["reason-first", "verdict-first"] = setting(
        "reason-first",
        help="Reasons before the verdict, or after it (quicker and cheaper).",
    )
    n_samples: int = setting(
        1,
        help="Ask N times; the value is the share of Yes, or the most frequent choice.",
        unit="N",
        check=Between(1, 1000),
    )
    temperature: float | None = setting(
        None,
        help="Sampling temperature.",
        check=Between(0, 2),
        default_text="0 for one sample, 1 for more",
    )
    max_tokens: int | None = setting(
        None,
        help="Maximum length of an answer.",
        check=Between(1),
        default_text="1024; 200 for verdict-first",
    )
    seed: int = setting(
        0, help="Seed of the order of items, of sampling, and of intervals.", check=Between(0)
    )
    max_unreadable: int = setting(
        10,
        help="Stop after N answers in a row without a readable verdict (0: never).",
        unit="N",
        check=Between(0),
    )


@dataclass(frozen=True, slots=True)
class Judging(Settings):
    """Who judges, what and how."""

    questions: Questions = part(Questions)
    asking: Asking = part(Asking)
    models: ModelSettings = part(ModelSettings)


@dataclass(frozen=True, slots=True)
class JudgingSettings(Settings):
    """A run of judges and where it is kept."""

    judging: Judging = part(Judging)
    out: Path | None = setting(Path("judged"), help=_FOLDER_HELP)
    restart: bool = setting(False, help=_RESTART_HELP)

    @property
    def measurements_path(self) -> Path | None:
        """Where the verdicts are written; None where nothing is kept."""
        return None if self.out is None else self.out / "measurements.jsonl"


@dataclass(frozen=True, slots=True)
class StoriesSettings(JudgingSettings):
    """The same, for stories one by one or in pairs."""

    n_retest: int = setting(
        0,
        help="Judge N stories a second time under another id, to see how often verdicts flip.",
        unit="N",
        check=Between(0),
    )
    pairwise: bool = setting(
        False,
        help="Ask which of two stories passes more convincingly, in both orders; not with `html`, "
        "`n_retest`, `n_samples`, `template`.",
    )
    by: str | None = setting(
        None,
        help="Pair only stories that share this field (pairwise).",
        unit="FIELD",
        formerly=("group",),
    )

    def check_together(self) -> None:
        judging = self.judging
        if self.by and not self.pairwise:
            raise SettingsError("by", "is for `pairwise`")
        for name, is_set in (
            ("n_retest", self.n_retest > 0),
            ("n_samples", judging.asking.n_samples > 1),
            ("template", judging.questions.template is not None),
        ):
            if self.pairwise and is_set:
                raise SettingsError(name, "cannot be used with `pairwise`")


@dataclass(frozen=True, slots=True)
class CalibrateSettings(JudgingSettings):
    """A run on stories that experts have judged."""

    out: Path | None = setting(Path("calibrated"), help=_FOLDER_HELP)


@dataclass(frozen=True, slots=True)
class RateSettings(Settings):
    """How feedback is put to a rater."""

    rubric: str = setting(
        "feedback",
        help="The questions; a .toml file of the same items may word them differently.",
        unit="NAME|FILE",
    )
    asking: Asking = part(Asking)
    models: ModelSettings = part(ModelSettings)
    out: Path = setting(Path("rated"), help=_FOLDER_HELP)
    restart: bool = setting(False, help=_RESTART_HELP)

    def judging(self) -> JudgingSettings:
        """The same as the settings of any judge."""
        judging = Judging(Questions(self.rubric), self.asking, self.models)
        return JudgingSettings(judging, self.out, self.restart)


@dataclass(frozen=True, slots=True)
class LabelSettings(RateSettings):
    rubric: str = setting(
        "feedback_category",
        help="The categories; a .toml file of the same items may word them differently.",
        unit="NAME|FILE",
    )
    out: Path = setting(Path("labelled"), help=_FOLDER_HELP)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the judges said."""

    documents: Sequence[Document]
    plan: JudgePlan
    measurements: list[Measurement]
    spent: list[Spent]

    def summaries(self) -> list[JudgeSummary]:
        """A summary of each judge beside its kept trust."""
        from fabula.judging.summary import summarise
        from fabula.judging.trust import TrustBook

        return summarise(self.measurements, self.documents, self.plan.rubric, TrustBook())

    def save_page(self, path: Path) -> None:
        from fabula.presentation.judging_page import write_judging_page

        write_judging_page(
            path, self.summaries(), self.measurements, self.documents, self.plan.rubric
        )


def judge_stories(
    documents: Sequence[Document],
    settings: StoriesSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Judged:
    """Put the rubric to each model, story by story or pair by pair.

    Raises `InputError`, `ModelError`, `BusyError`; what was answered is kept in `out`.
    """
    from fabula.errors import InputError
    from fabula.judging.pairwise import pairs_of

    plan = plan_of(settings.judging, is_pairwise=settings.pairwise)
    pairs = pairs_of(documents, settings.by) if settings.pairwise else None
    if pairs is not None and not pairs:
        raise InputError("comparing needs at least two stories (of one group, with `by`)")
    return ask_judges(
        documents, plan, settings, progress=progress, confirm=confirm,
        pairs=pairs, n_retest=settings.n_retest,
    )  # fmt: skip


def ask_judges(
    documents: Sequence[Document],
    plan: JudgePlan,
    settings: JudgingSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
    pairs: Sequence[tuple[Document, Document]] | None = None,
    n_retest: int = 0,
    functions: Sequence[FunctionModel] = (),
) -> Judged:
    """Ask every model what the plan says, and the `functions` in place of the models if any.

    Answers are kept in the settings' folder, if there is one.
    """
    from fabula.judging.session import Session, run_session

    models = settings.judging.models
    options = models.options()
    session = Session(
        documents,
        functions or models.models,
        plan,
        settings.out,
        pairs=pairs,
        n_retest=n_retest,
        options=options,
        price=options.price,
        max_cost=models.spending.max_cost,
        restart=settings.restart,
        max_unreadable=settings.judging.asking.max_unreadable,
    )
    measurements, spent = run_session(
        session, agree=confirm, begin=progress.begin, meter=progress.advance
    )
    return Judged(documents, plan, measurements, spent)


def plan_of(
    judging: Judging, *, is_pairwise: bool = False, template: Template | None = None
) -> JudgePlan:
    """What is asked; `template` takes the place of the one that the settings name."""
    from fabula.judging import JudgePlan, Template, read_template
    from fabula.judging.plan import MAX_TOKENS
    from fabula.rubrics import load_rubric

    questions, asking = judging.questions, judging.asking
    rubric = load_rubric(questions.rubric)
    only = tuple(name.strip() for name in (questions.items or "").split(",") if name.strip())
    _check_items(rubric, only, is_pairwise=is_pairwise)
    if template is None:
        file = questions.template
        template = Template(asking.style) if file is None else read_template(file, asking.style)
    default = 0.0 if asking.n_samples == 1 else 1.0
    return JudgePlan(
        rubric=rubric,
        template=template,
        n_samples=asking.n_samples,
        temperature=default if asking.temperature is None else asking.temperature,
        max_tokens=asking.max_tokens or MAX_TOKENS[asking.style],
        seed=asking.seed,
        only=only,
        kind="pairs" if is_pairwise else "stories",
        structured=judging.models.structured,
    )


def _check_items(rubric: Rubric, only: tuple[str, ...], *, is_pairwise: bool) -> None:
    """Raise where an item is not in the rubric, or cannot be asked like this."""
    from fabula.errors import InputError
    from fabula.rubrics import Condition

    known = [item.id for item in rubric.items]
    for name in only:
        if name not in known:
            raise SettingsError("items", f"has {name}, but {rubric.id} has {', '.join(known)}")
    for item in rubric.items:
        if only and item.id not in only:
            continue
        names = Condition.parse(item.show_if).names if only and item.show_if else frozenset()
        if lacking := names - {*only, *rubric.facts}:
            raise SettingsError(
                "items",
                f"has {item.id}, which is asked only after {', '.join(sorted(lacking))}; add it",
            )
        if item.scale.is_ranking and not is_pairwise:
            raise InputError(
                f"{rubric.id}: {item.id} ranks the stories of a group, and a model is shown one "
                f"story at a time; leave it out with `items`, or compare with `pairwise`"
            )
