"""From the answers about an item to one `Measurement`: the share of Yes, its spread, its trust."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any

from fabula.core.errors import explain
from fabula.core.scales import Scale
from fabula.core.types import Document, Measurement, Rubric
from fabula.judging.plan import WORDING_STEP, Judged, JudgePlan
from fabula.judging.run import RETEST
from fabula.text import check_documents

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
    judge, writer = (
        name.rpartition("#")[2].partition("@")[0].rpartition("/")[2].casefold().strip()
        for name in (model, author or "")
    )
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
