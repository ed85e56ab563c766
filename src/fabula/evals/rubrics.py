"""The rubrics as Inspect AI tasks, their scorers, and the metrics over stories.

    inspect eval fabula/ttcw --model openai/gpt-4o -T stories=drafts/

Prompts, conditions, samples and strict parsing are those of `fabula judge`; the log, its viewer,
retries and batches are Inspect's. An answer without a verdict is unscored with its reason, never a
No, and so is an item excluded by its condition.

Missing answers are excluded from metrics. Inspect's `mean` and `accuracy` ignore a NaN score, treat
None, a choice and a text as 0, and return 0 if nothing is left; so no score here is None, and each
scale has metrics of its own.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.scorer import stderr as standard_error
from inspect_ai.solver import Generate, Solver, TaskState, solver
from rich.markup import escape

from fabula.api import settings_from
from fabula.core.errors import NEVER_CHECKED, FabulaError, InputError, explain
from fabula.core.scales import Scale
from fabula.core.settings import fields_of
from fabula.core.types import Document, Estimate, Item, Measurement, Rubric
from fabula.jobs.models import ModelSettings
from fabula.judging.job import LabelledSettings, plan_of, with_examples
from fabula.judging.plan import WORDING_STEP, Asked, Judged, JudgePlan
from fabula.judging.prompts import ExampleTemplate, Template, choice_of
from fabula.judging.run import call_seed, depends_on, is_asked, to_measurements
from fabula.judging.trust import TrustBook
from fabula.models.base import all_of
from fabula.models.hosted import answer_of, form_of, is_held, message_of
from fabula.models.verdicts import Style, Verdict, read_verdict
from fabula.raters.agreement import (
    graded_agreement,
    judge_agreement,
    panel_of_labels,
    people_agreement,
    ratings_of,
)
from fabula.raters.labels import read_labels
from fabula.rubrics.released import EXPERTS_FILE, STORIES_FILE, read_released_stories
from fabula.text import TextSettings, find_files, read_documents


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
    fixed = {field.path[-1]: field.default for field in fields_of(ModelSettings)}
    del fixed["structured"]
    values = dict(settings)
    if isinstance(values.get("items"), list):
        # Inspect's command line turns a value with commas into a list.
        values["items"] = ",".join(values["items"])
    if values.get("template") is not None:
        values["template"] = Path(values["template"])
    fixed |= {"rubric": name, "max_unreadable": 0, "out": None, "restart": False, "again": None}
    return settings_from(LabelledSettings, values, {**fixed, "labels": None})


def sample_of(number: int, plan: JudgePlan) -> int:
    """The sample index of an answer: all of one wording come before those of the next."""
    wording, sample = divmod(number, plan.n_samples)
    return WORDING_STEP * wording + sample


def judged_of(output: ModelOutput, story: str, item: Item, plan: JudgePlan) -> list[Judged]:
    """The readings of a model's answers to an item, one or more as its choices."""
    style = plan.template.style
    choice = choice_of(item.scale, style)
    alone = [
        output.model_copy(update={"choices": [single], "completion": single.message.text})
        for single in output.choices
    ]
    judged = []
    for number, reply in enumerate(alone or [output]):
        answer = replace(answer_of(reply, choice), served=output.model)
        asked = Asked(story, item.id, sample_of(number, plan), "", 0)
        judged.append(Judged(asked, read_verdict(answer, item.scale, style), answer))
    return judged


def over_epochs(compute: Callable[..., Value]) -> Callable[[], Metric]:
    """A metric of the raw scores of all epochs: Inspect's own reducer turns a choice into 0."""

    @metric(name=compute.__name__, scores="unreduced")
    def made() -> Metric:
        return compute

    return made


@over_epochs
def by_item(scores: list[SampleScore]) -> Value:
    """Yes-no items by their mean, and `all` over them; numbers by theirs, with the range in the
    name; each option of a choice by its share."""
    by_id: dict[str, list[SampleScore]] = {}
    for score in scores:
        by_id.setdefault(_meta(score)["item"], []).append(score)
    values: _Metrics = {}
    for item, of_item in by_id.items():
        values |= _scale(of_item[0]).metrics(item, [_value(s) for s in of_item])
    tests = [float(s.score.as_float()) for s in scores if _scale(s).is_test]
    return values | ({"all": math.fsum(tests) / len(tests)} if tests else {})


