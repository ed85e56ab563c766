"""The filter and the keys of a corpus: with them or without, the answers are the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.test_judging_cli import fabula
from tests.test_formats import GOLDEN

from fabula.errors import CorpusError
from fabula.kernels.match import longest_matches
from fabula.reference import Reference, filters, matching
from fabula.reference.checksums import seal
from fabula.reference.filters import add_filters
from fabula.reference.layout import GRAMS, KEYS, Manifest, ShardInfo
from fabula.reference.storage import Home
from fabula.reference.tombstones import remove_documents
from fabula.reference.verify import verify_reference
from fabula.store import checksum, dump_json
from fabula.types import Document

WORDS = [f"w{k}" for k in range(30)]


def texts(n: int, seed: int = 0) -> list[Document]:
    rng = random.Random(seed)
    return [Document(f"d{k}", " ".join(rng.choices(WORDS, k=80))) for k in range(n)]


def strip(path: Path, names: Sequence[str] = (GRAMS, KEYS)) -> None:
    """Make the corpus one that an earlier version built, without these files."""
    manifest = Manifest.read(path)
    shards = []
    for info in manifest.shards:
        files = {name: digest for name, digest in info.files.items() if name not in names}
        shards.append(replace(info, files=files))
        folder = path / "shards" / info.name
        for name in names:
            (folder / name).unlink()
        (folder / "shard.json").write_text(dump_json(seal(asdict(shards[-1]))) + "\n")
    (path / "manifest.json").write_bytes(replace(manifest, shards=tuple(shards)).to_json())


def tree(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def queries() -> list[list[str]]:
    rng = random.Random(1)
    return [rng.choices([*WORDS, "unseen"], k=60) for _ in range(20)]


@pytest.mark.parametrize("names", [(GRAMS, KEYS), (KEYS,)])
def test_what_is_added_is_what_is_built(tmp_path: Path, names: Sequence[str]) -> None:
    path = tmp_path / "r"
    Reference.build(texts(60), path, shard_tokens=1500)
    remove_documents(path, [0, 3, 40])
    built = tree(path)
    with_them = Reference.open(path)
    for shard in with_them.local.shards:
        shard.expect_random()
    found = [one.tolist() for one in with_them.longest_matches_many(queries())]
    strip(path, names)
    without = Reference.open(path)
    assert len(without.local.shards) > 2
    for shard in without.local.shards:
        assert (shard.grams is None) == (GRAMS in names)
        assert len(shard.keys.values) == 0
    assert [one.tolist() for one in without.longest_matches_many(queries())] == found
    assert "57 documents" in fabula("reference", "filter", str(path))
    assert tree(path) == built
    verify_reference(path)
    assert add_filters(path) == Manifest.read(path)
    assert tree(path) == built


def test_an_interrupted_addition_changes_nothing_and_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r"
    Reference.build(texts(60), path, shard_tokens=1500)
    built = tree(path)
    strip(path)
    right, done = filters._with_files, list[str]()

    def breaks(
        home: Home, place: str | Path, info: ShardInfo, missing: list[str], n_jobs: int
    ) -> ShardInfo:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(info.name)
        return right(home, place, info, missing, n_jobs)

    with monkeypatch.context() as patched:
        patched.setattr(filters, "_with_files", breaks)
        with pytest.raises(KeyboardInterrupt):
            add_filters(path)
    verify_reference(path)
    assert all(shard.grams is None for shard in Reference.open(path).local.shards)
    add_filters(path)
    assert tree(path) == built


def test_the_filter_does_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = Reference.build(texts(60), tmp_path / "r", shard_tokens=1500)
    n_begun: list[int] = []

    def counted(*given: Any, **named: Any) -> Any:
        ends, known = given[5:7]
        n_begun.append(int((ends - np.arange(len(ends)) > known.clip(1)).sum()))
        return longest_matches(*given, **named)

    monkeypatch.setattr(matching, "longest_matches", counted)
    reference.longest_matches_many(queries())
    # Later shards are asked only where they may hold more than those before.
    assert sum(n_begun[1:]) < 0.5 * n_begun[0] * len(n_begun[1:])


@pytest.mark.parametrize("name", ["reference-2-filtered", "reference-2-keyed"])
def test_corpora_of_earlier_versions_answer_as_one_with_filter_and_keys(name: str) -> None:
    before, after = (Reference.open(GOLDEN / one) for one in ("reference-2", name))
    assert before.local.shards[0].grams is None
    assert after.local.shards[0].grams is not None
    assert (len(after.local.shards[0].keys.values) > 0) == (name == "reference-2-keyed")
    after.local.shards[0].expect_random()
    assert before.fingerprint == after.fingerprint
    for number in before.numbers():
        words = before.locate(before.document(number).text).words
        asked = [*words[::2], *words, *words[::-1]]
        for exclude in ([], [number]):
            assert (
                after.longest_matches(asked, exclude=exclude).tolist()
                == before.longest_matches(asked, exclude=exclude).tolist()
            )


@pytest.mark.parametrize(
    ("name", "shape", "says"),
    [(GRAMS, (0, 8), r"grams\.npy: damaged \(empty\)"), (KEYS, (4,), r"keys\.npy: damaged")],
)
def test_a_file_of_another_size_is_refused(
    tmp_path: Path, name: str, shape: tuple[int, ...], says: str
) -> None:
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
