"""Three stories and a model's answers on them, for the tests of runs."""

import hashlib
from pathlib import Path
from typing import Any

from tests.serving import Reply, prompt_of

from fabula.core.types import Document
from fabula.judging.plan import JudgePlan
from fabula.judging.prompts import Template
from fabula.judging.session import Session
from fabula.models.cost import parse_prices
from fabula.models.model_spec import ModelOptions
from fabula.rubrics.load import load_rubric

TTCW = load_rubric("ttcw")
STORIES = [
    Document("a", "The lamp went out. Nobody rowed over to see why.", author="GPT4"),
    Document("b", "She counted the turns of the light. " * 3, author="Ann"),
    Document("c", "A door stood open. The cup on the table was warm.", author="Ben"),
]  # fmt: skip
PLAN = JudgePlan(TTCW, Template("verdict-first"), max_tokens=200)
PAID = ModelOptions(n_parallel=4, max_retries=0, prices=parse_prices("1/10"))


def steady(body: dict[str, Any], _: int) -> Reply:
    """Yes or No, always the same for the same prompt."""
    digest = hashlib.sha256(prompt_of(body).encode()).digest()
    return f"{'Yes' if digest[0] % 2 else 'No'}. Reason {digest[1]}."


def session(url: str, out: Path | None, **more: Any) -> Session:
    options = ModelOptions(n_parallel=4, max_retries=0)
    given: dict[str, Any] = {"documents": STORIES, "plan": PLAN, "options": options} | more
    return Session(models=[f"{url}/v1#m"], out=out, **given)
