"""Continue many stories with trained generators or language models: one row each, resumable.

Two baselines do not read the story, a random sentence and words drawn by frequency (Roemmele,
Gordon and Swanson 2017, section 3.4); a control knows how the story goes on.

Each sentence has its own random stream (seed, system, passage), whatever the order or processes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fabula.continuation.corpus import MAX_TOKENS, UNKNOWN, Corpus
from fabula.continuation.recurrent import Recurrent
from fabula.continuation.scores import Story, read_contexts
from fabula.core.errors import InputError, LookupFailed
from fabula.core.packages import Registry
from fabula.core.resume import KeptRows, Row, RowKind
from fabula.core.types import Signature
from fabula.core.workers import in_order
from fabula.models.base import Model, Prompt, Sampling
from fabula.models.texts import Wanted, ask_for, read_written
from fabula.text.parsing import count_word_tokens
from fabula.text.pipeline import pipeline_parts
from fabula.text.sentences import sentences_of

CONTINUATIONS = RowKind(
    "the continuation", ("id", "system"), ("missing_reason", "text", "context_digest")
)
_BLOCK = 16
AS_LONG = "as-long"


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


class RandomSentence:
    """A sentence of the corpus, drawn uniformly."""

    name = "random"

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.signature = f"random|corpus:{corpus.label}"

    def continue_(self, passage: Story, rng: np.random.Generator) -> str:
        """A sentence, regardless of the passage."""
        return self._corpus.sentence(int(rng.integers(self._corpus.n_sentences)))


class Unigram:
    """Words drawn by their frequency until one ends the sentence, with at most 120 tokens.

    The unknown word is never drawn, nor an end mark before the first word.
    """

    name = "unigram"

    def __init__(self, corpus: Corpus) -> None:
        self._vocabulary = corpus.vocabulary
        counts = corpus.vocabulary.counts.astype(np.float64)
        counts[UNKNOWN] = 0
        self._edges = np.cumsum(counts)
        self._is_end = corpus.vocabulary.are_ends()
        self._is_word = corpus.vocabulary.are_words()
        self.signature = f"unigram|corpus:{corpus.label}|min:{corpus.min_count}"

    def continue_(self, passage: Story, rng: np.random.Generator) -> str:
        """A sentence of independent words, regardless of the passage."""
        written: list[int] = []
        while len(written) < MAX_TOKENS:
            word = int(np.searchsorted(self._edges, rng.random() * self._edges[-1], side="right"))
            if self._is_end[word] and not self._is_word[written].any():
                continue
            written.append(word)
            if self._is_end[word]:
                break
        return self._vocabulary.spell(written)


class AsLong:
    """A control, not a system: a sentence of the same book with as many words as the gold one.

    Several metrics depend on length. A difference between gold and this control does not. The
    sentence is drawn from the other passages of the book; the nearest length is taken if none is
    equal, and the other books if it has no other sentence. Raises `InputError` without gold.
    """

    name = AS_LONG

    def __init__(self, passages: Sequence[Story]) -> None:
        self._own = {}
        by_book: dict[str | None, dict[str, None]] = {}
        for passage in passages:
            if passage.gold is None:
                raise InputError(f"{passage.id}: has no gold sentence, which {AS_LONG} must know")
            sentences = (*passage.context, passage.gold)
            self._own[passage.id] = frozenset(sentences)
            by_book.setdefault(passage.book, {}).update(dict.fromkeys(sentences))
        pool = list(dict.fromkeys(text for texts in by_book.values() for text in texts))
        self._n_words = dict(zip(pool, count_word_tokens(pool), strict=True))
        self._of_book = {book: self._by_length(texts) for book, texts in by_book.items()}
        self._of_all = self._by_length(pool)
        content = "\x1e".join(f"{book}\x1f" + "\x1f".join(t) for book, t in by_book.items())
        digest = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:12]
        self.signature = f"{AS_LONG}|pool:{len(pool)}-sentences@{digest}"

    def _by_length(self, texts: Iterable[str]) -> Mapping[int, list[str]]:
        by_length: dict[int, list[str]] = {}
        for text in texts:
            if self._n_words[text]:
                by_length.setdefault(self._n_words[text], []).append(text)
        return by_length

    def continue_(self, passage: Story, rng: np.random.Generator) -> str:
        """A sentence that is nearest in length to the passage's gold one, and none of its own."""
        sentences, wanted = self._own[passage.id], self._n_words[passage.gold or ""]
        for pool in (self._of_book[passage.book], self._of_all):
            lengths = sorted(pool, key=lambda n: (abs(n - wanted), n))
            for _, near in groupby(lengths, lambda n: abs(n - wanted)):
                texts = [text for n in near for text in pool[n] if text not in sentences]
                if texts:
                    return texts[int(rng.integers(len(texts)))]
        raise InputError(f"{passage.id}: no other passage has a sentence for {AS_LONG}")


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
    from fabula.continuation.retrieval import CaseBased

    return CaseBased(Corpus.open(choice.source))


GENERATORS: Registry[Callable[[GeneratorChoice], Generator]] = Registry(
    "generators",
    {
        "random": lambda choice: RandomSentence(Corpus.open(choice.source)),
        "unigram": lambda choice: Unigram(Corpus.open(choice.source)),
        "case": _case_based,
        "recurrent": lambda choice: Recurrent(Corpus.open(choice.source), choice.temperature),
        "as-long": lambda choice: AsLong(read_contexts(choice.source)),
    },
)

_opened = functools.cache(GeneratorChoice.open)


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
    kept = [rows.find(_made_of(generator, story, seed)) for story in stories]
    meter(sum(row is not None for row in kept))
    todo = [story for story, row in zip(stories, kept, strict=True) if row is None]
    blocks = [todo[k : k + _BLOCK] for k in range(0, len(todo), _BLOCK)]
    made = (row for part in in_order(partial(_block, choice, seed), blocks, n_jobs) for row in part)
    for row in kept:
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


def _block(choice: GeneratorChoice, seed: int, stories: Sequence[Story]) -> list[Row]:
    generator = _opened(choice)
    rows = []
    for story in stories:
        name = hashlib.sha256(f"{generator.name}\x1f{story.id}".encode(errors="replace")).digest()
        rng = np.random.default_rng([seed, int.from_bytes(name[:8], "little")])
        written: Row = {"text": None, "missing_reason": None}
        try:
            written["text"] = generator.continue_(story, rng)
        except LookupFailed:
            written["missing_reason"] = "no_similar_sentence"
        made_of = _made_of(generator, story, seed)
        key = {name: made_of.pop(name) for name in CONTINUATIONS.key}
        rows.append(key | written | made_of)
    return rows


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

        return {"id": story.id, "system": model.name, **made_of}, make

    return await ask_for(map(wanted, stories), rows, model.n_parallel, meter)
