"""Ask language models the questions of a rubric: what is asked, how, and the results.

And what a comparison of judges is given: people's labels, and runs of judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from fabula.core.errors import InputError
from fabula.core.settings import (
    Between,
    Settings,
    SettingsError,
    of_field,
    part,
    seed_setting,
    setting,
)
from fabula.core.types import Document, Measurement, Rubric, by_rater
from fabula.jobs.given import located_in, rows_in
from fabula.jobs.job import SILENT, Confirm, Progress, Texts, agreed
from fabula.jobs.models import ModelSettings, max_tokens_setting, temperature_setting
from fabula.jobs.result import Result, Row
from fabula.jobs.shared_settings import page_setting, restart_setting

if TYPE_CHECKING:
    from fabula.judging.agreement import CorrectedRun
    from fabula.judging.judges import JudgeCost
    from fabula.judging.pairs import PairRanking
    from fabula.judging.plan import JudgePlan
    from fabula.judging.prompts import Template
    from fabula.judging.session import Spent
    from fabula.judging.summary import JudgeSummary
    from fabula.models.base import FunctionModel
    from fabula.models.cost import Prices
    from fabula.show.sheet import Block


@dataclass(frozen=True, slots=True)
class Labels:
    """People's labels: a file, or rows with document, item, rater and value."""

    source: Path | list[Row]

    @classmethod
    def of(cls, value: Any) -> Self:
        """From a path, a frame or rows. Raises `InputError`."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str | Path):
            return cls(Path(value))
        if (rows := rows_in(value)) is None:
            raise InputError("labels: expected a table or rows with document, item, rater, value")
        return cls(rows)

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path | None:
        return self.source if isinstance(self.source, Path) else None

    @property
    def name(self) -> str:
        """What they are called in errors and signatures."""
        return "labels" if self.path is None else self.path.name

    def read(self, rubric: Rubric) -> list[Measurement]:
        """Raises `InputError`, naming the file or the row."""
        from fabula.raters.labels import labels_of, read_labels

        if isinstance(self.source, Path):
            return read_labels(self.source, rubric)
        return labels_of(located_in((self.source, self.name)), rubric, self.name)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of judges: the folder that it was kept in, or its result in memory."""

    name: str
    folder: Path | None
    judged: Any = None
    """A `Judged`, if it is in memory."""

    @classmethod
    def of(cls, value: Any) -> Self:
        """From a folder or a result of `judge`. Raises `InputError`."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str | Path):
            return cls(str(value), Path(value))
        if not hasattr(value, "plan") or not hasattr(value, "said"):
            raise InputError(
                f"expected the folder of a run or a result of `judge`, not {type(value).__name__}"
            )
        return cls("the verdicts", None, value)

    def read(self) -> tuple[Rubric, list[Measurement]]:
        """The rubric, and all verdicts. Raises `InputError`."""
        from fabula.judging.session import read_run

        if self.folder is None:
            return self.judged.plan.rubric, self.judged.said
        return read_run(self.folder)

    def documents(self) -> tuple[Document, ...]:
        """The judged texts, if they are in memory."""
        return () if self.judged is None else tuple(self.judged.documents)

    def costs(self, prices: Prices) -> dict[str, JudgeCost]:
        """What each judge cost, by model."""
        from fabula.judging.judges import JudgeCost, costs_of

        if self.folder is not None:
            return costs_of(self.folder, prices)
        # Existing answers were not counted.
        return {
            m.model: JudgeCost(m.n_calls, m.usage.n_input, m.usage.n_output, m.cost)
            for m in self.judged.spent
            if m.n_calls
        }


FOLDER_HELP = "Folder of the run: keeps every answer; interrupted runs resume."
_ANSWERED = (
    "no_answer", "no_verdict", "truncated", "refusal", "blocked", "too_long", "contradictory",
    "out_of_scale",
)  # fmt: skip
"""Why an answer may have no verdict; failed calls are repeated in any case."""


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _are_reasons(again: str) -> str | None:
    names = _names(again)
    if not names or not set(names) <= set(_ANSWERED):
        return f"{again!r}: name one or more of {', '.join(_ANSWERED)}, separated by commas"
    return None


@dataclass(frozen=True, slots=True)
class Questions(Settings):
    """What is asked."""

    rubric: str = setting(
        "ttcw",
        help="A built-in rubric (see `fabula rubric show`), or a .toml file.",
        unit="NAME|FILE",
    )
    items: str | None = setting(
        None,
        help="Ask only these items of the rubric, separated by commas.",
        unit="ID,ID",
        shared="asking",
    )
    template: Path | None = setting(
        None,
        help="Prompt with [STORY], [BACKGROUND], [QUESTION] and optionally [INSTRUCTION], in any "
        "order, to replace the built-in one, such as the authors' with_background.txt.",
        shared="asking",
    )


@dataclass(frozen=True, slots=True)
class Asking(Settings):
    """How often each question is asked, and how answers are sampled."""

    style: Literal["reason-first", "verdict-first"] = setting(
        "reason-first",
        help="Ask for reasons before the verdict, or after it (faster and cheaper).",
        shared="asking",
    )
    n_samples: int = setting(
        1,
        help="Ask N times; the value is the share of Yes, or the most frequent choice.",
        check=Between(1, 1000),
        shared="asking",
    )
    n_paraphrases: int = setting(
        0,
        help="Ask each question in N other wordings too, taken from the rubric, and show how far "
        "verdicts depend on the wording.",
        check=Between(0, 100),
        shared="asking",
    )
    temperature: float | None = temperature_setting(None, "0 for one sample, 1 for more")
    max_tokens: int | None = max_tokens_setting(None, "1024; 200 for verdict-first")
    seed: int = seed_setting("Seed for the order of items, sampling and intervals.")
    max_unreadable: int = setting(
        10,
        help="Stop after N consecutive answers without a readable verdict (0: never).",
        check=Between(0),
        tunes="models",
    )


@dataclass(frozen=True, slots=True)
class Judging(Settings):
    """Who judges, what, and how."""

    questions: Questions = part(Questions)
    asking: Asking = part(Asking)
    models: ModelSettings = part(ModelSettings)


@dataclass(frozen=True, slots=True)
class JudgingSettings(Settings):
    """A run of judges and where it is kept."""

    judging: Judging = part(Judging)
    out: Path | None = setting(Path("judged"), help=FOLDER_HELP, unit="DIR")
    restart: bool = restart_setting()
    again: str | None = setting(
        None,
        help="Ask once more only where `out` has no verdict for one of these reasons, such as "
        "truncated,no_answer; with truncated, `max_tokens` may be raised.",
        unit="REASON,REASON",
        check=_are_reasons,
    )

    def check_together(self) -> None:
        if self.again and (self.restart or self.out is None):
            raise SettingsError("again", "needs the answers in `out`; leave out `restart`")


def judging_of(
    rubric: str, asking: Asking, models: ModelSettings, out: Path | None, restart: bool
) -> JudgingSettings:
    """A run that asks all items of a rubric."""
    return JudgingSettings(Judging(Questions(rubric), asking, models), out, restart)


@dataclass(frozen=True, slots=True)
class LabelledSettings(JudgingSettings):
    """A run on stories of which people judged some."""

    labels: Labels | None = setting(
        None,
        help="People's labels for some of the stories, drawn at random: shows an estimate of what "
        "people would have said about all stories beside what the judge says (`fabula judge "
        "correct` shows more).",
    )
    n_shots: int = setting(
        0,
        help="Show N labelled stories with their answers before each story (few-shot); needs "
        "`labels`.",
        check=Between(0, 20),
    )

    def check_together(self) -> None:
        JudgingSettings.check_together(self)
        if self.n_shots and self.judging.questions.template is not None:
            raise SettingsError("n_shots", "cannot be used with `template`")


@dataclass(frozen=True, slots=True)
class StoriesSettings(LabelledSettings):
    """A run on single stories or on pairs."""

    n_retest: int = setting(
        0,
        help="Judge N stories a second time under another id, to see how often verdicts flip.",
        check=Between(0),
    )
    pairwise: bool = setting(
        False,
        help="Ask which of two stories passes more convincingly, in both orders; not with `html`, "
        "`n_retest`, `n_samples` or `template`.",
    )
    by: str | None = of_field("Pair only stories that share this field (pairwise).")
    max_pairs: int | None = setting(
        None,
        help="Ask only N pairs, drawn at random so that all stories are connected (pairwise).",
        check=Between(1),
        default_text="all pairs",
    )
    rank_by: str | None = of_field(
        "Also rank the groups of this field, such as models (pairwise, with `by`).",
        default_text="author",
    )
    html: Path | None = page_setting("Write an HTML page of the results here.")

    def check_together(self) -> None:
        LabelledSettings.check_together(self)
        judging = self.judging
        if self.n_shots and self.labels is None:
            raise SettingsError("n_shots", "needs `labels`, from which examples are drawn")
        for name in ("by", "max_pairs", "rank_by"):
            if getattr(self, name) and not self.pairwise:
                raise SettingsError(name, "is only for `pairwise`")
        if self.rank_by and not self.by:
            why = "intervals of groups are over its values, such as prompts"
            raise SettingsError("rank_by", f"needs `by`: {why}")
        for name, is_set in (
            ("n_retest", self.n_retest > 0),
            ("n_samples", judging.asking.n_samples > 1),
            ("n_paraphrases", judging.asking.n_paraphrases > 0),
            ("template", judging.questions.template is not None),
            ("labels", self.labels is not None),
            ("html", self.html is not None),
        ):
            if self.pairwise and is_set:
                raise SettingsError(name, "cannot be used with `pairwise`")


@dataclass(frozen=True, slots=True, repr=False)
class Judged(Result):
    """The judges' answers."""

    documents: Sequence[Document]
    plan: JudgePlan
    said: list[Measurement]
    spent: list[Spent]
    labels: Sequence[Measurement] = ()
    """People's labels of some of the documents, used to correct the judges."""
    people: Sequence[Measurement] = ()
    """Everything people said about the documents, including those shown as examples."""
    settings: StoriesSettings | None = None
    """How stories were judged; None for other texts."""

    @property
    def rubric(self) -> Rubric:
        return self.plan.rubric

    def rows(self) -> list[Row]:
        """The measurements; of pairs also the rankings, over all items and by item."""
        from fabula.core.store import measurement_row
        from fabula.judging.pairs import ranking_row

        return [measurement_row(answer) for answer in self.said] + [
            ranking_row(ranking, rater)
            for rater, rankings in self.rankings(by_item=True).items()
            for ranking in rankings
        ]

    def frame_rows(self) -> list[Row]:
        """A row per text and judge: `id`, `rater`, each item, and the text's own fields."""
        by_text: dict[tuple[str, str], Row] = {}
        for answer in self.said:
            key = answer.document_id, answer.rater
            by_text.setdefault(key, {"id": key[0], "rater": key[1]})[answer.item] = answer.value
        known = {document.id: document for document in self.documents}
        return [known[r["id"]].beside(r) if r["id"] in known else r for r in by_text.values()]

    def rankings(self, *, by_item: bool = False) -> dict[str, list[PairRanking]]:
        """The stories of pairs, and their groups, ranked by each judge's answers.

        Over all items; with `by_item` also for each. Empty if no pairs were compared.
        """
        from fabula.judging.pairs import pairs_of, rank_groups, rank_stories
        from fabula.stats.ranking import CHOICE

        settings = self.settings
        if settings is None or not settings.pairwise:
            return {}
        by, n = settings.by, settings.max_pairs
        pairs = pairs_of(self.documents, by)
        budget = "" if n is None else f"|choice:{CHOICE}|max-pairs:{n}"
        rankings: dict[str, list[PairRanking]] = {}
        terms: Any = {"seed": self.plan.seed, "by_item": by_item, "extra": budget}
        for rater, answers in by_rater(self.said).items():
            rankings[rater] = rank_stories(answers, pairs, by, **terms)
            if by:
                of = settings.rank_by or "author"
                rankings[rater] += rank_groups(answers, pairs, by, of, **terms)
        return rankings

    def measurements(self) -> list[Measurement]:
        return self.said

    def summaries(self) -> list[JudgeSummary]:
        """A summary of each judge with its kept trust."""
        from fabula.judging.summary import summarise
        from fabula.judging.trust import TrustBook

        return summarise(self.said, self.documents, self.rubric, TrustBook())

    def corrected(self) -> dict[str, CorrectedRun]:
        """By judge, what experts would have said; empty without labels."""
        from fabula.judging.agreement import CorrectSettings, correct_measurements

        if not self.labels:
            return {}
        # Stories shown as examples are labelled too, so none are suggested for labelling.
        has_examples = len(self.people) > len(self.labels)
        usual = CorrectSettings(n_next=0) if has_examples else CorrectSettings()
        people, rubric = self.labels, self.rubric
        return {
            rater: correct_measurements(answers, people, rubric, replace(usual, judge=rater))
            for rater, answers in by_rater(self.said).items()
        }

    def tables(self) -> list[Block]:
        """The answers by item with their trust, and what experts would have said; or of pairs."""
        from fabula.judging.pairs import summarise_pairs
        from fabula.judging.tables import judge_tables, pair_table, ranking_tables

        settings = self.settings
        if settings is not None and settings.pairwise:
            of_pairs: list[Block] = []
            for rater, rankings in self.rankings().items():
                answers = [answer for answer in self.said if answer.rater == rater]
                of_pairs += pair_table(summarise_pairs(answers), answers[0].signature)
                for ranking in rankings:
                    of_pairs += ["", *ranking_tables(ranking, rater, settings.by)]
            return of_pairs
        blocks = judge_tables(self.summaries(), self.said, self.rubric)
        for run in self.corrected().values():
            blocks += ["", *run.tables()]
        if self.people and not self.labels:
            why = "every labelled story was shown as an example (`n_shots`)"
            blocks += ["", f"not corrected: {why}, so none is left to measure the judge"]
        return blocks

    def notices(self) -> Sequence[str]:
        """What each model used and cost."""
        from fabula.judging.tables import spent_lines

        return spent_lines(self.spent)

    def written(self) -> Sequence[Path]:
        out = None if self.settings is None else self.settings.out
        return () if out is None else (out / "measurements.jsonl",)

    def lacking(self) -> str | None:
        """That calls failed, and the reason of the first."""
        failed = [answer for answer in self.said if answer.missing_reason == "failed"]
        if not failed:
            return None
        why = next((str(each.details["note"]) for each in failed if "note" in each.details), "")
        return (
            f"{len(failed):,} of {len(self.said):,} answers are missing, since calls "
            f"failed{f' ({why})' if why else ''}; run the same command again to retry them"
        )

    def writers(self) -> dict[str, Any]:
        """The page; pairs have none."""
        is_of_pairs = self.settings is not None and self.settings.pairwise
        return {} if is_of_pairs else {".html": self.save_page}

    def save_page(self, path: Path) -> None:
        from fabula.judging.part import write_judging_page

        judges, documents, rubric = self.summaries(), self.documents, self.rubric
        corrected = {rater: run.tables() for rater, run in self.corrected().items()}
        write_judging_page(path, judges, self.said, documents, rubric, corrected, self.people)


