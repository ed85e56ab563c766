"""Case-based continuation: the sentence that follows the one nearest to the story's last.

Roemmele, Gordon and Swanson 2017, section 3.2 (after Swanson and Gordon 2012): sentences are bags
of the vocabulary's words, compared by cosine. The index is exact and stays on disk; a query reads
the beginning of a posting list for each of its words.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.continuation.corpus import Corpus, Shard, read_object
from fabula.continuation.scores import Story
from fabula.core.errors import CorpusError, LookupFailed
from fabula.core.store import (
    CASES,
    dump_json,
    fresh_folder,
    publish_folder,
    write_whole,
    writer_lock,
)
from fabula.kernels.nearest import STEPS, nearest, signatures

_FOLDER = "cases"
_MANIFEST = "index.json"
_MAX_COUNT = np.iinfo(np.uint16).max
_ARRAYS = ("list_ends", "lists", "shares", "word_ends", "bags", "bag_counts", "norms", "signatures")


def index_cases(corpus: Corpus, report: Callable[[str], None] = lambda _: None) -> None:
    """Write the index of every shard that lacks one."""
    folder = corpus.folder / _FOLDER
    with writer_lock(corpus.folder / "cases.lock", str(corpus.folder / _FOLDER)):
        folder.mkdir(exist_ok=True)
        if _digest_of(folder) != corpus.digest:
            (folder / _MANIFEST).unlink(missing_ok=True)
            for old in folder.iterdir():
                shutil.rmtree(old)
        write_whole(folder / _MANIFEST, dump_json({**CASES.mark, "digest": corpus.digest}).encode())
        are_words = corpus.vocabulary.are_words()
        for number, shard in enumerate(corpus.shards):
            path = folder / shard.folder.name
            if path.exists():
                continue
            report(f"indexing shard {number + 1} of {len(corpus.shards)}")
            aside = fresh_folder(path)
            for name, values in zip(_ARRAYS, _index(shard, are_words), strict=True):
                np.save(aside / f"{name}.npy", values)
            publish_folder(aside, path)


def _digest_of(folder: Path) -> str:
    row = read_object(folder / _MANIFEST)
    if row is None or "digest" not in row:
        return ""
    CASES.check(row, folder / _MANIFEST)
    return str(row["digest"])


def _index(shard: Shard, are_words: NDArray[np.bool_]) -> tuple[NDArray[np.generic], ...]:
    """The arrays that `kernels.nearest` reads, for the sentences that have a successor."""
    n_sentences, n_words = len(shard.token_ends), len(are_words)
    sentences = np.repeat(np.arange(n_sentences), np.diff(shard.token_ends, prepend=0))
    keep = are_words[shard.tokens] & shard.has_next()[sentences]
    pairs, counts = np.unique(sentences[keep] * n_words + shard.tokens[keep], return_counts=True)
    holders, words = pairs // n_words, pairs % n_words
    word_ends = np.searchsorted(holders, np.arange(n_sentences + 1))
    squares = np.cumsum(counts.astype(np.int64) ** 2)
    before = np.concatenate([[0], squares])[word_ends]
    norms = np.diff(before)
    # The weight of this word and of all more frequent ones, as a share of the sentence's.
    steps = np.ceil((squares - before[holders]) / norms[holders] * STEPS).astype(np.uint8)
    by_word = np.lexsort((holders, -steps.astype(np.int16), words))
    return (
        np.searchsorted(words[by_word], np.arange(n_words + 1)).astype(np.int64),
        holders[by_word].astype(np.uint32),
        steps[by_word],
        word_ends.astype(np.int64),
        words.astype(np.uint32),
        np.minimum(counts, _MAX_COUNT).astype(np.uint16),
        norms.astype(np.uint32),
        signatures(word_ends.astype(np.int64), words.astype(np.uint32)),
    )


class CaseBased:
    """The generator that uses the memory-mapped index of a corpus.

    It is deterministic: one context gives one sentence. Raises `CorpusError` without an index.
    """

    name = "case-based"

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.signature = f"case-based|corpus:{corpus.label}|min:{corpus.min_count}"
        folder = corpus.folder / _FOLDER
        if _digest_of(folder) != corpus.digest:
            raise CorpusError(
                f"{corpus.folder}: contains no case index of these texts; run "
                "`fabula continuation train` with `kind` case"
            )
        places = [folder / shard.folder.name for shard in corpus.shards]
        try:
            self._shards = [
                tuple(np.load(place / f"{name}.npy", mmap_mode="r") for name in _ARRAYS)
                for place in places
            ]
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"{folder}: a file of the index is missing or damaged; train `kind` case again"
            ) from error
        self._are_words = corpus.vocabulary.are_words()

    def nearest(self, tokens: NDArray[np.uint32]) -> tuple[Shard, int, float] | None:
        """The nearest sentence that has a successor: its shard, its number there, its cosine.

        None if no sentence shares a word with these tokens.
        """
        words, counts = np.unique(tokens[self._are_words[tokens]], return_counts=True)
        query = words.astype(np.int64), counts.astype(np.int64)
        best: tuple[Shard, int, float] | None = None
        for shard, arrays in zip(self._corpus.shards, self._shards, strict=True):
            least = best[2] if best else 0.0
            sentence, cosine, _ = nearest(*query, *arrays, least)  # type: ignore[call-arg]
            if sentence >= 0:
                best = shard, int(sentence), float(cosine)
        return best

    def continue_(self, passage: Story, rng: np.random.Generator) -> str:
        """The sentence after the one nearest to the last of the context.

        Raises `LookupFailed` if no sentence of the corpus shares a word with it.
        """
        tokens = self._corpus.vocabulary.encode(passage.context[-1] if passage.context else "")
        if (best := self.nearest(tokens)) is None:
            raise LookupFailed("no sentence of the corpus shares a word with the last sentence")
        shard, number, _ = best
        return shard.sentence(number + 1)
