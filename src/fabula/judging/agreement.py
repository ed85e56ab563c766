"""Judges and people: a judge measured and corrected by labels, agreement, themes of reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from fabula.core.errors import InputError, MixError
from fabula.core.settings import (
    Between,
    Settings,
    SettingsError,
    of_field,
    part,
    seed_setting,
    setting,
)
from fabula.core.store import write_rows
from fabula.core.types import Contrast, Document, Estimate, Measurement, Rubric, by_rater
from fabula.jobs.given import GivenSource
from fabula.jobs.job import SILENT, Confirm, Progress, Stream, agreed
from fabula.jobs.models import NoModelSettings, Pricing, confirm_prompts
from fabula.jobs.result import Result, Row, picked
from fabula.jobs.shared_settings import page_setting
from fabula.judging import job as judging
from fabula.judging.job import Labels, Run

if TYPE_CHECKING:
    from fabula.judging.judges import JudgeCost, JudgeFigures
    from fabula.judging.themes import Theme
    from fabula.judging.trust import Trust
    from fabula.raters.agreement import AmongPeople, GradedAgreement, JudgeAgreement, Panel
    from fabula.raters.corrected_means import CorrectedRow, Correction
    from fabula.show.sheet import Block


@dataclass(frozen=True, slots=True)
class CorrectSettings(Settings):
    """What a judge is corrected with, and what to compute."""

    labels: Labels | None = setting(
        None,
        help="People's labels for some of the documents, drawn at random: a table of document, "
        "item, rater, value, a study's export, or TTCW's.",
    )
    by: str | None = of_field(
        "Correct each group separately, and compare groups, by this field of the texts."
    )
    texts: GivenSource | None = setting(
        None, help="The texts that were judged, needed for fields other than author.", unit="TEXTS"
    )
    judge: str | None = setting(None, help="Judge to use, if the run has several.", unit="NAME")
    truth: Literal["mean", "majority"] = setting(
        "mean",
        help="How the answers of several experts on a document are combined (majority: "
        "for yes-no items).",
    )
    about: Literal["texts", "source"] = setting(
        "texts",
        help="What the intervals are about: the texts that were judged, or the source that they "
        "are a sample of (all that a model or an author would write), which is wider.",
    )
    cluster: str | None = of_field(
        "Count texts that share this field (a prompt, an author) as one, above all if labels "
        "were drawn by it."
    )
    width: float = setting(
        0.1,
        help="Estimate how many labels would make the interval this wide, as a share of the scale.",
        check=Between(0.001, 1),
    )
    n_next: int = setting(
        5, help="Number of documents to suggest for labelling next.", check=Between(0, 10_000)
    )
    seed: int = seed_setting("Seed for the choice of documents to label next.")


@dataclass(frozen=True, slots=True, repr=False)
class CorrectedRun(Result):
    """A judge's means as experts would have given them."""

    correction: Correction
    rubric: Rubric

    def tables(self) -> list[Block]:
        from fabula.raters.tables import correction_tables

        return correction_tables(self.correction, self.rubric)

    def rows(self) -> list[Row]:
        """A row for `all`, each item and each group: raw and corrected mean, interval, and n."""
        data = self.to_json()
        kinds = {"all": {"all": data["overall"]}, "item": data["items"], "group": data["groups"]}
        return [
            {"kind": kind, "name": name, **row}
            for kind, rows in kinds.items()
            for name, row in rows.items()
        ]

    def to_json(self) -> dict[str, Any]:
        return self.correction.to_json()


def correct(run: Run, settings: CorrectSettings) -> CorrectedRun:
    """Estimate what experts would have said about all documents of RUN, from labels for some.

    A judge that passes more documents than experts do is just as wrong on documents that nobody
    labelled. Means, rates of items and differences between groups are corrected by
    prediction-powered inference (PPI++), with 95 % intervals that are valid for few labels. The
    labelled documents must be drawn at random; labels for a different kind of document are refused.

    Raises `InputError`, `SettingsError`.
    """
    rubric, measurements = run.read()
    if any("orders" in answer.details for answer in measurements):
        raise InputError(
            f"{run.name}: compares stories, and has no answer about a story that could be "
            f"corrected; `fabula judge agreement` says how far the judge prefers the same stories "
            f"as people"
        )
    labels = [] if settings.labels is None else settings.labels.read(rubric)
    documents = run.documents() if settings.texts is None else settings.texts.read()
    return correct_measurements(measurements, labels, rubric, settings, documents)


