"""Comparing judges on the same documents, and combining them into panels.

Only yes-no items count here; `raters/agreement.py` handles the others. If experts' verdicts are
given, a judge's biases are measured where the experts agree: what remains is its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fabula.core.packages import scipy
from fabula.core.store import read_rows
from fabula.core.types import Contrast, Estimate, Measurement, Rubric
from fabula.judging.pairs import PairSummary, summarise_pairs
from fabula.judging.run import RETEST
from fabula.models.base import Usage
from fabula.models.cost import Prices
from fabula.models.replay import recorded
from fabula.raters.agreement import Panel, people_agreement
from fabula.stats.agreement import Confusion, association_within, cohen, difference, fleiss

Subject = tuple[str, str]
MIN_JUDGES = 3
"""Minimum size of a panel: two judges can only agree or be split."""


@dataclass(frozen=True, slots=True)
class JudgeAnswers:
    """The answers of a judge, or a panel: 1 for Yes, 0 for No, by document and item."""

    rater: str
    signature: str
    answers: Mapping[Subject, float]
    missing: Mapping[str, int]
    kind: Literal["judge", "panel"] = "judge"
    again: Mapping[Subject, float] = field(default_factory=dict)
    """Answers when asked a second time."""
    wordings: Mapping[Subject, Sequence[float | None]] = field(default_factory=dict)
    """Answers to each wording of the question, if there were several."""
    own: Mapping[str, bool] = field(default_factory=dict)
    """Whether the judge's own family wrote a document, if its author is known."""
    place: PairSummary | None = None
    """For a pairwise run, which has no answers about single documents."""
    n_graded: int = 0
    """Answers on items that are not yes-no; `missing` counts these items too."""

    @property
    def n_answers(self) -> int:
        return len(self.answers) + self.n_graded


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What judges are compared with; without experts, only agreement among judges is measured."""

    experts: Panel | None = None
    n_words: Mapping[str, int] = field(default_factory=dict)
    """The length of documents, if their texts are known."""
    seed: int = 0

    def truth(self) -> Mapping[Subject, float]:
        return {} if self.experts is None else self.experts.majority()

    @property
    def source(self) -> str:
        return "none" if self.experts is None else self.experts.source

    def people(self, documents: Collection[str]) -> float | None:
        """The agreement of one person with the others, on these documents."""
        if self.experts is None or not self.experts.subjects:
            return None
        return people_agreement(self.experts, documents)["all"].one_with_rest


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """The figures of a judge. An estimate without a value has its reason in `why_missing`."""

    judge: JudgeAnswers
    kappa: Estimate
    baseline: float | None
    """The agreement of one person with the others, on the same documents."""
    confusion: Confusion
    retest: Estimate
    wordings: Estimate
    """Fleiss's kappa among the wordings of the questions."""
    length: Estimate
    own_family: Estimate
    why_missing: Mapping[str, str]

    @property
    def share_yes(self) -> float | None:
        answers = list(self.judge.answers.values())
        return float(np.mean(answers)) if answers else None


@dataclass(frozen=True, slots=True)
class JudgeCost:
    """What a judge's answers used and cost, as recorded in its run."""

    n_calls: int
    n_input: int
    n_output: int
    cost: float | None
    """Dollars at the model's known price; None if that is unknown."""


def costs_of(folder: Path, prices: Prices) -> dict[str, JudgeCost]:
    """What the answers that a run keeps cost, by model."""
    path = folder / "answers.jsonl"
    by_model: dict[str, list[Usage]] = {}
    for row in read_rows(path) if path.exists() else ():
        usage = Usage() if row.get("failed") else recorded(row).usage
        by_model.setdefault(row["model"], []).append(usage)
    costs = {}
    for model, usages in by_model.items():
        usage = sum(usages, Usage())
        # After `@` comes what the server reported.
        price = prices.of(model) or prices.of(model.rpartition("@")[0])
        cost = None if price is None else price.of(usage)
        costs[model] = JudgeCost(len(usages), usage.n_input, usage.n_output, cost)
    return costs


