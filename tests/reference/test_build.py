"""Builds give the same bytes: on any number of processes, and after being killed at any moment."""

import hashlib
import json
import random
from pathlib import Path

import pytest

from fabula.core.errors import BusyError, CorpusError, InputError
from fabula.core.store import writer_lock
from fabula.core.types import Document
from fabula.reference.build import BuildParameters, add_documents, remove_documents
from fabula.reference.files import Manifest, seal
from fabula.reference.search import Reference


def texts(n: int, seed: int = 0) -> list[Document]:
    rng = random.Random(seed)
    vocabulary = [f"w{k}" for k in range(400)]
    return [
        Document(f"{seed}-{k}", " ".join(rng.choices(vocabulary, k=rng.randint(1, 120))))
        for k in range(n)
    ]


def contents(path: Path) -> dict[str, str]:
    """Every file of a corpus with its digest; the lock file says nothing."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def test_one_process_or_many_write_the_same_bytes(tmp_path: Path):
    # Enough for workers to be started: their threshold is eight batches.
    documents = texts(400)
    for n_jobs in (1, 2):
        Reference.build(documents, tmp_path / str(n_jobs), shard_tokens=2000, n_jobs=n_jobs)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    assert len(Manifest.read(tmp_path / "1").shards) > 5


def test_the_fingerprint_is_of_the_content_not_of_how_it_came_in(tmp_path: Path):
    documents, more = texts(60), texts(5, seed=9)
    whole = Reference.build(documents, tmp_path / "a")
    Reference.build(documents[40:] + documents[:10], tmp_path / "b", shard_tokens=100)
    add_documents(documents[10:40] + more, tmp_path / "b", n_jobs=1)
    other = Reference.open(tmp_path / "b")
    assert other.fingerprint != whole.fingerprint
    extra = [n for found in other.numbers_of(d.id for d in more).values() for n in found]
    remove_documents(tmp_path / "b", extra)
    other = Reference.open(tmp_path / "b")
    assert (other.fingerprint, other.n_words, other.n_documents) == (
        whole.fingerprint, whole.n_words, whole.n_documents,
    )  # fmt: skip


def interrupted(documents: list[Document], at: int):  # type: ignore[no-untyped-def]
    """Documents of which the reading fails."""
    yield from documents[:at]
    raise InputError("broken line")


def test_a_build_that_failed_goes_on_with_the_same_texts_only(tmp_path: Path):
    documents, path = texts(100), tmp_path / "r"
    with pytest.raises(InputError, match="broken line"):
        Reference.build(interrupted(documents, 60), path, shard_tokens=500)
    with pytest.raises(CorpusError, match="was interrupted; run the same"):
        Reference.open(path)
    assert list((path / "shards").iterdir()), "finished shards are kept"
    with pytest.raises(CorpusError, match="differ from those of the interrupted build"):
        Reference.build(texts(100, seed=3), path, shard_tokens=500)
    with pytest.raises(CorpusError, match="other parameters"):
        Reference.build(documents, path, shard_tokens=600)
    resumed = Reference.build(documents, path, shard_tokens=500)
    whole = Reference.build(documents, tmp_path / "w", shard_tokens=500)
    assert resumed.fingerprint == whole.fingerprint
    assert contents(path) == contents(tmp_path / "w")


@pytest.mark.parametrize("verb", ["build", "add"])
def test_a_run_stopped_after_its_last_rename_is_not_done_twice(tmp_path: Path, verb: str):
    path = tmp_path / "r"
    Reference.build(texts(20), path, shard_tokens=200)
    before = 0
    if verb == "add":
        before = len(Manifest.read(path).shards)
        add_documents(texts(20, seed=1), path, n_jobs=1)
    after = contents(path)
    # What stands on disk when the process dies between writing the manifest and this file's end.
    (path / "building.json").write_text(json.dumps(seal({"first": before})))
    if verb == "add":
        add_documents(texts(20, seed=1), path, n_jobs=1)
    else:
        Reference.build(texts(20), path, shard_tokens=200)
    assert contents(path) == after


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("name", ["manifest.json", "notes.txt", "shards/00000/chapter.txt"])
def test_other_peoples_files_are_not_built_over(tmp_path: Path, name: str, restart: bool):
    file = tmp_path / "folder" / name
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    with pytest.raises(CorpusError, match="other files and no reference corpus"):
        Reference.build(texts(5), tmp_path / "folder", restart=restart)
    assert file.read_text() == "{}"


def test_doing_again_what_is_done_changes_nothing(tmp_path: Path):
    base, more = [*texts(30), Document("no words", "...")], texts(30, seed=1)
    Reference.build(base, tmp_path / "r", shard_tokens=300)
    Reference.build(base, tmp_path / "r", shard_tokens=300)
    add_documents(more, tmp_path / "r", n_jobs=1)
    before = contents(tmp_path / "r")
    add_documents(more, tmp_path / "r", n_jobs=1)
    assert contents(tmp_path / "r") == before
    with pytest.raises(CorpusError, match="start with the documents that were added last"):
        add_documents(more[:20], tmp_path / "r", n_jobs=1)
    assert add_documents(more[:20], tmp_path / "r", n_jobs=1, restart=True).n_documents == 80


def test_texts_that_were_removed_can_be_added_again(tmp_path: Path):
    Reference.build([Document("a", "one two")], tmp_path / "r")
    for _ in range(2):
        add_documents([Document("b", "two three")], tmp_path / "r", n_jobs=1)
        assert Reference.open(tmp_path / "r").count(["two", "three"]) == 1
        numbers = Reference.open(tmp_path / "r").numbers_of(["b"])["b"]
        remove_documents(tmp_path / "r", numbers)
        assert Reference.open(tmp_path / "r").count(["two", "three"]) == 0


def test_a_restart_that_was_killed_takes_nothing_of_the_old_build(tmp_path: Path):
    Reference.build(texts(60), tmp_path / "r", shard_tokens=300)
    # As it stands while the old build is being cleared: some files are gone already.
    (tmp_path / "r" / "manifest.json").unlink()
    (tmp_path / "r" / "shards" / "00001" / "tokens.npy").unlink()
    clearing = seal({"clearing": True, "first": 0})
    (tmp_path / "r" / "building.json").write_text(json.dumps(clearing))
    Reference.build(texts(60), tmp_path / "r", shard_tokens=300)
    Reference.build(texts(60), tmp_path / "w", shard_tokens=300)
    assert contents(tmp_path / "r") == contents(tmp_path / "w")


def test_texts_without_words_do_not_change_the_fingerprint_and_are_no_corpus(tmp_path: Path):
    one = Reference.build([Document("a", "One two"), Document("b", "...")], tmp_path / "r")
    two = Reference.build([Document("a", "One two")], tmp_path / "w", shard_tokens=1)
    assert one.fingerprint == two.fingerprint
    with pytest.raises(InputError, match="no document contains any words"):
        Reference.build([Document("a", "...")], tmp_path / "none")


def test_only_one_writer_at_a_time(tmp_path: Path):
    Reference.build(texts(5), tmp_path / "r")
    refused = pytest.raises(BusyError, match="another process")
    with writer_lock(tmp_path / "r" / ".lock", "r"), refused:
        add_documents(texts(5), tmp_path / "r", n_jobs=1)


def test_readers_keep_what_they_opened_while_it_grows_or_is_replaced_on_request(tmp_path: Path):
    before = Reference.build([Document("a", "one two")], tmp_path / "r")
    add_documents([Document("b", "two three")], tmp_path / "r", n_jobs=1)
    assert before.longest_matches(["two", "three"]).tolist() == [1, 0]
    assert Reference.open(tmp_path / "r").longest_matches(["two", "three"]).tolist() == [2, 1]
    with pytest.raises(CorpusError, match="contains another reference corpus"):
        Reference.build([Document("c", "three one two")], tmp_path / "r")
    after = Reference.build([Document("c", "three one two")], tmp_path / "r", restart=True)
    assert after.n_documents == 1
    (place,) = before.occurrences(["one", "two"])
    assert (place.document.id, place.span.start) == ("a", 0)


def test_less_memory_means_more_shards():
    plenty = BuildParameters()
    tight = BuildParameters(memory_bytes=1 << 30)
    assert not plenty.is_full(50_000_000, 1_000_000)
    assert tight.is_full(50_000_000, 1_000_000)
    assert tight.is_full(1000, 20_000_000), "a huge vocabulary fills memory too"
    with pytest.raises(InputError, match="`memory`"):
        BuildParameters(memory_bytes=1 << 20)
