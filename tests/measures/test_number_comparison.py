"""One `compare` for the numbers of any instrument."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.commands import invoke, refused, write_rows
from tests.judging.judged_stories import PLAN
from tests.serving import serving

import fabula as fb
from fabula.errors import InputError, MixError
from fabula.judging.session import Session, run_session
from fabula.measures.number_comparison import MeasuredTexts, compare_numbers
from fabula.models.model_spec import ModelOptions
from fabula.stats.compare import holm
from fabula.types import Document


def rows(n: int = 30, shift: float = 1.0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Scores and profiles of n prompts that a person and a model wrote to."""
    rng = np.random.default_rng(0)
    scores, profiles = [], []
    for k in range(n):
        prompt = rng.normal()
        for model in (None, "m"):
            about = {"id": f"{k}{model}", "model": model, "prompt_id": k}
            own = prompt + shift * (model is None) + rng.normal() / 4
            scores.append({**about, "creativity_index": own, "signature": "ci|case:fold"})
            values = {"mattr": rng.normal(), "mtld": None if k % 3 else own, "n_words": 9.0}
            profiles.append({**about, "values": values, "signature": "profile|case:fold"})
    return scores, profiles


def measured(*files: list[dict[str, Any]]) -> MeasuredTexts:
    found = MeasuredTexts()
    for number, file in enumerate(files):
        for row in file:
            found.add(row, f"file {number}")
    return found


def test_all_numbers_are_corrected_together_and_people_have_a_name():
    scores, profiles = rows()
    found = compare_numbers(measured(scores, profiles), by="model", unnamed="human")
    assert [one.number for one in found.pairs] == ["creativity_index", "mattr", "mtld"]
    assert {(one.a, one.b) for one in found.pairs} == {("human", "m")}
    # By scipy on the same values, which is what the paper compares by.
    own = [[r["creativity_index"] for r in scores if r["model"] == m] for m in (None, "m")]
    first = found.pairs[0]
    assert first.difference.p == pytest.approx(stats.mannwhitneyu(*own).pvalue)
    assert first.difference.gap.value == pytest.approx(np.mean(own[0]) - np.mean(own[1]))
    ends = stats.ttest_ind(*own, equal_var=False).confidence_interval()
    # Welch's, which is widened a little where values are skewed.
    assert first.difference.gap.low == pytest.approx(ends.low, abs=0.05)
    assert [one.p_holm for one in found.pairs] == holm([p.difference.p for p in found.pairs])
    missing = {one.group: one.n_missing for one in found.groups if one.number == "mtld"}
    assert missing == {"human": 20, "m": 20}
    with pytest.raises(InputError, match="no field 'model' to group by"):
        compare_numbers(measured(scores), by="model")


def test_texts_to_one_prompt_are_compared_with_each_other():
    """A person is above the model on every prompt, and prompts differ more than that."""
    how: dict[str, Any] = {"by": "model", "unnamed": "human"}
    alone = compare_numbers(measured(rows()[0]), **how).pairs[0].difference
    paired = compare_numbers(measured(rows()[0]), cluster="prompt_id", **how).pairs[0].difference
    assert paired.superiority == 1.0
    assert paired.gap.value == pytest.approx(alone.gap.value)
    assert paired.gap.low > alone.gap.low + 0.2


def test_what_was_measured_otherwise_or_twice_is_refused():
    scores, _ = rows(2)
    with pytest.raises(MixError):
        measured(scores, [{**scores[0], "id": "x", "signature": "ci|case:keep"}])
    with pytest.raises(InputError, match="creativity_index twice"):
        measured(scores, scores)
    with pytest.raises(InputError, match="has no number to compare"):
        measured([{"id": "a", "signature": "s", "missing_reason": None}])


def test_scores_a_profile_and_a_judge_stand_in_one_table(tmp_path: Path):
    scores, profiles = rows(12)
    files = []
    for name, own in (("s", scores), ("p", profiles)):
        files.append(tmp_path / f"{name}.jsonl")
        write_rows(files[-1], own)
    texts = tmp_path / "texts.jsonl"
    documents = [Document(str(row["id"]), "She went to sea. " * 5) for row in scores]
    own = [{"id": d.id, "text": d.text, "label": "ba"[d.id.endswith("m")]} for d in documents]
    write_rows(texts, own)

    with serving(lambda body, n: f"{'Yes' if n % 3 else 'No'}. Because.") as server:
        run_session(Session(models=[f"{server.url}/v1#m"], out=tmp_path / "run", plan=PLAN,
                            documents=documents, options=ModelOptions(max_retries=0)))  # fmt: skip
    done = invoke("compare", *files, tmp_path / "run", "--by", "label", "--texts", texts, "--json")
    assert "no field 'author' to group by" in refused("compare", tmp_path / "run", "--by", "author")
    assert "is not a run of `fabula judge`" in refused("compare", tmp_path, "--by", "author")
    found = json.loads(done.stdout)
    numbers = list(dict.fromkeys(one["number"] for one in found["pairs"]))
    assert numbers[:3] == ["creativity_index", "mattr", "mtld"]
    # 14 tests and their sum.
    assert len(numbers) == 3 + 15
    assert any("tests passed" in one for one in numbers)


def test_verdicts_have_the_fields_of_the_texts_that_are_named():
    texts = [{"id": f"t{k}", "text": "She went to sea. " * k, "label": "ab"[k % 2]}
             for k in range(1, 5)]  # fmt: skip
    verdicts = fb.judge(texts, model=lambda _: "Yes. So.", items="narrative_ending")
    found = fb.compare(verdicts, by="label", texts=texts).frame()
    assert list(found["name"]) == ["a", "b"]
    assert list(found["mean"]) == [1.0, 1.0]