def judge_answers(rater: str, measurements: Sequence[Measurement], rubric: Rubric) -> JudgeAnswers:
    """The answers of one rater in a run of stories, or of pairs of them."""
    signature = measurements[0].signature
    if any("orders" in m.details for m in measurements):
        return JudgeAnswers(rater, signature, {}, {}, place=summarise_pairs(measurements)[-1])
    answers: dict[Subject, float] = {}
    again: dict[Subject, float] = {}
    wordings: dict[Subject, list[float | None]] = {}
    missing: Counter[str] = Counter()
    is_own: dict[str, bool] = {}
    n_graded = 0
    for answer in measurements:
        scale = rubric.item(answer.item).scale
        is_retest = answer.document_id.endswith(RETEST)
        if scale.agreement != "kappa":
            if scale.level and not is_retest:
                n_graded += answer.value is not None
                missing.update([answer.missing_reason] if answer.missing_reason else [])
            continue
        document = answer.document_id.removesuffix(RETEST)
        value = scale.decided(answer.value)
        if isinstance(value, float):
            (again if is_retest else answers)[document, answer.item] = value
        elif not is_retest:
            missing[answer.missing_reason or "tie"] += 1
        if "wordings" in answer.details and not is_retest:
            decided = map(scale.decided, answer.details["wordings"])
            wordings[document, answer.item] = [v if isinstance(v, float) else None for v in decided]
        if answer.details.get("author"):
            is_own[document] = bool(answer.details.get("own_story"))
    return JudgeAnswers(
        rater, signature, answers, missing, "judge", again, wordings, is_own, n_graded=n_graded
    )


def judge_panels(judges: Sequence[JudgeAnswers]) -> list[JudgeAnswers]:
    """The panel of the judges, if there are enough: Yes if more than half of them say so."""
    judges = [judge for judge in judges if judge.answers]
    if len(judges) < MIN_JUDGES:
        return []
    subjects = dict.fromkeys(subject for judge in judges for subject in judge.answers)
    share_yes = {s: np.mean([j.answers[s] for j in judges if s in j.answers]) for s in subjects}
    decided = {subject: float(p > 0.5) for subject, p in share_yes.items() if p != 0.5}
    n_split = len(share_yes) - len(decided)
    signature = f"panel|rule:majority-of-the-judges|judges:{len(judges)}"
    missing = {"the judges are split": n_split} if n_split else {}
    return [JudgeAnswers("majority of the judges", signature, decided, missing, "panel")]


def judge_figures(judge: JudgeAnswers, yardstick: Yardstick) -> JudgeFigures:
    """Measure a judge against the yardstick."""
    truth = yardstick.truth()
    nothing = f"there are no answers{' on yes-no items' if judge.n_graded else ''}"
    why: dict[str, str] = {}
    subjects = [subject for subject in judge.answers if subject in truth]
    signature = f"{judge.signature}|experts:{yardstick.source}"
    method = "Cohen kappa with the experts' majority"
    kappa = _kappa(subjects, judge.answers, truth, yardstick.seed, signature, method)
    if kappa.value is None:
        if judge.place is not None:
            why["kappa"] = "a pairwise run has no verdicts on single documents"
        elif not judge.answers:
            why["kappa"] = nothing
        elif yardstick.experts is None:
            why["kappa"] = "no labels were given"
        elif not yardstick.experts.subjects:
            why["kappa"] = "no labels on yes-no items were given"
        elif not len(subjects):
            why["kappa"] = "no document has both an answer and a label; check that the ids match"
        else:
            why["kappa"] = "judge and experts gave the same answer to everything"
    judged, expected = (np.array([of[each] for each in subjects]) for of in (judge.answers, truth))
    counts = Confusion.of(judged, expected)
    for name, rate in (("sensitivity", counts.recall), ("specificity", counts.specificity)):
        if rate is None:
            passed = "passed" if name == "sensitivity" else "failed"
            why[name] = why.get("kappa", "") if not counts.n else f"experts {passed} nothing"
    baseline = yardstick.people({document for document, _ in subjects})
    if baseline is None:
        why["baseline"] = why.get("kappa") or "no verdict by one person with two others who agree"
    retested = [subject for subject in judge.again if subject in judge.answers]
    method = "Cohen kappa of first and second answers"
    retest = _kappa(retested, judge.answers, judge.again, yardstick.seed, judge.signature, method)
    if retest.value is None:
        why["retest"] = "all answers are the same" if retested else "no document was judged twice"
    n_wordings = max(map(len, judge.wordings.values()), default=0)
    ratings = np.full((len(judge.wordings), n_wordings), np.nan)
    for row, answers in zip(ratings, judge.wordings.values(), strict=True):
        row[: len(answers)] = [np.nan if value is None else value for value in answers]
    wordings = fleiss(ratings, [item for _, item in judge.wordings]).estimate(
        [document for document, _ in judge.wordings],
        seed=yardstick.seed,
        method="Fleiss kappa of the wordings of questions",
        signature=judge.signature,
    )
    if wordings.value is None:
        one_way = "each question was asked in one wording"
        why["wordings"] = "all answers are the same" if judge.wordings else one_way
    measured = dict.fromkeys(document for document, _ in _measured(judge, truth))
    documents = [document for document in measured if document in yardstick.n_words]
    ranked = scipy("stats").rankdata([yardstick.n_words[d] for d in documents])
    ranks = dict(zip(documents, ranked, strict=True))
    measure = "rank correlation of Yes with words"
    length = _association(judge, truth, ranks, measure, kind="correlation")
    if length.value is None:
        known = "answers or lengths never differ" if documents else "the texts were not given"
        why["length"] = known if judge.answers else nothing
    of_known = {document for document in measured if document in judge.own}
    sides = Counter(judge.own[document] for document in of_known)
    measure = "difference in the share of Yes, own family and others"
    n_units = min(sides[True], sides[False])
    own_family = _association(judge, truth, judge.own, measure, kind="slope", n_units=n_units)
    if own_family.value is None:
        one_side = "all documents are by its own family" if sides[True] else "none is by its family"
        why["own_family"] = one_side if of_known else "the authors of the documents are unknown"
        if judge.kind == "panel":
            why["own_family"] = "a panel has no family"
    return JudgeFigures(judge, kappa, baseline, counts, retest, wordings, length, own_family, why)


