"""The Creativity Index's replication: what is one prompt is left out, and counted, as one."""

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import write_rows

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.novelty.detector import Label
from fabula.novelty.measure import ExcludeSame, Levels
from fabula.reference.search import Reference
from fabula.replicate import creativity_index as paper
from fabula.replicate.creativity_index import (
    CLUSTER,
    Analyses,
    Plan,
    analyses_json,
    machines,
    read_set,
)
from fabula.replicate.creativity_index_release import read_outputs, read_release
from fabula.show.sheet import render
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


N = 12
COMMON = "it was the best of times it was the worst of times and so we went on"


def texts_of(writer: str, seed: int) -> list[dict[str, str]]:
    """Models borrow a common run; one repeats the opening, as people's texts always have it."""
    rows = []
    for k in range(N):
        opening = f"Opening number {sentence(k, 5)}."
        own = sentence(seed + k, 40)
        text = f"{opening} {own}" if writer in ("Human", "Echo") else f"{own} {COMMON}"
        asked = f"Please write a speech starting with the following sentence: {opening}"
        prompt = {
            "Human": opening,
            "Echo": f"[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\n{asked} [/INST]",
            "Plain": f"<|user|>\n{asked}\n<|assistant|>\n",
        }[writer]
        rows.append({"prompt": prompt, "text": text})
    return rows


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    speech = folder / "data" / "speech"
    speech.mkdir(parents=True)
    for k, writer in enumerate(("Human", "Echo", "Plain")):
        (speech / f"{writer}_speech.json").write_text(json.dumps(texts_of(writer, 1000 * (k + 1))))
    return folder


def test_texts_have_their_writer_and_the_opening_that_all_share(release: Path):
    assert read_release(release).keys() == read_release(release / "data").keys()
    with pytest.raises(InputError, match="has no book"):
        read_release(release.parent)
    found = read_release(release)["speech"]
    assert Counter(d.meta["model"] for d in found) == {"human": N, "Echo": N, "Plain": N}
    assert len({d.prompt_id for d in found}) == N
    cut = paper.cluster_set(found, 256, LABEL)
    assert not any("Opening number" in d.text for d in cut), "the opening is nobody's own"
    by_prompt: dict[str | None, set[str]] = {}
    for d in cut:
        by_prompt.setdefault(d.prompt_id, set()).add(d.meta[paper.CLUSTER])
    assert all(len(clusters) == 1 for clusters in by_prompt.values())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "Plain_speech.json.*not a JSON file"),
        ("{}", "Plain_speech.json.*not a list of texts"),
        ('[{"text": "x"}]', "Plain_speech.json.*text 1: lacks `prompt` or `text`"),
        ("[3]", "Plain_speech.json.*text 1: lacks `prompt` or `text`"),
        (None, "lacks Human_speech.json"),
    ],
)  # fmt: skip
def test_files_of_another_form_are_named(release: Path, content: str | None, said: str):
    speech = release / "data" / "speech"
    if content is None:
        (speech / "Human_speech.json").unlink()
    else:
        (speech / "Plain_speech.json").write_text(content)
    with pytest.raises(InputError, match=said):
        read_release(release)


def plan_of(release: Path, folder: Path, **changes: Any) -> Plan:
    books = [
        Document("common", f"Once {COMMON} and {sentence(7, 200)}"),
        # A speech that was held stands in the reference, as famous ones do.
        Document("copy", texts_of("Human", 1000)[0]["text"]),
    ]
    if not (folder / "ref").exists():
        Reference.build(books, folder / "ref", settings=TextSettings())
    return replace(
        paper.release_plan(release),
        **{"references": {"ref": folder / "ref"}, "matches": ("verbatim",), "model": None,
           **changes},
    )  # fmt: skip


def run(release: Path, out: Path, **changes: Any) -> tuple[Plan, Analyses]:
    plan = plan_of(release, out.parent, **changes)
    return plan, paper.run_analyses(plan, out)


def test_all_contrasts_stand_beside_the_printed_figures(release: Path, tmp_path: Path):
    _, found = run(release, tmp_path / "out", aligned=(("Echo", "Plain"),))
    (one,) = found.scored
    assert set(one.above) == {"Echo", "Plain"}
    assert one.models.p < 0.01, "one of the two models borrows"
    assert one.n_cleared == {"human": 1}
    sizes = {d.machines: d.calibration.n_machine for d in found.detectors}
    assert sizes == {None: 2 * N, "Echo": N, "Plain": N}
    gaps = {(g.a, g.b, g.details["level"]): g.difference for g in one.by_level}
    assert gaps["Echo", "Plain", 5].value > 0.2
    assert gaps["human", "Echo", 5].value == 0
    (claim,) = found.claims
    assert (claim.table, claim.row, float(claim.printed)) == ("Figure 3c", "speeches", 115.3)
    assert claim.computed > 0
    shown = render(*paper.analyses_tables(found))
    assert "for 1 texts (1 human), documents that copy or quote them were excluded" in shown
    assert "Echo : Plain" in shown
    json.dumps(analyses_json(found), allow_nan=False)
    said = "no group Base by model; the groups are Echo, Plain, human"
    with pytest.raises(InputError, match=said):
        run(release, tmp_path / "other", aligned=(("Base", "Plain"),))


