"""Continue many stories with trained generators: one row each, resumable after a crash.

Each sentence has its own random stream (seed, system, passage), so it depends neither on the order
nor on the number of processes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fabula.errors import LookupFailed
from fabula.measures.linguistic.system_scores import Story, read_contexts
from fabula.plugins import Registry
from fabula.resume import KeptRows, Row, RowKind
from fabula.tasks.continuation.baselines import AsLong, RandomSentence, Unigram
from fabula.tasks.continuation.corpus import Corpus
from fabula.workers import in_order

CONTINUATIONS = RowKind(
    "the continuation", ("id", "system"), ("missing_reason", "text", "context_digest")
)

_BLOCK = 16


class Generator(Protocol):
    """Writes the next sentence of a story."""

    name: str
    signature: str
    """Everything that determines its sentences, except the seed."""

    def continue_(self, passage: Story, rng: np.random.Generator) -> str:
        """The sentence after the passage's context. Raises `LookupFailed` if it has none.

        Only a control looks at the passage's `gold`, which no system can know.
        """
        ...


@dataclass(frozen=True, slots=True)
class GeneratorChoice:
    """A generator, and what it is made from."""

    kind: str
    source: Path
    """The folder that it was trained into; for one that is not, the file of passages."""
    temperature: float = 0.7
    """Of the recurrent network; lower favours its most probable words."""

    def open(self) -> Generator:
        """Raises `InputError` or `CorpusError` if it is not trained there."""
        return GENERATORS[self.kind](self)


def _case_based(choice: GeneratorChoice) -> Generator:
    from fabula.tasks.continuation.retrieval import CaseBased

    return CaseBased(Corpus.open(choice.source))


def _recurrent(choice: GeneratorChoice) -> Generator:
    from fabula.tasks.continuation.recurrent import Recurrent

    return Recurrent.load(Corpus.open(choice.source), temperature=choice.temperature)


GENERATORS: Registry[Callable[[GeneratorChoice], Generator]] = Registry(
    "generators",
    {
        "random": lambda choice: RandomSentence(Corpus.open(choice.source)),
        "unigram": lambda choice: Unigram(Corpus.open(choice.source)),
        "case": _case_based,
        "recurrent": _recurrent,
        "as-long": lambda choice: AsLong(read_contexts(choice.source)),
    },
)
"""How to open each kind."""


@functools.cache
def _opened(choice: GeneratorChoice) -> Generator:
    return choice.open()


def context_digest(story: Story) -> str:
    """Digest of the context that a continuation was written for."""
    return hashlib.sha256("\x1f".join(story.context).encode(errors="replace")).hexdigest()[:16]


def generate(
    stories: Sequence[Story],
    choice: GeneratorChoice,
    rows: KeptRows,
    *,
    seed: int = 0,
    n_jobs: int = 1,
    meter: Callable[[int], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield a row for each story, in order, reusing kept rows.

    Raises `InputError` if a kept row was made from something else.
    """
    generator = _opened(choice)
    found = [rows.find(_made_of(generator, story, seed)) for story in stories]
    meter(sum(row is not None for row in found))
    todo = [story for story, row in zip(stories, found, strict=True) if row is None]
    blocks = [todo[k : k + _BLOCK] for k in range(0, len(todo), _BLOCK)]
    made = (row for some in in_order(partial(_block, choice, seed), blocks, n_jobs) for row in some)
    for kept in found:
        row = kept
        if row is None:
            row = next(made)
            rows.add(row)
            meter(1)
        yield row


def _made_of(generator: Generator, story: Story, seed: int) -> Row:
    """The fields that a kept row must match to be reused."""
    return {
        "id": story.id,
        "system": generator.name,
        "seed": seed,
        "context_digest": context_digest(story),
        "signature": generator.signature,
    }


def _block(choice: GeneratorChoice, seed: int, stories: Sequence[Story]) -> list[dict[str, Any]]:
    generator = _opened(choice)
    return [_row(generator, story, seed) for story in stories]


def _row(generator: Generator, story: Story, seed: int) -> dict[str, Any]:
    name = hashlib.sha256(f"{generator.name}\x1f{story.id}".encode(errors="replace")).digest()
    rng = np.random.default_rng([seed, int.from_bytes(name[:8], "little")])
    text: str | None = None
    reason: str | None = None
    try:
        text = generator.continue_(story, rng)
    except LookupFailed:
        reason = "no_similar_sentence"
    made_of = _made_of(generator, story, seed)
    names = {name: made_of.pop(name) for name in CONTINUATIONS.key}
    return names | {"text": text, "missing_reason": reason} | made_of
