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
from fabula.reference.storage import open_home
from fabula.reference.tombstones import read_removed
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
    def of(cls, paths: Sequence[str | Path], manifests: Sequence[Manifest]) -> Self:
        """Raises `CorpusError` where the corpora are of different settings."""
        abouts = []
        for path, manifest in zip(paths, manifests, strict=True):
            home = open_home(path).everywhere()
            removed = np.zeros(sum(info.n_documents for info in manifest.shards), np.bool_)
            removed[read_removed(home, manifest)] = True
            abouts.append(
                cls(
                    name=home.spec.rpartition("/")[2],
                    fingerprint=manifest.fingerprint,
                    settings=manifest.settings,
                    n_documents=manifest.n_documents,
                    n_words=manifest.n_words,
                    written_by=manifest.written_by,
                    removed=removed,
                )
            )
        return cls.joined([str(path) for path in paths], abouts)

    @classmethod
    def joined(cls, places: Sequence[str], abouts: Sequence[Self]) -> Self:
        """Several references as one, in this order; `places` is where each lies, for people.

        Raises `CorpusError` where they are of different settings.
        """
        settings = abouts[0].settings
        for place, about in zip(places, abouts, strict=True):
            if about.settings != settings:
                raise CorpusError(
                    f"{place}: made with {about.settings}, {places[0]} with {settings}; "
                    f"search references of one kind together"
                )
        return cls(
            name="+".join(about.name for about in abouts),
            fingerprint="+".join(about.fingerprint for about in abouts),
            settings=settings,
            n_documents=sum(about.n_documents for about in abouts),
            n_words=sum(about.n_words for about in abouts),
            written_by=tuple(
                dict.fromkeys(model for about in abouts for model in about.written_by)
            ),
            removed=np.concatenate([about.removed for about in abouts]),
        )