def judge(
    stories: Texts,
    settings: StoriesSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
    functions: Sequence[FunctionModel] = (),
) -> Judged:
    """Have language models answer a rubric, story by story.

    An answer without a verdict (a refusal, a truncated or withheld answer, "yes and no") is
    missing, with its reason, and never counts as No. The judge's measured agreement with experts is
    shown beside each verdict.

    Raises `InputError`, `ModelError`, `BusyError`; finished answers are kept in `out`.
    """
    from fabula.judging.pairs import drawn_from, numbered, pairs_of
    from fabula.stats.ranking import least_pairs

    plan = plan_of(settings.judging, is_pairwise=settings.pairwise)
    pairs = pairs_of(stories, settings.by) if settings.pairwise else None
    if pairs is not None and not pairs:
        raise InputError("comparing needs at least two stories (in the same group, with `by`)")
    if pairs is not None and settings.max_pairs is not None:
        least = least_pairs(numbered(pairs)[1])
        if settings.max_pairs < least:
            problem = f"must be at least {least}: fewer pairs do not connect these stories"
            raise SettingsError("max_pairs", problem)
        pairs = list(drawn_from(pairs, settings.max_pairs, plan.seed))
    people = labels_of_some(stories, settings.labels, plan.rubric)
    plan, labels = with_examples(plan, stories, people, settings.n_shots)
    judged = ask_judges(
        stories,
        plan,
        settings,
        pairs=pairs,
        n_retest=settings.n_retest,
        progress=progress,
        confirm=confirm,
        functions=functions,
    )
    judged = replace(judged, labels=labels, people=people, settings=settings)
    if settings.html is not None:
        judged.save_page(settings.html)
    return judged


