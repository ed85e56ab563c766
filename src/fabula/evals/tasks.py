"""The rubrics as Inspect AI tasks, for users who run their evaluations there.

    inspect eval fabula/ttcw --model openai/gpt-4o -T stories=drafts/

Prompts, conditions, samples and strict parsing are those of `fabula judge`; the log, its viewer,
retries and batches are Inspect's. An answer without a verdict is unscored with its reason, never a
No, and so is an item excluded by its condition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
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
from inspect_ai.solver import Generate, Solver, TaskState, solver

from fabula.errors import InputError
from fabula.evals.rubric_scorers import (
    answers,
    in_a_sentence,
    judged_of,
    plan_for,
    sample_of,
    settings_for,
    verdict,
)
from fabula.jobs.judging import with_examples
from fabula.judging.few_shot import ExampleTemplate
from fabula.judging.judge_prompts import choice_of
from fabula.judging.judging_plan import JudgePlan
from fabula.judging.run import call_seed, depends_on, is_asked
from fabula.measures.agreement import panel_of_labels
from fabula.measures.labels import read_labels
from fabula.models.concurrency import all_of
from fabula.models.hosted import form_of, is_held, message_of
from fabula.models.verdicts import Style
from fabula.rubrics.released import EXPERTS_FILE, STORIES_FILE, read_released_stories
from fabula.text import TextSettings, find_files, read_documents
from fabula.types import Document, Item, Measurement


@task
def ttcw(
    stories: str = "",
    style: Style = "reason-first",
    text_field: str = "text",
    labels: str | None = None,
    **settings: Any,
) -> Task:
    """The 14 tests of TTCW about each story of a file or folder.

    Args:
        stories: A file or folder, or the file or folder that the authors released.
        style: Reasons before the verdict, or after it.
        text_field: The table field with the story.
        labels: People's verdicts, with which the judge's are compared; by default those that the
            authors released, if the stories are theirs.
        settings: Other settings of `fabula judge`, with its defaults: `samples`,
            `paraphrases`, `shots`, `temperature`, `max_tokens`, `seed`, `items`, `template`,
            `structured`.
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
        plan, n_shots = plan_for(name, settings), settings_for(name, settings).n_shots
        documents = _documents(stories, text_field)
        people = _people(stories, labels, plan)
        plan, _ = with_examples(plan, documents, people, n_shots)
    return Task(
        dataset=MemoryDataset(list(_samples(documents, plan, people)), name=plan.rubric.key),
        solver=_asking(plan, documents),
        scorer=[verdict(name, **settings), answers(name, **settings)],
        config=GenerateConfig(temperature=plan.temperature, max_tokens=plan.max_tokens),
        version=plan.rubric.key,
    )


def _documents(stories: str, text_field: str) -> list[Document]:
    if not stories:
        raise InputError("set the stories with -T stories=FILE, a file or a folder")
    if (released := _released(stories, STORIES_FILE)) is not None:
        return read_released_stories(released)
    documents = list(read_documents(find_files((stories,)), text_field=text_field))
    if not documents:
        raise InputError(f"{stories}: contains no stories")
    return documents


def _released(stories: str, name: str) -> Path | None:
    """The label file of the authors' release, if the stories are its file or its folder."""
    path = Path(stories)
    folder = path.parent if path.name == STORIES_FILE else path
    return folder / name if all((folder / one).exists() for one in (STORIES_FILE, name)) else None


def _people(stories: str, labels: str | None, plan: JudgePlan) -> list[Measurement]:
    """People's answers about the stories: the labels of the file, or those of the release."""
    path = None if labels is None else Path(labels)
    if path is None and plan.rubric.id == "ttcw":
        path = _released(stories, EXPERTS_FILE)
    return [] if path is None else read_labels(path, plan.rubric)