def test_without_exclusion_the_one_who_was_quoted_scores_lowest(release: Path, tmp_path: Path):
    def lowest(folder: str, **changes: Any) -> float:
        groups = paper.indices(run(release, tmp_path / folder, **changes)[1].scored[0].groups)
        (people,) = (one for one in groups if one.group == "human")
        return min(map(min, people.values.values()))

    assert (lowest("a"), lowest("b", exclude=None)) == (8, 0)


def test_a_run_takes_what_is_there(release: Path, tmp_path: Path):
    _, first = run(release, tmp_path / "out")
    (file,) = (tmp_path / "out" / "scores").iterdir()
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    _, again = run(release, tmp_path / "out")
    assert file.read_bytes() == whole
    assert analyses_json(again) == analyses_json(first)


def spans(*ends: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"start_index": a, "end_index": b, "span_text": "x", "occurrence": 1} for a, b in ends]


def test_what_their_search_wrote_is_read_and_summed(release: Path, tmp_path: Path):
    rows: list[dict[str, Any]] = [dict(row) for row in texts_of("Plain", 3000)]
    # 40 tokens: one span of 5, one of 8 that overlaps it by 2, one of 20.
    for row in rows:
        row |= {"matched_spans": spans((0, 5), (3, 11), (20, 40)), "coverage": 31 / 40}
    rows[0] |= {"matched_spans": [], "coverage": 0}
    people = [row | {"matched_spans": [], "coverage": 0.0} for row in texts_of("Human", 1000)]
    outputs = release / "outputs" / "speech"
    outputs.mkdir(parents=True)
    (outputs / "Plain_speech.json").write_text(json.dumps(rows))
    (outputs / "Human_speech.json").write_text(json.dumps(people))
    plan, found = run(release, tmp_path / "out")
    ((kind, match, read),) = read_outputs(release, plan.texts, Levels(5, 12))
    assert (kind, match, len(read)) == ("speech", "verbatim", 2 * N)
    one = next(row for row in read if row["id"] == "speech-Plain-001")
    # By hand: 11 of the first tokens and 20 of the last are covered at L = 5, 8 and 20 up to L = 8,
    # and then the 20 alone.
    assert one["uniqueness"] == pytest.approx(
        {"5": 9 / 40, "6": 12 / 40, "7": 12 / 40, "8": 12 / 40}
        | {str(level): 20 / 40 for level in range(9, 13)}
    )
    assert next(row for row in read if row["id"] == "speech-Plain-000")["creativity_index"] == 8
    theirs = [s for s in found.scored if s.reference == "their search"]
    assert [(s.texts, s.match) for s in theirs] == [("speech", "verbatim")]
    signature = theirs[0].groups.signatures["creativity_index"]
    assert signature.startswith("originality|match:verbatim|L:5-12|tok:theirs|")
    near = shutil.copytree(outputs, release / "outputs" / "semantic" / "speech")
    found = read_outputs(release, plan.texts, Levels(5, 12))
    assert [match for _, match, _ in found] == ["verbatim", "near"]
    shutil.rmtree(near)
    rows[2]["coverage"] = "0.9"
    (outputs / "Plain_speech.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"Plain_speech\.json, text 3: a coverage of 0\.9"):
        list(read_outputs(release, plan.texts, Levels(5, 12)))
    (outputs / "Plain_speech.json").unlink()
    with pytest.raises(InputError, match="contains only the speech files of human texts"):
        list(read_outputs(release, plan.texts, Levels(5, 12)))


@pytest.fixture
def authors() -> Path:
    """Their repository, as the user has it: it has no licence, and is not in this one."""
    folder = Path(os.environ.get("FABULA_CREATIVITY_INDEX", "/work/peers/creativity_index"))
    if not list(folder.glob("**/Human_book.json")):
        pytest.skip("no copy of the authors' repository (FABULA_CREATIVITY_INDEX)")
    return folder


def test_their_texts_are_3335_with_one_opening_for_all_writers(authors: Path):
    found = read_release(authors)
    assert {kind: len(texts) for kind, texts in found.items()} == {
        "book": 600, "poem": 1483, "speech": 1252,
    }  # fmt: skip
    assert {kind: len({d.prompt_id for d in texts}) for kind, texts in found.items()} == {
        "book": 100, "poem": 260, "speech": 235,
    }  # fmt: skip
    people = [d for texts in found.values() for d in texts if d.meta["label"] == "human"]
    assert len(people) == 582
    assert all(d.meta["shared_prefix_chars"] for d in people)