def with_examples(
    plan: JudgePlan, documents: Sequence[Document], labels: list[Measurement], n_shots: int
) -> tuple[JudgePlan, list[Measurement]]:
    """The plan with labelled stories as examples, and the labels of those that are never shown.

    Examples are drawn at random, so the remaining labels are a random sample as well. Raises
    `InputError` if there are too few.
    """
    from fabula.judging.prompts import example_template

    if not n_shots:
        return plan, labels
    if not labels:
        raise SettingsError("n_shots", "needs `labels`, from which examples are drawn")
    style, seed = plan.template.style, plan.seed
    template = example_template(style, documents, labels, plan.rubric, n_shots, seed)
    shown = {story.id for document in documents for story in template.examples(document)}
    unseen = {document.id for document in documents} - shown
    return replace(plan, template=template), [each for each in labels if each.document_id in unseen]


def labels_of_some(
    documents: Sequence[Document], labels: Labels | None, rubric: Rubric
) -> list[Measurement]:
    """People's labels. Raises `InputError` if they could not correct a judge of the documents."""
    from fabula.raters.corrected_means import averaged_items

    if labels is None:
        return []
    answers = labels.read(rubric)
    averaged_items(rubric)
    if not {label.document_id for label in answers} & {text.id for text in documents}:
        raise InputError(f"{labels}: labels none of the stories; check that the ids match")
    return answers


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
    """Ask every model the plan's questions, or `functions` in place of the models, if given.

    Answers are kept in the settings' folder, if there is one.
    """
    from fabula.judging.session import Session, run_session

    models = settings.judging.models
    session = Session(
        documents,
        functions or models.models,
        plan,
        settings.out,
        pairs=pairs,
        n_retest=n_retest,
        options=models.options(),
        max_cost=models.spending.max_cost,
        restart=settings.restart,
        again=_names(settings.again),
        max_unreadable=settings.judging.asking.max_unreadable,
    )
    said, spent = run_session(session, agree=confirm, begin=progress.begin, meter=progress.advance)
    return Judged(documents, plan, said, spent)


