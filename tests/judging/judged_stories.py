"""Three stories and a model's answers on them, for the tests of runs."""

import hashlib
from pathlib import Path
from typing import Any

import tomli_w
from tests.serving import Reply, Served, prompt_of, serving

from fabula.core.types import Document, Measurement, Rubric
from fabula.judging.plan import JudgePlan
from fabula.judging.prompts import Template
from fabula.judging.session import Session, run_session
from fabula.models.model_spec import ModelOptions
from fabula.rubrics.load import load_rubric

TTCW = load_rubric("ttcw")
STORIES = [
    Document("a", "The lamp went out. Nobody rowed over to see why.", author="GPT4"),
    Document("b", "She counted the turns of the light. " * 3, author="Ann"),
    Document("c", "A door stood open. The cup on the table was warm.", author="Ben"),
]  # fmt: skip
PLAN = JudgePlan(TTCW, Template("verdict-first"), max_tokens=200)
ALONE = ModelOptions(n_parallel=1, max_retries=0)
"""One call at a time."""


def steady(body: dict[str, Any], _: int) -> Reply:
    """Yes or No, always the same for the same prompt."""
    digest = hashlib.sha256(prompt_of(body).encode()).digest()
    return f"{'Yes' if digest[0] % 2 else 'No'}. Reason {digest[1]}."


def measured(
    document: str, item: str, value: float | str | None, rater: str = "m", *,
    rubric: Rubric = TTCW, missing: str = "no_verdict", signature: str = "judge|x",
    why: str | None = None, **details: Any,
) -> Measurement:  # fmt: skip
    """What a judge or a person said of a document; `why` are the reasons."""
    reason = missing if value is None else None
    return Measurement(
        document, rubric.key, item, rater, value, reason, (), why, signature, details
    )


def session(url: str, out: Path | None, **more: Any) -> Session:
    options = ModelOptions(n_parallel=4, max_retries=0)
    given: dict[str, Any] = {"documents": STORIES, "plan": PLAN, "options": options} | more
    return Session(models=[f"{url}/v1#m"], out=out, **given)


def judged(url: str, out: Path | None = None, **more: Any) -> list[Measurement]:
    return run_session(session(url, out, **more))[0]


def asked(answer: Any, out: Path | None = None, **more: Any) -> tuple[list[Measurement], Served]:
    """What is found with a server that answers so, and what it was asked."""
    with serving(answer) as server:
        return judged(server.url, out, **more), server


def rubric_text(name: str, items: dict[str, str | dict[str, Any]], **head: Any) -> str:
    """A rubric of these questions by id, or of what else an item has, in TOML."""
    rows = [
        {"id": id_, "index": k, "title": id_.title()}
        | ({"question": one} if isinstance(one, str) else one)
        for k, (id_, one) in enumerate(items.items(), 1)
    ]
    return tomli_w.dumps({"id": name, "version": "1", "title": name.title(), **head, "items": rows})
