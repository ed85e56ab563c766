"""The filter and the keys of a corpus."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.core.errors import CorpusError
from fabula.core.store import checksum
from fabula.core.types import Document
from fabula.kernels.match import longest_matches
from fabula.reference import Reference, parts
from fabula.reference.files import GRAMS, KEYS, Manifest

WORDS = [f"w{k}" for k in range(30)]


def texts(n: int, seed: int = 0) -> list[Document]:
    rng = random.Random(seed)
    return [Document(f"d{k}", " ".join(rng.choices(WORDS, k=80))) for k in range(n)]


def queries() -> list[list[str]]:
    rng = random.Random(1)
    return [rng.choices([*WORDS, "unseen"], k=60) for _ in range(20)]


def test_the_filter_does_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reference = Reference.build(texts(60), tmp_path / "r", shard_tokens=1500)
    n_begun: list[int] = []

    def counted(*given: Any, **named: Any) -> Any:
        ends, known = given[5:7]
        n_begun.append(int((ends - np.arange(len(ends)) > known.clip(1)).sum()))
        return longest_matches(*given, **named)

    monkeypatch.setattr(parts, "longest_matches", counted)
    reference.longest_matches_many(queries())
    # Later shards are asked only where they may hold more than those before.
    assert sum(n_begun[1:]) < 0.5 * n_begun[0] * len(n_begun[1:])


@pytest.mark.parametrize(
    ("name", "shape", "says"),
    [(GRAMS, (0, 8), r"grams\.npy: damaged \(empty\)"), (KEYS, (4,), r"keys\.npy: damaged")],
)
def test_a_file_of_another_size_is_refused(
    tmp_path: Path, name: str, shape: tuple[int, ...], says: str
):
    path = tmp_path / "r"
    Reference.build(texts(5), path)
    manifest = Manifest.read(path)
    file = path / "shards" / "00000" / name
    np.save(file, np.zeros(shape, np.uint64))
    (info,) = manifest.shards
    info = replace(info, files={**info.files, name: checksum(file)})
    (path / "manifest.json").write_bytes(replace(manifest, shards=(info,)).to_json())
    with pytest.raises(CorpusError, match=says):
        Reference.open(path)
