"""Running a rubric on a language model: every answer is stored at once, none is asked twice.

A run is a folder. `answers.jsonl` grows one answer at a time, in order of arrival; `run.json` says
what was asked; `measurements.jsonl` is made from the answers when all are there, in the order of
stories and items, so the same answers give the same bytes.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from fabula.core.errors import CallFailed, ModelError, explain
from fabula.core.types import Document, Item
from fabula.judging.plan import CLARIFYING_STEP, WORDING_STEP, AnswerBook, Asked, Judged, JudgePlan
from fabula.judging.prompts import choice_of, clarifying
from fabula.models.base import Answer, Choice, Model, Places, Prompt, Sampling, all_of, in_turn
from fabula.models.replay import prompt_digest
from fabula.models.verdicts import Verdict, read_verdict
from fabula.rubrics.conditions import Condition
from fabula.text import TextSettings, check_documents
from fabula.web import visible

RETEST = "#retest"
"""Suffix of a story's second id, if it is judged twice to see whether verdicts flip."""

_MAX_FAILURES = 10
"""After this many failed calls in a row, the run stops and says why."""

MAX_UNREADABLE = 10
"""Answers in a row without a readable verdict before a run stops, rather than pay for more."""

_UNCLEAR = ("no_verdict", "contradictory", "out_of_scale")
"""Of such an answer the model is asked what it meant."""
_UNREADABLE = (*_UNCLEAR, "no_answer", "truncated")
_MAX_SHOWN = 200


async def judge_stories(
    documents: Sequence[Document],
    model: Model,
    plan: JudgePlan,
    book: AnswerBook,
    *,
    meter: Callable[[int], None] = lambda _: None,
    max_unreadable: int = MAX_UNREADABLE,
) -> list[Judged]:
    """Ask every item of the rubric about every document; returns in order of documents, items.

    The model determines how many stories are processed in parallel; the first item of a story is
    asked alone, so that its prefix is cached for the others. Raises `ModelError` when no call can
    succeed, and after `max_unreadable` new answers in a row without a verdict (0: never).
    """
    caller = Caller(model, plan, book, meter, max_unreadable)
    calls = [partial(_judge_story, story, caller, plan) for story in check_documents(documents)]
    return [judged for of_story in await in_turn(calls, model.n_parallel) for judged in of_story]


class Caller:
    """Makes calls, as many in parallel as the model allows, and stores their answers."""

    def __init__(
        self,
        model: Model,
        plan: JudgePlan,
        book: AnswerBook,
        meter: Callable[[int], None],
        max_unreadable: int = MAX_UNREADABLE,
    ) -> None:
        self._model, self._plan, self._book = model, plan, book
        self._style = plan.template.style
        self._meter = meter
        self._max_unreadable, self._n_unreadable = max_unreadable, 0
        self._places = Places(model.n_parallel)
        self._n_failures = 0
        self._error: ModelError | None = None

    async def call(self, document_id: str, item: Item, sample: int, prompt: Prompt) -> Judged:
        """The stored answer, or a new one. Raises `ModelError`.

        If its verdict is unclear, the model is asked once which it meant.
        """
        seed = call_seed(self._plan.seed, item, sample, is_retest=document_id.endswith(RETEST))
        asked = Asked(document_id, item.id, sample, prompt_digest(prompt.text), seed)
        stored = self._book.find(asked, self._model.name)
        verdict = None if stored is None else read_verdict(stored, item.scale, self._style)
        if verdict is None or verdict.missing_reason in _UNCLEAR:
            async with self._places.take(prompt.prefix):
                if self._error is not None:
                    raise self._error
                choice = choice_of(item.scale, self._style)
                try:
                    answer = stored or await self._ask(prompt, asked, choice)
                    verdict = read_verdict(answer, item.scale, self._style)
                    if verdict.missing_reason in _UNCLEAR and item.scale.allowed:
                        verdict = await self._clarified(verdict, prompt, answer, asked, item)
                    if stored is None:
                        self._check_readable(answer, verdict.missing_reason)
                    judged = Judged(asked, verdict, answer)
                except CallFailed as error:
                    judged = Judged(asked, Verdict(None, "failed", None), None, str(error))
                except ModelError as error:
                    self._error = error
                    raise
        else:
            judged = Judged(asked, verdict, stored)
        self._meter(1)
        return judged

    async def _clarified(
        self, verdict: Verdict, prompt: Prompt, answer: Answer, asked: Asked, item: Item
    ) -> Verdict:
        """What the model says that its answer comes to; if that is unclear, as it was."""
        question = clarifying(prompt, answer.text, item.scale)
        digest = prompt_digest(question.text)
        # By the answer that is unclear: if it is asked for again, so is what it meant.
        number = CLARIFYING_STEP + int(digest[:7], 16)
        again = replace(asked, sample=number, prompt_digest=digest, seed=int(digest[:8], 16) >> 1)
        reply = self._book.find(again, self._model.name)
        choice = choice_of(item.scale, "verdict-first")
        try:
            reply = reply or await self._ask(question, again, choice)
        except CallFailed:
            return verdict
        meant = read_verdict(reply, item.scale, "verdict-first")
        if meant.value is None:
            return verdict
        return replace(verdict, value=meant.value, missing_reason=None, is_clarified=True)

    async def _ask(self, prompt: Prompt, asked: Asked, choice: Choice | None) -> Answer:
        """Raises `CallFailed` if this call failed, `ModelError` if the run must stop."""
        plan = self._plan
        limit, effort = plan.max_tokens, plan.effort
        sampling = Sampling(plan.temperature, max_tokens=limit, seed=asked.seed, effort=effort)
        try:
            answer = await self._model.ask(prompt, sampling, choice)
        except CallFailed as error:
            self._book.add(asked, self._model.name, error)
            self._n_failures += 1
            if self._n_failures >= _MAX_FAILURES:
                raise ModelError(
                    f"{self._n_failures} calls failed in a row, the last one with: {error}; the "
                    "answers so far are kept: run the same command again to resume"
                ) from error
            raise
        self._n_failures = 0
        self._book.add(asked, self._model.name, answer)
        return answer

    def _check_readable(self, answer: Answer, reason: str | None) -> None:
        """Raise `ModelError` if too many answers in a row had no verdict."""
        self._n_unreadable = self._n_unreadable + 1 if reason in _UNREADABLE else 0
        if not self._max_unreadable or self._n_unreadable < self._max_unreadable:
            return
        shown = visible(" ".join(answer.text[:_MAX_SHOWN].split())) or "nothing"
        if reason == "truncated":
            remedy = (
                f"allow longer answers than {self._plan.max_tokens} tokens (`max_tokens`), which "
                "include a reasoning model's thinking"
            )
        else:
            form = "after its reasons, as `Verdict: Yes`"
            if self._style == "verdict-first":
                form = "at its beginning, as `Yes. ...`"
            remedy = (
                f"the style {self._style} expects a verdict {form}: try the other "
                "style, another template or another model"
            )
        raise ModelError(
            f"{self._model.name}: {self._n_unreadable} answers in a row contain no readable "
            f"verdict; the last one ({explain(reason)}) begins: {shown!r}; {remedy}; "
            f"the answers so far are kept, and `again` {reason} asks only for these once more"
        )