@over_epochs
def stderr(scores: list[SampleScore]) -> Value:
    """The standard error of `all`, over stories."""
    tests = [score for score in scores if _scale(score).is_test]
    compute: Any = standard_error(cluster="story")
    return compute(tests) if tests else float("nan")


@over_epochs
def agreement(scores: list[SampleScore]) -> Value:
    """Kappa with people's verdicts on the same stories, its 95 % interval over stories, and the
    kappa of one of these people with the others; empty if the stories have no verdicts."""
    # People's answers about each story and item, from the samples' metadata.
    of_subjects = {(about["story"], about["item"]): about for about in map(_meta, scores)}
    labels = []
    for about in of_subjects.values():
        for rater, answer in about.get("labels", {}).items():
            read = answer if isinstance(answer, str) else float(answer)
            labels.append(_label(about, rater, read, f"labels:{about['experts']}"))
    if not labels:
        return {}
    # The judge's answers; several epochs are combined like repeated answers.
    by_subject: dict[tuple[str, str], list[SampleScore]] = {}
    for score in scores:
        by_subject.setdefault((_meta(score)["story"], _meta(score)["item"]), []).append(score)
    judgements = []
    for of_item in by_subject.values():
        value = _scale(of_item[0]).combine(list(map(_value, of_item)))
        signature = str((of_item[0].score.metadata or {}).get("signature", ""))
        judgements.append(_label(_meta(of_item[0]), "judge", value, signature))
    # The items that were answered; a log includes their scales and dimensions.
    items = {}
    for k, score in enumerate(scores):
        id_, dimension = _meta(score)["item"], _meta(score)["dimension"]
        items[id_] = Item(id_, k, "", "", dimension=dimension, scale=_scale(score))
    rubric = Rubric(_meta(scores[0])["rubric"], "", "", tuple(items.values()))
    figures: _Metrics = {}
    panel = panel_of_labels(labels, rubric, labels[0].signature.partition(":")[2])
    judged = ratings_of(judgements)
    if judged.keys() & panel.majority().keys():
        overall = judge_agreement(judgements, panel, rubric, "item").overall
        people = people_agreement(panel, {document for document, _ in judged})["all"].one_with_rest
        figures |= _ends("kappa", overall.kappa) | _known("kappa of one person", people)
    for on_items in graded_agreement(judgements, labels, rubric).judges.values():
        for item, on_item in on_items.items():
            figures |= _ends(f"kappa: {item}", on_item.kappa)
            figures |= _known(f"kappa of one person: {item}", on_item.people.value)
    return figures


@over_epochs
def trust(scores: list[SampleScore]) -> Value:
    """The known kappa with experts of this model, wording and mode, with its interval; empty if it
    was never evaluated."""
    figures: _Metrics = {}
    if not scores:
        return figures
    tests = {_meta(score)["item"] for score in scores if _scale(score).is_test}
    about, signature = _meta(scores[0]), (scores[0].score.metadata or {})["signature"]
    for item, known in TrustBook().of_judge(signature, about["rubric"]).items():
        if item in tests:
            continue
        name = "trust in another mode" if known.is_other_mode else "trust"
        name = name if item == "all" else f"{name}: {item}"
        figures |= _ends(name, Estimate(known.kappa, known.low, known.high, known.n, "", ""))
    return figures


def _ends(name: str, estimate: Estimate) -> dict[str, float]:
    """A figure and the ends of its interval, as far as known: a metric cannot be None."""
    ends = {name: estimate.value, f"{name} low": estimate.low, f"{name} high": estimate.high}
    return {key: value for key, value in ends.items() if value is not None}


def _known(name: str, value: float | None) -> dict[str, float]:
    return {} if value is None else {name: value}


def _label(
    about: Mapping[str, Any], rater: str, value: float | str | None, signature: str
) -> Measurement:
    reason = "tie" if value is None else None
    return Measurement(
        about["story"], about["rubric"], about["item"], rater, value, reason, (), None, signature
    )


