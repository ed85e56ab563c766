"""Planted faults: which models' answers find them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.errors import InputError
from fabula.jobs.feedback import are_crosses, crosses_of
from fabula.jobs.given import Labels, Rows
from fabula.jobs.judging import FOLDER_HELP, Asking, ask_judges, judging_of, plan_of
from fabula.jobs.models import NoModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Result, Row
from fabula.jobs.result_files import restart_setting
from fabula.settings import Settings, part, setting
from fabula.types import Contrast, Measurement, by_rater

if TYPE_CHECKING:
    from fabula.judging.session import Spent
    from fabula.models.base import FunctionModel
    from fabula.presentation.sheet import Block
    from fabula.tasks.feedback.fault_matches import Findings, FindScore, ReaderAccuracy


@dataclass(frozen=True, slots=True)
class FindSettings(Settings):
    """How to decide whether an answer finds the planted fault."""

    by: str = setting(
        "model",
        help="Tables to print: dimensions, or crosses of them such as model*prompt.",
        unit="LIST",
        check=are_crosses,
    )
    match: Literal["exact", "near"] = setting(
        "near",
        help="exact: quoted words occur in the changed place; near: also four consecutive words "
        "of it, its sentence by number, or both names of a renamed character.",
    )
    details: Path | None = setting(
        None, help="Write what was read from each answer here (.jsonl), to check or label."
    )
    rubric: str = setting(
        "feedback_fault",
        help="Rubric with the questions for judges; a .toml file with the same items may word "
        "them differently.",
        unit="NAME|FILE",
    )
    asking: Asking = part(Asking)
    models: NoModelSettings = part(NoModelSettings)
    out: Path | None = setting(
        Path("found"), help=f"{FOLDER_HELP} For judges (`models`).", unit="DIR"
    )
    restart: bool = restart_setting()
    labels: Labels | None = setting(
        None,
        help="People's answers about some of the feedback (document, item, rater, value; items "
        "found and asks): measures how often quotations and judges are right. A document is "
        "an answer, named as in `details`.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class FoundFaults(Result):
    """What the answers find, by quotation and by each judge."""

    readers: Sequence[Findings]
    """By quotation first, then by each judge."""
    scores: Mapping[str, Sequence[FindScore]]
    """By reader: over all answers, then by each cross, then by model and kind of fault."""
    pairs: Mapping[str, Sequence[Contrast]]
    accuracies: Sequence[ReaderAccuracy]
    crosses: Sequence[tuple[str, ...]]
    spent: Sequence[Spent]
    out: Path | None
    """The folder of the judges' answers."""

    def tables(self) -> list[Block]:
        from fabula.presentation.feedback_tables import finding_tables

        return finding_tables(self.readers, self.scores, self.pairs, self.accuracies, self.crosses)

    def to_json(self) -> dict[str, Any]:
        readers = [
            {
                "by": one.by,
                "signature": one.signature,
                "missing": dict(Counter(reason for _, reason in one.missing)),
                "subsets": [asdict(score) for score in self.scores[one.by]],
                "pairs": [pair.to_json() for pair in self.pairs[one.by]],
                "accuracy": [asdict(a) for a in self.accuracies if a.by == one.by],
            }
            for one in self.readers
        ]
        return {"readers": readers}

    def notices(self) -> list[str]:
        from fabula.presentation.judging_tables import spent_lines

        return spent_lines(self.spent)

    def written(self) -> list[Path]:
        if self.out is None or len(self.readers) == 1:
            return []
        return [self.out / "measurements.jsonl"]

    def rows(self) -> list[Row]:
        """One row per answer: what it points at, and what each judge says about it."""
        judged = [{one.id: one for one in reader.answers} for reader in self.readers[1:]]
        rows = []
        for one in self.readers[0].answers:
            row: Row = {"id": one.id, "story_id": one.story, **one.labels}
            for name in ("names_fault", "found", "rule", "n_points"):
                row[name] = getattr(one, name)
            row["chance"] = None if one.chance != one.chance else one.chance
            for reader, known in zip(self.readers[1:], judged, strict=True):
                theirs = known.get(one.id)
                row[f"found_by_{reader.by}"] = None if theirs is None else theirs.found
            rows.append(row)
        return rows


