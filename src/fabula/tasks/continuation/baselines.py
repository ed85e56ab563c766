"""Two baselines that do not read the story, and a control that knows how the story goes on.

The baselines, a random sentence and words drawn by frequency, are those of Roemmele, Gordon and
Swanson 2017, section 3.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np

from fabula.errors import InputError
from fabula.measures.linguistic.parsing import count_word_tokens
from fabula.measures.linguistic.system_scores import Story
from fabula.tasks.continuation.corpus import Corpus
from fabula.tasks.continuation.generator_vocabulary import MAX_TOKENS, UNKNOWN

AS_LONG = "as-long"


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
    equal, and the other books if the book has no other sentence. Raises `InputError` if a passage
    has no gold sentence.
    """

    name = AS_LONG

    def __init__(self, passages: Sequence[Story]) -> None:
        self._own = {}
        by_book: dict[str | None, dict[str, None]] = {}
        for passage in passages:
            if passage.gold is None:
                raise InputError(f"{passage.id}: has no gold sentence, which {AS_LONG} must know")
            own = (*passage.context, passage.gold)
            self._own[passage.id] = frozenset(own)
            by_book.setdefault(passage.book, {}).update(dict.fromkeys(own))
        every = list(dict.fromkeys(text for texts in by_book.values() for text in texts))
        self._n_words = dict(zip(every, count_word_tokens(every), strict=True))
        self._of_book = {book: self._by_length(texts) for book, texts in by_book.items()}
        self._of_all = self._by_length(every)
        content = "\x1e".join(f"{book}\x1f" + "\x1f".join(t) for book, t in by_book.items())
        digest = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:12]
        self.signature = f"{AS_LONG}|pool:{len(every)}-sentences@{digest}"

    def _by_length(self, texts: Iterable[str]) -> Mapping[int, list[str]]:
        found: dict[int, list[str]] = {}
        for text in texts:
            if self._n_words[text]:
                found.setdefault(self._n_words[text], []).append(text)
        return found

    def continue_(self, passage: Story, rng: np.random.Generator) -> str:
        """A sentence that is nearest in length to the passage's gold one, and none of its own."""
        own, wanted = self._own[passage.id], self._n_words[passage.gold or ""]
        for pool in (self._of_book[passage.book], self._of_all):
            lengths = sorted(pool, key=lambda n: (abs(n - wanted), n))
            for _, near in groupby(lengths, lambda n: abs(n - wanted)):
                texts = [text for n in near for text in pool[n] if text not in own]
                if texts:
                    return texts[int(rng.integers(len(texts)))]
        raise InputError(f"{passage.id}: no other passage has a sentence for {AS_LONG}")
