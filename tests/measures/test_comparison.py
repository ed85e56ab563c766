"""Groups of scores: no row is lost, none is mixed with others that were measured differently."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kruskal
from tests.commands import write_rows

from fabula.errors import InputError, MixError
from fabula.jobs.comparison import ComparisonSettings, compare
from fabula.jobs.given import Rows
from fabula.measures.group_comparison import Comparison, compare_rows
from fabula.presentation.originality_tables import comparison_tables
from fabula.presentation.sheet import render
from fabula.store import located_rows
from fabula.text.sketch import sketch_of

SIGNATURE = "originality|match:verbatim|L:5-6|ref:books@abc|v:0.1.0"


def compare_scores(paths: list[Path], **how: Any) -> Comparison:
    return compare_rows((one for path in paths for one in located_rows(path)), **how)


def row(index: float | None, **fields: Any) -> dict[str, Any]:
    half = None if index is None else index / 2
    return {
        "id": "x", "creativity_index": index, "uniqueness": {"5": half, "6": half},
        "missing_reason": None if index is not None else "too_short", "signature": SIGNATURE,
    } | fields  # fmt: skip


def test_groups_pairs_and_missing_texts(tmp_path: Path):
    rows = [row(v, model="A") for v in (1.0, 1.2, 1.4)] + [row(None, model="A")]
    rows += [row(v, model="B") for v in (0.8, 1.0, 1.2, 1.0)] + [row(0.5, model=None)]
    found = compare_scores([write_rows(tmp_path / "s.jsonl", rows)], by="model")
    assert [g.name for g in found.groups] == ["(no model)", "A", "B"]
    a, b = found.groups[1], found.groups[2]
    assert (a.index.value, a.index.n, a.missing) == (pytest.approx(1.2), 3, {"too_short": 1})
    assert b.uniqueness[5].value == pytest.approx(0.5)
    pairs = {(p.a, p.b): p for p in found.pairs}
    assert len(pairs) == 3
    assert pairs["A", "B"].difference.percent.value == pytest.approx(20.0)
    for pair in pairs.values():
        assert pair.p_holm >= pair.difference.p
    json.dumps(found.to_json(), allow_nan=False)


def clustered_rows(n: int = 20) -> list[dict[str, Any]]:
    """Prompts of very different levels, and B a little below A on each; C wrote to others."""
    rng = np.random.default_rng(0)
    rows = []
    for k, level in enumerate(rng.normal(5, 2, size=n)):
        for model, less in (("A", 0.0), ("B", 0.3), ("C", 0.3)):
            for _ in range(1 if model == "A" else 3):
                prompt = f"own{k}" if model == "C" else f"p{k}"
                value = level - less + rng.normal() / 5
                rows.append(row(float(value), model=model, prompt_id=prompt))
    return rows


def test_texts_of_a_cluster_count_as_one_and_are_compared_with_their_own(tmp_path: Path):
    path = write_rows(tmp_path / "s.jsonl", clustered_rows())
    found = compare_scores([path], by="model", cluster="prompt_id")
    assert [(g.name, g.index.n, g.n_texts) for g in found.groups] == [
        ("A", 20, 20), ("B", 20, 60), ("C", 20, 60),
    ]  # fmt: skip
    pairs = {(pair.a, pair.b): pair.difference for pair in found.pairs}
    assert pairs["A", "B"].p < 0.001
    # The same difference between groups of other prompts is far within chance.
    assert pairs["A", "C"].p > 0.2
    # As if texts were independent, neither shows.
    plain = {(p.a, p.b): p.difference.p for p in compare_scores([path], by="model").pairs}
    assert all(p is not None and p > 0.1 for p in plain.values())
    assert found.signature == f"{SIGNATURE}|cluster:prompt_id"
    content = found.to_json()
    assert content["cluster"] == "prompt_id"
    assert content["omnibus"]["test"] == "permutation F"
    json.dumps(content, allow_nan=False)


def test_all_groups_are_tested_at_once_and_shared_prompts_are_told(tmp_path: Path):
    rows = clustered_rows()
    found = compare_scores([write_rows(tmp_path / "s.jsonl", rows)], by="model")
    oracle = kruskal(*([r["creativity_index"] for r in rows if r["model"] == m] for m in "ABC"))
    assert found.omnibus.statistic == pytest.approx(oracle.statistic)
    assert found.omnibus.p == pytest.approx(oracle.pvalue)
    assert found.shared_field == "prompt_id"
    shown = " ".join(render(*comparison_tables(found)).split())
    assert "--cluster prompt_id" in shown
    alike = compare_scores(
        [write_rows(tmp_path / "t.jsonl", [row(8.0, m=k) for k in "aabb"])], by="m"
    )
    assert alike.omnibus.p == 1
    alone = compare_scores([write_rows(tmp_path / "u.jsonl", [row(8.0, m="a")] * 2)], by="m")
    assert alone.omnibus is None


def test_copies_are_of_one_cluster_whatever_the_field_says(tmp_path: Path):
    words = [f"w{k}" for k in range(80)]
    sketch = sketch_of(" ".join(words)).to_row()
    others = [sketch_of(" ".join(f"{k}-{w}" for w in words)).to_row() for k in range(3)]
    rows = [
        row(7.0, m="a", prompt_id=str(k), sketch=s) for k, s in enumerate([sketch] * 2 + others)
    ]
    found = compare_scores([write_rows(tmp_path / "s.jsonl", rows)], by="m", cluster="prompt_id")
    assert (found.groups[0].index.n, found.n_joined) == (4, 1)


def test_a_row_without_its_cluster_is_named(tmp_path: Path):
    rows = [row(7.0, m="a", prompt_id="1"), row(7.0, m="a", prompt_id="")]
    with pytest.raises(InputError, match="line 2: no field 'prompt_id' to cluster by"):
        compare_scores([write_rows(tmp_path / "s.jsonl", rows)], by="m", cluster="prompt_id")


def test_a_baseline_is_group_b_of_every_pair(tmp_path: Path):
    path = write_rows(tmp_path / "s.jsonl", [row(1.0, g=k) for k in "abc" for _ in range(3)])
    found = compare_scores([path], by="g", baseline="b")
    assert [(p.a, p.b) for p in found.pairs] == [("a", "b"), ("c", "b")]
    with pytest.raises(InputError, match="`baseline` z"):
        compare_scores([path], by="g", baseline="z")


def test_files_can_be_groups(tmp_path: Path):
    paths = [write_rows(tmp_path / f"{k}.jsonl", [row(1.0), row(1.5)]) for k in "ab"]
    found: Any = compare([Rows.of(path) for path in paths], ComparisonSettings(by="file"))
    assert [group.name for group in found.comparison.groups] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("part", ["L:5-7", "v:0.0.9", "excl:auto"])
def test_scores_measured_in_different_ways_are_refused(tmp_path: Path, part: str):
    key = part.split(":")[0]
    parts = [p for p in SIGNATURE.split("|") if not p.startswith(f"{key}:")]
    other = row(1.0, model="B", signature="|".join([*parts, part]))
    with pytest.raises(MixError, match=f"line 2.*{key}: "):
        compare_scores([write_rows(tmp_path / "s.jsonl", [row(1.0, model="A"), other])], by="model")


def test_the_same_corpus_in_a_folder_of_another_name_is_the_same(tmp_path: Path):
    moved = SIGNATURE.replace("books@abc", "shelf@abc")
    rows = [row(1.0, m="A"), row(1.0, m="B", signature=moved)]
    assert len(compare_scores([write_rows(tmp_path / "s.jsonl", rows)], by="m").groups) == 2
    changed = SIGNATURE.replace("books@abc", "books@abd")
    rows = [row(1.0, m="A"), row(1.0, m="B", signature=changed)]
    with pytest.raises(MixError, match=r"ref: books@abc \| books@abd"):
        compare_scores([write_rows(tmp_path / "t.jsonl", rows)], by="m")


def test_what_is_no_score_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="no field 'model'"):
        compare_scores([write_rows(tmp_path / "a.jsonl", [row(1.0)])], by="model")
    with pytest.raises(InputError, match="not a row of scores"):
        compare_scores([write_rows(tmp_path / "b.jsonl", [{"text": "x"}])], by="model")
    with pytest.raises(InputError, match="contain no rows"):
        compare_scores([write_rows(tmp_path / "c.jsonl", [])], by="model")
    (tmp_path / "d.jsonl").write_text('{"id": ')
    with pytest.raises(InputError, match=r"d\.jsonl, line 1"):
        compare_scores([tmp_path / "d.jsonl"], by="model")
