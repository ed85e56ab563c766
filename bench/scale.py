"""What a token costs on disk, in time and in reads, and whether a plan made from it holds.

    python bench/scale.py [--plan-tokens 30e6] [--tokens 300e6] [--memory BYTES]
        [--search-memory BYTES] [--smoke]

Constants are measured on the smaller corpus; from them the larger is predicted, built in shards
under a limit of memory that its files exceed, and searched under another: at first with none of
its files in the page cache but filters and keys, which opening it reads, and again. The limits are
those of a control group, page cache included (root, cgroup v1); without one the run says so. Real
words; past the books at hand, runs of 4 to 20 words drawn from them at random.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import mmap
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import corpora
from fabula.core.types import Document
from fabula.core.workers import default_jobs
from fabula.reference.build import BuildParameters, build_reference
from fabula.reference.search import Reference
from fabula.text import TextSettings

GROUP = Path("/sys/fs/cgroup/memory/fabula-bench")
N_JOBS = default_jobs()
DOCUMENT_WORDS = 2000
QUERY_WORDS = 250
N_QUERY_WORDS = corpora.sized(10_000, 1000)
TARGETS = {
    "bytes a token, to search": 6.4,
    "bytes a token, in memory": 0.5,
    "search, us a word, first": 400,
    "the same a shard, first": 1.1,
}


def main() -> None:
    given = corpora.options(
        __doc__, plan_tokens=float(corpora.sized(30_000_000, 20_000)),
        tokens=float(corpora.sized(300_000_000, 60_000)), memory=1.5 * 2**30,
        search_memory=2.0**30, step={"choices": ["build", "search"]}, at=Path,
    )  # fmt: skip
    if given.step == "build":
        print(json.dumps(build(given.at, int(given.tokens), int(given.memory))))
    elif given.step == "search":
        print(json.dumps(search(given.at)))
    else:
        compare(given)


def compare(given: argparse.Namespace) -> None:
    with corpora.scratch() as scratch:
        small = measured(given, scratch / "small", given.plan_tokens)
        plan = predicted(small, given.tokens, given.memory)
        large = measured(given, scratch / "large", given.tokens)
    print(f"{N_JOBS} cores; {given.memory / 2**30:.1f} GB to build in, "
          f"{given.search_memory / 2**30:.1f} GB to search in, page cache included")  # fmt: skip
    print(
        f"{'':34}{small['n_tokens'] / 1e6:>11,.0f}M{'plan':>12}{large['n_tokens'] / 1e6:>11,.0f}M"
    )
    for name, of in large.items():
        said = f"{plan[name]:>12,.2f}" if name in plan else " " * 12
        target = corpora.beside(of, TARGETS[name]) if name in TARGETS else ""
        print(f"{name:34}{small[name]:>12,.2f}{said}{of:>12,.2f}   {target}".rstrip())


def measured(given: argparse.Namespace, at: Path, n_tokens: float) -> dict[str, float]:
    found = step(given, "build", at, n_tokens, given.memory)
    found |= step(given, "search", at, n_tokens, given.search_memory)
    in_memory = step(given, "search", at, n_tokens, given.memory + found["GB on disk"] * 2e9)
    found["search in memory, us a word"] = in_memory["search, us a word, again"]
    shutil.rmtree(at)
    return found


def step(
    given: argparse.Namespace, what: str, at: Path, n_tokens: float, limit: float
) -> dict[str, float]:
    """Run a step in a process of its own, under a limit of memory."""
    words = ("--step", what, "--at", at, "--tokens", n_tokens, "--memory", given.memory)
    with limited(int(limit)) as enter:
        return corpora.step(__file__, *words, preexec_fn=enter)


@contextlib.contextmanager
def limited(n_bytes: int) -> Iterator[Any]:
    """What a child calls to live under the limit."""
    try:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(n_bytes))
    except OSError as error:
        print(f"no limit of memory can be set ({error})", file=sys.stderr)
        yield None
        return
    try:
        yield lambda: (GROUP / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        with contextlib.suppress(OSError):
            (GROUP / "memory.force_empty").write_text("0")
            GROUP.rmdir()


def forget(at: Path) -> None:
    """Have the system drop the pages of the files below a folder, and no others."""
    os.sync()
    for file in at.rglob("*"):
        if file.is_file() and hasattr(os, "posix_fadvise"):
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def build(at: Path, n_tokens: int, memory: int) -> dict[str, float]:
    begin = time.perf_counter()
    # What the limit counts besides: pages of the files that are being written.
    parameters = BuildParameters(memory_bytes=int(0.8 * memory))
    manifest = build_reference(
        documents(n_tokens), at, settings=TextSettings(), parameters=parameters, n_jobs=N_JOBS
    )
    seconds = time.perf_counter() - begin
    n = sum(info.n_tokens for info in manifest.shards)
    sizes = {file.name: 0 for file in at.glob("shards/*/*")}
    for file in at.glob("shards/*/*"):
        sizes[file.name] += file.stat().st_size
    to_search = (
        "tokens.npy", "rare_before.npy", "rare_ids.npy", "suffixes.npy", "pairs.npy",
        "pair_buckets.npy", "grams.npy", "keys.npy", "words.bin", "words.npy", "words_sorted.npy",
    )  # fmt: skip
    return {
        "n_tokens": n,
        "shards": len(manifest.shards),
        "build, s": seconds,
        "build, Mtokens a core-hour": n / 1e6 / (seconds * N_JOBS / 3600),
        "GB on disk": sum(sizes.values()) / 1e9,
        "bytes a token": sum(sizes.values()) / n,
        "bytes a token, to search": sum(sizes[name] for name in to_search) / n,
        "bytes a token, pairs": (sizes["pairs.npy"] + sizes["pair_buckets.npy"]) / n,
        "bytes a token, in memory": (sizes["grams.npy"] + sizes["keys.npy"]) / n,
        "bytes a token, documents": sizes["documents.zst"] / n,
    }


def documents(n_tokens: int) -> Iterator[Document]:
    """Documents of 2,000 words: the books, then runs drawn from them."""
    texts = corpora.words_of(corpora.SHARED / "reference", corpora.CHILDREN)
    words = np.array([word for _, of_text in texts for word in of_text], dtype=object)
    n_documents = n_tokens // (DOCUMENT_WORDS + 1)
    rng = np.random.default_rng(0)
    for k in range(n_documents):
        at = k * DOCUMENT_WORDS
        if at + DOCUMENT_WORDS <= len(words):
            own = words[at : at + DOCUMENT_WORDS]
        else:
            size = DOCUMENT_WORDS // 4
            own = words[corpora.runs(rng, len(words), DOCUMENT_WORDS, (4, 20), size)]
        yield Document(str(k), " ".join(own))


def search(at: Path) -> dict[str, float]:
    """Longest matches of texts that are in no corpus here, 250 words at a time, on one thread.

    First from the disk, then again, with as much in memory as fits.
    """
    words = [word for _, of_text in corpora.words_of(corpora.HANNA) for word in of_text]
    words = words[:N_QUERY_WORDS]
    texts = [words[k : k + QUERY_WORDS] for k in range(0, len(words), QUERY_WORDS)]
    # Files are compared with their checksums, and kernels compiled.
    Reference.open(at).longest_matches(["a", "word"])
    gc.collect()
    forget(at)
    reference = Reference.open(at)
    found: dict[str, float] = {}
    for name in ("first", "again"):
        read = bytes_read()
        begin = time.perf_counter()
        for text in texts:
            reference.longest_matches(text)
        seconds = time.perf_counter() - begin
        pages = (bytes_read() - read) / mmap.PAGESIZE / len(words)
        found |= {
            f"search, us a word, {name}": seconds / len(words) * 1e6,
            f"search, pages read a word, {name}": pages,
            f"the same a shard, {name}": pages / len(reference.local.shards),
        }
    return found


def bytes_read() -> int:
    """What this process has had disks read so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def predicted(small: dict[str, float], n_tokens: float, memory: float) -> dict[str, float]:
    """The larger corpus from the smaller one's constants.

    Bytes and rates stay; a search costs as much for each shard of equal size, and grows with the
    logarithm of a shard's size.
    """
    per_shard = small["n_tokens"] / small["shards"]
    largest = (0.8 * memory - (400 << 20)) / 18  # as BuildParameters cuts shards
    n_shards = max(1.0, np.ceil(n_tokens / largest))
    steps = np.log2(n_tokens / n_shards) / np.log2(per_shard)
    plan = {
        "shards": n_shards,
        "build, s": small["build, s"] * n_tokens / small["n_tokens"],
        "build, Mtokens a core-hour": small["build, Mtokens a core-hour"],
        "GB on disk": small["bytes a token"] * n_tokens / 1e9,
        "bytes a token": small["bytes a token"],
        "bytes a token, to search": small["bytes a token, to search"],
    }
    # For what does not fit into memory, the reads come on top.
    name = "search in memory, us a word"
    plan[name] = small[name] * n_shards / small["shards"] * steps
    return plan


if __name__ == "__main__":
    main()