def _kappa(
    subjects: Sequence[Subject],
    a: Mapping[Subject, float],
    b: Mapping[Subject, float],
    seed: int,
    signature: str,
    method: str,
) -> Estimate:
    first, second = (np.array([side[subject] for subject in subjects]) for side in (a, b))
    return cohen(first, second, [item for _, item in subjects]).estimate(
        [document for document, _ in subjects], seed=seed, method=method, signature=signature
    )


def _association(
    judge: JudgeAnswers,
    truth: Mapping[Subject, float],
    of_document: Mapping[str, float],
    measure: str,
    **options: Any,
) -> Estimate:
    """How Yes goes with a property of documents, within items and experts' verdicts."""
    subjects = [s for s in _measured(judge, truth) if s[0] in of_document]
    within = "within item and experts' verdict" if truth else "within item"
    return association_within(
        np.array([of_document[document] for document, _ in subjects], np.float64),
        np.array([judge.answers[subject] for subject in subjects], np.float64),
        [(item, truth.get((document, item))) for document, item in subjects],
        [document for document, _ in subjects],
        signature=judge.signature,
        method=f"{measure}, {within}, jackknife over documents",
        **options,
    )


def _measured(judge: JudgeAnswers, truth: Mapping[Subject, float]) -> list[Subject]:
    return [subject for subject in judge.answers if not truth or subject in truth]


def pair_of(first: JudgeAnswers, second: JudgeAnswers, yardstick: Yardstick) -> Contrast:
    """Two judges on what both answered: kappa with experts, and with each other (`agreement`)."""
    common = [subject for subject in first.answers if subject in second.answers]
    signature = f"{first.signature}|against:{second.rater}"
    answers = first.answers, second.answers
    agreement = _kappa(common, *answers, yardstick.seed, signature, "Cohen kappa of two judges")
    truth = yardstick.truth()
    judged = [subject for subject in common if subject in truth]
    is_so = np.array([truth[subject] for subject in judged])
    documents, items = [s[0] for s in judged], [s[1] for s in judged]
    said = (np.array([judge.answers[s] for s in judged]) for judge in (first, second))
    sides = [(cohen(each, is_so, items), documents) for each in said]
    method = "difference of kappas with the experts' majority"
    signature += f"|experts:{yardstick.source}"
    apart = difference(sides[0], sides[1], method=method, signature=signature)
    apart = replace(apart, n=len(judged))
    return Contrast("kappa", first.rater, second.rater, apart, details={"agreement": agreement})
