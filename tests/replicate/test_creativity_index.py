"""The Creativity Index's replication: what is one prompt is left out, and counted, as one."""

from pathlib import Path

import numpy as np
from tests.commands import write_rows

from fabula.core.types import Document
from fabula.novelty.detector import Label
from fabula.novelty.measure import ExcludeSame
from fabula.reference.search import Reference
from fabula.replicate.creativity_index import CLUSTER, Plan, machines, read_set
from fabula.text import TextSettings, read_documents

LABEL = Label("label", "human")


def sentence(seed: int, n: int = 60) -> str:
    return " ".join(f"w{k}" for k in np.random.default_rng(seed).integers(500, size=n))


def pairs(path: Path) -> Path:
    """Two models continued the story of pairs a and b; c is by somebody else."""
    rows = []
    for pair, story, machine in (("a", 1, 10), ("b", 1, 11), ("c", 2, 12)):
        for label, text in (("human", sentence(story)), ("machine", sentence(machine))):
            rows.append({"id": f"{pair}-{label}", "pair_id": pair, "label": label, "text": text})
    return write_rows(path, rows)


def test_a_text_is_not_compared_with_machine_texts_of_its_real_prompt(tmp_path: Path):
    texts = read_set(pairs(tmp_path / "texts.jsonl"), None, LABEL)
    assert [d.meta[CLUSTER] for d in texts] == ["pair_id=a"] * 4 + ["pair_id=c"] * 2
    machines = [d for d in texts if d.meta["label"] == "machine"]
    reference = Reference.build(machines, tmp_path / "ref", settings=TextSettings())
    joined = {str(d.meta["pair_id"]): str(d.meta[CLUSTER]) for d in texts}
    same = ExcludeSame.of(reference, "pair_id", joined)
    left_out = {d.id: {reference.document(n).id for n in same.of_text(d)} for d in texts}
    assert left_out["a-human"] == left_out["b-human"] == {"a-machine", "b-machine"}
    assert left_out["c-human"] == {"c-machine"}
    assert not same.of_text(Document("x", "no pair"))
    # Other clusters, another signature; without any that is joined, that of the field alone.
    assert str(same).startswith("same(pair_id,joined:")
    assert str(ExcludeSame.of(reference, "pair_id", {"a": "a", "c": "c"})) == "same(pair_id)"
    assert str(ExcludeSame.of(reference, "pair_id", {"a": "x", "c": "x"})) != str(same)


def test_clusters_are_of_whole_texts_though_what_pairs_share_is_cut(shared_data: Path):
    path = shared_data / "human_vs_machine" / "fastdetect_writing.jsonl"
    texts = read_set(path, 256, LABEL)
    assert len({d.meta[CLUSTER] for d in texts}) == 131
    by_opening: dict[tuple[str, ...], set[str]] = {}
    for whole, cut in zip(read_documents([str(path)]), texts, strict=True):
        start = tuple(TextSettings().words(whole.text)[:10])
        by_opening.setdefault(start, set()).add(str(cut.meta[CLUSTER]))
    assert all(len(clusters) == 1 for clusters in by_opening.values())


def test_no_reference_document_of_a_texts_cluster_counts(shared_data: Path, tmp_path: Path):
    files = [shared_data / "human_vs_machine" / f"{name}.jsonl"
             for name in ("hanna_writingprompts", "fastdetect_writing")]  # fmt: skip
    plan = Plan({file.stem: read_set(file, 64, LABEL) for file in files},
                {"machine": machines(LABEL, [read_set(file, None, LABEL) for file in files])},
                LABEL)  # fmt: skip
    assert {name: len(texts) for name, texts in plan.texts.items()} == {
        "hanna_writingprompts": 336, "fastdetect_writing": 438,
    }  # fmt: skip
    machine = plan.references["machine"]
    assert not isinstance(machine, Path)
    clusters = {d.id.removeprefix("machine-"): d.meta[CLUSTER] for d in machine}
    for texts in plan.texts.values():
        for text in texts:
            if text.meta["label"] == "machine":
                assert clusters[text.id] == text.meta[CLUSTER]