def _meta(score: SampleScore) -> Mapping[str, Any]:
    return score.sample_metadata or {}


def _scale(score: SampleScore) -> Scale:
    # Tuples become lists in a log.
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in _meta(score)["fields"].items()
    }
    return Scale(**fields)


def _value(score: SampleScore) -> float | str:
    value = score.score.value
    return value if isinstance(value, str) else float(score.score.as_float())


def _scorer(
    name: str, settings: Mapping[str, Any], scored: Callable[[Measurement, TaskState, Item], Score]
) -> Scorer:
    """Scores by what the combined answers of a sample say of its item."""
    with in_a_sentence():
        plan = plan_of(settings_for(name, settings).judging)

    async def score(state: TaskState, target: Target) -> Score:
        # The combined result of a sample's answers, as in `fabula judge`.
        about, terms = state.metadata, plan
        with in_a_sentence():
            if about["rubric"] != plan.rubric.key:
                raise InputError(
                    f"the log contains answers to {about['rubric']}, but `name` is "
                    f"{plan.rubric.key}; use the rubric that was answered"
                )
            story, item = str(about["story"]), plan.rubric.item(str(about["item"]))
            if reason := about.get("not_asked"):
                asked = Asked(story, item.id, 0, "", 0)
                judged = [Judged(asked, Verdict(None, reason, None), None)]
            else:
                judged = judged_of(state.output, story, item, plan)
            document = Document(story, "", author=about.get("author") or None)
            if shown := about.get("examples"):
                called, digest = str(shown["name"]), str(shown["digest"])
                template = _LoggedTemplate(plan.template.style, name=called, logged=digest)
                terms = replace(plan, template=template)
            # Inspect's own options override the settings with which the answers were generated.
            terms = replace(terms, **about.get("mode", {}))
            (mark,) = to_measurements(judged, [document], str(state.model), terms)
        return scored(mark, state, plan.rubric.item(mark.item))

    return score


@scorer(metrics=[by_item(), stderr(), agreement(), trust()])
def verdict(name: str = "ttcw", **settings: Any) -> Scorer:
    """Score an item by its scale: 1 for Yes and 0 for No, a number, an option, a text.

    Args:
        name: The rubric that was asked.
        settings: The task's settings, as given there.
    """

    def scored(mark: Measurement, state: TaskState, item: Item) -> Score:
        metadata = {"signature": mark.signature, **mark.details}
        known = TrustBook().of_judge(mark.signature, state.metadata["rubric"]).get(mark.item)
        metadata["trust"] = NEVER_CHECKED if known is None else f"kappa {known.shown}"
        if mark.value is None:
            reason, text = mark.missing_reason or "", state.output.completion or None
            note = explain(reason)
            return Score.unscored(reason=reason, answer=text, explanation=note, metadata=metadata)
        word, why = item.scale.word(mark.value), mark.rationale
        return Score(value=mark.value, answer=word, explanation=why, metadata=metadata)

    return _scorer(name, settings, scored)


@over_epochs
def by_reason(scores: list[SampleScore]) -> Value:
    """How many items were answered, and how many were not, by reason."""
    return dict(Counter(str(score.score.value) for score in scores))


@scorer(metrics=[by_reason()])
def answers(name: str = "ttcw", **settings: Any) -> Scorer:
    """`answered`, or the reason why an item has no answer.

    Inspect does not pass missing scores to metrics, so missing answers are counted here.

    Args:
        name: The rubric that was asked.
        settings: The task's settings, as given there.
    """

    def scored(mark: Measurement, state: TaskState, item: Item) -> Score:
        reason = mark.missing_reason
        why = reason and explain(reason)
        return Score(value=reason or "answered", reason=reason, explanation=why)

    return _scorer(name, settings, scored)


