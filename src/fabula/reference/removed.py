"""Removing documents: the shards stay as they are, the documents' numbers are noted as out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.reference.layout import Manifest, Shard, content_digest
from fabula.store import checksum, write_whole, writer_lock

__all__ = ["read_removed", "remove_documents"]


def read_removed(path: Path, manifest: Manifest) -> NDArray[np.int64]:
    """The numbers of the removed documents: int64, shape (n_removed,), ascending."""
    if manifest.removed is None:
        return np.empty(0, np.int64)
    file = path / manifest.removed
    if not file.exists() or checksum(file) != manifest.removed_sha256:
        raise CorpusError(f"{file}: missing or damaged; restore it, or build the corpus again")
    numbers: NDArray[np.int64] = np.frombuffer(file.read_bytes(), np.int64)
    return numbers


def remove_documents(path: Path, numbers: list[int]) -> Manifest:
    """Take these documents out of all searches. Their text stays on disk until a new build."""
    with writer_lock(path / ".lock", str(path)):
        manifest = Manifest.read(path)
        before = read_removed(path, manifest)
        added = np.setdiff1d(np.array(numbers, np.int64), before)
        if not len(added):
            return manifest
        sizes = [info.n_documents for info in manifest.shards]
        firsts = np.concatenate([[0], np.cumsum(sizes)])
        n_words, content = manifest.n_removed_words, int(manifest.removed_content, 16)
        for k, info in enumerate(manifest.shards):
            shard = Shard(path / "shards" / info.name, info)
            ends = np.append(shard.starts[1:], info.n_tokens)
            for number in added[(added >= firsts[k]) & (added < firsts[k + 1])] - firsts[k]:
                n_words += int(ends[number] - shard.starts[number]) - 1
                content += content_digest([shard.document(int(number)).text])
        after = np.union1d(before, added)
        file = path / f"removed-{len(after)}.bin"
        write_whole(file, after.tobytes())
        changed = replace(
            manifest,
            removed=file.name,
            removed_sha256=checksum(file),
            removed_content=f"{content % 2**256:x}",
            n_removed=len(after),
            n_removed_words=n_words,
        )
        write_whole(path / "manifest.json", changed.to_json())
        if manifest.removed is not None:
            (path / manifest.removed).unlink(missing_ok=True)
        return changed
