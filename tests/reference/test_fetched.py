"""A corpus at an address is fetched once, checked, and answers as the folder it was copied from."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.http_serving import serving_files
from tests.object_store import Bucket, reached
from tests.reference.test_build import texts

from fabula.core.errors import CorpusError
from fabula.reference.build import build_reference, remove_documents
from fabula.reference.search import Reference, open_backend
from fabula.text import TextSettings


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store" / "mine"
    Reference.build(texts(30), path, shard_tokens=400)
    return path


@pytest.fixture
def web(store: Path) -> Iterator[str]:
    with serving_files(store.parent) as url:
        yield f"{url}/mine/manifest.json"


def same(address: str, path: Path) -> None:
    words = texts(30)[3].text.split()[:6]
    here, there = Reference.open(path), open_backend([address])
    assert isinstance(there, Reference)
    assert (there.name, there.fingerprint) == (here.name, here.fingerprint)
    assert there.longest_matches(words).tolist() == here.longest_matches(words).tolist()
    assert there.attribute(words[:3]) == here.attribute(words[:3])


def test_a_corpus_is_fetched_once_and_again_only_what_changed(store: Path, own_cache: Path):
    address = f"file://{store}"
    same(address, store)
    files = list(own_cache.glob("references/**/*.npy"))
    before = {file: file.stat().st_mtime_ns for file in files}
    assert len(files) > 10
    remove_documents(store, [3])
    same(address, store)
    assert {file: file.stat().st_mtime_ns for file in files} == before
    # A copy that was damaged since is fetched again.
    for file in own_cache.glob("references/**/suffixes.npy"):
        data = bytearray(file.read_bytes())
        data[-9] ^= 0xFF
        file.write_bytes(data)
    same(address, store)


def test_a_corpus_on_a_web_server_is_named_by_its_manifest(store: Path, web: str):
    same(web, store)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore.*")
def test_a_corpus_in_an_object_store_is_fetched(store: Path, bucket: Bucket | None):
    if bucket is None:
        pytest.skip("rclone or s3fs is not installed")
    store.rename(bucket.folder / "mine")
    with reached(bucket.environment):
        same(f"s3://{bucket.folder.name}/mine", bucket.folder / "mine")


def test_what_is_missing_or_differs_there_is_named(store: Path, monkeypatch: pytest.MonkeyPatch):
    file = store / "shards" / "00000" / "tokens.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"x")
    with pytest.raises(CorpusError, match=r"00000/tokens\.npy: does not match the manifest"):
        Reference.open(f"file://{store}")
    file.unlink()
    with pytest.raises(CorpusError, match=r"00000/tokens\.npy: missing"):
        Reference.open(f"file://{store}")
    with pytest.raises(CorpusError, match="not a reference corpus"):
        Reference.open(f"file://{store.parent}")
    broken = Mock(side_effect=ConnectionResetError("connection lost"))
    monkeypatch.setattr("fsspec.implementations.local.LocalFileSystem.get_file", broken)
    with pytest.raises(CorpusError, match=r"mine: cannot be fetched \(connection lost\)"):
        Reference.open(f"file://{store}")


def test_a_corpus_is_built_in_a_folder(tmp_path: Path):
    with pytest.raises(CorpusError, match="is built and changed in a folder"):
        build_reference(texts(3), "s3://bucket/r", settings=TextSettings(), n_jobs=1)