def correct_measurements(
    measurements: Sequence[Measurement],
    labels: Sequence[Measurement],
    rubric: Rubric,
    settings: CorrectSettings,
    documents: Sequence[Document] = (),
) -> CorrectedRun:
    """Correct given measurements by labels; `documents` have its fields."""
    from fabula.judging.run import RETEST
    from fabula.raters.corrected_means import correct

    if not labels:
        raise SettingsError("labels", "are needed: what people said of some of the documents")
    answers = [answer for answer in measurements if not answer.document_id.endswith(RETEST)]
    judges = list(dict.fromkeys(answer.rater for answer in answers))
    if settings.judge is not None or len(judges) != 1:
        if settings.judge not in judges:
            known = ", ".join(judges) or "none: nobody judged"
            raise SettingsError("judge", f"must be one of {known}")
        answers = [answer for answer in answers if answer.rater == settings.judge]
    correction = correct(
        answers,
        labels,
        rubric,
        group_of=_field_of(settings.by, [*labels, *answers], documents),
        cluster_of=_field_of(settings.cluster, [*labels, *answers], documents),
        truth=settings.truth,
        about=settings.about,
        width=settings.width,
        n_next=settings.n_next,
        seed=settings.seed,
    )
    return CorrectedRun(correction, rubric)


def _field_of(
    by: str | None, measurements: Sequence[Measurement], documents: Sequence[Document]
) -> Callable[[str], str] | None:
    if by is None:
        return None
    known: dict[str, Any] = {text.id: text.fields.get(by) for text in documents}
    if not documents and by == "author":
        known = {answer.document_id: answer.details.get("author") for answer in measurements}
        named = (answer for answer in measurements if answer.details.get("author"))
        known |= {answer.document_id: answer.details["author"] for answer in named}

    def field_of(document: str) -> str:
        if (value := known.get(document)) is None:
            hint = "" if documents else "; give the texts that were judged with `texts`"
            raise InputError(f"{document}: has no field {by!r}{hint}")
        return str(value)

    return field_of


@dataclass(frozen=True, slots=True)
class CalibrateSettings(judging.LabelledSettings):
    """A run on texts that people have judged."""

    labels: Labels | None = setting(
        None,
        help="People's labels for the stories: a table of document, item, rater, value, or a "
        "study's export.",
        default_text="those in the released folder",
    )
    out: Path | None = setting(Path("calibrated"), help=judging.FOLDER_HELP, unit="DIR")
    html: Path | None = page_setting(
        "Write a page here: each verdict and reason beside those of people."
    )


@dataclass(frozen=True, slots=True, repr=False)
class Calibration(Result):
    """Judges compared with people on the same texts, and what was kept."""

    judged: judging.Judged
    panel: Panel
    judges: list[tuple[JudgeAgreement, list[Trust]]]
    """On yes-no items."""
    graded: GradedAgreement
    graded_trusts: list[Trust]
    """On all other items."""
    book_path: Path | None
    """Where the trust is kept; None if no judge has a name of its own."""

    def rows(self) -> list[Row]:
        """The trust of each judge in each item."""
        trusts = [trust for _, trusts_ in self.judges for trust in trusts_]
        return [asdict(trust) for trust in [*trusts, *self.graded_trusts]]

    def tables(self) -> list[Block]:
        from fabula.judging.tables import calibration_tables
        from fabula.raters.agreement import expert_correlation, panel_agreement
        from fabula.raters.tables import graded_tables

        plan, panel = self.judged.plan, self.panel
        blocks: list[Block] = []
        if self.judges:
            shared = panel.on({answer.document_id for answer in self.judged.said})
            ours, everywhere = (
                panel_agreement(p, plan.rubric, "item", seed=plan.seed) for p in (shared, panel)
            )
            correlation = expert_correlation(panel, plan.rubric, seed=plan.seed)
            n = _n_documents(shared), _n_documents(panel)
            blocks += calibration_tables(self.judges, ours, everywhere, correlation, plan.rubric, n)
        return blocks + (graded_tables(self.graded) if self.graded.people else [])

    def notices(self) -> Sequence[str]:
        return self.judged.notices()

    def written(self) -> Sequence[Path]:
        return () if self.book_path is None else (self.book_path,)

    def lacking(self) -> str | None:
        return self.judged.lacking()

    def writers(self) -> dict[str, Any]:
        return self.judged.writers()