def plan_of(
    judging: Judging, *, is_pairwise: bool = False, template: Template | None = None
) -> JudgePlan:
    """What is asked; `template` overrides the one in the settings.

    Raises `InputError` if an item is not in the rubric, or cannot be asked this way.
    """
    from fabula.judging.plan import MAX_TOKENS, JudgePlan
    from fabula.judging.prompts import Template, read_template
    from fabula.rubrics.conditions import Condition
    from fabula.rubrics.load import load_rubric

    questions, asking = judging.questions, judging.asking
    rubric = load_rubric(questions.rubric)
    only = _names(questions.items)
    known = [item.id for item in rubric.items]
    if unknown := [name for name in only if name not in known]:
        hint = f"the items of {rubric.id} are {', '.join(known)}"
        raise SettingsError("items", f"has {unknown[0]}, but {hint}")
    for item in rubric.items:
        if only and item.id not in only:
            continue
        names = Condition.parse(item.show_if).names if only and item.show_if else frozenset()
        if lacking := ", ".join(sorted(names - {*only, *rubric.facts})):
            problem = f"has {item.id}, which is asked only after {lacking}; add it"
            raise SettingsError("items", problem)
        if item.scale.is_ranking and not is_pairwise:
            raise InputError(
                f"{rubric.id}: {item.id} ranks the stories of a group, and a model is shown one "
                "story at a time; `fabula judge` leaves it out with `items`, or compares stories "
                "with `pairwise`"
            )
    if template is None:
        file = questions.template
        template = Template(asking.style) if file is None else read_template(file, asking.style)
    default = 0.0 if asking.n_samples == 1 else 1.0
    plan = JudgePlan(
        rubric=rubric,
        template=template,
        n_samples=asking.n_samples,
        seed=asking.seed,
        n_paraphrases=asking.n_paraphrases,
        temperature=default if asking.temperature is None else asking.temperature,
        max_tokens=asking.max_tokens or MAX_TOKENS[asking.style],
        only=only,
        kind="pairs" if is_pairwise else "stories",
        effort=judging.models.reasoning_effort,
        structured=judging.models.structured,
    )
    for item in plan.items:
        if len(item.paraphrases) < asking.n_paraphrases:
            has = f"item {item.id} of {rubric.id} has ({len(item.paraphrases)})"
            more = "write more of them into the rubric's file"
            raise SettingsError("n_paraphrases", f"asks for more wordings than {has}; {more}")
    return plan
