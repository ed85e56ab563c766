"""Sequences of parts of speech that texts have in common.

Shaib, Elazar, Li and Wallace 2024, "Detection and Measurement of Syntactic Templates in Generated
Text": the 100 most frequent sequences of parts of speech are templates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.measures.diversity.shared_ngrams import Ngrams, WordTable
from fabula.text.pipeline import load_pipeline, pipeline_parts
from fabula.text.sentences import encodable

TEMPLATE_TAGS = 5
_N_TEMPLATES = 100
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Tagged:
    """The tokens of a text: their parts of speech (Penn Treebank), offsets, and sentence ends."""

    tags: list[str]
    places: list[tuple[int, int]]
    """Half-open, in characters of the tagged text."""
    sentence_ends: list[int]


class Tagger:
    """spaCy's tagger for English. Raises `ModelError` if it is not installed."""

    def __init__(self) -> None:
        self._nlp: Any = load_pipeline(("tok2vec", "tagger", "senter"))
        self.signature_parts = pipeline_parts(self._nlp)

    def tag(self, texts: Sequence[str], advance: Callable[[int], None]) -> list[Tagged]:
        found = []
        # Replace unencodable characters one for one, so that offsets are preserved.
        for doc in self._nlp.pipe(map(encodable, texts), batch_size=_BATCH):
            one = Tagged([], [], [])
            for sentence in doc.sents:
                tokens = [token for token in sentence if not token.is_space]
                one.tags.extend(token.tag_ for token in tokens)
                one.places.extend((token.idx, token.idx + len(token)) for token in tokens)
                one.sentence_ends.append(len(one.tags))
            found.append(one)
            advance(1)
        return found


def template_ngrams(tagged: Sequence[Tagged]) -> Ngrams:
    """The sequences of `TEMPLATE_TAGS` tags within sentences that occur in two or more texts."""
    *_, (longest, _) = tag_table(tagged).ngrams(TEMPLATE_TAGS)
    return longest


def tag_table(tagged: Sequence[Tagged]) -> WordTable:
    """The tags of texts as words; n-grams of them do not cross sentence boundaries."""
    return WordTable.of(
        [one.tags for one in tagged], segments=[one.sentence_ends for one in tagged]
    )


@dataclass(frozen=True, slots=True)
class Templates:
    """`templates`: occurrences of the subset's 100 most frequent sequences of five tags, divided by
    its tokens; sequences found in only one text do not count.
    """

    ngrams: Ngrams
    n_tokens: NDArray[np.int64]
    """(n_texts,)"""
    max_draws: int = 1 << 30
    max_blocks: int = 100
    max_permutations: int = 1 << 30

    names = ("templates",)

    def narrowed(self, kept: NDArray[np.int64]) -> Templates:
        return replace(self, ngrams=self.ngrams.narrowed(kept), n_tokens=self.n_tokens[kept])

    def values(self, members: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Float64, shape (n_subsets, 1)."""
        return np.array([self._value(row) for row in members], np.float64).reshape(-1, 1)

    def _value(self, row: NDArray[np.uint8]) -> float:
        one = self.ngrams
        n_tokens = int(self.n_tokens @ row.astype(np.int64))
        if not n_tokens:
            return float("nan")
        if not len(one.ends):
            return 0.0
        begins = np.concatenate([[0], one.ends[:-1]])
        is_in = row[one.texts].astype(np.int64)
        n_holders = np.add.reduceat(is_in, begins)
        n_times = np.add.reduceat(is_in * one.counts, begins)
        n_times[n_holders < 2] = 0
        return float(np.sort(n_times)[-_N_TEMPLATES:].sum()) / n_tokens