def _n_documents(panel: Panel) -> int:
    return len({document for document, _ in panel.subjects})


def calibrate(
    stories: Annotated[Stream, "DIR|STORIES"],
    settings: CalibrateSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Calibration:
    """Measure how far a judge agrees with people on stories that people have judged.

    STORIES with `labels`, for any rubric; or DIR, the folder Art_or_Artifice of
    github.com/salesforce/creativity_eval, which holds the texts of 36 of the 48 stories of TTCW and
    their experts' verdicts. The judge is compared with people on the same stories. Its agreement is
    saved by model, wording, style and mode, and shown with every later verdict of that judge.

    Raises `InputError`, before anything is paid for, if no labels match the stories.
    """
    from fabula.judging.plan import is_identified
    from fabula.judging.trust import TrustBook, graded_trust, released_folder
    from fabula.judging.trust import calibrate as calibrated
    from fabula.raters.agreement import graded_agreement, panel_of_labels

    if settings.labels is not None:
        documents, labels = list(stories), settings.labels
    elif len(stories.names) == 1:
        documents, path = released_folder(Path(stories.names[0]))
        labels = Labels(path)
    else:
        raise SettingsError(
            "labels", "are needed for stories; without them, give the one released folder"
        )
    plan = judging.plan_of(settings.judging)
    answers = labels.read(plan.rubric)
    labelled = {answer.document_id for answer in answers}
    asked = [story for story in documents if story.id in labelled]
    if not asked:
        raise InputError(f"{labels}: labels none of the stories; check that the ids match")
    plan, _ = judging.with_examples(plan, asked, answers, settings.n_shots)
    judged = judging.ask_judges(asked, plan, settings, progress=progress, confirm=confirm)
    judged = replace(judged, people=answers)
    panel = panel_of_labels(answers, plan.rubric, labels.name)
    today = datetime.now(UTC).date().isoformat()
    book = TrustBook()
    verdicts = [m for m in judged.said if plan.rubric.item(m.item).scale.agreement == "kappa"]
    judges = calibrated(verdicts, panel, plan, book, today) if panel.subjects and verdicts else []
    graded = graded_agreement(judged.said, answers, plan.rubric, seed=plan.seed)
    graded_trusts = graded_trust(judged.said, graded, plan, book, labels.name, today)
    if settings.html is not None:
        # Its verdicts carry the trust that was just measured.
        judged.save_page(settings.html)
    trusts = [*graded_trusts, *(trust for _, many in judges for trust in many)]
    is_kept = any(is_identified(trust.model) for trust in trusts)
    return Calibration(judged, panel, judges, graded, graded_trusts, book.path if is_kept else None)


@dataclass(frozen=True, slots=True)
class AgreementSettings(Pricing):
    """What judges are measured against, and what agreement is computed for."""

    labels: Labels | None = setting(
        None,
        help="People's labels to measure the judges against: a table of document, item, rater, "
        "value, a study's export, or TTCW's; without them, judges are only compared with each "
        "other.",
    )
    by: Literal["item", "dimension", "author"] = setting(
        "item", help="What each row of agreement with `labels` stands for."
    )
    texts: GivenSource | None = setting(
        None,
        help="The texts that were judged; needed to measure length bias.",
        unit="STORIES",
        option="stories",
    )
    seed: int = seed_setting("Seed for the intervals.")


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Judges, then their panels, each measured in the same way; and compared in pairs."""

    judges: Sequence[JudgeFigures]
    pairs: Sequence[Contrast]
    costs: Mapping[str, JudgeCost]
    corrected: Mapping[str, CorrectedRow]
    """By judge, what experts would have said of everything it judged; empty without labels."""
    graded: GradedAgreement | None = None
    """On items other than yes-no; None if the rubric has none."""
    graded_pairs: Sequence[Contrast] = ()
    has_tests: bool = True
    """Whether the rubric has yes-no items."""

    def tables(self) -> list[Block]:
        from fabula.judging.tables import judge_comparison_tables

        return judge_comparison_tables(self)

    def rows(self) -> list[dict[str, Any]]:
        """One entry per judge and panel."""
        rows, costs = [], ("n_calls", "n_input", "n_output", "cost")
        for figures in self.judges:
            judge, counts, place = figures.judge, figures.confusion, figures.judge.place
            corrected, cost = self.corrected.get(judge.rater), self.costs.get(judge.rater)
            # By item: agreement with people and among them, and with each other judge.
            graded: dict[str, dict[str, Any]] = {}
            of_items = {} if self.graded is None else self.graded.judges.get(judge.rater, {})
            for item, beside in of_items.items():
                graded[item] = {
                    **_ends(beside.kappa, "kappa"),
                    "n": beside.n,
                    "people": _ends(beside.people, "kappa"),
                    "difference": _ends(beside.difference, "difference"),
                    "correlation": _ends(beside.correlation, "correlation"),
                    "signature": beside.kappa.signature,
                }
            pairs = () if self.graded is None else self.graded_pairs
            for item in dict.fromkeys(pair.number for pair in pairs):
                of_item = [pair for pair in pairs if pair.number == item]
                graded.setdefault(item, {})["against"] = _seen_from(judge.rater, of_item)
            row = {
                "rater": judge.rater,
                "kind": judge.kind,
                **_ends(figures.kappa, "kappa"),
                "n": figures.kappa.n,
                "n_documents": figures.kappa.n_units,
                "baseline": figures.baseline,
                "sensitivity": counts.recall,
                "specificity": counts.specificity,
                "accuracy": counts.accuracy,
                "share_yes": figures.share_yes,
                "corrected": None if corrected is None else corrected.to_json(),
                "n_answers": judge.n_answers,
                "missing": dict(judge.missing),
                "retest": _ends(figures.retest, "kappa") | {"n": figures.retest.n},
                "wordings": _ends(figures.wordings, "kappa") | {"n": figures.wordings.n},
                "length": _ends(figures.length, "correlation"),
                "own_family": _ends(figures.own_family, "difference"),
                "first_place": None if place is None else place.first_share,
                "turned": None if place is None else place.n_turned / place.n_pairs,
                **{name: cost and getattr(cost, name) for name in costs},
                "against": _seen_from(judge.rater, self.pairs),
                "graded": graded,
                "why_missing": dict(figures.why_missing),
                "signature": figures.kappa.signature,
            }
            rows.append(row)
        return rows


def _seen_from(rater: str, pairs: Sequence[Contrast]) -> dict[str, dict[str, Any]]:
    """By other judge: how much better this one is, and how far the two agree."""
    by_judge: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        if rater not in (pair.a, pair.b):
            continue
        is_first = rater == pair.a
        ends = _ends(pair.difference, "difference")
        if not is_first:
            value, low, high = (None if v is None else -v for v in ends.values())
            ends = {"difference": value, "low": high, "high": low}
        agreement = pair.details["agreement"]
        alike = {"agreement": agreement.value}
        alike |= {f"agreement_{name}": getattr(agreement, name) for name in ("low", "high", "n")}
        by_judge[pair.b if is_first else pair.a] = {**ends, "n": pair.difference.n, **alike}
    return by_judge


def _ends(estimate: Estimate, name: str) -> dict[str, float | None]:
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


@dataclass(frozen=True, slots=True)
class WithPeople:
    """Judges with people, and people with each other: on yes-no items, then on all others."""

    rubric: Rubric
    judges: list[JudgeAgreement]
    experts: list[AmongPeople]
    expert_correlation: Estimate | None
    """Of the number of tests passed; None if there are no yes-no items."""
    graded: GradedAgreement | None
    """None if there are no answers on items other than yes-no."""

    def tables(self) -> list[Block]:
        from fabula.judging.tables import agreement_tables
        from fabula.raters.tables import graded_tables

        blocks: list[Block] = []
        correlation = self.expert_correlation
        if correlation is not None:
            blocks += agreement_tables(self.judges, self.experts, correlation, self.rubric)
        return blocks + (graded_tables(self.graded) if self.graded else [])

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {} if self.graded is None else {"graded": asdict(self.graded)}
        if self.expert_correlation is None:
            return data
        judges = []
        for judge in self.judges:
            entry = asdict(judge)
            del entry["why_no_correlation"]
            entry["rows"] = [*entry["rows"], entry.pop("overall")]
            for row, fields in zip((*judge.rows, judge.overall), entry["rows"], strict=True):
                counts = row.confusion
                fields |= picked(counts, "balanced_accuracy", "precision", "recall", "f1", "phi")
                fields["percent"] = None if counts.accuracy is None else 100 * counts.accuracy
            judges.append(entry)
        return {
            "experts": [asdict(row) for row in self.experts],
            "experts_pearson": asdict(self.expert_correlation),
            "judges": judges,
            **data,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Agreements(Result):
    """Judges beside people and beside each other."""

    comparison: JudgeComparison | None
    """None without runs."""
    people: WithPeople | None
    """None without labels."""

    def tables(self) -> list[Block]:
        tables = [side.tables() for side in (self.comparison, self.people) if side is not None]
        return [*tables[0], *(block for table in tables[1:] for block in ("", *table))]

    def rows(self) -> list[Row]:
        """A row for each judge and panel."""
        return [] if self.comparison is None else self.comparison.rows()

    def frame_rows(self) -> list[Row]:
        """A row for each judge and panel, with every numeric figure.

        `kappa` with people's majority, its `low` and `high`, and the kappa of one person
        (`baseline`); `n_missing` counts the answers without a verdict. The differences between each
        two judges are in `to_json`.
        """
        rows = []
        for entry in self.rows():
            row: Row = {}
            for name, value in entry.items():
                if name == "missing":
                    row["n_missing"] = sum(value.values())
                elif isinstance(value, dict) and "low" in value:
                    # Those with an interval have columns for its ends.
                    key = name if name in value else next(iter(value))
                    ends = {f"{name}_{end}": n for end, n in value.items() if end != key}
                    row |= {name: value[key], **ends}
                elif not isinstance(value, dict | list | tuple):
                    row[name] = value
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        with_people = {} if self.people is None else {"agreement": self.people.to_json()}
        return {"judges": self.rows(), **with_people}


def agreement(settings: AgreementSettings, runs: Sequence[Run] = ()) -> Agreements:
    """Compare the judges of RUNs with people's verdicts and with each other.

    A RUN is a folder that `fabula judge` wrote. On yes-no items, with three or more judges, the
    majority of the judges is measured too; numbers and choices are compared item by item, with the
    statistic of their scale. Intervals are over documents.

    With `labels`, agreement with experts, and of experts with each other, follows for each item,
    dimension or author (`by`); without RUNs that of experts alone. Over several items, kappa has
    the chance of each item. Kappas have 95 % intervals over stories; an undefined coefficient
    (everybody answered the same) is shown as `-`, never as 0. On items that are not yes-no, kappa
    is weighted (numbers, ordered choices) and shown beside that of people on the same documents.

    Raises `InputError`, `SettingsError`, and `MixError` for runs of different items.
    """
    from fabula.raters.agreement import (
        expert_correlation,
        graded_agreement,
        judge_agreement,
        panel_agreement,
        panel_of_labels,
    )
    from fabula.raters.labels import sides
    from fabula.rubrics.load import load_rubric

    if not runs and settings.labels is None:
        raise SettingsError(
            "labels", "are needed without runs: give folders that `fabula judge` wrote, or labels"
        )
    names = [f"run {k}" if r.folder is None else r.name for k, r in enumerate(runs, 1)]
    judged: list[tuple[str, str, list[Measurement], JudgeCost | None]] = []
    rubric = None
    for run, name in zip(runs, names, strict=True):
        own_rubric, measurements = run.read()
        rubric = rubric or own_rubric
        if {item.id for item in own_rubric.items} != {item.id for item in rubric.items}:
            raise MixError(f"{name}: judged on different items ({own_rubric.key}) from {names[0]}")
        costs = run.costs(settings.prices())
        by_judge = by_rater(sides(measurements)).items()
        judged += [(name, rater, answers, costs.get(rater)) for rater, answers in by_judge]
    rubric = rubric or load_rubric("ttcw")
    if not any(item.scale.level for item in rubric.items):
        raise InputError(f"{names[0]}: has only free-text items, which cannot be compared")
    labels = [] if settings.labels is None else settings.labels.read(rubric)
    source = "" if settings.labels is None else settings.labels.name
    comparison = None
    if runs:
        stories = [story for run in runs for story in run.documents()]
        if settings.texts:
            stories = settings.texts.read()
        comparison = compare_runs(judged, rubric, labels, source, stories, seed=settings.seed)
    if settings.labels is None:
        return Agreements(comparison, None)
    by, seed, everything = settings.by, settings.seed, [m for *_, many, _ in judged for m in many]
    graded = graded_agreement(everything, labels, rubric, seed=seed)
    graded_people = graded if graded.people else None
    panel = panel_of_labels(labels, rubric, source)
    if not panel.subjects:
        return Agreements(comparison, WithPeople(rubric, [], [], None, graded_people))
    truth = panel.majority()
    judges = [
        judge_agreement(answers, panel, rubric, by, seed=seed)
        for *_, answers, _ in judged
        # The comparison of judges says that the others have no document in common with people.
        if any((each.document_id, each.item) in truth for each in answers)
    ]
    experts = panel_agreement(panel, rubric, by, seed=seed)
    correlation = expert_correlation(panel, rubric, seed=seed)
    return Agreements(comparison, WithPeople(rubric, judges, experts, correlation, graded_people))


def compare_runs(
    runs: Sequence[tuple[str, str, list[Measurement], JudgeCost | None]],
    rubric: Rubric,
    labels: Sequence[Measurement],
    source: str,
    stories: Sequence[Document],
    *,
    seed: int,
) -> JudgeComparison:
    """Compare judges with people's labels, from `source`, and with each other.

    runs: the name of a run, a judge of it, what it said, and its cost, if that is known. With
    `stories`, the texts that were judged, length bias is measured. Raises `InputError` for a run
    that is named twice.
    """
    from fabula.judging.judges import Yardstick, judge_answers, judge_figures, judge_panels, pair_of
    from fabula.judging.run import RETEST
    from fabula.raters.agreement import (
        graded_agreement,
        graded_items,
        graded_pairs,
        panel_of_labels,
    )
    from fabula.text import count_words

    n_runs = Counter(rater for _, rater, _, _ in runs)
    answers_of: dict[str, list[Measurement]] = {}
    costs: dict[str, JudgeCost] = {}
    for run, rater, answers, cost in runs:
        name = rater if n_runs[rater] == 1 else f"{rater} ({run})"
        if name in answers_of:
            raise InputError(f"{run}: is named twice; name each run once")
        answers_of[name] = answers
        if cost is not None:
            costs[name] = cost
    judges = [judge_answers(name, rows, rubric) for name, rows in answers_of.items()]
    n_words = {story.id: count_words(story.text) for story in stories}
    panel = panel_of_labels(labels, rubric, source)
    yardstick = Yardstick(panel if labels else None, n_words, seed)
    everybody = [*judges, *judge_panels(judges)]
    answering = [judge for judge in everybody if judge.answers]
    pairs = [pair_of(first, second, yardstick) for first, second in combinations(answering, 2)]
    figures = [judge_figures(judge, yardstick) for judge in everybody]
    corrected = {
        name: row for name, rows in answers_of.items() if (row := _corrected(rows, labels, rubric))
    }
    first = {
        # Answers about pairs, and repeats, are not about documents that people have labelled.
        name: [
            replace(answer, rater=name)
            for answer in rows
            if not answer.document_id.endswith(RETEST) and "orders" not in answer.details
        ]
        for name, rows in answers_of.items()
    }
    is_graded = bool(graded_items(rubric))
    everything = [answer for many in first.values() for answer in many]
    return JudgeComparison(
        figures,
        pairs,
        costs,
        corrected,
        graded_agreement(everything, labels, rubric, seed=seed) if is_graded else None,
        graded_pairs(first, labels, rubric, seed=seed),
        has_tests=any(item.scale.agreement == "kappa" for item in rubric.items),
    )


def _corrected(
    answers: Sequence[Measurement], labels: Sequence[Measurement], rubric: Rubric
) -> CorrectedRow | None:
    """The mean that experts would have given, over the items that can be averaged, if any."""
    from fabula.raters.corrected_means import averaged_items

    try:
        items = averaged_items(rubric)
    except InputError:
        return None
    ids = {item.id for item in items}
    judged, people = ([m for m in many if m.item in ids] for many in (answers, labels))
    known = {label.document_id for label in people}
    if not any(answer.document_id in known and answer.value is not None for answer in judged):
        return None
    settings = CorrectSettings(judge=judged[0].rater)
    averaged = replace(rubric, items=tuple(items))
    return correct_measurements(judged, people, averaged, settings).correction.overall


_LABEL_TOKENS = 60


@dataclass(frozen=True, slots=True)
class ThemeSettings(Settings):
    """Which reasons are grouped, and how."""

    out: Path | None = setting(
        None,
        help="Write the themes here (.jsonl), to edit their labels; labels edited there are kept.",
    )
    n_themes: int = setting(4, help="Number of themes for each item and side.", check=Between(1))
    models: NoModelSettings = part(NoModelSettings)

    def check_together(self) -> None:
        if self.models.n_models > 1:
            raise SettingsError("models", "must be a single model, which names the themes")


@dataclass(frozen=True, slots=True, repr=False)
class GroupedReasons(Result):
    """Themes in the order of the rubric's items."""

    themes: Sequence[Theme]
    rubric: Rubric
    out: Path | None = None
    names_settings: ClassVar[bool] = False

    def rows(self) -> list[Row]:
        return [asdict(theme) for theme in self.themes]

    def lines(self) -> Sequence[str]:
        from fabula.judging.tables import theme_lines

        written = f"written: {self.out}; edit the labels there and run this again to see them"
        lines = theme_lines(self.themes, self.rubric)
        return lines if self.out is None else [*lines, written]


def themes(
    sources: Annotated[Sequence[Path], "RUN|FILE"],
    settings: ThemeSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> GroupedReasons:
    """Group the reasons that raters gave into themes, separately for passing and failing each test.

    A source is a run of `fabula judge`, or the experts' ttcw_annotations.json. Reasons are grouped
    by the meaning of their sentences; the most typical ones are shown beside each theme. With
    `models`, a model names the themes, which else have the words that are typical of them.

    Raises `InputError`, also if a label edited in `out` would be lost, and `ModelError`.
    """
    from fabula.judging.themes import find_themes, keep_labels, read_rationales

    out, spec = settings.out, next(iter(settings.models.models), None)
    rubric, rationales = read_rationales(sources)
    progress.begin("grouping reasons", len(rationales))
    terms = settings.models.options()
    groups = find_themes(
        rationales,
        rubric,
        n_themes=settings.n_themes,
        model=spec,
        options=terms,
        agree=confirm_prompts(spec or "", terms.prices, _LABEL_TOKENS, confirm),
        meter=progress.advance,
    )
    foreign: list[Row] = []
    if out is not None:
        if out.exists():
            groups, foreign = keep_labels(groups, out)
        write_rows(out, [*map(asdict, groups), *foreign])
    return GroupedReasons(groups, rubric, out)
