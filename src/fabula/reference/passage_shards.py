"""The passages of one shard, mapped from disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.reference.home import Home, LocalHome
from fabula.reference.layout import Shard, ShardInfo

__all__ = ["PassageShard", "count_current", "tokens_of"]

_FILES = ("begins", "lengths", "data", "indices", "indptr")


class PassageShard:
    """The passages that `folder` holds of a shard.

    Raises `CorpusError` where they were not built, are of other texts, or do not fit each other.
    """

    def __init__(self, folder: Path, shard: Shard) -> None:
        if not (folder / "shard.json").exists():
            raise CorpusError(
                f"{folder.parents[2]}: has no passages of this kind; build them with "
                f"`fabula reference passages {folder.parents[2]}`"
            )
        if count_current(LocalHome(folder.parent), ".", shard.info) is None:
            raise CorpusError(
                f"{folder}: the passages are of other texts than the corpus; build them again "
                f"with `fabula reference passages {folder.parents[2]}`"
            )
        try:
            row = json.loads((folder / "shard.json").read_bytes())
            arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _FILES}
        except (OSError, ValueError) as error:
            raise CorpusError(f"{folder}: a file is missing or damaged ({error})") from error
        self.begins, self.lengths, self.data, self.indices, self.indptr = (
            np.asarray(arrays[name]) for name in _FILES
        )
        if not self._fits(int(row["n_passages"]), shard):
            raise CorpusError(
                f"{folder}: its files do not fit each other; delete the folder and run `fabula "
                f"reference passages` again"
            )
        self.shard = shard
        self.documents = np.searchsorted(shard.starts, self.begins, side="right") - 1

    def ids_of(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """The shard's ids of these words, 0 where it has none: int64 (n_terms,)."""
        return self.shard.vocabulary.find(list(terms)).astype(np.int64)

    def _fits(self, n_passages: int, shard: Shard) -> bool:
        """Whether no number leads outside its array: kernels do not look."""
        ends = self.begins + self.lengths
        return bool(
            len(self.begins) == len(self.lengths) == n_passages
            and len(self.indptr) == shard.info.n_vocabulary + 2
            and self.indptr[0] == 0
            and self.indptr[-1] == len(self.data) == len(self.indices)
            and (np.diff(self.indptr) >= 0).all()
            and 0 <= self.indices.min(initial=0) <= self.indices.max(initial=0) < n_passages
            and self.begins.min(initial=0) >= 0
            and self.lengths.min(initial=1) > 0
            and ends.max(initial=0) <= shard.info.n_tokens
        )


def count_current(home: Home, folder: str, shard: ShardInfo) -> int | None:
    """How many passages a folder holds of the shard; None where there are none of this very one.

    A corpus may be built anew in its place.
    """
    try:
        row = json.loads(home.read(f"{folder}/{shard.name}/shard.json") or b"")
    except (OSError, ValueError):
        return None
    is_current = (row["content"], row["tokens"]) == (shard.content, tokens_of(shard))
    return int(row["n_passages"]) if is_current else None


def tokens_of(shard: ShardInfo) -> str:
    """Stands for the shard's tokens, as their files' checksums do."""
    return shard.files["tokens.npy"] + shard.files["rare_ids.npy"]
