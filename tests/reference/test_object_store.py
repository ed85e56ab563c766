"""A corpus in an object store (a real server) is the corpus in a folder, byte for byte."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.test_judging_cli import fabula
from tests.exit_codes import REFUSED
from tests.object_store import BUCKET, s3_server

from fabula.cli.main import cli
from fabula.errors import CorpusError, InputError
from fabula.provenance import read_record
from fabula.reference import Reference
from fabula.reference.build import BuildParameters, build_reference
from fabula.reference.layout import Manifest
from fabula.reference.local_copies import folder_of
from fabula.reference.serving.snapshots import States
from fabula.reference.storage import open_home
from fabula.text import TextSettings
from fabula.types import Document

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore.*")

PARAMETERS = BuildParameters(shard_tokens=2000)
URL = f"s3://{BUCKET}/of/mine"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder behind URL; copies are kept in another."""
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path / "cache"))
    with s3_server(tmp_path / "store") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield tmp_path / "store" / BUCKET / "of" / "mine"


def library(n: int, first: int = 0) -> list[Document]:
    """Texts with words of their own and stretches in common."""
    documents = []
    for k in range(first, first + n):
        words = [f"w{(k % 7) * i % 89}x{k if i % 9 == 0 else 0}" for i in range(150)]
        documents.append(Document(f"d{k}", " ".join(words)))
    return documents


def build(path: str | Path, documents: list[Document], *, restart: bool = False) -> Manifest:
    return build_reference(
        documents, path, settings=TextSettings(), parameters=PARAMETERS, n_jobs=1, restart=restart
    )


