"""A rubric's answers in an Inspect log: their scorers, and their metrics over stories.

Missing answers are excluded from metrics. Inspect's `mean` and `accuracy` ignore a NaN score, treat
None, a choice and a text as 0, and return 0 if nothing is left; so no score here is None, and each
scale has metrics of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState
from rich.markup import escape

from fabula.api.face import settings_from
from fabula.errors import FabulaError, InputError
from fabula.jobs.judging import LabelledSettings, plan_of
from fabula.jobs.models import ModelSettings
from fabula.judging.judge_prompts import Template, choice_of
from fabula.judging.judging_plan import WORDING_STEP, Asked, Judged, JudgePlan
from fabula.judging.measurements import to_measurements
from fabula.judging.trust import Mode, Trust, TrustBook
from fabula.measures.agreement import (
    graded_agreement,
    judge_agreement,
    panel_of_labels,
    people_agreement,
    ratings_of,
)
from fabula.models.hosted import answer_of
from fabula.models.verdicts import Verdict, read_verdict
from fabula.reasons import NEVER_CHECKED, explain
from fabula.scales import Scale
from fabula.settings import fields_of
from fabula.types import Document, Estimate, Item, Measurement, Rubric, Signature


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """Raise `FabulaError`s as the only kind of error that Inspect prints as a bare message."""
    try:
        yield
    except FabulaError as error:
        raise PrerequisiteError(escape(str(error))) from error


_Metrics = dict[str, float | int | str | bool | None]


@dataclass(frozen=True, slots=True)
class _LoggedTemplate(Template):
    """A prompt with examples; a log's metadata has only their digest."""

    logged: str = ""

    @property
    def digest(self) -> str:
        return self.logged


def settings_for(name: str, settings: Mapping[str, Any]) -> LabelledSettings:
    """The settings of `fabula judge`, with its defaults.

    Model selection and generation options are Inspect's. Raises `InputError`.
    """
    fixed = {one.path[-1]: one.default for one in fields_of(ModelSettings)}
    del fixed["structured"]
    given = dict(settings)
    if isinstance(given.get("items"), list):
        # Inspect's command line turns a value with commas into a list.
        given["items"] = ",".join(given["items"])
    if given.get("template") is not None:
        given["template"] = Path(given["template"])
    fixed |= {"rubric": name, "max_unreadable": 0, "out": None, "restart": False, "again": None}
    return settings_from(LabelledSettings, given, {**fixed, "labels": None})


def plan_for(name: str, settings: Mapping[str, Any]) -> JudgePlan:
    """The rubric's prompting, without examples. Raises `InputError`."""
    return plan_of(settings_for(name, settings).judging)


def sample_of(number: int, plan: JudgePlan) -> int:
    """The sample index of an answer: all of one wording come before those of the next."""
    wording, sample = divmod(number, plan.n_samples)
    return WORDING_STEP * wording + sample


def judged_of(output: ModelOutput, story: str, item: Item, plan: JudgePlan) -> list[Judged]:
    """The readings of a model's answers to an item, one or more as its choices."""
    style = plan.template.style
    choice = choice_of(item.scale, style)
    alone = [
        output.model_copy(update={"choices": [one], "completion": one.message.text})
        for one in output.choices
    ]
    found = []
    for number, one in enumerate(alone or [output]):
        answer = replace(answer_of(one, choice), served=output.model)
        asked = Asked(story, item.id, sample_of(number, plan), "", 0)
        found.append(Judged(asked, read_verdict(answer, item.scale, style), answer))
    return found


def _measurement(state: TaskState, plan: JudgePlan) -> Measurement:
    """The combined result of a sample's answers, as in `fabula judge`. Raises `InputError`."""
    about = state.metadata
    if about["rubric"] != plan.rubric.key:
        raise InputError(
            f"the log contains answers to {about['rubric']}, but `name` is {plan.rubric.key}; use "
            "the rubric that was answered"
        )
    story, item = str(about["story"]), plan.rubric.item(str(about["item"]))
    if reason := about.get("not_asked"):
        judged = [Judged(Asked(story, item.id, 0, "", 0), Verdict(None, reason, None), None)]
    else:
        judged = judged_of(state.output, story, item, plan)
    document = Document(story, "", author=about.get("author") or None)
    if shown := about.get("examples"):
        template = _LoggedTemplate(
            plan.template.style, name=str(shown["name"]), logged=str(shown["digest"])
        )
        plan = replace(plan, template=template)
    # Inspect's own options override the settings with which the answers were generated.
    plan = replace(plan, **about.get("mode", {}))
    (found,) = to_measurements(judged, [document], str(state.model), plan)
    return found


