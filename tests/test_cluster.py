"""Work on a real Ray cluster of three nodes gives the bytes of one process, one lost or not."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fabula import __version__
from fabula.cli.main import cli
from fabula.cluster import Cluster
from fabula.errors import CorpusError, InputError
from fabula.formats import REFERENCE
from fabula.jobs.originality import NearOptions, OriginalityOptions, open_measure
from fabula.jobs.progress import SILENT
from fabula.measures import team
from fabula.measures.near import NearSearch, NearSettings
from fabula.measures.near_opening import open_near, open_walk
from fabula.measures.near_walk import NearWalk, WalkSettings
from fabula.measures.originality_measure import OriginalityMeasure
from fabula.measures.scores import ScoreRun, to_row
from fabula.measures.team import TeamMeasure, row_of
from fabula.reference import Reference, build
from fabula.reference.build import BuildParameters, add_documents, build_reference
from fabula.reference.build_cluster import on_cluster
from fabula.reference.distributed import Holders, divide
from fabula.reference.layout import Manifest
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.reference.reading_cluster import FarDocuments, are_far
from fabula.text import TextSettings, find_files, in_batches, read_documents
from fabula.text.stopwords import load_stop_words
from fabula.types import Document
from tests.object_store import BUCKET, Bucket, reached

ray = pytest.importorskip("ray", reason="needs fabula[cluster]")

pytestmark = pytest.mark.ray

PARAMETERS = BuildParameters(shard_tokens=4000)
WORDS = ("lamp", "sea", "harbour", "keeper", "night", "boat", "letter", "gull", "stone", "rope")


def library(n_documents: int) -> Iterator[Document]:
    """Texts that share stretches of many lengths, and words of their own."""
    for k in range(n_documents):
        words = [f"{WORDS[(k * i + i // 7) % 10]}{(k % 5) * (i % 3)}" for i in range(100 + k % 50)]
        yield Document(f"d{k}", " ".join(words), author=f"a{k % 9}", meta={"title": f"T{k}"})


def drafts() -> list[dict[str, Any]]:
    """Every third copies a document, the others take short stretches from many."""
    kept = [document.text.split() for document in library(300)]
    rows = []
    for k in range(60):
        words = list(kept[k]) if k % 3 == 0 else []
        for j in range(8):
            words += [f"own{k}n{n}" for n in range(30)] + kept[(k + 31 * j) % 300][j : j + 9]
        rows.append({"id": f"t{k}", "text": " ".join(words), "author": f"a{k % 9}"})
    return rows


@pytest.fixture(scope="module")
def cluster(nodes: Any) -> Iterator[Cluster]:
    """One connection: of another one the nodes would begin new processes."""
    with Cluster(nodes.address) as connected:
        yield connected


def only(n: int, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on so many of the nodes: each process there takes seconds to begin."""
    nodes = cluster.nodes()[:n]
    monkeypatch.setattr(cluster, "nodes", lambda: nodes)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process builds."""
    path = tmp_path_factory.mktemp("here") / "r"
    build_reference(library(300), path, settings=TextSettings(), parameters=PARAMETERS, n_jobs=1)
    assert len(Manifest.read(path).shards) > 6
    return path


CUT, STOP = PassageSettings(40, 10), load_stop_words()


@pytest.fixture(scope="module")
def indexed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same corpus in another folder, with passages."""
    path = tmp_path_factory.mktemp("indexed") / "r"
    shutil.copytree(built, path)
    build_passages(path, Manifest.read(path).shards, CUT, STOP)
    return path


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the library's words; those that ship take seconds to load, on every node."""
    rng = np.random.default_rng(0)
    words = [f"{word}{n}" for word in WORDS for n in range(9)]
    path = tmp_path_factory.mktemp("vectors") / "v.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, rng.normal(size=6)))}\n" for w in words))
    return path