async def _judge_story(document: Document, caller: Caller, plan: JudgePlan) -> list[Judged]:
    """All items about one story, in the rubric's order."""
    if not TextSettings().has_words(document.text):
        # An empty page passes no test and fails none; and the model would invent a story.
        nothing = Verdict(None, "no_words", None)
        return [Judged(Asked(document.id, item.id, 0, "", 0), nothing, None) for item in plan.items]
    by_item: dict[str, list[Judged]] = {}
    answers: dict[str, object] = {name: document.meta.get(name) for name in plan.rubric.facts}
    # Shuffled by the seed; those with a condition once the others are answered.
    unasked = list(plan.items)
    random.Random(f"{plan.seed} {document.id}").shuffle(unasked)
    while unasked:
        names = {item.id for item in unasked}
        ready = [item for item in unasked if not depends_on(item) & names]
        unasked = [item for item in unasked if item not in ready]
        wave = [item for item in ready if is_asked(item, answers)]
        calls = [
            (item, WORDING_STEP * number + sample, plan.template.prompt(document, wording))
            for item in wave
            for number, wording in enumerate(plan.wordings(item))
            for sample in range(plan.n_samples)
        ]
        results: list[Judged] = []
        if not by_item and calls:
            # Alone, so that the story is read once rather than once per parallel call.
            results.append(await caller.call(document.id, *calls[0]))
        results += await all_of([caller.call(document.id, *call) for call in calls[len(results) :]])
        for (item, *_), judged in zip(calls, results, strict=True):
            by_item.setdefault(item.id, []).append(judged)
        for item in wave:
            values = [j.verdict.value for j in by_item[item.id] if j.verdict.value is not None]
            answers[item.id] = item.scale.named(item.scale.combine(values) if values else None)
    open_gates = {name for name, answer in answers.items() if answer is None}
    for item in plan.items:
        if item.id not in by_item:
            # An unknown answer to the condition does not rule the item out.
            is_open = bool(depends_on(item) & open_gates)
            open_gates |= {item.id} if is_open else set()
            reason = "gate_missing" if is_open else "not_asked"
            asked = Asked(document.id, item.id, 0, "", 0)
            by_item[item.id] = [Judged(asked, Verdict(None, reason, None), None)]
    return [judged for item in plan.items for judged in by_item[item.id]]


def depends_on(item: Item) -> frozenset[str]:
    """The items and facts that determine whether an item is asked."""
    return Condition.parse(item.show_if).names if item.show_if else frozenset()


def is_asked(item: Item, answers: Mapping[str, object]) -> bool:
    """Whether the item is asked, given answers as its scale names them."""
    return not item.show_if or Condition.parse(item.show_if).holds(answers)


def call_seed(seed: int, item: Item, sample: int, *, is_retest: bool = False) -> int:
    """A distinct seed for each item and sample, the same on every run. 31 bits, as APIs accept.

    A retest has another one: otherwise a cache would return the first answer.
    """
    again = " again" if is_retest else ""
    digest = hashlib.sha256(f"{seed} {item.id} {sample}{again}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def with_retest(documents: Sequence[Document], n_retest: int, seed: int) -> list[Document]:
    """The documents, and `n_retest` of them again under a second id."""
    documents = list(check_documents(documents))
    rng, n_stories = random.Random(f"retest {seed}"), len(documents)
    again = [documents[k] for k in sorted(rng.sample(range(n_stories), min(n_retest, n_stories)))]
    return [*documents, *(replace(story, id=story.id + RETEST) for story in again)]
