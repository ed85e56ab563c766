"""A damaged reference gives its answers all the same, or an error that names the file."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import reference_damage
from tests.forking import python_command
from tests.reference.test_build import texts

from fabula.core.errors import CorpusError
from fabula.core.store import checksum
from fabula.core.types import Document
from fabula.reference.build import remove_documents, verify_reference
from fabula.reference.files import Manifest, check_files, map_array, seal, unsealed
from fabula.reference.search import Reference
from fabula.reference.service import Served


def corpus(n: int) -> list[Document]:
    rng = np.random.default_rng(0)
    words = [*(f"w{k}" for k in range(40)), "the", "of", "and"]
    weights = 1 / np.arange(1, len(words) + 1)
    texts = (rng.choice(words, rng.integers(1, 30), p=weights / weights.sum()) for _ in range(n))
    return [Document(f"d{k}", " ".join(text)) for k, text in enumerate(texts)]


def build(folder: Path) -> Path:
    """A reference of two shards, of which a document is removed; and vectors."""
    reference = Reference.build(corpus(40), folder / "r", shard_tokens=350)
    assert len(reference.local.shards) == 2
    remove_documents(folder / "r", [7])
    rng = np.random.default_rng(0)
    rows = [f"w{k} {' '.join(map(str, rng.normal(size=6)))}\n" for k in range(40)]
    (folder / "vectors.txt").write_text("".join(rows))
    return folder


def damage(folder: Path, *words: str, **environment: str) -> list[tuple[str, int, str]]:
    """What became of the answers, by file and place; the process must outlive each damage."""
    # What numba is to do is read when it is imported.
    python = sys.executable if environment else python_command()
    command = [python, reference_damage.__file__, str(folder), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900,
        env={**os.environ, **environment},
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.returncode, rows[-1:], done.stderr[-2000:])
    return [(name, place, found) for name, place, found in rows if found != "begun"]


@pytest.mark.long
def test_no_damaged_byte_changes_an_answer(tmp_path: Path):
    found = damage(build(tmp_path), "8", "5")
    assert len(found) > 300
    for name, place, result in found:
        is_named = result.startswith("FabulaError") and Path(name).name in result
        assert result == "same" or is_named, (name, place, result)
    same = Counter(Path(name).name for name, _, result in found if result == "same")
    # What a search does not read, and what builds itself again.
    assert same.keys() <= {"shard.json", "manifest.json"}, same


@pytest.mark.long
def test_no_kernel_reads_beyond_its_arrays_whatever_files_hold(tmp_path: Path):
    # With bounds checked, numba raises IndexError where a search would read other memory.
    strict = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    found = damage(build(tmp_path), "6", "0", "unseen", **strict)
    assert len(found) > 200
    kinds = {result.partition(":")[0] for _, _, result in found}
    assert kinds <= {"same", "other", "FabulaError"}, found
    assert "other" in {result for _, _, result in found}, "nothing was damaged unseen"


def test_a_file_is_compared_again_once_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("fabula.reference.files._SETTLED_NS", 0)
    compared: list[str] = []

    def counted(path: Path) -> str:
        compared.append(path.name)
        return checksum(path)

    monkeypatch.setattr("fabula.reference.files.checksum", counted)
    folder = tmp_path / "shard"
    folder.mkdir()
    for name in ("a.npy", "b.npy"):
        (folder / name).write_bytes(name.encode() * 600_000)
    files = {name: checksum(folder / name) for name in ("a.npy", "b.npy")}
    for _ in range(2):
        check_files([(folder, files)])
        assert sorted(compared) == ["a.npy", "b.npy"]

    before = (folder / "b.npy").stat()
    with (folder / "b.npy").open("rb+") as file:
        file.seek(1000)
        file.write(b"x")
    os.utime(folder / "b.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):  # What is damaged is not remembered.
        with pytest.raises(CorpusError, match=r"b\.npy: damaged"):
            check_files([(folder, files)])
    assert set(compared[2:]) == {"b.npy"}
    # Another checksum of the same files is another question.
    with pytest.raises(CorpusError, match=r"a\.npy: damaged"):
        check_files([(folder, {"a.npy": "0" * 64, "b.npy": files["b.npy"]})])
    (folder / "a.npy").unlink()
    with pytest.raises(CorpusError, match=r"a\.npy: missing"):
        check_files([(folder, files)])


FILES = {
    "tokens.npy", "rare_before.npy", "rare_ids.npy", "suffixes.npy", "pairs.npy",
    "pair_buckets.npy", "grams.npy", "keys.npy", "starts.npy", "words.bin", "words.npy",
    "words_sorted.npy", "ids.bin", "ids.npy", "documents.zst", "blocks.npy",
}  # fmt: skip


def test_a_flipped_byte_is_named_with_its_file_and_not_served(tmp_path: Path):
    Reference.build(texts(60), tmp_path / "r", shard_tokens=800)
    for name in FILES:
        file = tmp_path / "r" / "shards" / "00001" / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(CorpusError, match=rf"{name}: shard 00001 is damaged"):
            verify_reference(tmp_path / "r")
        with pytest.raises(CorpusError, match=rf"{name}: damaged"):
            Served([tmp_path / "r"])
        file.write_bytes(whole)
    verify_reference(tmp_path / "r")


def test_a_missing_file_is_named(tmp_path: Path):
    Reference.build(texts(10), tmp_path / "r")
    (tmp_path / "r" / "shards" / "00000" / "pairs.npy").unlink()
    with pytest.raises(CorpusError, match=r"pairs.npy: missing from shard 00000"):
        verify_reference(tmp_path / "r")
    with pytest.raises(CorpusError, match="--check"):
        Reference.open(tmp_path / "r")
    with pytest.raises(CorpusError, match=r"build one with .*fabula reference build"):
        Reference.open(tmp_path)


def test_removed_documents_are_not_missed(tmp_path: Path):
    Reference.build(texts(30), tmp_path / "r")
    remove_documents(tmp_path / "r", list(range(0, 30, 2)))
    verify_reference(tmp_path / "r")
    (removed,) = (tmp_path / "r").glob("removed-*")
    removed.write_bytes(b"")
    with pytest.raises(CorpusError, match=r"removed-15\.bin"):
        Reference.open(tmp_path / "r")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 99, "tokeniser": "word1"}'])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, content: str):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(CorpusError, match=r"manifest.json: damaged|format 99"):
        Manifest.read(tmp_path)


def test_a_row_says_what_was_written_or_is_refused(tmp_path: Path):
    row = {"name": "a", "n": 3, "of": ["x", "y"]}
    written = json.dumps(seal(row), indent=1).encode()
    assert unsealed(written, "row.json") == row
    with pytest.raises(CorpusError, match=r"^row\.json: damaged"):
        unsealed(written.replace(b"3", b"8"), "row.json")
    for broken in (b"", b"\xff", b"[1]", b"{", b"{}", b"[" * 100_000):
        with pytest.raises(CorpusError, match=r"^row\.json: damaged"):
            unsealed(broken, "row.json")


@pytest.mark.parametrize("kind", [np.uint32, np.int64])
@pytest.mark.parametrize("shape", [(0,), (1,), (12_345,), (3, 2), (0, 4)])
def test_an_array_is_mapped_as_numpy_reads_it_without_parsing_python(
    tmp_path: Path, kind: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
):
    """CPython 3.11 may fail where several threads parse code."""
    path = tmp_path / "a.npy"
    np.save(path, np.arange(np.prod(shape), dtype=kind).reshape(shape))
    expected = np.load(path)

    def parse(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr("ast.parse", parse)
    found = map_array(path, kind, *(None,) * len(shape))
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    with pytest.raises(CorpusError, match="do not match"):
        map_array(path, kind, *shape, 1)


@pytest.mark.parametrize(
    "damaged", [b"", b"words", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00\x10\x00__import__('os')\n"]
)
def test_what_is_not_an_array_is_refused_by_name(tmp_path: Path, damaged: bytes):
    (tmp_path / "a.npy").write_bytes(damaged)
    with pytest.raises(CorpusError, match=r"a\.npy: missing or damaged \(not an array"):
        map_array(tmp_path / "a.npy", np.int64, None)


@pytest.mark.parametrize(
    ("name", "shape", "says"),
    [
        ("grams.npy", (0, 8), r"grams\.npy: damaged \(empty\)"),
        ("keys.npy", (4,), r"keys\.npy: damaged"),
    ],
)
def test_a_file_of_another_size_is_refused(
    tmp_path: Path, name: str, shape: tuple[int, ...], says: str
):
    Reference.build(texts(5), tmp_path)
    manifest = Manifest.read(tmp_path)
    file = tmp_path / "shards" / "00000" / name
    np.save(file, np.zeros(shape, np.uint64))
    (info,) = manifest.shards
    info = replace(info, files={**info.files, name: checksum(file)})
    (tmp_path / "manifest.json").write_bytes(replace(manifest, shards=(info,)).to_json())
    with pytest.raises(CorpusError, match=says):
        Reference.open(tmp_path)
