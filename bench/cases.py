"""The case-based index: how long a query takes as the library grows, beside a sparse product.

    python bench/cases.py [--folder DIR] [--largest 1000000] [--smoke]

The library is of real sentences and of their kin: sentences in which a quarter of the words are
drawn anew by frequency. The peer is what the paper used, the product of the query with a matrix of
all sentences (gensim's similarity index is SciPy's sparse product), on the same sentences.
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sparse

import corpora
from fabula.continuation.corpus import UNKNOWN, Corpus, build_corpus
from fabula.continuation.retrieval import CaseBased, index_cases
from fabula.core.store import TRAINING
from fabula.core.workers import default_jobs
from fabula.text import find_files, read_documents

SHARD = 125_000
BOOKS = ("cbt/children_books.jsonl.gz", "reference/gutenberg_novels.jsonl.gz")


def kin(corpus: Corpus, n_sentences: int, folder: Path) -> Corpus:
    """A corpus of so many sentences: the real ones, then changed copies of them."""
    rng = np.random.default_rng(0)
    tokens = np.concatenate([np.asarray(shard.tokens) for shard in corpus.shards])
    lengths = np.concatenate([np.diff(s.token_ends, prepend=0) for s in corpus.shards])
    ends = np.cumsum(lengths)
    weights = corpus.vocabulary.counts.astype(np.float64)
    weights[UNKNOWN] = 0
    edges = np.cumsum(weights) / weights.sum()
    names = []
    for start in range(0, n_sentences, SHARD):
        n = min(SHARD, n_sentences - start)
        chosen = (np.arange(start, start + n)) % len(lengths)
        parts = [tokens[ends[k] - lengths[k] : ends[k]] for k in chosen]
        flat = np.concatenate(parts).astype(np.uint32)
        if start >= len(lengths):
            changed = rng.random(len(flat)) < 0.25
            flat[changed] = np.searchsorted(edges, rng.random(changed.sum()))
        name = f"{start // SHARD:05d}"
        place = folder / "shards" / name
        place.mkdir(parents=True)
        np.save(place / "text.npy", np.empty(0, np.uint8))
        np.save(place / "sentence_ends.npy", np.zeros(n, np.int64))
        np.save(place / "story_ends.npy", np.array([n], np.int64))
        np.save(place / "tokens.npy", flat)
        np.save(place / "token_ends.npy", np.cumsum(lengths[chosen]))
        names.append(name)
    corpus.vocabulary.write(folder / "vocabulary.tsv")
    manifest = {
        **TRAINING.mark, "n_stories": len(names), "n_sentences": n_sentences, "n_tokens": 0,
        "min_count": 25, "digest": f"{n_sentences}", "shards": names,
    }  # fmt: skip
    (folder / "corpus.json").write_text(json.dumps(manifest))
    return Corpus.open(folder)


def matrix(corpus: Corpus) -> tuple[sparse.csr_matrix, np.ndarray]:
    """All sentences as rows of counts, and their lengths as vectors."""
    is_word = corpus.vocabulary.are_words()
    rows = []
    for shard in corpus.shards:
        n = len(shard.token_ends)
        owner = np.repeat(np.arange(n), np.diff(shard.token_ends, prepend=0))
        kept = is_word[shard.tokens] & shard.has_next()[owner]
        shape = n, len(is_word)
        ones = np.ones(kept.sum(), np.float32)
        rows.append(sparse.csr_matrix((ones, (owner[kept], shard.tokens[kept])), shape=shape))
    counts = sparse.vstack(rows).tocsr()
    return counts, np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())


def changed_sentences(real: Corpus, n: int) -> list[np.ndarray]:
    """Queries as a story gives them: sentences with a third of the words changed."""
    rng = np.random.default_rng(1)
    shard = real.shards[0]
    starts = np.r_[0, shard.token_ends]
    queries = []
    for k in rng.integers(len(shard.token_ends), size=n):
        query = np.array(shard.tokens[starts[k] : starts[k + 1]])
        changed = rng.random(len(query)) < 0.34
        query[changed] = rng.integers(1, len(real.vocabulary), changed.sum())
        queries.append(query)
    return queries


def peer(corpus: Corpus, queries: list[np.ndarray]) -> tuple[float, list[float]]:
    """Seconds a query of the sparse product, and the best cosine of each."""
    counts, norms = matrix(corpus)
    is_word = corpus.vocabulary.are_words()
    best = []
    start = time.perf_counter()
    for query in queries:
        bag = np.bincount(query[is_word[query]], minlength=counts.shape[1])
        product = (counts @ bag.astype(np.float32)) / np.maximum(norms, 1e-9)
        best.append(float(product.max() / max(1e-9, np.sqrt(float(bag @ bag)))))
    return (time.perf_counter() - start) / len(queries), best


def measure(real: Corpus, n_sentences: int, queries: list[np.ndarray], folder: Path) -> None:
    corpus = kin(real, n_sentences, folder)
    _, built = corpora.timed(partial(index_cases, corpus))
    n_bytes = sum(f.stat().st_size for f in (folder / "cases").rglob("*.npy"))
    index = CaseBased(corpus)
    found = [index.nearest(query) for query in queries]
    ms = 1e3 * np.array([corpora.timed(partial(index.nearest, one))[1] for one in queries])
    peer_s, best = peer(corpus, queries[:40])
    same = sum(abs((f[2] if f else 0.0) - b) < 1e-4 for f, b in zip(found, best, strict=False))
    print(
        f"{n_sentences:>9,} sentences: indexed in {built:.1f} s, {n_bytes / 2**20:,.0f} MiB; "
        f"query {ms.mean():.1f} ms (median {np.median(ms):.1f}, 95th percentile "
        f"{np.percentile(ms, 95):.1f}); sparse product {1e3 * peer_s:.1f} ms, "
        f"ratio {1e3 * peer_s / ms.mean():.1f}; {same} of 40 cosines equal",
        flush=True,
    )


def main() -> None:
    given = corpora.options(
        __doc__, data=corpora.SHARED,
        folder=(Path, "a corpus of `continuation train`, to save time"),
        largest=corpora.sized(1_000_000, 500),
    )  # fmt: skip
    with corpora.scratch() as scratch:
        if given.folder:
            real = Corpus.open(given.folder)
        else:
            files = find_files([str(given.data / book) for book in BOOKS], format_=None)
            documents = read_documents(
                files, text_field="text", id_field="id", format_=None, meter=lambda _: None
            )
            real = build_corpus(documents, scratch / "real", n_jobs=default_jobs())
        queries = changed_sentences(real, 200)
        n_sentences = corpora.sized(62_500, 500)
        while n_sentences <= given.largest:
            measure(real, n_sentences, queries, scratch / str(n_sentences))
            n_sentences *= 4


if __name__ == "__main__":
    main()
