"""Small auxiliary prompts: naming a group, turning a sentence into a question."""

from __future__ import annotations

import re

from fabula.errors import CallFailed
from fabula.models.base import Model, Prompt, Sampling
from fabula.text.refusals import is_refusal

_WRAPPING = " \t\"'“”*_`#-"


FENCE = "=========="


def fence(frame: str, *texts: str) -> str:
    """Make a prompt's lines of equals signs longer than any in the texts.

    So a text that contains such a line, as a break or on purpose, does not end early.
    """
    longest = max((len(run) for text in texts for run in re.findall("=+", text)), default=0)
    if longest < len(FENCE):
        return frame
    return frame.replace(FENCE, "=" * (longest + 1))


async def one_line(
    model: Model, question: str, *, max_tokens: int = 60, max_chars: int = 240, seed: int = 0
) -> str | None:
    """The first line of the answer, without quotes and labels; None if empty or a refusal.

    A failed call returns None; a person reviews the results in any case.
    """
    try:
        answer = await model.ask(Prompt("", question), Sampling(max_tokens=max_tokens, seed=seed))
    except CallFailed:
        return None
    if is_refusal(answer.text):
        return None
    for line in answer.text.splitlines():
        bare = re.sub(r"^[A-Z][a-z]+:\s+", "", line.strip(_WRAPPING)).strip(_WRAPPING)
        # "Here is the name:" is not the name.
        if bare and not bare.endswith(":") and answer.stop != "blocked":
            return bare[:max_chars]
    return None
