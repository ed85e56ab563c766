"""What to ask a judge, what it answered, and where answers are stored."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from fabula.core import __version__
from fabula.core.errors import CallFailed
from fabula.core.resume import KeptRows, Ledger, Row, RowKind
from fabula.core.types import Item, Rubric, Signature
from fabula.judging.prompts import Template
from fabula.models.base import Answer, Effort
from fabula.models.replay import recorded, recording_row
from fabula.models.verdicts import READER, Verdict

MAX_TOKENS = {"reason-first": 1024, "verdict-first": 200}
"""The default limit on the length of an answer, by style."""
WORDING_STEP = 1000
"""Larger than any number of samples, so that samples and wordings can be added to a run."""
CLARIFYING_STEP = 1_000_000
"""From this number on, a sample is what an unclear answer meant."""
ANSWERS = RowKind(
    "the answer",
    ("model", "id", "item", "sample"),
    ("prompt_digest", "seed"),
    lambda row: bool(row.get("failed")),
)


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """How a model is asked the items of a rubric."""

    rubric: Rubric
    template: Template
    n_samples: int = 1
    n_paraphrases: int = 0
    """The number of additional wordings in which each question is asked."""
    temperature: float = 0.0
    max_tokens: int = 1024
    seed: int = 0
    only: tuple[str, ...] = ()
    """Ids of the items to ask; all of them if empty."""
    kind: Literal["stories", "pairs"] = "stories"
    effort: Effort | None = None
    """How long a reasoning model should think; None is the model's default."""
    structured: bool | None = None
    """Whether to constrain hosted models to a JSON schema; None does so if known to work."""

    @property
    def items(self) -> tuple[Item, ...]:
        """The items to ask. The rubric stays whole, so that its digest does not change."""
        return tuple(i for i in self.rubric.items if not self.only or i.id in self.only)

    def wordings(self, item: Item) -> tuple[Item, ...]:
        """The wordings of an item to ask: its own, and the plan's number of paraphrases."""
        others = item.paraphrases[: self.n_paraphrases]
        return (item, *(replace(item, question=question) for question in others))

    @property
    def n_answers(self) -> int:
        """The number of answers requested per item and document."""
        return self.n_samples * (1 + self.n_paraphrases)

    def signature(self, model: str, judged: Iterable[Judged] = ()) -> Signature:
        """All that determines a verdict of this model, including the identity in its answers."""
        answers = [judgement.answer for judgement in judged if judgement.answer is not None]
        # Several names if the model was changed or updated during the run.
        served = "+".join(sorted({answer.served for answer in answers if answer.served}))
        others = [word.question for item in self.items for word in self.wordings(item)[1:]]
        worded = hashlib.sha256("\n".join(others).encode()).hexdigest()[:8]
        parts = {
            "rubric": self.rubric.key,
            "items": "+".join(sorted(self.only)),
            "pairwise": "both-orders" if self.kind == "pairs" else "",
            "model": identity(model, served),
            "run": "+".join(sorted({answer.runtime for answer in answers if answer.runtime})),
            "style": self.template.style,
            "prompt": f"{_plain_name(self.template.name)}@{self.template.digest}",
            "temperature": f"{self.temperature:g}",
            "samples": str(self.n_samples),
            "paraphrases": f"{self.n_paraphrases}@{worded}" if self.n_paraphrases else "",
            "structured": {None: "", True: "on", False: "off"}[self.structured],
            "effort": self.effort or "",
            "tokens": str(self.max_tokens),
            "seed": str(self.seed),
            "reader": READER,
            "v": __version__,
        }
        return Signature.of("judge", **{name: part for name, part in parts.items() if part})


def identity(model: str, served: str = "") -> str:
    """The name of a model in signatures: the name it was asked by, and after `@` what it is.

    For a URL that is the name its server reports, and that the user gave after `#`, since a server
    may report one name for several models; a URL alone is not an identity. A provider's model name
    is made specific by the one in its answers.
    """
    reported = _plain_name(served) if served else ""
    if model.startswith(("http://", "https://")):
        name = model.partition("#")[2]
        asked = _plain_name(name) if name else ""
        reported = "/".join(dict.fromkeys(filter(None, (asked, reported))))
        return f"{model}@{reported}" if reported else model
    if not reported or reported == model.rpartition("/")[2] or "@" in model:
        return model
    return f"{model}@{model.partition('/')[0]}/{reported}"


def is_identified(model: str) -> bool:
    """Whether the model in a signature says which model it was, not only where it was."""
    if not model.startswith(("http://", "https://")):
        return True
    # Before the host, `@` follows a user name.
    address = urlsplit(model)
    return "@" in address.path or "@" in address.fragment


def _plain_name(name: str) -> str:
    """A label without the characters that separate parts of a signature."""
    return re.sub(r"[|@\s]+", "-", name) or "own"


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: an item about a document, one of its samples."""

    document_id: str
    item: str
    sample: int
    """From `WORDING_STEP` on, for another wording: its number times the step is added."""
    prompt_digest: str
    seed: int


@dataclass(frozen=True, slots=True)
class Judged:
    """The answer to a call, and the verdict read from it. `answer` is None if the call failed."""

    asked: Asked
    verdict: Verdict
    answer: Answer | None
    failure: str = ""
    """The error of a call that failed."""


class AnswerBook:
    """The answers of a run: existing ones, and a place to add new ones.

    Without rows of a file they are kept in memory only.
    """

    def __init__(
        self, rows: KeptRows | None = None, is_asked_again: Callable[[Row], bool] | None = None
    ) -> None:
        self._rows = KeptRows(ANSWERS) if rows is None else rows
        again = is_asked_again or (lambda _: False)
        self._again = {_key(row) for row in self._rows.kept() if again(row)}
        """Existing answers that are asked for once more."""
        self.n_new = 0
        """The number of calls made and stored since."""

    def count(self, model: str) -> int:
        """The number of answers of this model that existed at the start and are reused."""
        rows = (row for row in self._rows.kept() if row["model"] == model)
        return sum(row["sample"] < CLARIFYING_STEP and _key(row) not in self._again for row in rows)

    @property
    def ledger(self) -> Ledger | None:
        return self._rows.ledger

    def find(self, asked: Asked, model: str) -> Answer | None:
        """The existing answer; None if it must be asked, including after a failure.

        Raises `InputError` if the answer is to another prompt: the story or the wording changed.
        """
        row = self._rows.find(_made_of(asked, model))
        return None if row is None or _key(row) in self._again else recorded(row)

    def add(self, asked: Asked, model: str, answer: Answer | CallFailed) -> None:
        row = _made_of(asked, model)
        row |= {"failed": str(answer)} if isinstance(answer, CallFailed) else recording_row(answer)
        self._rows.add(row)
        self._again.discard(_key(row))
        self.n_new += 1


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ANSWERS.key)


def _made_of(asked: Asked, model: str) -> Row:
    """What an answer must match to be reused."""
    return {
        "id": asked.document_id,
        "item": asked.item,
        "sample": asked.sample,
        "model": model,
        "prompt_digest": asked.prompt_digest,
        "seed": asked.seed,
    }