def find(
    answers: Sequence[Rows],
    settings: FindSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
    functions: Sequence[FunctionModel] = (),
) -> FoundFaults:
    """Score which ANSWERS find the faults that `feedback corrupt` planted.

    Shows recall by kind of fault, false alarms on the original stories, precision and F1, with
    intervals over stories, and compares models on the stories that all of them answered. An answer
    finds a fault if it points at the recorded place; with `models` a judge reads it too. Refusals
    and unreadable answers are missing, and counted.

    Raises `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.jobs.feedback import check_overlap, feedback_rows
    from fabula.rubrics.load import load_rubric
    from fabula.store import write_rows
    from fabula.tasks.feedback.fault_matches import (
        compare_models,
        read_findings,
        reader_accuracy,
        score_findings,
    )
    from fabula.text.feedback_pieces import feedback_id
    from fabula.text.pipeline import STRUCTURE, load_pipeline, pipeline_parts
    from fabula.text.sentences import sentence_spans

    rows = feedback_rows((each for one in answers for each in one.parts), whole=True)
    labels: list[Measurement] = []
    if settings.labels is not None:
        labels = settings.labels.read(load_rubric(settings.rubric))
        ids = [feedback_id(row) for row in rows]
        check_overlap(ids, {one.document_id: one for one in labels}, "labels")
    progress.begin("reading answers", len(rows))
    nlp = load_pipeline(STRUCTURE)
    findings = read_findings(
        rows,
        lambda text: sentence_spans(text, nlp),
        match=settings.match,
        pipeline=",".join(pipeline_parts(nlp).values()),
        meter=progress.advance,
    )
    if not any(one.found is not None for one in findings.answers):
        raise InputError(
            "no answer about a changed story is readable, so there is nothing to measure"
        )
    judged, spent = _judged(rows, findings, settings, progress, confirm, functions)
    readers, seed = [findings, *judged], settings.asking.seed
    crosses = crosses_of(settings.by)
    every = list(dict.fromkeys([(), *crosses, ("method",), ("model", "method")]))
    votes: dict[str, Counter[str]] = {}
    for one in labels:
        if one.value is not None:
            votes.setdefault(one.item, Counter())[one.document_id] += (
                1 if one.value == "Yes" else -1
            )
    # What the majority says, by item and answer; nothing for ties.
    truth = {item: {id_: n > 0 for id_, n in said.items() if n} for item, said in votes.items()}
    result = FoundFaults(
        readers,
        {one.by: list(score_findings(one, every)) for one in readers},
        {one.by: compare_models(one, seed=seed) for one in readers},
        [a for one in readers for a in reader_accuracy(one, truth)],
        crosses,
        spent,
        settings.out,
    )
    if settings.details is not None:
        write_rows(settings.details, result.rows())
    return result


def _judged(
    rows: Sequence[Row],
    findings: Findings,
    settings: FindSettings,
    progress: Progress,
    confirm: Confirm,
    functions: Sequence[FunctionModel],
) -> tuple[list[Findings], list[Spent]]:
    """The answers as each judge reads them; those without points are not given to it."""
    if not (settings.models.models or functions):
        return [], []
    from fabula.judging.judge_prompts import feedback_template
    from fabula.rubrics.load import load_rubric
    from fabula.text.feedback_pieces import feedback_documents

    asking, out = settings.asking, settings.out
    how = judging_of(settings.rubric, asking, settings.models, out, settings.restart)
    plan = plan_of(how.judging, template=feedback_template(settings.asking.style))
    wanted = [item.id for item in load_rubric("feedback_fault").items]
    if [item.id for item in plan.rubric.items] != wanted:
        raise InputError(f"{settings.rubric}: its items must be {', '.join(wanted)}")
    asked = {one.id for one in findings.answers if one.names_fault}
    documents = [one for one in feedback_documents(rows, "the answers") if one.id in asked]
    if not documents:
        return [], []
    run = ask_judges(documents, plan, how, progress=progress, confirm=confirm, functions=functions)
    found = []
    for rater, mine in by_rater(run.said).items():
        verdicts: dict[str, dict[str, str | None]] = {}
        for one in mine:
            said = verdicts.setdefault(one.document_id, {})
            said[one.item] = None if one.value is None else str(one.value)
        found.append(findings.as_judged(rater, verdicts, mine[0].signature))
    return found, list(run.spent)