# Raw scores of all epochs: Inspect's own reducer turns a choice into 0.
@metric(scores="unreduced")
def by_item() -> Metric:
    """Yes-no items by their mean, and `all` over them; numbers by theirs, with the range in the
    name; each option of a choice by its share."""

    def compute(scores: list[SampleScore]) -> Value:
        by_id: dict[str, list[SampleScore]] = {}
        for one in scores:
            by_id.setdefault(_meta(one)["item"], []).append(one)
        found: _Metrics = {}
        for item, of_item in by_id.items():
            found |= _scale(of_item[0]).metrics(item, [_value(one) for one in of_item])
        tests = [float(one.score.as_float()) for one in scores if _scale(one).is_test]
        return found | ({"all": math.fsum(tests) / len(tests)} if tests else {})

    return compute


@metric(name="stderr", scores="unreduced")
def tests_stderr() -> Metric:
    """The standard error of `all`, over stories."""

    def compute(scores: list[SampleScore]) -> Value:
        tests = [one for one in scores if _scale(one).is_test]
        compute_stderr: Any = stderr(cluster="story")
        return compute_stderr(tests) if tests else float("nan")

    return compute


@metric(scores="unreduced")
def agreement() -> Metric:
    """Kappa with people's verdicts on the same stories, its 95 % interval over stories, and the
    kappa of one of these people with the others; empty if the stories have no verdicts."""

    def compute(scores: list[SampleScore]) -> Value:
        labels = _labels(scores)
        if not labels:
            return {}
        rubric, said = _rubric_of(scores), _said(scores)
        found: _Metrics = {}
        panel = panel_of_labels(labels, rubric, labels[0].signature.partition(":")[2])
        judged = ratings_of(said)
        if judged.keys() & panel.majority().keys():
            overall = judge_agreement(said, panel, rubric, "item").overall
            documents = {document for document, _ in judged}
            people = people_agreement(panel, documents)["all"].one_with_rest
            found |= _ends("kappa", overall.kappa) | _known("kappa of one person", people)
        for on_items in graded_agreement(said, labels, rubric).judges.values():
            for item, one in on_items.items():
                found |= _ends(f"kappa: {item}", one.kappa)
                found |= _known(f"kappa of one person: {item}", one.people.value)
        return found

    return compute


@metric(scores="unreduced")
def trust() -> Metric:
    """The known kappa with experts of this model, wording and mode, with its interval; empty if it
    was never evaluated."""

    def compute(scores: list[SampleScore]) -> Value:
        found: _Metrics = {}
        if not scores:
            return found
        tests = {_meta(one)["item"] for one in scores if _scale(one).is_test}
        for item, one in _trust_in(scores[0].score.metadata or {}, _meta(scores[0])).items():
            if item in tests:
                continue
            name = "trust in another mode" if one.is_other_mode else "trust"
            name = name if item == "all" else f"{name}: {item}"
            found |= _ends(name, Estimate(one.kappa, one.low, one.high, one.n, "", ""))
        return found

    return compute


def _trust_in(metadata: Mapping[str, Any], about: Mapping[str, Any]) -> Mapping[str, Trust]:
    """The trust of the judge with a score's signature, by item."""
    parts = dict(Signature.parse(metadata["signature"]).parts)
    return TrustBook().find(
        parts["model"], about["rubric"], parts["style"], parts["prompt"], Mode.of(parts)
    )


def _ends(name: str, estimate: Estimate) -> dict[str, float]:
    """A figure and the ends of its interval, as far as known: a metric cannot be None."""
    ends = {name: estimate.value, f"{name} low": estimate.low, f"{name} high": estimate.high}
    return {key: value for key, value in ends.items() if value is not None}


