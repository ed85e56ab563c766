"""A local model with copies on a real Ray cluster answers as it does in one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.cluster import Cluster
from fabula.errors import InputError, ModelError
from fabula.judging import JudgePlan, Template
from fabula.judging.session import Session, run_session
from fabula.models import ModelOptions, Prompt, Sampling, cluster_models, open_model
from fabula.models.cluster_models import ClusterModel, ClusterTerms, Seat, seats
from fabula.models.local import LocalModel, embedded_model, has_gpu
from fabula.models.model_copies import Copies
from fabula.rubrics import load_rubric
from fabula.types import Document
from tests.cli.test_judging_cli import fabula
from tests.exit_codes import REFUSED

pytest.importorskip("ray", reason="needs fabula[cluster]")

pytestmark = pytest.mark.ray

STORIES = [
    Document("lamp", "The lamp went out. Nobody rowed over to see why. The sea kept it."),
    Document("gull", "A gull took the letter from his hand, and he let it. It was to himself."),
    Document("stone", "She counted the stones of the harbour twice. The second time one was gone."),
    Document("rope", "He cut the rope, and the boat stayed where it was."),
]


@pytest.fixture(scope="module", autouse=True)
def runtime() -> None:
    pytest.importorskip("xllamacpp", reason="needs fabula[local]")


def judged(
    out: Path, model: Path, options: ModelOptions, meter: Callable[[int], None] = lambda _: None
) -> bytes:
    rubric = load_rubric("ttcw")
    plan = JudgePlan(
        replace(rubric, items=rubric.items[:3]), Template("verdict-first"), max_tokens=20
    )
    run_session(Session(STORIES, [str(model)], plan, out, options=options), meter=meter)
    return (out / "measurements.jsonl").read_bytes()


def test_verdicts_of_copies_of_the_embedded_model_are_those_of_one_process(
    nodes: Any, tmp_path: Path
) -> None:
    try:
        embedded_model()
    except ModelError as error:
        pytest.skip(str(error))
    texts = tmp_path / "t.jsonl"
    rows = [{"id": story.id, "text": story.text} for story in STORIES[:2]]
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["judge", str(texts), "--items", "narrative_ending", "--style", "verdict-first",
             "--max-tokens", "8"]  # fmt: skip
    fabula(*asked, "--out", str(tmp_path / "here"))
    on = ("--engine", "ray", "--address", nodes.address)
    fabula(*asked, *on, "--out", str(tmp_path / "there"))
    found = [(tmp_path / name / "measurements.jsonl").read_bytes() for name in ("here", "there")]
    assert found[0] == found[1]
    assert found[0].count(b'"p_yes"') == 2


def test_a_copy_that_is_lost_is_made_up_for_by_the_others(
    nodes: Any, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = judged(tmp_path / "here", small_model, ModelOptions())
    lost = []
    drop = Copies.drop
    monkeypatch.setattr(Copies, "drop", lambda own, copy: (lost.append(copy), drop(own, copy)))
    extra = [nodes.add_node(num_cpus=1)]

    def meter(_: int) -> None:
        # Four stories are under way, one of them there, and no one is read to its end.
        while extra:
            nodes.remove_node(extra.pop(), allow_graceful=False)

    options = ModelOptions(cluster=ClusterTerms(nodes.address))
    assert judged(tmp_path / "run", small_model, options, meter) == here
    # Where its calls were answered before the node was gone, nothing was asked of it again.
    assert len(lost) <= 1
    assert len((tmp_path / "run" / "answers.jsonl").read_text().splitlines()) == 12


def test_where_every_copy_is_lost_others_are_opened_on_the_nodes_that_are_there(
    nodes: Any, small_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(nodes.address) as cluster:
        others = set(cluster.nodes())
    # All copies are on nodes that begin and end here.
    monkeypatch.setattr(
        cluster_models, "seats", lambda *terms: [s for s in seats(*terms) if s.node not in others]
    )

    async def ask() -> list[str]:
        added = [nodes.add_node(num_cpus=1)]
        options = ModelOptions(cluster=ClusterTerms(nodes.address))
        prompt, sampling = Prompt("It rained. ", "Did it rain?"), Sampling(max_tokens=8)
        try:
            async with open_model(str(small_model), options) as model:
                assert model.n_parallel == 1
                answers = [await model.ask(prompt, sampling)]
                added.append(nodes.add_node(num_cpus=1))
                nodes.remove_node(added.pop(0), allow_graceful=False)
                answers.append(await model.ask(prompt, sampling))
        finally:
            for node in added:
                nodes.remove_node(node)
        return [answer.text for answer in answers]

    texts = asyncio.run(ask())
    assert texts[0] == texts[1] != ""


def test_there_is_a_copy_for_each_gpu_where_there_are_any(nodes: Any, small_model: Path) -> None:
    with Cluster(nodes.address) as cluster:
        assert seats(cluster, None) == [Seat(node, 0, 1) for node in cluster.nodes()]
        before = set(cluster.nodes())
        extra = nodes.add_node(num_cpus=5, num_gpus=4)
        (node,) = set(cluster.nodes()) - before
        try:
            assert seats(cluster, None) == [Seat(node, 1, 1)] * 4
            assert seats(cluster, 2) == [Seat(node, 2, 2)] * 2
            with pytest.raises(InputError, match="no node of the cluster has so many"):
                seats(cluster, 5)
            if not has_gpu():
                with pytest.raises(ModelError, match=f"node {node[:8]}: .* cannot use a GPU"):
                    open_on(nodes, small_model, small_model)
        finally:
            nodes.remove_node(extra)


def open_on(nodes: Any, here: Path, there: Path) -> None:
    async def once() -> None:
        terms = ClusterTerms(nodes.address)
        async with ClusterModel(LocalModel(here), partial(LocalModel, there), terms):
            pass

    asyncio.run(once())


def test_a_node_with_another_file_under_the_path_is_refused(
    nodes: Any, small_model: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.gguf"
    other.symlink_to(small_model)
    with pytest.raises(ModelError, match="a node has local/other@"):
        open_on(nodes, small_model, other)


def test_what_is_wrong_on_a_node_is_told_as_it_is(
    nodes: Any, small_model: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"gone\.gguf: no such model file"):
        open_on(nodes, small_model, tmp_path / "gone.gguf")


def test_a_model_that_is_asked_elsewhere_needs_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("It rained.")
    asked = ("judge", str(tmp_path / "s.txt"), "--out", str(tmp_path / "run"))
    said = fabula(*asked, "--model", "http://127.0.0.1:9/v1#m", "--engine", "ray", code=REFUSED)
    assert "--engine ray is for models that run on the cluster" in said
    assert "--gpus is only for --engine ray" in fabula(*asked, "--gpus", "1", code=REFUSED)
    said = fabula("report", str(tmp_path / "s.txt"), "--engine", "ray", code=REFUSED, cwd=tmp_path)
    assert "name one with --model" in said
