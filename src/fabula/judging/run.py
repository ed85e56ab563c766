"""Running a rubric on a language model: every answer is stored at once, none is asked twice.

A run is a folder. `answers.jsonl` grows one answer at a time, in order of arrival; `run.json` says
what was asked; `measurements.jsonl` is made from the answers when all are there, in the order of
stories and items, so the same answers give the same bytes: of the answers about an item one
`Measurement`, with the share of Yes, its spread, and whether the judge wrote the story.
"""

from __future__ import annotations

import hashlib
import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from fabula.core.errors import CallFailed, ModelError, explain
from fabula.core.scales import Scale
from fabula.core.store import text_digest
from fabula.core.types import Document, Item, Measurement, Rubric
from fabula.judging.plan import CLARIFYING_STEP, WORDING_STEP, AnswerBook, Asked, Judged, JudgePlan
from fabula.judging.prompts import choice_of, clarifying
from fabula.models.base import Answer, Choice, Model, Places, Prompt, Sampling, all_of, in_turn
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
        asked = Asked(document_id, item.id, sample, text_digest(prompt.text), seed)
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
        digest = text_digest(question.text)
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


_FAMILIES = (
    "gpt", "claude", "gemini", "gemma", "llama", "mistral", "qwen", "deepseek", "smollm", "grok",
    "command", "phi", "olmo",
)  # fmt: skip
_VARIANTS = (
    "base", "beta", "chat", "code", "coder", "exp", "flash", "fp", "gguf", "haiku", "hf", "instant",
    "instruct", "it", "k", "large", "latest", "lite", "m", "max", "medium", "mini", "nano", "neo",
    "opus", "plus", "preview", "pro", "r", "s", "small", "sonnet", "thinking", "tiny", "turbo",
    "ultra", "vision",
)  # fmt: skip
# A model's name: its family, then versions, sizes and variants; anything else is a surname.
_MODEL_NAME = re.compile(
    rf"(?:meta-)?(?:chat)?({'|'.join(_FAMILIES)})"
    rf"(?:[\s._:-]*(?:[a-z]{{0,2}}\d[\da-z]*|{'|'.join(_VARIANTS)})(?![a-z]))*"
)


def to_measurements(
    judged: Iterable[Judged], documents: Iterable[Document], model: str, plan: JudgePlan
) -> Iterator[Measurement]:
    """A measurement for each document and item, in the order of `judged`."""
    judged = list(judged)
    signature = str(plan.signature(model, judged))
    documents = list(check_documents(documents))
    authors = {document.id: document.author for document in documents}
    grouped = groupby(judged, key=lambda answer: (answer.asked.document_id, answer.asked.item))
    for (document_id, id_), group in grouped:
        answers, author, item = list(group), authors[document_id], plan.rubric.item(id_)
        values = [answer.verdict.value for answer in answers if answer.verdict.value is not None]
        missing = Counter(filter(None, (answer.verdict.missing_reason for answer in answers)))
        # Of five answers with four refusals, one speaks for none of them.
        is_enough = values and 2 * len(values) >= len(answers)
        value = item.scale.combine(values) if is_enough else None
        reason = None
        if value is None:
            reason = "tie" if is_enough else missing.most_common(1)[0][0]
        details: dict[str, Any] = {}
        # P(Yes) normalised over Yes and No at the verdict, from models that report it.
        p_yes = [
            masses["Yes"] / total
            for answer in answers
            if answer.answer and "Yes" in (masses := answer.answer.masses)
            if (total := masses["Yes"] + masses.get("No", 0.0)) > 0
        ]
        if p_yes:
            details["p_yes"] = round(statistics.fmean(p_yes), 4)
        if plan.n_answers > 1:
            details |= {"n_samples": len(answers), "n_answered": len(values)}
            numbers = [number for number in values if isinstance(number, float)]
            if len(numbers) > 1:
                details["sd"] = round(statistics.stdev(numbers), 4)
            details |= item.scale.spread(values)
            if plan.n_paraphrases:
                # The answer to each wording, the item's own first; None if there was none.
                worded: dict[int, list[float | str]] = {}
                for each in answers:
                    of_wording = worded.setdefault(each.asked.sample // WORDING_STEP, [])
                    if each.verdict.value is not None:
                        of_wording.append(each.verdict.value)
                details["wordings"] = [
                    item.scale.combine(worded[k]) if worded[k] else None for k in sorted(worded)
                ]
            if missing:
                details["missing"] = dict(sorted(missing.items()))
        if any(answer.verdict.is_cut for answer in answers if answer.verdict.value is not None):
            details["rationale_is_cut"] = True
        if n_clarified := sum(answer.verdict.is_clarified for answer in answers):
            details["n_clarified"] = n_clarified
        if reason in ("too_long", "blocked", "failed"):
            notes = (answer.answer.note if answer.answer else answer.failure for answer in answers)
            if note := next(filter(None, notes), ""):
                details["note"] = note
        if kinship := own_story(model, author):
            details["own_story"] = kinship
        if author is not None:
            details["author"] = author
        if not plan.template.is_fenced:
            details["unfenced"] = True
        if document_id.endswith(RETEST):
            details["control"] = "retest"
        why = next((a.verdict.rationale for a in answers if a.verdict.rationale), None)
        key = document_id, plan.rubric.key, item.id, model
        yield Measurement(*key, value, reason, (), why, signature, details)


def own_story(model: str, author: str | None) -> str | None:
    """Whether the judge wrote the story: judges prefer their own and their family's.

    `same model` if one name begins with the other, `same family` if both name one family. An author
    is taken for a model only if the whole name is a model's, as in GPT4, Claude 3 Opus or
    mistralai/Mistral-7B: Claude McKay and Gabriela Mistral are people.
    """
    # A model's own name, without its provider or URL and the digest of its file.
    labels = (name.rpartition("#")[2].partition("@")[0] for name in (model, author or ""))
    judge, writer = (label.rpartition("/")[2].casefold().strip() for label in labels)
    if not writer:
        return None
    # Words and versions: `gpt`, `4o`.
    words, others = (re.findall(r"[a-z]+|\d[\d.]*[a-z]*", name) for name in (judge, writer))
    if words == others:
        return "same model"
    named = _MODEL_NAME.fullmatch(writer)
    if named is None or named[1] not in judge:
        return None
    n = min(len(words), len(others))
    return "same model" if n > 1 and words[:n] == others[:n] else "same family"


def answer_shown(answer: Measurement, scale: Scale) -> str:
    """The answer about one document: `Yes`, `67% Yes of 3`, `4 (1 to 5)`, a choice."""
    value, details = answer.value, answer.details
    if value is None:
        return f"missing: {explain(answer.missing_reason)}"
    if (n_samples := details.get("n_samples", 1)) == 1:
        return scale.shown(value)
    return scale.shown_repeated(value, details.get("n_answered", n_samples), details)


def score_range(rubric: Rubric, asked: Collection[str] | None = None) -> str:
    """The range of a document's aggregate: `of 14`, or `1 to 5`; empty if it has none.

    asked: the items that it is over, if not all.
    """
    if rubric.aggregate.rule == "count":
        tests = [item.id for item in rubric.items if item.scale.is_test]
        return f"of {sum(asked is None or id_ in asked for id_ in tests)}"
    if rubric.aggregate.rule == "none":
        return ""
    ranges = {item.scale.range for item in rubric.items if item.scale.is_grade}
    return ranges.pop() if len(ranges) == 1 else "" if ranges else "0 to 1"
