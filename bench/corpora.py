"""Token ids to measure with: real words, and more of them resampled from real text."""

from __future__ import annotations

import collections
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.text import TextSettings, read_documents

SHARED = Path(__file__).parents[2] / "shared" / "data"
N_IDS = 65_000
"""Ids fit into 16 bits, for the peer: words are ranked by frequency, the rarest share one id."""


def real_corpus(n_ids: int = N_IDS) -> tuple[NDArray[np.uint32], dict[str, int]]:
    """All books and speeches at hand, about 6.6M words. 0 ends a document."""
    settings = TextSettings()
    sources = [str(SHARED / "reference"), str(SHARED / "cbt" / "children_books.jsonl.gz")]
    texts = [settings.words(d.text) for d in read_documents(sources)]
    counts = collections.Counter(word for words in texts for word in words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    ids = {word: min(rank, n_ids - 1) for rank, word in enumerate(ranked, 1)}
    tokens = [t for words in texts for t in (*(ids[word] for word in words), 0)]
    return np.array(tokens, np.uint32), ids


def corpus_of(real: NDArray[np.uint32], n_tokens: int) -> NDArray[np.uint32]:
    """`n_tokens` of real text; past its end, runs of 4 to 20 words drawn from it at random."""
    if n_tokens <= len(real):
        cut = real[:n_tokens].copy()
        cut[-1] = 0
        return cut
    rng = np.random.default_rng(0)
    n_more = n_tokens - len(real)
    lengths = rng.integers(4, 21, size=n_more // 12 + 100)
    lengths = lengths[: np.searchsorted(np.cumsum(lengths), n_more) + 1]
    starts = rng.integers(len(real) - 20, size=len(lengths))
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    drawn = real[np.repeat(starts, lengths) + within][:n_more]
    tokens = np.concatenate([real, drawn])
    tokens[-1] = 0
    return tokens


def queries(ids: dict[str, int], n_words: int) -> list[NDArray[np.uint32]]:
    """Texts of people and models that are in no corpus here, cut to `n_words`; 0 is unknown."""
    settings = TextSettings()
    sources = [str(SHARED / "human_vs_machine" / "hanna_writingprompts.jsonl")]
    words = [w for d in read_documents(sources) for w in settings.words(d.text)]
    query = np.array([ids.get(word, 0) for word in words[:150_000]], np.uint32)
    return [query[i : i + n_words] for i in range(0, len(query) - n_words + 1, n_words)]