def _known(name: str, value: float | None) -> dict[str, float]:
    return {} if value is None else {name: value}


def _labels(scores: Sequence[SampleScore]) -> list[Measurement]:
    """People's answers about each story and item, from the samples' metadata."""
    of_subjects = {(about["story"], about["item"]): about for about in map(_meta, scores)}
    return [
        _label(
            about,
            rater,
            value if isinstance(value, str) else float(value),
            f"labels:{about['experts']}",
        )
        for about in of_subjects.values()
        for rater, value in about.get("labels", {}).items()
    ]


def _said(scores: Sequence[SampleScore]) -> list[Measurement]:
    """The judge's answers; several epochs are combined like repeated answers."""
    given: dict[tuple[str, str], list[SampleScore]] = {}
    for one in scores:
        given.setdefault((_meta(one)["story"], _meta(one)["item"]), []).append(one)
    return [
        _label(
            _meta(of_item[0]),
            "judge",
            _scale(of_item[0]).combine(list(map(_value, of_item))),
            str((of_item[0].score.metadata or {}).get("signature", "")),
        )
        for of_item in given.values()
    ]


def _label(
    about: Mapping[str, Any], rater: str, value: float | str | None, signature: str
) -> Measurement:
    reason = "tie" if value is None else None
    return Measurement(
        about["story"], about["rubric"], about["item"], rater, value, reason, (), None, signature
    )


def _rubric_of(scores: Sequence[SampleScore]) -> Rubric:
    """The items that were answered; a log includes their scales and dimensions."""
    items = {}
    for k, one in enumerate(scores):
        about = _meta(one)
        items[about["item"]] = Item(
            about["item"], k, "", "", dimension=about["dimension"], scale=_scale(one)
        )
    return Rubric(_meta(scores[0])["rubric"], "", "", tuple(items.values()))


def _meta(one: SampleScore) -> Mapping[str, Any]:
    return one.sample_metadata or {}


def _scale(one: SampleScore) -> Scale:
    # Tuples become lists in a log.
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in _meta(one)["fields"].items()
    }
    return Scale(**fields)


def _value(one: SampleScore) -> float | str:
    value = one.score.value
    return value if isinstance(value, str) else float(one.score.as_float())


@scorer(metrics=[by_item(), tests_stderr(), agreement(), trust()])
def verdict(name: str = "ttcw", **settings: Any) -> Scorer:
    """Score an item by its scale: 1 for Yes and 0 for No, a number, an option, a text.

    Args:
        name: The rubric that was asked.
        settings: The task's settings, as given there.
    """
    with in_a_sentence():
        plan = plan_for(name, settings)

    async def score(state: TaskState, target: Target) -> Score:
        with in_a_sentence():
            found = _measurement(state, plan)
        metadata = {"signature": found.signature, **found.details}
        known = _trust_in(metadata, state.metadata).get(found.item)
        metadata["trust"] = NEVER_CHECKED if known is None else f"kappa {known.shown}"
        if found.value is None:
            reason, said = found.missing_reason or "", state.output.completion or None
            return Score.unscored(
                reason=reason, answer=said, explanation=explain(reason), metadata=metadata
            )
        word, why = plan.rubric.item(found.item).scale.word(found.value), found.rationale
        return Score(value=found.value, answer=word, explanation=why, metadata=metadata)

    return score


@metric(scores="unreduced")
def by_reason() -> Metric:
    """How many items were answered, and how many were not, by reason."""

    def compute(scores: list[SampleScore]) -> Value:
        return dict(Counter(str(one.score.value) for one in scores))

    return compute


@scorer(metrics=[by_reason()])
def answers(name: str = "ttcw", **settings: Any) -> Scorer:
    """`answered`, or the reason why an item has no answer.

    Inspect does not pass missing scores to metrics, so missing answers are counted here.

    Args:
        name: The rubric that was asked.
        settings: The task's settings, as given there.
    """
    with in_a_sentence():
        plan = plan_for(name, settings)

    async def score(state: TaskState, target: Target) -> Score:
        with in_a_sentence():
            found = _measurement(state, plan)
        reason = found.missing_reason
        return Score(
            value=reason or "answered", reason=reason, explanation=reason and explain(reason)
        )

    return score
