"""A language model as the translator for round trips of a story.

A model that is asked to translate may refuse, or stop halfway: then the story's rounds end, with
the reason. Only a complete answer counts as a translation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial

from fabula.errors import CallFailed, ModelError
from fabula.models.base import Answer, Model, Prompt, Sampling, Usage
from fabula.models.concurrency import HeldOpen, in_turn
from fabula.models.cost import Estimate, Price, estimate_tokens
from fabula.reasons import explain
from fabula.tasks.feedback.translating import NoTranslation
from fabula.tasks.model_texts import why_no_text
from fabula.text.framing import unframed
from fabula.text.refusals import is_refusal

_OWN = "English"
_INSTRUCTION = (
    "Translate the story below from {source} into {target}. Translate every sentence, in its "
    "order, and keep the paragraphs as they are. Write only the translation: no title, no notes, "
    "no word before or after it.\n\nThe story:\n\n"
)
_END = "\n\nIts translation into {target}:"


class ModelTranslator(HeldOpen):
    """Any language model, asked at temperature 0; use it as a context manager.

    The signature's `name` ends with a digest of the model, the language and the prompt's wording.
    """

    def __init__(self, model: Model, language: str = "German") -> None:
        super().__init__(model)
        self._language = language
        self.n_parallel = model.n_parallel

    @property
    def name(self) -> str:
        language = self._language
        decides = (self._model.name, _OWN, language, _INSTRUCTION, _END)
        digest = hashlib.sha256("\0".join(decides).encode()).hexdigest()[:8]
        # These separate a signature's parts, and what is before the last @ is a label.
        label = f"{self._model.name},{language}".replace("|", "_").replace(":", "_")
        return f"model({label})@{digest}"

    def round_trip(self, texts: Sequence[str]) -> list[tuple[str, str] | NoTranslation]:
        calls = [partial(self._there_and_back, text) for text in texts]
        try:
            return self.run(in_turn(calls, self._model.n_parallel))
        except CallFailed as error:
            raise ModelError(
                f"a translation failed: {error}; finished translations are kept, run the same "
                "command again to resume"
            ) from error

    async def _there_and_back(self, text: str) -> tuple[str, str] | NoTranslation:
        there = await self._translate(text, _OWN, self._language)
        if isinstance(there, NoTranslation):
            return there
        back = await self._translate(there, self._language, _OWN)
        return back if isinstance(back, NoTranslation) else (there, back)

    async def _translate(self, text: str, source: str, target: str) -> str | NoTranslation:
        # Enough for a translation of twice the length, at four letters per token.
        sampling = Sampling(max_tokens=256 + len(text.encode(errors="replace")) // 2)
        answer = await self._model.ask(translation_prompt(text, source, target), sampling)
        reason = _why_none(answer, sampling, text)
        if reason is not None:
            return NoTranslation(f"into {target}: {reason}")
        # The story may begin with a title of its own.
        translation = unframed(answer.text, has_title=True).text
        # Whitespace around a text is kept, whatever the model returns.
        before, after = re.match(r"\s*", text), re.search(r"\s*\Z", text)
        return "".join([before[0] if before else "", translation, after[0] if after else ""])


def translation_prompt(text: str, source: str, target: str) -> Prompt:
    """The prompt for one text in one direction."""
    names = {"source": source, "target": target}
    return Prompt(_INSTRUCTION.format(**names), text.strip() + _END.format(**names))


def _why_none(answer: Answer, sampling: Sampling, source: str) -> str | None:
    reason = why_no_text(answer)
    # A translation of a story that reads like a refusal reads like one too.
    if reason is not None and not (reason == "refused" and is_refusal(source)):
        return explain(reason)
    if not unframed(answer.text, has_title=True).text:
        return explain("no_answer")
    if answer.stop == "length":
        return f"the answer was cut off at {sampling.max_tokens} tokens"
    return None


def estimate_round_trips(texts: Sequence[str], rounds: int, price: Price | None) -> Estimate:
    """The maximum cost of translating the texts there and back, `rounds` times each."""
    frame = estimate_tokens(translation_prompt("", _OWN, "German").text)
    n_tokens = sum(estimate_tokens(text) for text in texts)
    n_calls = 2 * rounds * len(texts)
    usage = Usage(2 * rounds * n_tokens + n_calls * frame, 0, 2 * rounds * n_tokens)
    cost = None if price is None else price.of(usage)
    return Estimate(n_calls, usage, cost, is_most=True)