def _samples(
    documents: Sequence[Document], plan: JudgePlan, people: Sequence[Measurement]
) -> Iterator[Sample]:
    majority = panel_of_labels(people, plan.rubric, "labels").majority()
    labels: dict[tuple[str, str], dict[str, float | str]] = {}
    for one in people:
        if one.value is not None:
            labels.setdefault((one.document_id, one.item), {})[one.rater] = one.value
    source = people[0].signature.partition(":")[2] if people else ""
    template, examples = plan.template, {}
    if isinstance(template, ExampleTemplate):
        # The prompts contain the examples; other readers of the log need their digest.
        examples = {"examples": {"name": template.name, "digest": template.digest}}
    for document in documents:
        for item in plan.items:
            subject = document.id, item.id
            prompt = template.prompt(document, item)
            yield Sample(
                id="/".join(subject),
                input=prompt.text,
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


@dataclass(frozen=True, slots=True)
class _Reply:
    """A model's output for an item, once or several times (`choices`), and the mode.

    `message` has the item in its own words.
    """

    message: ChatMessageUser
    output: ModelOutput
    mode: Mapping[str, Any]


async def _ask(plan: JudgePlan, story: Document, item: Item) -> _Reply:
    """Ask as `fabula judge` does, with the model and the options of Inspect."""
    model = get_model()
    provider = str(model).partition("/")[0]
    held = is_held(provider, plan.structured)
    choice = choice_of(item.scale, plan.template.style)
    messages = [
        message_of(plan.template.prompt(story, wording), choice, provider, held=held)
        for wording in plan.wordings(item)
    ]
    form = form_of(choice, provider, held=held)

    async def output(number: int) -> ModelOutput:
        seed = call_seed(plan.seed, item, sample_of(number, plan))
        message = messages[number // plan.n_samples]
        return await model.generate([message], config=form.merge(GenerateConfig(seed=seed)))

    outputs = await all_of([output(number) for number in range(plan.n_answers)])
    # Command-line options override those of the task: record the options of the actual call.
    used = next(one.config for one in reversed(transcript().events) if isinstance(one, ModelEvent))
    mode = {"temperature": used.temperature, "max_tokens": used.max_tokens}
    return _Reply(messages[0], _together(outputs), mode | {"effort": used.reasoning_effort})


def _together(outputs: Sequence[ModelOutput]) -> ModelOutput:
    """Several answers as the choices of one output; an empty answer is an empty choice."""
    first = outputs[0]
    if len(outputs) == 1:
        return first
    nothing = ChatCompletionChoice(message=ChatMessageAssistant(content=""), stop_reason="unknown")
    usage = sum((one.usage for one in outputs if one.usage), ModelUsage())
    choices = [one.choices[0] if one.choices else nothing for one in outputs]
    completion = choices[0].message.text
    return first.model_copy(
        update={"choices": choices, "usage": usage, "completion": completion, "error": None}
    )


def _asking(plan: JudgePlan, documents: Sequence[Document]) -> Solver:
    """Asks an item, after the items that its condition depends on; each of them once."""
    stories = {document.id: document for document in documents}
    replies, words = _Once(), TextSettings()

    async def reply_to(story: Document, item: Item, epoch: int) -> _Reply | str:
        """The model's reply, or why it was not asked."""
        if not words.has_words(story.text):
            return "no_words"
        if item.show_if and (reason := await reason_against(story, item, epoch)):
            return reason
        return await replies.get((story.id, item.id, epoch), partial(_ask, plan, story, item))

    async def reason_against(story: Document, item: Item, epoch: int) -> str:
        """`not_asked` or `gate_missing` if the condition of an item is not met."""
        known: dict[str, object] = {name: story.meta.get(name) for name in plan.rubric.facts}
        is_open = any(known[name] is None for name in depends_on(item) if name in known)
        for gate in (plan.rubric.item(name) for name in depends_on(item) if name not in known):
            reply = await reply_to(story, gate, epoch)
            if isinstance(reply, str):
                is_open |= reply == "gate_missing"
                continue
            found = judged_of(reply.output, story.id, gate, plan)
            values = [one.verdict.value for one in found if one.verdict.value is not None]
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
            state.metadata["mode"] = dict(reply.mode)
            state.output = reply.output
            state.messages = [reply.message, *(one.message for one in reply.output.choices[:1])]
        state.completed = True
        return state

    # Inspect writes a solver's arguments to the plan of the log: keep stories out of it.
    @solver
    def asked() -> Solver:
        return solve

    return asked()


class _Once:
    """Calls that several samples wait for, each made once."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str, int], asyncio.Task[_Reply]] = {}

    async def get(
        self, key: tuple[str, str, int], call: Callable[[], Coroutine[Any, Any, _Reply]]
    ) -> _Reply:
        found = self._tasks.get(key)
        if found is None or (found.done() and (found.cancelled() or found.exception())):
            found = self._tasks[key] = asyncio.ensure_future(call())
        # Stopping one sample must not cancel a call that others wait for.
        return await asyncio.shield(found)
