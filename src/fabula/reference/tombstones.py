"""Removal of documents: shards are unchanged, the documents' numbers are recorded as removed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.reference.layout import Manifest, content_digest, open_shards
from fabula.reference.storage import Home, open_home

__all__ = ["read_removed", "remove_documents"]


def read_removed(home: Home, manifest: Manifest) -> NDArray[np.int64]:
    """The numbers of the removed documents: int64, shape (n_removed,), ascending."""
    if manifest.removed is None:
        return np.empty(0, np.int64)
    data = home.read(manifest.removed)
    if data is None or hashlib.sha256(data).hexdigest() != manifest.removed_sha256:
        raise CorpusError(
            f"{home}/{manifest.removed}: missing or damaged; restore it, or build the corpus again"
        )
    numbers: NDArray[np.int64] = np.frombuffer(data, np.int64)
    return numbers


def remove_documents(path: str | Path, numbers: list[int]) -> Manifest:
    """Exclude these documents from all searches. Their text stays on disk until a rebuild."""
    home = open_home(path)
    with home.lock():
        manifest = Manifest.read(home)
        before = read_removed(home, manifest)
        added = np.setdiff1d(np.array(numbers, np.int64), before)
        if not len(added):
            return manifest
        sizes = [info.n_documents for info in manifest.shards]
        firsts = np.concatenate([[0], np.cumsum(sizes)])
        n_words, content = manifest.n_removed_words, int(manifest.removed_content, 16)
        for k, info in enumerate(manifest.shards):
            here = added[(added >= firsts[k]) & (added < firsts[k + 1])] - firsts[k]
            if not len(here):
                continue
            (shard,) = open_shards([(home.path, info)])
            ends = np.append(shard.starts[1:], info.n_tokens)
            for number in here:
                n_words += int(ends[number] - shard.starts[number]) - 1
                content += content_digest([shard.document(int(number)).text])
        after = np.union1d(before, added)
        file = f"removed-{len(after)}.bin"
        home.write(file, after.tobytes())
        changed = replace(
            manifest,
            removed=file,
            removed_sha256=hashlib.sha256(after.tobytes()).hexdigest(),
            removed_content=f"{content % 2**256:x}",
            n_removed=len(after),
            n_removed_words=n_words,
        )
        home.write("manifest.json", changed.to_json())
        if manifest.removed is not None:
            home.remove(manifest.removed)
        return changed
