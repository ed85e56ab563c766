"""The next sentence from any language model, in the same table as the trained generators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from fabula.measures.linguistic.scoring import Story
from fabula.models import Answer, Model, Prompt, Sampling
from fabula.tasks.asking import check_same, in_parallel, read_written
from fabula.tasks.continuation.generating import Rows, Write, context_digest
from fabula.text.pipeline import pipeline_parts
from fabula.text.sentences import sentences_of
from fabula.types import Signature

__all__ = ["PROMPT", "ask_continuations", "first_sentence"]

PROMPT = (
    "The passage above is from a story. Write the one sentence that comes next in it. Answer with "
    "that sentence and nothing else.\n"
)


async def ask_continuations(
    stories: Sequence[Story],
    model: Model,
    kept: Rows,
    write: Write,
    *,
    sampling: Sampling,
    nlp: Any,
    meter: Callable[[int], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """A row for each story; where the model gave no sentence, the reason. `nlp` finds its end."""
    parts = {"model": model.name, "prompt": "own", "sampling": str(sampling)}
    signature = str(Signature.of("asked", **parts, **pipeline_parts(nlp)))

    async def one(story: Story) -> dict[str, Any]:
        expected = {"context_digest": context_digest(story), "signature": signature}
        row = kept.get((story.id, model.name))
        if row is not None:
            check_same({**row, "model": model.name}, expected)
        else:
            prompt = Prompt(" ".join(story.context) + "\n\n", PROMPT)
            answer = await model.ask(prompt, sampling)
            row = _row(story, model, answer, expected, nlp)
            write(row)
        meter(1)
        return row

    def calls() -> Iterator[Callable[[], Awaitable[dict[str, Any]]]]:
        for story in stories:
            yield lambda s=story: one(s)  # type: ignore[misc]

    def failed(_: object) -> dict[str, Any]:
        meter(1)
        return {"text": None, "missing_reason": "failed"}

    return await in_parallel(calls(), model.n_parallel, failed)


def _row(
    story: Story, model: Model, answer: Answer, expected: dict[str, str], nlp: Any
) -> dict[str, Any]:
    written = read_written(answer)
    reason = written.missing_reason
    sentence = first_sentence(written.text or "", nlp)
    if not reason and not sentence:
        reason = "no_answer"
    return {
        "id": story.id,
        "system": model.name,
        "text": None if reason else sentence,
        "missing_reason": reason,
        "answer": answer.text,
        "is_cut": answer.stop == "length",
        **expected,
    }


def first_sentence(answer: str, nlp: Any) -> str:
    """The first sentence of an answer; models write more than they are asked for."""
    sentences = (sentence for part in sentences_of(answer.splitlines(), nlp) for sentence in part)
    return next(sentences, "")
