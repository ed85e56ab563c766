"""Does a smaller index pay? The packed layout beside the plain one: bytes, and time of a search.

    python bench/packed.py [N_TOKENS ...] [--memory BYTES] [--smoke]

The same ids, suffix array and queries (texts of people and models, 250 words at a time, one
thread) for both, in turns in one process. Then from the disk, under a limit of memory, page cache
included, that both layouts' files exceed (root, cgroup v1), from a cold cache and again.

Past the books at hand a corpus is made of runs of 2 to 5 words of them, and one word in a hundred
is one that they do not have, drawn by Zipf's law; so that it has about as many different words and
pairs as the books' growth by Heaps' law foretells.

One run, of 130M tokens, while others used the machine: 5.87 bytes a token for 9.84 (tokens 2.03
for 4, suffixes 3.38 for 4, pairs 0.46 for 1.84); in memory 510 ns a word for 390, 1.31 times; with
256 MB of memory 555 us a word for 731, 0.76 times, and again 525 us for 619, 0.85 times. The books
alone, 6.6M tokens: 5.97 bytes for 12.77, 267 ns for 193.
"""

from __future__ import annotations

import json
import mmap
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import corpora
import plain
import scale
from fabula.kernels import match
from fabula.kernels.grams import list_pairs, open_pairs, pack_pairs
from fabula.kernels.packed import Packed, Tokens, bits_below, pack, pack_tokens
from fabula.kernels.sampled_keys import NO_KEYS, Keys
from fabula.kernels.suffix import build_suffix_array

N_WORDS = 250
N_ROUNDS = 11
N_COLD_TEXTS = 40
SIZES = [2e4] if corpora.SMOKE else [6.6e6, 60e6, 130e6]
LAYOUTS = ("plain", "packed")
Query = NDArray[np.uint32]
Search = Callable[[Query], NDArray[np.int32]]


