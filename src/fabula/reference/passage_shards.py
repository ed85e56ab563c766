"""The passages of one shard, mapped from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.formats import PASSAGES
from fabula.reference.checksums import check_files, read_row
from fabula.reference.layout import Shard, ShardInfo
from fabula.reference.storage import Home, LocalHome
from fabula.reference.vocabulary import map_array

__all__ = ["PassageShard", "count_current", "open_passages", "tokens_of"]

_KINDS: dict[str, type[np.generic]] = {
    "begins": np.int64,
    "lengths": np.int32,
    "data": np.float32,
    "indices": np.int32,
    "indptr": np.int64,
}


def open_passages(shards: Sequence[Shard], key: str) -> list[PassageShard]:
    """The passages of these shards with the settings `key`.

    Their files' checksums are compared once. Raises `CorpusError` if they were not built, belong to
    other texts, or are damaged.
    """
    folders = [shard.folder.parents[1] / "passages" / key / shard.info.name for shard in shards]
    rows = [_row_of(folder, shard) for folder, shard in zip(folders, shards, strict=True)]
    check_files([(folder, row["files"]) for folder, row in zip(folders, rows, strict=True)])
    return [
        PassageShard(folder, shard, int(row["n_passages"]))
        for folder, shard, row in zip(folders, shards, rows, strict=True)
    ]


def _row_of(folder: Path, shard: Shard) -> dict[str, Any]:
    corpus = folder.parents[2]
    row = read_row(LocalHome(folder), "shard.json")
    if row is None:
        raise CorpusError(
            f"{corpus}: has no passages of this kind; build them with "
            f"`fabula reference passages {corpus}`"
        )
    PASSAGES.check(row, folder)
    if not _is_of(row, shard.info):
        raise CorpusError(
            f"{folder}: these passages were built from other texts than the corpus; build them "
            f"again with `fabula reference passages {corpus}`"
        )
    return row


class PassageShard:
    """The passages of a shard, stored in `folder`.

    Raises `CorpusError` if its files are inconsistent.
    """

    def __init__(self, folder: Path, shard: Shard, n_passages: int) -> None:
        self.begins, self.lengths, self.data, self.indices, self.indptr = (
            map_array(folder / f"{name}.npy", kind, (None,)) for name, kind in _KINDS.items()
        )
        if (name := self._misfit(n_passages, shard)) is not None:
            raise CorpusError(
                f"{folder / name}.npy: damaged (does not match the corpus and the other files in "
                "its folder); delete the folder and run `fabula reference passages` again"
            )
        self.shard = shard
        self.documents = np.searchsorted(shard.starts, self.begins, side="right") - 1

    def ids_of(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """The shard's ids of these words, 0 for unknown words: int64 (n_terms,)."""
        return self.shard.vocabulary.find(list(terms)).astype(np.int64)

    def _misfit(self, n_passages: int, shard: Shard) -> str | None:
        """The file with a number out of an array's bounds, if any: kernels do not check bounds."""
        n_tokens, indptr = shard.info.n_tokens, self.indptr
        if len(self.begins) != n_passages or not _within(self.begins, 0, n_tokens - 1):
            return "begins"
        if len(self.lengths) != n_passages or not _within(self.lengths, 1, n_tokens):
            return "lengths"
        if (self.begins + self.lengths).max(initial=0) > n_tokens:
            return "lengths"
        if len(indptr) != shard.info.n_vocabulary + 2 or indptr[0] != 0:
            return "indptr"
        if (np.diff(indptr) < 0).any() or indptr[-1] != len(self.data):
            return "indptr"
        if len(self.indices) != len(self.data) or not _within(self.indices, 0, n_passages - 1):
            return "indices"
        return None


def _within(numbers: NDArray[Any], low: int, high: int) -> bool:
    return not len(numbers) or bool(low <= numbers.min() and numbers.max() <= high)


def count_current(home: Home, folder: str, shard: ShardInfo) -> int | None:
    """The number of passages a folder contains of this very shard; None if there are none.

    A corpus may be rebuilt in place, and damaged passages count as absent.
    """
    try:
        row = read_row(home, f"{folder}/{shard.name}/shard.json")
    except (OSError, CorpusError):
        return None
    if row is None:
        return None
    is_read = PASSAGES.check(row, f"{home.spec}/{folder}", replaces=True) >= PASSAGES.oldest
    return int(row["n_passages"]) if is_read and _is_of(row, shard) else None


def _is_of(row: dict[str, Any], shard: ShardInfo) -> bool:
    return (row.get("content"), row.get("tokens")) == (shard.content, tokens_of(shard))


def tokens_of(shard: ShardInfo) -> str:
    """A digest of the shard's tokens, from their files' checksums."""
    try:
        return shard.files["tokens.npy"] + shard.files["rare_ids.npy"]
    except KeyError as error:
        raise CorpusError(
            f"manifest.json: damaged (shard {shard.name} lacks the file {error}); restore it, or "
            f"build the corpus again"
        ) from error