def tree(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def build_on(cluster: Cluster, path: Path, documents: Iterator[Document]) -> None:
    build_reference(
        documents, path, settings=TextSettings(), parameters=PARAMETERS, n_jobs=1,
        write=on_cluster(cluster),
    )  # fmt: skip


def test_a_build_on_three_nodes_is_the_build_of_one_process(
    cluster: Cluster, built: Path, tmp_path: Path
) -> None:
    assert len(cluster.nodes()) == 3
    build_on(cluster, tmp_path / "r", library(300))
    assert tree(tmp_path / "r") == tree(built)


def test_where_memory_ends_a_shard_it_ends_alike(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the size of the vocabulary decides, which only the nodes know."""
    # Words ten times as large, and a tenth of them.
    monkeypatch.setattr(build, "_BYTES_PER_TOKEN", 180)
    monkeypatch.setattr(build, "_BYTES_PER_WORD", 2500)
    monkeypatch.setattr(build, "_BATCH_CHARS", 1 << 17)
    words = [f"{k:x}" for k in range(320_000)]
    texts = [Document(f"d{k}", " ".join(words[5_000 * k : 5_000 * (k + 1)])) for k in range(64)]
    texts += [Document(f"e{k}", texts[k].text) for k in range(20)]
    few = BuildParameters(shard_tokens=2**31, memory_bytes=800 << 20)
    paths = tmp_path / "here", tmp_path / "there"
    for path, write in zip(paths, (None, on_cluster(cluster)), strict=True):
        build_reference(
            iter(texts), path, settings=TextSettings(), parameters=few, n_jobs=1, write=write
        )
    assert len(Manifest.read(paths[0]).shards) > 2
    assert tree(paths[0]) == tree(paths[1])


def test_a_node_that_is_lost_in_a_build_changes_nothing(
    nodes: Any, cluster: Cluster, built: Path, tmp_path: Path
) -> None:
    extra = nodes.add_node(num_cpus=1)
    n_read = 0

    def documents() -> Iterator[Document]:
        nonlocal n_read
        for document in library(300):
            n_read += 1
            if n_read == 200:
                nodes.remove_node(extra, allow_graceful=False)
            yield document

    build_on(cluster, tmp_path / "r", documents())
    assert n_read == 300
    assert tree(tmp_path / "r") == tree(built)


def test_only_missing_shards_are_written_again(
    cluster: Cluster, built: Path, tmp_path: Path
) -> None:
    """As they lie after an end from outside: written out of order, some not at all."""
    path = tmp_path / "r"
    shutil.copytree(built, path)
    (path / "manifest.json").unlink()
    plan = {"fabula": __version__, "format": REFERENCE.version,
            "settings": {"case": "fold", "punct": "drop"},
            "parameters": Manifest.read(built).parameters, "first": 0}  # fmt: skip
    (path / "building.json").write_text(json.dumps(plan))
    for number in ("00001", "00004"):
        shutil.rmtree(path / "shards" / number)
    (path / "shards" / "00004.partleft").mkdir()
    kept = {file: file.stat().st_mtime_ns for file in path.glob("shards/*/*")}
    build_on(cluster, path, library(300))
    assert tree(path) == tree(built)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    # Other texts than those that the kept shards were made of are refused.
    (path / "manifest.json").unlink()
    (path / "building.json").write_text(json.dumps(plan))
    shutil.rmtree(path / "shards" / "00001")
    others = (Document(d.id, d.text.replace("gull", "tern")) for d in library(300))
    with pytest.raises(CorpusError, match="differ from those of the interrupted build"):
        build_on(cluster, path, others)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library in five files of three kinds, in the order of their names."""
    folder = tmp_path_factory.mktemp("shelf")
    rows = [{"id": d.id, "text": d.text, "author": d.author} for d in library(300)]
    for k in range(4):
        lines = "".join(json.dumps(row) + "\n" for row in rows[100 * k : 100 * (k + 1)] or rows[:7])
        (folder / f"{k}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "4.txt").write_text(rows[0]["text"])
    return folder


@pytest.mark.parametrize("n_chars", [1, 700, 5000, 1_000_000])
def test_what_nodes_read_is_divided_as_one_process_divides_it(
    cluster: Cluster, shelf: Path, n_chars: int
) -> None:
    files, how = find_files([f"file://{shelf}"]), {"text_field": "text", "id_field": "id"}
    assert len(files) == 5
    assert are_far(files)
    n_bytes = 0

    def meter(n: int) -> None:
        nonlocal n_bytes
        n_bytes += n

    here = read_documents(files)
    there = FarDocuments(cluster, files, how, meter, piece_chars=2000)
    assert [next(there) for _ in range(10)] == [next(here) for _ in range(10)]
    for expected, batch in zip(in_batches(here, n_chars), there.batches(n_chars), strict=True):
        pieces = [document for piece in cluster.get(batch.pieces) for document in piece]
        assert pieces[batch.first : batch.stop] == expected
    assert n_bytes == sum(file.stat().st_size for file in shelf.iterdir())


def test_a_node_that_reads_and_is_lost_changes_nothing(
    nodes: Any, cluster: Cluster, shelf: Path, tmp_path: Path
) -> None:
    build_reference(
        read_documents([f"file://{shelf}"]), tmp_path / "here", settings=TextSettings(),
        parameters=PARAMETERS, n_jobs=1,
    )  # fmt: skip
    extra = nodes.add_node(num_cpus=1)
    n_told = 0

    def meter(_: int) -> None:
        nonlocal n_told
        n_told += 1
        if n_told == 40:
            nodes.remove_node(extra, allow_graceful=False)

    how = {"text_field": "text", "id_field": "id"}
    files = find_files([f"file://{shelf}"])
    documents = FarDocuments(cluster, files, how, meter, piece_chars=2000)
    build_on(cluster, tmp_path / "there", documents)
    assert n_told > 80
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


def test_what_nodes_read_is_added_as_one_process_adds_it(
    cluster: Cluster, shelf: Path, tmp_path: Path
) -> None:
    files, how = find_files([f"file://{shelf}"]), {"text_field": "text", "id_field": "id"}
    for name in ("here", "there"):
        build_on(cluster, tmp_path / name, iter([Document("z", "a few other words")]))
    add_documents(read_documents(files), tmp_path / "here", n_jobs=1)
    documents = FarDocuments(cluster, files, how, piece_chars=2000)
    after = add_documents(documents, tmp_path / "there", n_jobs=1, write=on_cluster(cluster))
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    assert after.n_documents == 309
    again = FarDocuments(cluster, files, how, piece_chars=2000)
    assert add_documents(again, tmp_path / "there", n_jobs=1) == after


def test_what_a_node_cannot_read_is_told_as_it_is(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one two"}\n{"txt": 1}\n')
    how = {"text_field": "text", "id_field": "id"}
    documents = FarDocuments(cluster, find_files([f"file://{tmp_path}/a.jsonl"]), how)
    with pytest.raises(InputError, match=r"a\.jsonl, line 2"):
        build_on(cluster, tmp_path / "r", documents)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in drafts()[:24]))
    return path


def run(*arguments: str) -> None:
    """A command in this process, whose connection it takes."""
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("cluster")
def test_scores_of_three_nodes_are_the_scores_of_one_process(
    nodes: Any, indexed: Path, texts: Path, tmp_path: Path
) -> None:
    options = ["--exclude", "auto", "--exclude-same", "author", "--spread", "3"]
    asked = ["originality", str(texts), "--reference", str(indexed), *options]
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    run(*asked, "--jobs", "1", "--out", str(here))
    run(*asked, "--engine", "ray", "--address", nodes.address, "--out", str(there))
    assert here.read_bytes() == there.read_bytes()
    rows = [json.loads(line) for line in here.read_text().splitlines()]
    assert len(rows) == 24
    assert any(row["covered"] for row in rows)
    assert any(row["excluded"] for row in rows)


@pytest.fixture
def store(bucket: Bucket | None) -> Iterator[Bucket]:
    if bucket is None:
        pytest.skip("rclone or s3fs is not installed")
    with reached(bucket.environment):
        yield bucket


@pytest.mark.usefixtures("cluster")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore.*")
def test_nodes_write_to_an_object_store_and_copy_what_each_needs(
    nodes: Any,
    store: Bucket,
    texts: Path,
    vectors: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = ("--engine", "ray", "--address", nodes.address)
    plan = ("reference", "build", str(texts), "--shard-tokens", "1500", "--out")
    paths = {"here": str(tmp_path / "mine"), "there": f"s3://{BUCKET}/mine"}
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path / "cache"))
    run(*plan, paths["here"], "--jobs", "1")
    run(*plan, paths["there"], *on)
    assert tree(store.folder / "mine") == tree(tmp_path / "mine")
    rows = {}
    for where, path in paths.items():
        out = tmp_path / f"{where}.jsonl"
        how = on if where == "there" else ("--jobs", "1")
        run("originality", str(texts), "--reference", path, "--match", "near", "--vectors",
            str(vectors), "--meaning", "0", *how, "--out", str(out))  # fmt: skip
        rows[where] = out.read_bytes()
    assert rows["there"] == rows["here"]
    # Who gives the command needs none of the shards.
    assert not list((tmp_path / "cache").rglob("tokens.npy"))
    assert list(store.cache.rglob("tokens.npy"))


@pytest.mark.usefixtures("cluster")
def test_profiles_of_three_nodes_are_those_of_one_process(nodes: Any, tmp_path: Path) -> None:
    texts = tmp_path / "t.jsonl"
    said = "The lamp went round. She counted nine, and then she put out her hand. Nobody woke."
    rows = [{"id": f"{k}", "text": " ".join([said] * (1 + k % 3))} for k in range(12)]
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    run("profile", str(texts), "--out", str(here), "--jobs", "1")
    on = ("--engine", "ray", "--address", nodes.address)
    run("profile", str(texts), "--out", str(there), *on)
    assert here.read_bytes() == there.read_bytes()
    assert len(here.read_text().splitlines()) == 12


def test_a_node_that_is_lost_in_scoring_changes_nothing(
    nodes: Any,
    cluster: Cluster,
    indexed: Path,
    vectors: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Near matches are verbatim ones too, and ask the nodes for more."""
    # A text or two are a batch: each worker has some before it when the node is lost.
    monkeypatch.setattr(team, "_NEAR_BATCH_CHARS", 1 << 12)
    near = NearOptions(
        passage_words=CUT.n_words, passage_overlap=CUT.overlap, vectors=str(vectors), meaning=0
    )
    options = OriginalityOptions((str(indexed),), match="near", near=near)
    texts = [Document(row["id"], row["text"]) for row in drafts()[:40]]
    with open_measure(options) as measure:
        expected = [to_row(result) for result in measure.measure(texts)]
        extra = [nodes.add_node(num_cpus=1)]
        open_there = partial(open_measure, options, SILENT)
        on_nodes = TeamMeasure(cluster, measure, open_there, to_row, [str(indexed)])
        run = ScoreRun(on_nodes, row_of, tmp_path / "scores.jsonl")
        found = []
        for _, row in run.rows(texts):
            found.append({key: row[key] for key in row if key != "asked"})
            while extra:
                nodes.remove_node(extra.pop(), allow_graceful=False)
    assert found == expected
    written = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["id"] for row in written] == [text.id for text in texts]


def test_passages_that_others_hold_are_those_of_one_process(
    cluster: Cluster, indexed: Path
) -> None:
    here = PassageIndex(Reference.open(indexed), CUT, STOP)
    shards = here.reference.local.shards
    shares = divide([shard.info.n_tokens for shard in shards], cluster.nodes())
    assert len(shares) == 3
    holders = Holders(cluster, [str(indexed)], shares)
    try:
        # On none of the nodes that hold a share: all is asked of them.
        far = PassageIndex(holders.open("elsewhere"), CUT, STOP)
        texts = [row["text"].split()[:60] for row in drafts()[:20]]
        for out in ((), range(0, 300, 7)):
            chosen = here.best_many(texts, 25, exclude=out)
            found = far.best_many(texts, 25, exclude=out)
            assert [some.tolist() for some in found] == [some.tolist() for some in chosen]
        assert far.passage(*chosen[0][3]) == here.passage(*chosen[0][3])
        with pytest.raises(CorpusError, match="no passages of this kind"):
            PassageIndex(far.reference, PassageSettings(41, 10), STOP)
    finally:
        cluster.end(holders.actors)


@pytest.mark.parametrize("search", ["passages", "index"])
def test_near_matches_are_found_where_each_node_holds_a_share(
    cluster: Cluster,
    indexed: Path,
    vectors: Path,
    search: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(2, cluster, monkeypatch)
    words, loose = str(vectors), NearSettings(threshold=0.6, meaning=0)

    def opened(reference: Reference) -> OriginalityMeasure:
        near: NearSearch | NearWalk = (
            open_walk(reference, WalkSettings(bits=4, meaning=0), vectors=words)
            if search == "index"
            else open_near(reference, [str(indexed)], loose, passages=CUT, vectors=words)
        )
        return OriginalityMeasure(reference, near=near, spread=5)

    @contextmanager
    def there(reference: Reference | None) -> Iterator[OriginalityMeasure]:
        assert reference is not None
        assert not reference.is_local
        yield opened(reference)

    measure = opened(Reference.open(indexed))
    # In so small a library a word stands in so many places that a walk takes seconds a text.
    texts = [Document(**row) for row in drafts()[: 2 if search == "index" else 4]]
    expected = [to_row(result) for result in measure.measure(texts)]
    on_nodes = TeamMeasure(cluster, measure, there, to_row, [str(indexed)])
    assert [one.row for one in on_nodes.measure(texts)] == expected
    kinds = {span["kind"] for row in expected for span in row["covered"]}
    assert kinds == {"verbatim", "near"}


def test_passages_that_are_lacking_on_a_node_are_told_as_it_is(
    cluster: Cluster, indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(2, cluster, monkeypatch)

    @contextmanager
    def there(reference: Reference | None) -> Iterator[OriginalityMeasure]:
        assert reference is not None
        PassageIndex(reference, PassageSettings(42, 10), STOP)
        yield OriginalityMeasure(reference)

    on_nodes = TeamMeasure(
        cluster, OriginalityMeasure(Reference.open(indexed)), there, to_row, [str(indexed)]
    )
    with pytest.raises(CorpusError, match="no passages of this kind; build them"):
        list(on_nodes.measure([Document("a", "one two three")]))


def test_what_was_read_before_an_error_is_measured_first(
    cluster: Cluster, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(1, cluster, monkeypatch)

    def documents() -> Iterator[Document]:
        yield Document("a", "lamp0 sea1 harbour2")
        raise InputError("line 2: not a JSON object")

    @contextmanager
    def there(reference: Reference | None) -> Iterator[OriginalityMeasure]:
        assert reference is None, "a node that is alone holds no share"
        yield OriginalityMeasure(Reference.open(built))

    measure = OriginalityMeasure(Reference.open(built))
    measured = TeamMeasure(cluster, measure, there, to_row, [str(built)]).measure(documents())
    assert next(measured).row["id"] == "a"
    with pytest.raises(InputError, match="line 2"):
        next(measured)


def test_what_goes_wrong_on_a_node_is_told_as_it_is(
    cluster: Cluster, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(1, cluster, monkeypatch)

    def missing(_: Reference | None) -> Any:
        raise CorpusError("nowhere: not a reference corpus")

    measure = OriginalityMeasure(Reference.open(built))
    on_nodes = TeamMeasure(cluster, measure, missing, to_row, [str(built)])
    with pytest.raises(CorpusError, match="nowhere"):
        list(on_nodes.measure([Document("a", "one two three")]))


def test_nodes_with_another_version_are_refused(
    nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabula.cluster.__version__", "9.9")
    with pytest.raises(InputError, match=rf"has Fabula {__version__}, but this machine has 9\.9"):
        Cluster(nodes.address)


def test_an_address_where_nothing_answers_is_refused() -> None:
    with pytest.raises(InputError, match="Ray is not responding"):
        Cluster("127.0.0.1:1")


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30), st.integers(1, 8))
def test_shares_are_runs_that_hold_every_shard_once(sizes: list[int], n_nodes: int) -> None:
    shares = divide(sizes, [f"n{k}" for k in range(n_nodes)])
    held = [shard for share in shares for shard in range(share.first, share.stop)]
    assert held == list(range(len(sizes)))
    assert len(shares) == min(n_nodes, len(sizes))
    assert all(share.first < share.stop for share in shares)
