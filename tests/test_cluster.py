"""Work on a real Ray cluster of three nodes gives the bytes of one process, one lost or not."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula import __version__
from fabula.core.errors import CorpusError, InputError
from fabula.core.types import Document
from fabula.core.workers import Cluster
from fabula.novelty import job as originality
from fabula.novelty.job import NearOptions, OriginalityOptions, open_measure
from fabula.novelty.scores import run_measure, to_row
from fabula.reference.search import Reference
from tests.commands import invoke, rows_of
from tests.test_shares import WORDS, drafts, library, tree, write_documents

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'fabula[cluster]'")

pytestmark = [pytest.mark.ray, pytest.mark.long]


@pytest.fixture(scope="module")
def cluster(nodes: Any) -> Iterator[Cluster]:
    """One connection: of another one the nodes would begin new processes."""
    with Cluster(nodes.address) as connected:
        yield connected


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("here") / "r"
    Reference.build(library(300), path, shard_tokens=4000)
    return path


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the library's words; those that ship take seconds to load, on every node."""
    rng = np.random.default_rng(0)
    words = [f"{word}{n}" for word in WORDS for n in range(9)]
    path = tmp_path_factory.mktemp("vectors") / "v.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, rng.normal(size=6)))}\n" for w in words))
    return path


def on(nodes: Any) -> list[str]:
    """The options with which a command works on the nodes, by the connection of this process."""
    return ["--engine", "ray", "--set", f"running.address={nodes.address}"]


@pytest.mark.usefixtures("cluster")
def test_a_build_on_three_nodes_is_the_build_of_one_process(nodes: Any, tmp_path: Path):
    texts = write_documents(tmp_path / "t.jsonl", library(300))
    here, there = tmp_path / "here", tmp_path / "there"
    for more in ("--set=running.shard-tokens=4000",), ("--add", "--set=running.restart=true"):
        plan = ("reference", "build", texts, *more, "--out")
        invoke(*plan, here, "--jobs", 1)
        invoke(*plan, there, *on(nodes))
        assert len(list((here / "shards").iterdir())) > 6
        assert tree(there) == tree(here)


@pytest.mark.usefixtures("cluster")
def test_scores_of_three_nodes_are_those_of_one_process(nodes: Any, built: Path, tmp_path: Path):
    texts = write_documents(tmp_path / "t.jsonl", drafts()[:24])
    options = ["--exclude", "auto", "--exclude-same", "author", "--spread", "3"]
    asked = ["originality", texts, "--reference", built, *options, "--out"]
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    invoke(*asked, here, "--jobs", 1)
    invoke(*asked, there, *on(nodes))
    assert here.read_bytes() == there.read_bytes()
    rows = rows_of(here)
    assert len(rows) == 24
    assert any(row["covered"] for row in rows)
    assert any(row["excluded"] for row in rows)


@pytest.mark.usefixtures("cluster")
def test_profiles_of_three_nodes_are_those_of_one_process(nodes: Any, tmp_path: Path):
    said = "The lamp went round. She counted nine, and then she put out her hand. Nobody woke."
    rows = [Document(f"{k}", " ".join([said] * (1 + k % 3))) for k in range(12)]
    asked = "profile", write_documents(tmp_path / "t.jsonl", rows), "--out"
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    invoke(*asked, here, "--jobs", 1)
    invoke(*asked, there, *on(nodes))
    assert here.read_bytes() == there.read_bytes()
    assert len(rows_of(here)) == 12


def test_a_node_that_is_lost_in_scoring_changes_nothing(
    nodes: Any, cluster: Cluster, built: Path, vectors: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    """Near matches are verbatim ones too."""
    # A text or two are a batch: some are being measured when the node is lost.
    monkeypatch.setattr(originality, "_NEAR_CHARS", 1 << 12)
    near = NearOptions(vectors=str(vectors), meaning=0, bits=4)
    options = OriginalityOptions((str(built),), match="near", near=near)
    texts = drafts()[:24]
    with open_measure(options) as measure:
        expected = [to_row(result) for result in measure.measure(texts)]
        extra = [nodes.add_node(num_cpus=1)]
        there = partial(originality._rows_on, cluster, measure, partial(open_measure, options))
        found = []
        out = tmp_path / "scores.jsonl"
        for _, row in run_measure(measure, texts, out, rows_of=there):
            found.append({key: row[key] for key in row if key != "asked"})
            while extra:
                nodes.remove_node(extra.pop(), allow_graceful=False)
    assert found == expected
    assert {span["kind"] for row in expected for span in row["covered"]} == {"verbatim", "near"}
    written = rows_of(tmp_path / "scores.jsonl")
    assert [row["id"] for row in written] == [text.id for text in texts]


def test_what_was_read_before_an_error_is_done_first(cluster: Cluster):
    def items() -> Iterator[int]:
        yield 1
        raise InputError("line 2: not a JSON object")

    done = cluster.in_order(lambda n: n + 1, items())
    assert next(done) == 2
    with pytest.raises(InputError, match="line 2"):
        next(done)


def test_what_goes_wrong_on_a_node_is_told_as_it_is(cluster: Cluster):
    def missing(_: int) -> None:
        raise CorpusError("nowhere: not a reference corpus")

    with pytest.raises(CorpusError, match="nowhere"):
        list(cluster.in_order(missing, [1]))


def test_nodes_with_another_version_are_refused(nodes: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fabula.core.workers.__version__", "9.9")
    with pytest.raises(InputError, match=rf"has Fabula {__version__}, but this machine has 9\.9"):
        Cluster(nodes.address)


def test_an_address_where_nothing_answers_is_refused():
    with pytest.raises(InputError, match="Ray is not responding"):
        Cluster("127.0.0.1:1")