@task
def ttcw(
    stories: str = "",
    style: Style = "reason-first",
    text_field: str = "text",
    labels: str | None = None,
    **settings: Any,
) -> Task:
    """The 14 tests of TTCW about each story of a file or folder: `rubric` with their name.

    Args:
        stories: A file or folder, or the file or folder that the authors released.
        style: Reasons before the verdict, or after it.
        text_field: The table field with the story.
        labels: People's verdicts, as of `rubric`.
        settings: As of `rubric`.
    """
    return rubric(stories, "ttcw", style, text_field, labels, **settings)


@task
def rubric(
    stories: str = "",
    name: str = "ttcw",
    style: Style = "reason-first",
    text_field: str = "text",
    labels: str | None = None,
    **settings: Any,
) -> Task:
    """Any rubric, by its name or its file, about each story of a file or folder.

    Args:
        stories: A file or folder, or the file or folder that the authors of TTCW released.
        name: A built-in rubric, or a .toml file.
        style: Reasons before the verdict, or after it.
        text_field: The table field with the story.
        labels: People's answers, with which the judge's are compared; by default those that the
            authors of TTCW released, if the stories are theirs.
        settings: Other settings of `fabula judge`, with its defaults: `samples`,
            `paraphrases`, `shots`, `temperature`, `max_tokens`, `seed`, `items`, `template`,
            `structured`.
    """
    settings = {"style": style, **settings}
    with in_a_sentence():
        asked = settings_for(name, settings)
        plan = plan_of(asked.judging)
        if not stories:
            raise InputError("set the stories with -T stories=FILE, a file or a folder")
        if (released := _released(stories, STORIES_FILE)) is not None:
            documents = read_released_stories(released)
        else:
            documents = list(read_documents(find_files((stories,)), text_field=text_field))
            if not documents:
                raise InputError(f"{stories}: contains no stories")
        # People's answers about the stories: the labels of the file, or those of the release.
        path = None if labels is None else Path(labels)
        if path is None and plan.rubric.id == "ttcw":
            path = _released(stories, EXPERTS_FILE)
        people = [] if path is None else read_labels(path, plan.rubric)
        plan, _ = with_examples(plan, documents, people, asked.n_shots)
    return Task(
        dataset=MemoryDataset(list(_samples(documents, plan, people)), name=plan.rubric.key),
        solver=_asking(plan, documents),
        scorer=[verdict(name, **settings), answers(name, **settings)],
        config=GenerateConfig(temperature=plan.temperature, max_tokens=plan.max_tokens),
        version=plan.rubric.key,
    )


def _released(stories: str, name: str) -> Path | None:
    """The label file of the authors' release, if the stories are its file or its folder."""
    path = Path(stories)
    folder = path.parent if path.name == STORIES_FILE else path
    return folder / name if all((folder / file).exists() for file in (STORIES_FILE, name)) else None


def _samples(
    documents: Sequence[Document], plan: JudgePlan, people: Sequence[Measurement]
) -> Iterator[Sample]:
    majority = panel_of_labels(people, plan.rubric, "labels").majority()
    labels: dict[tuple[str, str], dict[str, float | str]] = {}
    for mark in people:
        if mark.value is not None:
            labels.setdefault((mark.document_id, mark.item), {})[mark.rater] = mark.value
    source = people[0].signature.partition(":")[2] if people else ""
    template, examples = plan.template, {}
    if isinstance(template, ExampleTemplate):
        # The prompts contain the examples; other readers of the log need their digest.
        examples = {"examples": {"name": template.name, "digest": template.digest}}
    for document in documents:
        for item in plan.items:
            subject = document.id, item.id
            yield Sample(
                id="/".join(subject),
                input=template.prompt(document, item).text,
                target=item.scale.word(majority[subject]) if subject in majority else "",
                metadata={
                    "story": document.id,
                    "author": document.author or "",
                    "rubric": plan.rubric.key,
                    "item": item.id,
                    "dimension": item.dimension,
                    "scale": item.scale.kind,
                    "range": item.scale.range,
                    "options": list(item.scale.options),
                    # All of it, since metrics are computed from the log, which may be scored again.
                    "fields": asdict(item.scale),
                    **examples,
                    **({"labels": labels[subject], "experts": source} if subject in labels else {}),
                },
            )


_Reply = tuple[ChatMessageUser, ModelOutput, dict[str, Any]]
"""The item in its own words, what a model answered, once or several times (`choices`), its mode."""