class Plain:
    """The layout before: 4 bytes a token, 4 a suffix, 16 a slot of the table of pairs."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def __call__(self, query: Query) -> NDArray[np.int32]:
        lengths, witnesses = np.zeros(len(query), np.int32), np.zeros(len(query), np.uint32)
        plain.longest_matches(
            *(self.arrays[name] for name in ("tokens", "suffixes", "pairs")),
            query, match.run_ends(query), lengths, witnesses,
        )  # fmt: skip
        return lengths


class InPacked:
    """The layout of a shard."""

    def __init__(self, arrays: dict[str, NDArray[Any]], n_pairs: int, keys: Keys = NO_KEYS) -> None:
        self.arrays, self.keys = arrays, keys
        n = len(arrays["tokens"])
        self.tokens = Tokens(arrays["tokens"], arrays["rare_before"], arrays["rare_ids"])
        self.suffixes = Packed(arrays["suffixes"], bits_below(n), n)
        self.pairs = open_pairs(arrays["buckets"], arrays["pairs"], n_pairs, n)

    def __call__(
        self, query: Query, ends: NDArray[np.int64] | None = None,
        known: NDArray[np.int32] | None = None, **how: bool,
    ) -> NDArray[np.int32]:  # fmt: skip
        return match.longest_matches(
            self.tokens, self.suffixes, self.pairs, self.keys, query,
            match.run_ends(query) if ends is None else ends,
            np.zeros(len(query), np.int32) if known is None else known,
            np.zeros(1, np.int64), np.empty(0, np.bool_), **how,
        )  # fmt: skip


def both(tokens: NDArray[np.uint32]) -> tuple[Plain, InPacked, dict[str, float]]:
    """The two layouts over the same suffix array, and what there is to count in it."""
    n, n_ids = len(tokens), int(tokens.max()) + 1
    suffixes = build_suffix_array(tokens, n_ids, n_threads=2)
    listed = list_pairs(tokens, suffixes, 0, n)
    table = pack_pairs([listed], n)
    codes = pack_tokens(tokens)
    counts = np.bincount(tokens)
    shares = counts[counts > 0] / n
    before = Plain({
        "tokens": tokens, "suffixes": suffixes, "pairs": plain.pair_table(tokens, suffixes),
    })  # fmt: skip
    packed = {
        "tokens": codes.codes, "rare_before": codes.rare_before, "rare_ids": codes.rare_ids,
        "suffixes": pack(suffixes, bits_below(n)).words,
        "buckets": table.buckets.words, "pairs": table.entries.words,
    }  # fmt: skip
    about = {
        "tokens, M": n / 1e6,
        "different words": n_ids - 1,
        "entropy of a token, bits": float(-(shares * np.log2(shares)).sum()),
        "tokens past 65,534 words, %": 100 * len(codes.rare_ids) / n,
        "pairs": len(listed),
        "pairs a token": len(listed) / n,
        "pairs that stand once, %": 100 * float(np.mean(listed[:, 3] - listed[:, 2] == 1)),
    }
    return before, InPacked(packed, len(listed)), about


def grown(real: NDArray[np.uint32], n: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """`n` tokens as a larger corpus has them, ids by frequency; and what became of each id."""
    n_words = int(real.max())
    if n <= len(real):
        return corpora.corpus_of(real, n), np.arange(n_words + 1, dtype=np.uint32)
    rng = np.random.default_rng(0)
    n_more = n - len(real)
    places = corpora.runs(rng, len(real), n_more, (2, 5), n_more // 3 + 100)
    tokens = np.concatenate([real, real[places]])
    tokens[-1] = 0
    # Heaps' law between the half and the whole of what there is.
    exponent = np.log2(n_words / len(np.unique(real[: len(real) // 2])))
    n_new = int(n_words * ((n / len(real)) ** exponent - 1))
    at = len(real) + np.flatnonzero(rng.random(n_more) < 0.01)
    at = at[tokens[at] > 0]
    tokens[at] = n_words + (n_new ** rng.random(len(at))).astype(np.uint32)
    counts = np.bincount(tokens)
    order = 1 + np.argsort(-counts[1:], kind="stable")
    rank = np.zeros(len(counts), np.uint32)
    rank[order] = np.arange(1, len(counts), dtype=np.uint32)
    return rank[tokens], rank


def compare(before: Plain, after: InPacked, queries: list[Query]) -> None:
    n = len(before.arrays["tokens"])
    print(f"{'bytes a token':34}{'plain':>12}{'packed':>12}{'ratio':>9}")
    parts = {
        "tokens": (("tokens",), ("tokens", "rare_before", "rare_ids")),
        "suffixes": (("suffixes",), ("suffixes",)),
        "pairs": (("pairs",), ("buckets", "pairs")),
    }
    all_of = (sum((of[k] for of in parts.values()), ()) for k in (0, 1))
    for name, (a, b) in {**parts, "all": tuple(all_of)}.items():
        ours = sum(before.arrays[x].nbytes for x in a) / n
        theirs = sum(after.arrays[x].nbytes for x in b) / n
        row(name, ours, theirs)
    for query in queries:
        assert np.array_equal(before(query), after(query))
    times = {search: list[float]() for search in (before, after)}
    for _ in range(N_ROUNDS):
        for search, taken in times.items():
            # Of this thread, so that what else runs on the machine counts less.
            begin = time.thread_time()
            for query in queries:
                search(query)
            taken.append((time.thread_time() - begin) / sum(map(len, queries)) * 1e9)
    row("in memory, ns a word", *(float(np.median(taken)) for taken in times.values()))


def row(name: str, before: float, after: float) -> None:
    ratio = f"{after / before:>9.2f}" if before else ""
    print(f"  {name:32}{before:>12,.2f}{after:>12,.2f}{ratio}", flush=True)


def from_disk(before: Plain, after: InPacked, queries: list[Query], memory: int) -> None:
    """Search the files in processes of their own, the two layouts in turns."""
    with corpora.scratch() as scratch:
        for layout, index in zip(LAYOUTS, (before, after), strict=True):
            folder = scratch / layout
            folder.mkdir()
            for array, values in index.arrays.items():
                np.save(folder / f"{array}.npy", values)
            np.save(folder / "queries.npy", np.stack(queries[:N_COLD_TEXTS]))
        n_pairs = after.pairs.entries.n_values
        found: dict[str, list[dict[str, float]]] = {layout: [] for layout in LAYOUTS}
        for _ in range(corpora.sized(3, 1)):
            for layout in LAYOUTS:
                scale.forget(scratch)
                words = ("--step", layout, "--at", scratch / layout, "--pairs", n_pairs)
                with scale.limited(memory) as enter:
                    found[layout].append(corpora.step(__file__, *words, preexec_fn=enter))
    print(f"  with {memory / 2**20:,.0f} MB of memory")
    for key in found["plain"][0]:
        row(key, *(float(np.median([one[key] for one in found[layout]])) for layout in LAYOUTS))


def step(layout: str, at: Path, n_pairs: int) -> dict[str, float]:
    queries = list(np.load(at / "queries.npy"))
    arrays: dict[str, NDArray[Any]] = {}
    for file in at.glob("*.npy"):
        if file.stem != "queries":
            mapped = np.load(file, mmap_mode="r")
            mapped._mmap.madvise(mmap.MADV_RANDOM)
            arrays[file.stem] = np.asarray(mapped)
    search: Search = Plain(arrays) if layout == "plain" else InPacked(arrays, n_pairs)
    search(queries[0][:1])  # compiled
    found = {}
    n_words = sum(map(len, queries))
    for name in ("cold", "again"):
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        begin = time.perf_counter()
        for query in queries:
            search(query)
        found[f"{name}, us a word"] = (time.perf_counter() - begin) / n_words * 1e6
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults
        found[f"{name}, waits for disk a word"] = faults / n_words
    return found


def main() -> None:
    given = corpora.options(
        __doc__,
        {"tokens": {"nargs": "*", "type": float, "default": SIZES}},
        memory=2.0**28, step={"choices": LAYOUTS}, at=Path, pairs=int,
    )  # fmt: skip
    if given.step:
        print(json.dumps(step(given.step, given.at, given.pairs)))
        return
    real, ids = corpora.real_corpus(2**32)
    for size in given.tokens:
        tokens, rank = grown(real, int(size))
        queries = [rank[query] for query in corpora.queries(ids, N_WORDS)]
        before, after, about = both(tokens)
        print(
            ", ".join(f"{name} {value:,.2f}".removesuffix(".00") for name, value in about.items())
        )
        compare(before, after, queries)
        if size > len(real):
            from_disk(before, after, queries, int(given.memory))


if __name__ == "__main__":
    main()
