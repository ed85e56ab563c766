"""The next sentence from any language model, in the same table as the trained generators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from fabula.measures.linguistic.system_scores import Story
from fabula.models.base import Model, Prompt, Sampling
from fabula.resume import KeptRows, Row
from fabula.tasks.continuation.generating import context_digest
from fabula.tasks.model_texts import Wanted, ask_for, read_written
from fabula.text.pipeline import pipeline_parts
from fabula.text.sentences import sentences_of
from fabula.types import Signature

PROMPT = (
    "The passage above is from a story. Write the one sentence that comes next in it. Answer with "
    "that sentence and nothing else.\n"
)


async def ask_continuations(
    stories: Sequence[Story],
    model: Model,
    rows: KeptRows,
    *,
    sampling: Sampling,
    nlp: Any,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """Return a row for each story, with the reason if it has no sentence. `nlp` finds its end."""
    parts = {"model": model.name, "prompt": "own", "sampling": str(sampling)}
    signature = str(Signature.of("asked", **parts, **pipeline_parts(nlp)))

    def wanted(story: Story) -> Wanted:
        made_of = {"context_digest": context_digest(story), "signature": signature}

        async def make() -> Row:
            answer = await model.ask(Prompt(" ".join(story.context) + "\n\n", PROMPT), sampling)
            written = read_written(answer)
            # Models often write more than one sentence.
            parts = sentences_of((written.text or "").splitlines(), nlp)
            sentence = next(chain.from_iterable(parts), "")
            reason = written.missing_reason or (None if sentence else "no_answer")
            return {
                "id": story.id,
                "system": model.name,
                "text": None if reason else sentence,
                "missing_reason": reason,
                "answer": answer.text,
                "is_cut": answer.stop == "length",
                **made_of,
            }

        return Wanted({"id": story.id, "system": model.name, **made_of}, make)

    return await ask_for(map(wanted, stories), rows, model.n_parallel, meter)
