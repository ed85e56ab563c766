"""Two baselines that do not read the story: a random sentence, and words drawn by frequency.

Roemmele, Gordon and Swanson 2017, section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabula.tasks.continuation.corpus import Corpus
from fabula.tasks.continuation.generator_vocabulary import MAX_TOKENS, UNKNOWN

__all__ = ["RandomSentence", "Unigram"]


class RandomSentence:
    """A sentence of the corpus, drawn uniformly."""

    name = "random"

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.signature = f"random|corpus:{corpus.label}"

    def continue_(self, context: Sequence[str], rng: np.random.Generator) -> str:
        """A sentence, regardless of the context."""
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

    def continue_(self, context: Sequence[str], rng: np.random.Generator) -> str:
        """A sentence of independent words, regardless of the context."""
        written: list[int] = []
        while len(written) < MAX_TOKENS:
            word = int(np.searchsorted(self._edges, rng.random() * self._edges[-1], side="right"))
            if self._is_end[word] and not self._is_word[written].any():
                continue
            written.append(word)
            if self._is_end[word]:
                break
        return self._vocabulary.spell(written)
