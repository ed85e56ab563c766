"""The n-gram filter and the keys of a shard: built with the shard, or added later."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.grams import BLOCK_WORDS, OVERLAP, add_grams, n_gram_blocks
from fabula.kernels.packed import read_every
from fabula.kernels.sampled_keys import BLOCK_SUFFIXES, Keys, sample_keys
from fabula.reference.checksums import seal
from fabula.reference.layout import GRAMS, KEYS, Manifest, Shard, ShardInfo, open_shards
from fabula.reference.local_copies import copy_shards
from fabula.reference.storage import Home, open_home
from fabula.store import dump_json

__all__ = ["add_filters", "make_filter"]

Report = Callable[[str], None]

_CHUNK = 1 << 24
"""Number of tokens read at a time."""


def make_filter(
    chunks: Iterable[NDArray[np.uint32]], n_tokens: int, *, n_threads: int
) -> NDArray[np.uint64]:
    """The filter of `n_tokens` tokens; each chunk starts with the last tokens of the previous one.

    uint64 (n_blocks, BLOCK_WORDS); the same bytes for any number of threads or chunks.
    """
    blocks = np.zeros((n_gram_blocks(n_tokens), BLOCK_WORDS), np.uint64)
    edges = list(pairwise(np.linspace(0, len(blocks), n_threads + 1).astype(int).tolist()))
    with ThreadPoolExecutor(n_threads) as pool:
        for tokens in chunks:
            list(pool.map(lambda edge, tokens=tokens: add_grams(tokens, blocks, *edge), edges))
    return blocks


def add_filters(
    path: str | Path, *, n_jobs: int = 1, report: Report = lambda stage: None
) -> Manifest:
    """Write the filter and the keys of each shard of the corpus at `path` that lacks them.

    If interrupted, call it again. Raises `CorpusError` if there is no corpus.
    """
    home = open_home(path)
    with home.lock():
        manifest = Manifest.read(home)
        shards = []
        for info in manifest.shards:
            if missing := [name for name in (GRAMS, KEYS) if name not in info.files]:
                report(f"shard {int(info.name) + 1}: {info.n_tokens:,} words")
                info = _with_files(home, path, info, missing, n_jobs)
            shards.append(info)
        changed = replace(manifest, shards=tuple(shards))
        if changed != manifest:
            home.write("manifest.json", changed.to_json())
    return changed


def _with_files(
    home: Home, path: str | Path, info: ShardInfo, missing: list[str], n_jobs: int
) -> ShardInfo:
    """Write the missing files of a shard, and update its `shard.json`."""
    (shard,) = open_shards([(copy_shards(path, [info.name]), info)])
    files = dict(info.files)
    for name in missing:
        written = io.BytesIO()
        if name == GRAMS:
            np.save(written, make_filter(_chunks(shard), info.n_tokens, n_threads=n_jobs))
        else:
            np.save(written, _keys(shard).values)
        data = written.getvalue()
        home.write(f"shards/{info.name}/{name}", data)
        files[name] = hashlib.sha256(data).hexdigest()
    info = replace(info, files=dict(sorted(files.items())))
    row = dump_json(seal(asdict(info))) + "\n"
    home.write(f"shards/{info.name}/shard.json", row.encode())
    return info


def _keys(shard: Shard) -> Keys:
    # In memory: the order of the suffixes has nothing to do with that of the text.
    return sample_keys(shard.tokens.codes.copy(), read_every(shard.suffixes, BLOCK_SUFFIXES))


def _chunks(shard: Shard) -> Iterator[NDArray[np.uint32]]:
    n_tokens = shard.info.n_tokens
    for begin in range(0, n_tokens, _CHUNK):
        yield shard.read_tokens(begin, min(begin + _CHUNK + OVERLAP, n_tokens))
