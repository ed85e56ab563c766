"""Damage is found and named."""

from pathlib import Path

import pytest
from tests.reference.test_build import texts

from fabula.core.errors import CorpusError
from fabula.reference.build import remove_documents, verify_reference
from fabula.reference.files import Manifest
from fabula.reference.search import Reference

FILES = {
    "tokens.npy", "rare_before.npy", "rare_ids.npy", "suffixes.npy", "pairs.npy",
    "pair_buckets.npy", "grams.npy", "keys.npy", "starts.npy", "words.bin", "words.npy",
    "words_sorted.npy", "ids.bin", "ids.npy", "documents.zst", "blocks.npy",
}  # fmt: skip


def test_a_flipped_byte_is_named_with_its_shard_and_file(tmp_path: Path):
    Reference.build(texts(60), tmp_path / "r", shard_tokens=800)
    for name in FILES:
        file = tmp_path / "r" / "shards" / "00001" / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(CorpusError, match=rf"{name}: shard 00001 is damaged"):
            verify_reference(tmp_path / "r")
        file.write_bytes(whole)
    verify_reference(tmp_path / "r")


def test_a_missing_file_is_named(tmp_path: Path):
    Reference.build(texts(10), tmp_path / "r")
    (tmp_path / "r" / "shards" / "00000" / "pairs.npy").unlink()
    with pytest.raises(CorpusError, match=r"pairs.npy: missing from shard 00000"):
        verify_reference(tmp_path / "r")
    with pytest.raises(CorpusError, match="--check"):
        Reference.open(tmp_path / "r")


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


def test_a_folder_that_is_no_corpus_says_how_to_build_one(tmp_path: Path):
    with pytest.raises(CorpusError, match="fabula reference build"):
        Reference.open(tmp_path)
