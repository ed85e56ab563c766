"""How many pages a look-up reads from the disk, how long it waits, and what filter and keys spare.

    python bench/reads.py [N_TOKENS] [--grown] [--smoke]

One shard of real words (past the books, runs of 4 to 20 words of them; with `--grown` as
`packed.py` makes them, with more different words and pairs), and 10,000 words of texts that are in
no corpus here, 250 at a time. Each search runs in a process of its own, its files out of the page
cache at first: pages are what the process has the disk read, counted by the system, none ahead of
what it asks for; those of up to 128 positions are asked for together. `next shard` is a shard of
which the longest matches are known already, from shards before it that hold as long ones: only
longer ones are looked for. `known are longer` by some words is one among many shards. The times in
memory are those of the same search.

One run, of 43M tokens, and one of 43M grown, while others used the machine: see docs/scale.md.
"""

from __future__ import annotations

import json
import mmap
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import corpora
import packed
import scale
from fabula.kernels import match
from fabula.kernels.grams import bound_ends
from fabula.kernels.packed import read_packed
from fabula.kernels.sampled_keys import BLOCK_SUFFIXES, Keys, sample_keys
from fabula.reference.build import make_filter
from fabula.reference.files import map_array

N_WORDS = 250
N_TEXTS = corpora.sized(40, 2)
N_ROUNDS = corpora.sized(7, 1)
KINDS: dict[str, type[np.generic]] = {
    "tokens": np.uint16, "rare_before": np.uint32, "rare_ids": np.uint32, "suffixes": np.uint64,
    "buckets": np.uint64, "pairs": np.uint64,
}  # fmt: skip
ENGINES = {
    "neither": (False, False, None),
    "the filter": (True, False, None),
    "filter and keys": (True, True, None),
    "next shard, the filter": (True, False, 0),
    "next shard, filter and keys": (True, True, 0),
    **{f"known are longer by {k}": (True, True, k) for k in (1, 2, 3, 4)},
}
"""Filter, keys, and by how much the lengths that are known exceed those in the shard."""
MEMORY, ON_DISK, PAGES = 0.5, 6.4, 1.1
"""Targets: bytes a token in memory and on the disk, pages a word and shard."""


class Index(packed.InPacked):
    """A shard's files, mapped so that the system reads single pages; filter and keys are read."""

    def __init__(self, at: Path) -> None:
        arrays = {name: map_array(at / f"{name}.npy", kind, None) for name, kind in KINDS.items()}
        for array in arrays.values():
            mapped: Any = array.base
            while not isinstance(mapped, mmap.mmap):
                mapped = mapped.base
            mapped.madvise(mmap.MADV_RANDOM)
        keys = Keys(np.load(at / "keys.npy"), BLOCK_SUFFIXES)
        super().__init__(arrays, int(np.load(at / "n_pairs.npy")[0]), keys)
        self.grams = np.load(at / "grams.npy")

    def search(
        self,
        query: NDArray[np.uint32],
        known: NDArray[np.int32],
        filtered: bool,
        from_disk: bool,
        ahead: bool,
    ) -> NDArray[np.int32]:
        ends = match.run_ends(query)
        if filtered:
            ends = bound_ends(self.grams, query, ends)
        return np.maximum(self(query, ends, known, from_disk=from_disk, ahead=ahead), known)


