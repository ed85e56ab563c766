"""Verification of a reference corpus: all checksums, and a sampled search for its own text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fabula.errors import CorpusError
from fabula.reference.layout import Manifest
from fabula.reference.search import Reference
from fabula.reference.storage import open_home

__all__ = ["verify_reference"]

_SAMPLE_WORDS = 24


def verify_reference(
    path: str | Path, *, n_samples: int = 200, report: Callable[[str], None] = lambda stage: None
) -> Manifest:
    """Compare all checksums, then look up `n_samples` stretches of its own text.

    Raises `CorpusError` that names the shard and the file of the first fault.
    """
    home = open_home(path)
    manifest = Manifest.read(home)
    for info in manifest.shards:
        for name, expected in info.files.items():
            report(f"shard {info.name}: {name}")
            file = f"{home}/shards/{info.name}/{name}"
            found = home.checksum(f"shards/{info.name}/{name}")
            if found is None:
                raise CorpusError(f"{file}: missing from shard {info.name}; build the corpus again")
            if found != expected:
                raise CorpusError(
                    f"{file}: shard {info.name} is damaged: this file changed since it was "
                    "written; restore it from a copy, or build the corpus again"
                )
    reference = Reference.open(path, report=report)
    report("searching for its own text")
    _search_itself(reference, manifest, n_samples)
    return manifest


def _search_itself(reference: Reference, manifest: Manifest, n_samples: int) -> None:
    n_all = sum(info.n_documents for info in manifest.shards)
    rng = np.random.default_rng(0)
    numbers = rng.choice(n_all, size=min(n_samples, n_all), replace=False)
    for number in sorted(map(int, numbers)):
        if reference.is_removed(number):
            continue
        document = reference.document(number)
        words = reference.locate(document.text).words
        start = int(rng.integers(max(1, len(words) - _SAMPLE_WORDS)))
        sample = words[start : start + _SAMPLE_WORDS]
        lengths = reference.longest_matches(sample)
        expected = np.arange(len(sample), 0, -1)
        if not np.array_equal(lengths, expected) or reference.count(sample) < 1:
            shard = manifest.shards[reference.local.shard_of(number)]
            raise CorpusError(
                f"{shard.name}: the shard does not find its own text (document {document.id!r}, "
                f"word {start}); build the corpus again"
            )
