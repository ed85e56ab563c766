"""What a reference is, wherever it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.reference.layout import Manifest
from fabula.reference.removed import read_removed
from fabula.text import TextSettings

__all__ = ["About"]


@dataclass(frozen=True, slots=True)
class About:
    """The corpora of a reference, as one."""

    name: str
    fingerprint: str
    settings: TextSettings
    n_documents: int
    n_words: int
    written_by: tuple[str, ...]
    removed: NDArray[np.bool_]
    """bool (n_numbers,): which numbers are of documents that were removed."""

    @classmethod
    def of(cls, paths: Sequence[Path], manifests: Sequence[Manifest]) -> Self:
        """Raises `CorpusError` where the corpora are of different settings."""
        settings = manifests[0].settings
        removed = []
        for path, manifest in zip(paths, manifests, strict=True):
            if manifest.settings != settings:
                raise CorpusError(
                    f"{path}: made with {manifest.settings}, {paths[0]} with {settings}; "
                    f"search references of one kind together"
                )
            removed.append(np.zeros(sum(info.n_documents for info in manifest.shards), np.bool_))
            removed[-1][read_removed(path, manifest)] = True
        return cls(
            name="+".join(path.resolve().name for path in paths),
            fingerprint="+".join(manifest.fingerprint for manifest in manifests),
            settings=settings,
            n_documents=sum(manifest.n_documents for manifest in manifests),
            n_words=sum(manifest.n_words for manifest in manifests),
            written_by=tuple(
                dict.fromkeys(model for manifest in manifests for model in manifest.written_by)
            ),
            removed=np.concatenate(removed),
        )