def tree(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_do_there_what_they_do_in_a_folder(store: Path, tmp_path: Path) -> None:
    for k, documents in enumerate((library(40), library(20, first=40), library(4, first=49))):
        rows = "".join(json.dumps({"id": d.id, "text": d.text}) + "\n" for d in documents)
        (tmp_path / f"{k}.jsonl").write_text(rows)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("w1x0 1 0 0\nw2x0 0 1 0\nw3x0 0 0 1\n")
    said = {}
    for where, path in (("folder", tmp_path / "mine"), ("store", URL)):
        told = [
            run("reference", "build", tmp_path / "0.jsonl", "--out", path,
                      "--shard-tokens", "2000"),
            run("reference", "add", path, tmp_path / "1.jsonl"),
            run("reference", "remove", path, "d3", "d50"),
            run("reference", "passages", path, "--passage-words", "60"),
            run("reference", "info", path),
            run("reference", "info", path, "--ids"),
            run("reference", "verify", path),
            run("originality", tmp_path / "2.jsonl", "--reference", path, "--spread", "2",
                      "--exclude", "none", "--out", tmp_path / f"{where}.jsonl"),
            run("originality", tmp_path / "2.jsonl", "--reference", path, "--match", "near",
                      "--vectors", vectors, "--meaning", "0",
                      "--out", tmp_path / f"{where}-near.jsonl"),
        ]  # fmt: skip
        said[where] = [one.replace(str(path), "PATH") for one in told[:7]]
    assert said["store"] == said["folder"]
    assert tree(store) == tree(tmp_path / "mine")
    for name in ("", "-near"):
        rows = (tmp_path / f"store{name}.jsonl").read_bytes()
        assert rows == (tmp_path / f"folder{name}.jsonl").read_bytes()
        assert b"d5" in rows


def test_a_build_that_was_cut_off_goes_on_there(store: Path, tmp_path: Path) -> None:
    documents = library(200)

    def breaks() -> Iterator[Document]:
        yield from documents[:150]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_reference(breaks(), URL, settings=TextSettings(), parameters=PARAMETERS, n_jobs=1)
    with pytest.raises(CorpusError, match="was interrupted"):
        Reference.open(URL)
    written = {file: file.stat().st_mtime_ns for file in store.rglob("shard.json")}
    assert len(written) >= 2
    # One that was being sent: its last file is not there.
    shutil.copytree(store / "shards" / "00000", store / "shards" / f"{len(written):05d}")
    (store / "shards" / f"{len(written):05d}" / "shard.json").unlink()
    with pytest.raises(CorpusError, match="differ from those of the interrupted build"):
        build(URL, documents[1:])
    build(URL, documents)
    assert {file: file.stat().st_mtime_ns for file in written} == written
    build(tmp_path / "mine", documents)
    assert tree(store) == tree(tmp_path / "mine")


def test_shards_are_copied_once_and_the_manifest_is_looked_at(store: Path) -> None:
    build(URL, library(60))
    said: list[str] = []
    before = Reference.open(URL, report=said.append)
    assert said[0] == f"copying shard 1 of {len(before.local.shards)} from {URL}"
    # Nothing but what changed is fetched: the shards' files may go away.
    for file in store.glob("shards/*/*.npy"):
        file.unlink()
    assert Reference.open(URL).fingerprint == before.fingerprint
    build(URL, library(60, first=200), restart=True)
    after = Reference.open(URL)
    assert after.fingerprint != before.fingerprint
    assert (before.document(0).id, after.document(0).id) == ("d0", "d200")
    words = after.locate(after.document(0).text).words
    assert after.longest_matches(words)[0] == len(words)


def test_what_arrives_damaged_is_not_searched(store: Path) -> None:
    build(URL, library(30))
    home, name = open_home(URL), "shards/00001/suffixes.npy"
    whole = home.read(name)
    assert whole is not None
    home.write(name, whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CorpusError, match=f"{URL}/{name}: does not match the manifest"):
        Reference.open(URL)
    assert f"{name}: shard 00001 is damaged" in fabula("reference", "verify", URL, code=REFUSED)
    home.remove(name)
    with pytest.raises(CorpusError, match=f"{name}: missing; restore it"):
        Reference.open(URL)
    home.write(name, whole)
    assert Reference.open(URL).n_documents == 30
    assert not list(folder_of(URL).rglob("*.part*"))


@pytest.mark.parametrize("hostile", ["../../evil.npy", "/tmp/evil.npy", "..", ""])
def test_a_hostile_corpus_leads_nowhere(store: Path, tmp_path: Path, hostile: str) -> None:
    build(URL, library(20))
    home = open_home(URL)
    manifest = (home.read("manifest.json") or b"").decode()
    for name in ("tokens.npy", "00000"):
        changed = manifest.replace(f'"{name}"', json.dumps(hostile))
        assert changed != manifest
        home.write("manifest.json", changed.encode())
        with pytest.raises(CorpusError, match="lists the file"):
            Reference.open(URL)
    assert not [file for file in tmp_path.rglob("*") if "evil" in file.name]


def test_a_build_there_replaces_nothing_that_is_no_corpus(store: Path) -> None:
    store.mkdir(parents=True)
    (store / "novel.txt").write_text("mine")
    for restart in (False, True):
        with pytest.raises(CorpusError, match="contains other files"):
            build(URL, library(3), restart=restart)
    assert tree(store) == {"novel.txt": b"mine"}


def test_a_store_that_refuses_is_named_with_the_remedy(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("Some words.")
    none = fabula("originality", str(tmp_path / "a.txt"), "--reference", URL, code=REFUSED)
    assert f"{URL}: not a reference corpus" in none
    mistyped = "s3://copora/of/mine"
    refused = fabula("reference", "build", str(tmp_path / "a.txt"), "--out", mistyped, code=REFUSED)
    assert f"{mistyped}: the object store failed" in refused
    assert [folder.name for folder in store.parents[1].parent.iterdir()] == [BUCKET]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refused = fabula("reference", "build", str(tmp_path / "a.txt"), "--out", URL, code=REFUSED)
    assert f"{URL}: the object store failed" in refused
    assert "nowhere" in fabula("reference", "info", "nowhere://x/y", code=REFUSED)
    assert "must be changed on its own machine" in fabula(
        "reference", "info", "http://127.0.0.1:1/x", code=REFUSED
    )


def test_a_service_follows_what_changes_in_the_store(store: Path) -> None:
    build(URL, library(20))
    states = States([URL])
    assert not states.reload()
    build(URL, library(30), restart=True)
    assert states.reload()
    assert states.now.reference.n_documents == 30


def write_texts(path: Path, documents: list[Document]) -> None:
    rows = (json.dumps({"id": one.id, "text": one.text}) + "\n" for one in documents)
    path.write_text("".join(rows))


def rerun(place: str) -> tuple[int, dict[str, object]]:
    done = CliRunner().invoke(cli, ["rerun", place, "--json"])
    assert done.exit_code in (0, 1), repr(done.exception)
    return done.exit_code, json.loads(done.stdout)


def test_a_corpus_there_has_a_record_and_is_made_again_from_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step, as it was built and changed in place; each byte there is compared."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    write_texts(Path("first.jsonl"), library(12))
    write_texts(Path("more.jsonl"), library(6, first=12))
    run("reference", "build", "first.jsonl", "--out", URL, "--shard-tokens", "2000", "--jobs", "1")
    run("reference", "add", URL, "more.jsonl", "--jobs", "1")
    run("reference", "remove", URL, "d3")
    record = read_record(URL)
    assert store.with_name("mine.provenance.json").exists()
    before = [one["command"] for one in record["before"]["records"]]
    assert (before, record["command"]) == (["reference build", "reference add"], "reference remove")
    assert rerun(URL) == (0, rerun(URL + "/")[1] | {"is_equal": True, "numbers": [], "causes": []})
    # What was scored against it says which state that was.
    run("originality", "more.jsonl", "--reference", URL, "--out", "s.jsonl", "--jobs", "1")
    manifest = hashlib.sha256((store / "manifest.json").read_bytes()).hexdigest()
    assert read_record(Path("s.jsonl"))["inputs"][URL] == manifest
    # On another machine the inputs are those of the folder where it is made again.
    (tmp_path / "work").rename(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_texts(Path("more.jsonl"), library(5, first=12))
    code, said = rerun(URL)
    assert (code, said["causes"]) == (1, ["the input more.jsonl has changed"])
    # Damage of equal size is seen, though no digest of the record covers it.
    write_texts(Path("more.jsonl"), library(6, first=12))
    damaged = store / "shards" / "00000" / "tokens.npy"
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    code, said = rerun(URL)
    n = f"{len(data):,}"
    expected = [f"shards/00000/tokens.npy: {n} bytes then, {n} now, and not the same"]
    assert (code, said["numbers"]) == (1, expected)


def test_only_a_corpus_is_written_there(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other results would land in a folder named `s3:`; a bucket has no place for a record."""
    monkeypatch.chdir(tmp_path)
    write_texts(Path("t.jsonl"), library(4))
    bucket = f"s3://{BUCKET}"
    run("reference", "build", "t.jsonl", "--out", bucket, "--no-passages", "--jobs", "1")
    assert (store.parents[1] / "manifest.json").exists()
    done = CliRunner().invoke(cli, ["rerun", bucket])
    assert isinstance(done.exception, InputError)
    assert "nothing says how" in str(done.exception)
    out = f"s3://{BUCKET}/s.jsonl"
    refused = CliRunner().invoke(cli, ["originality", "t.jsonl", "-r", bucket, "--out", out])
    assert refused.exit_code == 2
    assert f"--out must be a path on this machine, got {out}" in refused.output
    assert not Path("s3:").exists()