def step(at: Path, engine: str) -> dict[str, float]:
    """Search the texts: from the disk, then again from memory."""
    filtered, keyed, longer = ENGINES[engine]
    queries = list(np.load(at / "queries.npy"))
    right = list(np.load(at / "right.npy"))
    known = [np.zeros_like(one) if longer is None else one + np.int32(longer) for one in right]
    index = Index(at)
    for ahead in (True, False):
        index.search(queries[0][:1], known[0][:1], filtered, keyed, ahead)  # compiled
    scale.forget(at)
    n_words = sum(map(len, queries))
    before, begin = scale.bytes_read(), time.perf_counter()
    found = [index.search(*one, filtered, keyed, True) for one in zip(queries, known, strict=True)]
    seconds = time.perf_counter() - begin
    pages = (scale.bytes_read() - before) / mmap.PAGESIZE / n_words
    assert all(map(np.array_equal, found, map(np.maximum, right, known))), "another result"
    taken = []
    for _ in range(N_ROUNDS):
        begin = time.thread_time()
        for one in zip(queries, known, strict=True):
            index.search(*one, filtered, keyed, False)
        taken.append((time.thread_time() - begin) / n_words * 1e9)
    return {"pages": pages, "us": seconds / n_words * 1e6, "ns": float(np.median(taken))}


def prepare(at: Path, n_tokens: int, grown: bool) -> None:
    """Write the files of a shard, the texts, and their longest matches."""
    real, ids = corpora.real_corpus(2**32)
    if grown:
        tokens, rank = packed.grown(real, n_tokens)
    else:
        tokens = corpora.corpus_of(real, n_tokens)
        rank = np.arange(int(real.max()) + 1, dtype=np.uint32)
    _, index, about = packed.both(tokens)
    grams = make_filter(tokens, n_threads=2)
    places = read_packed(index.suffixes, 0, index.suffixes.n_values)[::BLOCK_SUFFIXES]
    keys = sample_keys(index.tokens.codes, places).values
    for name, array in {**index.arrays, "grams": grams, "keys": keys}.items():
        np.save(at / f"{name}.npy", array)
    in_memory = (grams.nbytes + keys.nbytes) / len(tokens)
    on_disk = in_memory + sum(array.nbytes for array in index.arrays.values()) / len(tokens)
    print(f"{len(tokens) / 1e6:,.1f}M tokens, {about['pairs a token']:.2f} pairs a token; "
          f"{on_disk:.2f} bytes a token to search, words aside "
          f"{corpora.beside(on_disk, ON_DISK)}, of these {in_memory:.2f} in memory, filter and "
          f"keys {corpora.beside(in_memory, MEMORY)}")  # fmt: skip
    np.save(at / "n_pairs.npy", np.array([index.pairs.entries.n_values]))
    queries = [rank[one] for one in corpora.queries(ids, N_WORDS)][:N_TEXTS]
    right = [index(one) for one in queries]
    np.save(at / "queries.npy", np.stack(queries))
    np.save(at / "right.npy", np.stack(right))
    print("  of a shard that holds no longer match than is known, positions that are searched:")
    for more in range(5):
        shares = [
            searched(grams, one, np.maximum(1, known + more))
            for one, known in zip(queries, right, strict=True)
        ]
        print(f"    known are longer by {more}: {100 * np.mean(shares):.1f} %")


def searched(
    grams: NDArray[np.uint64], query: NDArray[np.uint32], known: NDArray[np.int32]
) -> float:
    """The share of positions at which the filter lets a match be longer than is known."""
    longest = bound_ends(grams, query, match.run_ends(query)) - np.arange(len(query))
    return float((longest > known).mean())


def main() -> None:
    given = corpora.options(
        __doc__,
        {"tokens": {"nargs": "?", "type": float, "default": corpora.sized(43_000_000, 20_000)}},
        grown=False, step={"choices": ENGINES}, at=Path,
    )  # fmt: skip
    if given.step:
        print(json.dumps(step(given.at, given.step)))
        return
    with corpora.scratch() as at:
        prepare(at, int(given.tokens), given.grown)
        print(f"  {'':28}{'pages a word':>14}{'us, from disk':>15}{'ns, in memory':>15}"
              f"   (target {PAGES} pages)")  # fmt: skip
        for engine in ("neither", "known are longer by 1") if corpora.SMOKE else ENGINES:
            row = corpora.step(__file__, "--step", engine, "--at", at)
            print(f"  {engine:28}{row['pages']:>14.2f}{row['us']:>15.1f}{row['ns']:>15.0f}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
