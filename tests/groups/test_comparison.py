"""One `compare` for the numbers of any instrument, none mixed with others measured differently."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.commands import invoke, refused, write_rows
from tests.judging.judged_stories import PLAN
from tests.serving import serving

from fabula.core.errors import InputError, MixError
from fabula.core.types import Document
from fabula.groups.comparison import ComparedGroup, Comparison, MeasuredTexts, compare_groups
from fabula.groups.job import ComparisonSettings, compare
from fabula.groups.tables import comparison_tables, save_comparison
from fabula.jobs.given import Rows
from fabula.judging.session import Session, run_session
from fabula.models.model_spec import ModelOptions
from fabula.novelty.tables import originality_table
from fabula.show.sheet import render
from fabula.stats.contrasts import holm
from fabula.text.clusters import sketch_of

Row = dict[str, Any]
SIGNATURE = "originality|match:verbatim|L:5-6|ref:books@abc|v:0.1.0"


def compare_rows(
    rows: Iterable[Row], by: str = "model", cluster: Any = None, **how: Any
) -> Comparison:
    measured = MeasuredTexts(by, cluster, are_rows=True)
    for number, row in enumerate(rows, 1):
        measured.add(row, f"line {number}")
    return compare_groups(measured, **how)


def indices(found: Comparison) -> list[ComparedGroup]:
    return [one for one in found.groups if one.number == "creativity_index"]


def row(index: float | None, **fields: Any) -> Row:
    half = None if index is None else index / 2
    return {
        "id": "x", "creativity_index": index, "uniqueness": {"5": half, "6": half},
        "missing_reason": None if index is not None else "too_short", "signature": SIGNATURE,
    } | fields  # fmt: skip


def test_groups_pairs_and_missing_texts():
    rows = [row(v, model="A") for v in (1.0, 1.2, 1.4, None)]
    rows += [row(v, model="B") for v in (0.8, 1.0, 1.2, 1.0)] + [row(0.5, model=None)]
    found = compare_rows(rows, unnamed="people")
    other, _, a = sorted(indices(found), key=lambda one: one.group, reverse=True)
    assert (other.group, other.mean.n) == ("people", 1)
    assert (a.mean.value, a.mean.n, a.missing) == (pytest.approx(1.2), 3, {"too_short": 1})
    curve = {one.group: one for one in found.groups if one.number == "uniqueness_5"}
    assert curve["B"].mean.value == pytest.approx(0.5)
    assert (curve["A"].mean.n, curve["A"].n_missing) == (3, 1)
    pairs = {(p.a, p.b): p for p in found.contrasts}
    assert len(pairs) == 3
    assert pairs["A", "B"].details["percent"].value == pytest.approx(20.0)
    assert all(pair.p_adjusted >= pair.p for pair in pairs.values())
    json.dumps(found.to_json(), allow_nan=False)


def clustered_rows(n: int = 20) -> list[Row]:
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


def test_texts_of_a_cluster_count_as_one_and_are_compared_with_their_own():
    found = compare_rows(clustered_rows(), cluster="prompt_id")
    sizes = {one.group: (one.mean.n, one.n_texts) for one in indices(found)}
    assert sizes == {"A": (20, 20), "B": (20, 60), "C": (20, 60)}
    pairs = {(pair.a, pair.b): pair for pair in found.contrasts}
    assert pairs["A", "B"].p < 0.001
    # The same difference between groups of other prompts is far within chance.
    assert pairs["A", "C"].p > 0.2
    # As if texts were independent, neither shows.
    plain = {(p.a, p.b): p.p for p in compare_rows(clustered_rows()).contrasts}
    assert all(p is not None and p > 0.1 for p in plain.values())
    assert found.signatures["creativity_index"] == f"{SIGNATURE}|cluster:prompt_id"
    content = found.to_json()
    assert content["cluster"] == "prompt_id"
    assert content["omnibus"]["creativity_index"]["test"] == "permutation F"
    json.dumps(content, allow_nan=False)


def test_all_groups_are_tested_at_once_and_shared_prompts_are_told():
    rows = clustered_rows()
    found = compare_rows(rows)
    oracle = stats.kruskal(
        *([r["creativity_index"] for r in rows if r["model"] == m] for m in "ABC")
    )
    omnibus = found.omnibus["creativity_index"]
    assert omnibus.statistic == pytest.approx(oracle.statistic)
    assert omnibus.p == pytest.approx(oracle.pvalue)
    assert found.shared_field == "prompt_id"
    shown = " ".join(render(*comparison_tables(found)).split())
    assert "--cluster prompt_id" in shown
    alike = compare_rows([row(8.0, m=k) for k in "aabb"], by="m")
    assert (alike.contrasts[0].p, alike.omnibus) == (1, {})
    assert not compare_rows([row(8.0, m="a")] * 2, by="m").omnibus


def test_copies_are_of_one_cluster_whatever_the_field_says():
    words = [f"w{k}" for k in range(80)]
    sketch = sketch_of(" ".join(words)).to_row()
    others = [sketch_of(" ".join(f"{k}-{w}" for w in words)).to_row() for k in range(3)]
    sketches = enumerate([sketch, sketch, *others])
    rows = [row(7.0, m="a", prompt_id=str(k), sketch=s) for k, s in sketches]
    found = compare_rows(rows, by="m", cluster="prompt_id")
    assert (found.groups[0].mean.n, found.n_joined) == (4, 1)


def test_a_baseline_is_group_b_of_every_pair():
    rows = [row(1.0, g=k) for k in "abc" for _ in range(3)]
    found = compare_rows(rows, by="g", baseline="b")
    assert [(p.a, p.b) for p in found.contrasts] == [("a", "b"), ("c", "b")]
    with pytest.raises(InputError, match="`baseline` z"):
        compare_rows(rows, by="g", baseline="z")


def test_files_can_be_groups(tmp_path: Path):
    paths = [write_rows(tmp_path / f"{k}.jsonl", [row(1.0), row(1.5)]) for k in "ab"]
    found: Any = compare([Rows.of(path) for path in paths], ComparisonSettings(by="file"))
    assert [group.group for group in indices(found.comparison)] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("part", ["L:5-7", "v:0.0.9", "excl:auto", "ref:books@abd"])
def test_scores_measured_in_different_ways_are_refused(part: str):
    key = part.split(":")[0]
    parts = [p for p in SIGNATURE.split("|") if not p.startswith(f"{key}:")]
    other = row(1.0, model="B", signature="|".join([*parts, part]))
    with pytest.raises(MixError, match=f"line 2.*{key}: "):
        compare_rows([row(1.0, model="A"), other])


def test_the_same_corpus_in_a_folder_of_another_name_is_the_same():
    moved = SIGNATURE.replace("books@abc", "shelf@abc")
    found = compare_rows([row(1.0, model="A"), row(1.0, model="B", signature=moved)])
    assert len(indices(found)) == 2


@pytest.mark.parametrize(
    ("rows", "cluster", "said"),
    [
        ([row(1.0)], None, "no field 'model'"),
        ([{"text": "x"}], None, "not a row of a measurement"),
        ([], None, "contain no rows"),
        ([row(1.0, model="a", prompt_id=k) for k in ("1", "")], "prompt_id",
         "line 2: no field 'prompt_id' to cluster by"),
    ],
)  # fmt: skip
def test_what_is_no_score_is_named(rows: list[Row], cluster: str | None, said: str):
    with pytest.raises(InputError, match=said):
        compare_rows(rows, cluster=cluster)


def scores_and_profiles(n: int = 30) -> tuple[list[Row], list[Row]]:
    """Scores and profiles of n prompts that a person and a model wrote to."""
    rng = np.random.default_rng(0)
    scores, profiles = [], []
    for k in range(n):
        prompt = rng.normal()
        for model in (None, "m"):
            about = {"id": f"{k}{model}", "model": model, "prompt_id": k}
            own = prompt + (model is None) + rng.normal() / 4
            scores.append({**about, "creativity_index": own, "signature": "ci|case:fold"})
            values = {"mattr": rng.normal(), "mtld": None if k % 3 else own, "n_words": 9.0}
            profiles.append({**about, "values": values, "signature": "profile|case:fold"})
    return scores, profiles


def measured(rows: list[Row]) -> MeasuredTexts:
    found = MeasuredTexts("model", None)
    for row in rows:
        found.add(row, "a file")
    return found


def test_all_numbers_are_corrected_together_and_people_have_a_name():
    scores, profiles = scores_and_profiles()
    found = compare_groups(measured(scores + profiles), unnamed="human")
    assert [one.number for one in found.contrasts] == ["creativity_index", "mattr", "mtld"]
    assert {(one.a, one.b) for one in found.contrasts} == {("human", "m")}
    # By scipy on the same values, which is what the paper compares by.
    own = [[r["creativity_index"] for r in scores if r["model"] == m] for m in (None, "m")]
    first = found.contrasts[0]
    assert first.p == pytest.approx(stats.mannwhitneyu(*own).pvalue)
    assert first.difference.value == pytest.approx(np.mean(own[0]) - np.mean(own[1]))
    ends = stats.ttest_ind(*own, equal_var=False).confidence_interval()
    # Welch's, which is widened a little where values are skewed.
    assert first.difference.low == pytest.approx(ends.low, abs=0.05)
    assert [one.p_adjusted for one in found.contrasts] == holm([p.p for p in found.contrasts])
    missing = {one.group: one.n_missing for one in found.groups if one.number == "mtld"}
    assert missing == {"human": 20, "m": 20}


def test_what_was_measured_twice_or_not_at_all_is_refused():
    scores, _ = scores_and_profiles(2)
    with pytest.raises(InputError, match="creativity_index twice"):
        measured(scores * 2)
    with pytest.raises(InputError, match="has no number to compare"):
        measured([{"id": "a", "signature": "s", "missing_reason": None}])


def test_scores_a_profile_and_a_judge_stand_in_one_table(tmp_path: Path):
    scores, profiles = scores_and_profiles(12)
    files = [write_rows(tmp_path / "s.jsonl", scores), write_rows(tmp_path / "p.jsonl", profiles)]
    documents = [Document(str(row["id"]), "She went to sea. " * 5) for row in scores]
    own = [{"id": d.id, "text": d.text, "label": "ba"[d.id.endswith("m")]} for d in documents]
    texts = write_rows(tmp_path / "texts.jsonl", own)
    with serving(lambda body, n: f"{'Yes' if n % 3 else 'No'}. Because.") as server:
        run_session(Session(models=[f"{server.url}/v1#m"], out=tmp_path / "run", plan=PLAN,
                            documents=documents, options=ModelOptions(max_retries=0)))  # fmt: skip
    done = invoke("compare", *files, tmp_path / "run", "--by", "label", "--texts", texts, "--json")
    assert "no field 'author' to group by" in refused("compare", tmp_path / "run", "--by", "author")
    assert "is not a run of `fabula judge`" in refused("compare", tmp_path, "--by", "author")
    found = json.loads(done.stdout)
    numbers = list(dict.fromkeys(one["number"] for one in found["contrasts"]))
    assert numbers[:3] == ["creativity_index", "mattr", "mtld"]
    # 14 tests and their sum.
    assert len(numbers) == 3 + 15
    assert any("tests passed" in one for one in numbers)


@pytest.fixture
def comparison() -> Comparison:
    rows = [row(1.0 + k / 10, model=m) for k in range(5) for m in ("A", "B & <C>")]
    rows.append(row(None, model="D $x_1$"))
    return compare_rows(rows)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_same_comparison_gives_the_same_bytes(
    comparison: Comparison, tmp_path: Path, ending: str
):
    for name in ("a", "b"):
        save_comparison(comparison, tmp_path / f"{name}.{ending}")
    first = (tmp_path / f"a.{ending}").read_bytes()
    assert first == (tmp_path / f"b.{ending}").read_bytes()
    if ending == "svg":
        assert b"B &amp; &lt;C&gt;" in first
        assert comparison.signatures["creativity_index"].encode() in first


def test_what_cannot_be_drawn_is_said(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(InputError, match=r"\.svg, \.pdf or \.png"):
        save_comparison(comparison, tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'fabula\[plots\]'"):
        save_comparison(comparison, tmp_path / "a.svg")


def test_a_text_named_like_markup_is_shown_as_it_is():
    rows = [("[bold]a[/]", 10, 7.5, 0.9, None), ("b", 2, None, None, "too_short")]
    shown = render(*originality_table(rows, ["5", "6"], "signature"))
    assert "[bold]a[/]" in shown
    assert "missing: the text is too short" in shown
    assert "mean Creativity Index 7.500 over 1 text, 1 without one" in shown