async def _ask(plan: JudgePlan, story: Document, item: Item) -> _Reply:
    """Ask as `fabula judge` does, with the model and the options of Inspect."""
    model = get_model()
    provider = str(model).partition("/")[0]
    held = is_held(provider, plan.structured)
    choice = choice_of(item.scale, plan.template.style)
    prompts = (plan.template.prompt(story, wording) for wording in plan.wordings(item))
    messages = [message_of(prompt, choice, provider, held=held) for prompt in prompts]
    form = form_of(choice, provider, held=held)

    async def output(number: int) -> ModelOutput:
        seed = call_seed(plan.seed, item, sample_of(number, plan))
        message = messages[number // plan.n_samples]
        return await model.generate([message], config=form.merge(GenerateConfig(seed=seed)))

    outputs = await all_of([output(number) for number in range(plan.n_answers)])
    # Command-line options override those of the task: record the options of the actual call.
    used = next(e.config for e in reversed(transcript().events) if isinstance(e, ModelEvent))
    mode = {"temperature": used.temperature, "max_tokens": used.max_tokens}
    together = outputs[0]
    if len(outputs) > 1:
        # Several answers as the choices of one output; an empty answer is an empty choice.
        empty = ChatMessageAssistant(content="")
        nothing = ChatCompletionChoice(message=empty, stop_reason="unknown")
        usage = sum((reply.usage for reply in outputs if reply.usage), ModelUsage())
        choices = [reply.choices[0] if reply.choices else nothing for reply in outputs]
        whole = {"choices": choices, "usage": usage, "completion": choices[0].message.text}
        together = together.model_copy(update={**whole, "error": None})
    return messages[0], together, mode | {"effort": used.reasoning_effort}


def _asking(plan: JudgePlan, documents: Sequence[Document]) -> Solver:
    """Asks an item, after the items that its condition depends on; each of them once."""
    stories = {document.id: document for document in documents}
    replies: dict[tuple[str, str, int], asyncio.Task[_Reply]] = {}

    async def reply_to(story: Document, item: Item, epoch: int) -> _Reply | str:
        """The model's reply, or why it was not asked."""
        if not TextSettings().has_words(story.text):
            return "no_words"
        if item.show_if and (reason := await reason_against(story, item, epoch)):
            return reason
        key = story.id, item.id, epoch
        running = replies.get(key)
        if running is None or (running.done() and (running.cancelled() or running.exception())):
            running = replies[key] = asyncio.ensure_future(_ask(plan, story, item))
        # Stopping one sample must not cancel a call that others wait for.
        return await asyncio.shield(running)

    async def reason_against(story: Document, item: Item, epoch: int) -> str:
        """`not_asked` or `gate_missing` if the condition of an item is not met."""
        known: dict[str, object] = {name: story.meta.get(name) for name in plan.rubric.facts}
        is_open = any(known[name] is None for name in depends_on(item) if name in known)
        for gate in (plan.rubric.item(name) for name in depends_on(item) if name not in known):
            reply = await reply_to(story, gate, epoch)
            if isinstance(reply, str):
                is_open |= reply == "gate_missing"
                continue
            _, output, _ = reply
            judged = judged_of(output, story.id, gate, plan)
            values = [answer.verdict.value for answer in judged if answer.verdict.value is not None]
            known[gate.id] = gate.scale.named(gate.scale.combine(values) if values else None)
            is_open |= known[gate.id] is None
        if is_asked(item, known):
            return ""
        return "gate_missing" if is_open else "not_asked"

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        story, item = stories[state.metadata["story"]], plan.rubric.item(state.metadata["item"])
        reply = await reply_to(story, item, state.epoch)
        if isinstance(reply, str):
            state.metadata["not_asked"] = reply
        else:
            message, state.output, mode = reply
            state.metadata["mode"] = dict(mode)
            state.messages = [message, *(choice.message for choice in state.output.choices[:1])]
        state.completed = True
        return state

    # Inspect writes a solver's arguments to the plan of the log: keep stories out of it.
    @solver
    def asked() -> Solver:
        return solve

    return asked()
