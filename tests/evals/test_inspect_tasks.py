"""The same rubric, run by Inspect AI against a real server."""

import asyncio
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import ModelName, ModelOutput
from inspect_ai.scorer import Target
from inspect_ai.solver import TaskState
from tests.commands import write_rows
from tests.forking import inspect_command
from tests.serving import Reply, prompt_of, serving

import fabula as fb
from fabula.core.types import Signature
from fabula.evals import rubric as rubric_task
from fabula.evals import verdict
from fabula.judging.run import call_seed
from fabula.judging.trust import Trust, TrustBook
from fabula.raters.agreement import read_experts
from fabula.rubrics.load import load_rubric

ROOT = Path(__file__).parents[2]


MIXED = """
id = "mixed"
version = "1"
title = "Mixed"
items = [
    {id = "ending", index = 1, title = "Ending", question = "Does the ending hold?"},
    {id = "grade", index = 2, title = "Grade", question = "How good is it?", \
scale = {kind = "number", low = 1, high = 5}, show_if = "ending == 'Yes'"},
    {id = "worst", index = 3, title = "Weakest part", question = "What is weakest?", \
scale = {kind = "choice", options = ["plot", "style"]}, \
show_if = "ending == 'No' or grade < 3"},
    {id = "twist", index = 4, title = "Twist", question = "Is there a twist?"},
]
"""


def test_inspect_heeds_conditions_and_keeps_scales_apart(tmp_path: Path):
    # One story passes with 4 of 5, one with 2 of 5, one fails, of one the gate is not answered.
    names = ("good", "fair", "bad", "odd")
    words = mixed(tmp_path, [{"id": n, "text": f"A {n} story."} for n in names])

    def answer(body: dict[str, Any], _: int) -> Reply:
        prompt = prompt_of(body)
        story = next(name for name in names if f"A {name} story" in prompt)
        if "How good" in prompt:
            return "4. Good." if story == "good" else "2. Fair."
        if "weakest" in prompt:
            return "plot. Thin." if story == "fair" else "style. Plain."
        if "twist" in prompt:
            return "Yes. At the end."
        return {"bad": "No. It stops.", "odd": "Hm."}.get(story, "Yes. It holds.")

    with serving(answer) as server:
        scores, metrics = run_eval(tmp_path, server.url, *words)
    # Four endings, four twists, two grades, two weakest parts: no gate is asked twice.
    assert len(server.requests) == 12
    assert scores["good/worst"]["reason"] == scores["bad/grade"]["reason"] == "not_asked"
    assert scores["odd/grade"]["reason"] == scores["odd/worst"]["reason"] == "gate_missing"
    assert (scores["fair/worst"]["value"], scores["bad/worst"]["value"]) == ("plot", "style")
    assert scores["good/grade"]["value"] == 4
    assert metrics["ending"] == 2 / 3
    assert metrics["grade (1 to 5)"] == 3
    assert (metrics["worst: plot"], metrics["worst: style"]) == (0.5, 0.5)
    # All yes-no answers: two Yes and a No about the ending, four Yes about the twist.
    assert metrics["all"] == 6 / 7
    assert 0 < metrics["stderr"] < 0.5


def run_eval(folder: Path, url: str, *words: str) -> tuple[dict[str, Any], dict[str, float]]:
    """The scores of an evaluation by a served model with their samples' metadata; its metrics."""
    environment = os.environ | {
        "SERVED_API_KEY": "none", "SERVED_BASE_URL": f"{url}/v1",
        "INSPECT_LOG_DIR": str(folder / "logs"), "FABULA_HOME": str(folder),
    }  # fmt: skip
    subprocess.run(
        [inspect_command(), "eval", *words, "-T", "style=verdict-first", "--model",
         "openai-api/served/m", "--display", "none", "--log-format", "json"],
        check=True, env=environment, capture_output=True, cwd=folder,
    )  # fmt: skip
    file = max((folder / "logs").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    log = json.loads(file.read_text())
    assert log["status"] == "success"
    assert "A good story" not in json.dumps(log["plan"]), "stories belong to samples"
    metrics = {}
    for entry in log["results"]["scores"]:
        metrics |= {name: metric["value"] for name, metric in entry["metrics"].items()}
    return {s["id"]: s["scores"]["verdict"] | {"sample": s} for s in log["samples"]}, metrics


def mixed(folder: Path, rows: list[dict[str, str]]) -> tuple[str, ...]:
    """The words of an evaluation of these stories with a rubric of every scale."""
    write_rows(folder / "stories.jsonl", rows)
    (folder / "mixed.toml").write_text(MIXED)
    return "fabula/rubric", "-T", "stories=stories.jsonl", "-T", "name=mixed.toml"


def prompt_of_signature(text: str) -> str:
    return dict(Signature.parse(text).parts)["prompt"]


def state_of(sample: Any, said: str) -> TaskState:
    """Where a sample of a log stands that a model has answered."""
    return TaskState(
        ModelName("mockllm/model"), sample.id or "", 1, sample.input, [],
        output=ModelOutput.from_content("m", said), metadata=sample.metadata,
    )  # fmt: skip


def test_samples_and_temperature_are_those_of_judge(tmp_path: Path):
    rows = [{"id": "full", "text": "A story."}, {"id": "empty", "text": " "}]
    words = (*mixed(tmp_path, rows), "-T", "samples=3")
    item, _, _, twist = load_rubric(tmp_path / "mixed.toml").items
    yes = {call_seed(0, item, 2), call_seed(0, twist, 1)}

    def answer(body: dict[str, Any], n: int) -> Reply:
        prompt = prompt_of(body)
        if "How good" in prompt:
            return f"{2 + body['seed'] % 3}. So."
        if "weakest" in prompt:
            return "plot. Thin."
        # Two of three say that the ending holds, and one of three that there is a twist.
        return "Yes. So." if (body["seed"] in yes) == ("twist" in prompt) else "No. Not so."

    with serving(answer) as server:
        scores, metrics = run_eval(tmp_path, server.url, *words)
        bodies = list(server.requests)
        warm, _ = run_eval(tmp_path, server.url, *words, "--temperature", "0.5", "--limit", "1")
    assert {body["temperature"] for body in bodies} == {1}
    assert len({body["seed"] for body in bodies}) == len(bodies) == 9
    assert scores["full/ending"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert scores["full/twist"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    # The gate is the answer that the samples come to, as in `fabula judge`.
    judged = fb.judge(
        [rows[0]], rubric=tmp_path / "mixed.toml", style="verdict-first", samples=3,
        model=lambda prompt: "3. So." if "How good" in prompt else "Yes. So.",
    )  # fmt: skip
    (expected,) = (one.missing_reason for one in judged.measurements() if one.item == "worst")
    assert scores["full/worst"]["reason"] == expected == "not_asked"
    grade = scores["full/grade"]["metadata"]
    assert (grade["n_answered"], grade["trust"]) == (3, "never checked against experts")
    assert "|temperature:1|samples:3|" in grade["signature"]
    (first,) = warm.values()
    assert "|temperature:0.5|samples:3|" in first["metadata"]["signature"]
    # Nobody is asked about a page without words, and that is no No.
    assert {scores[f"empty/{name}"]["reason"] for name in ("ending", "twist")} == {"no_words"}
    assert metrics["ending"] == pytest.approx(2 / 3, abs=1e-6)
    assert metrics["answered"] == 3
    assert (metrics["no_words"], metrics["not_asked"]) == (4, 1)


IDS = [f"{group}_{author}" for group in range(4) for author in ("GPT4", "Claude", "GPT3.5")]
ITEMS = load_rubric("ttcw").items[:2]


def release(folder: Path) -> None:
    """Twelve stories in the form of the released files, with the verdicts of three experts."""
    stories = [{"story_id": id_, "content": f"Tale {id_}.", "story_name": "T", "plot": "P"}
               for id_ in IDS]  # fmt: skip
    annotations = [
        {"story_id": id_, "expert_idx": expert, "ttcw_idx": item.index, "explanation": "",
         "binary_verdict": "Yes" if (k + item.index + (expert == k % 4)) % 2 else "No"}
        for k, id_ in enumerate(IDS) for expert in range(3) for item in ITEMS
    ]  # fmt: skip
    (folder / "ttcw_short_stories.json").write_text(json.dumps(stories))
    (folder / "ttcw_annotations.json").write_text(json.dumps(annotations))


def test_released_stories_have_the_experts_majority_for_their_target(tmp_path: Path):
    release(tmp_path)
    only = ",".join(item.id for item in ITEMS)

    def judged(prompt: str) -> str:
        k = next(k for k, id_ in enumerate(IDS) if f"Tale {id_}." in prompt)
        said = "Yes. So." if k % 3 else "No. Not so."
        return said if k else "I'm sorry, I can't."

    experts = tmp_path / "ttcw_annotations.json"
    stories = fb.read([{"id": id_, "text": f"Tale {id_}."} for id_ in IDS])
    verdicts = fb.judge(stories, model=judged, style="verdict-first", items=only)
    overall = fb.judge_agreement(verdicts, labels=experts).to_json()["judges"][0]
    prompt = prompt_of_signature(verdicts.measurements()[0].signature)
    judge = "openai-api/served/m@openai-api/served"
    known = Trust(
        judge, load_rubric("ttcw").key, "verdict-first", prompt, "all",
        kappa=0.25, low=0.125, high=0.375, n=504, n_missing=0, balanced_accuracy=0.6, data="x",
        samples=1, temperature=0.0,
    )  # fmt: skip
    TrustBook(tmp_path / "trust.jsonl").add([known, replace(known, item=ITEMS[0].id)])
    words = ("fabula/ttcw", "-T", f"stories={tmp_path}", "-T", f"items={only}")
    with serving(lambda body, _: judged(prompt_of(body))) as server:
        scores, metrics = run_eval(tmp_path, server.url, *words)
        _, other = run_eval(tmp_path, server.url, *words, "--temperature", "1", "--limit", "4")
    majority = read_experts(experts, load_rubric("ttcw")).majority()
    targets = {f"{story}/{item}": "Yes" if yes else "No" for (story, item), yes in majority.items()}
    assert {id_: one["sample"]["target"] for id_, one in scores.items()} == targets
    refused = scores[f"0_GPT4/{ITEMS[0].id}"]
    assert refused["reason"] == "refusal"
    assert refused["value"] not in (0, 1)
    assert metrics["kappa"] == pytest.approx(overall["kappa"])
    # Too few answers would differ by chance for an interval, there and here.
    assert overall["low"] is None
    assert "kappa low" not in metrics
    assert metrics["kappa of one person"] <= 1
    assert (metrics["refusal"], metrics["answered"]) == (2, 22)
    assert (metrics["trust"], metrics["trust low"], metrics["trust high"]) == (0.25, 0.125, 0.375)
    shown = refused["metadata"]["trust"]
    assert shown.startswith("kappa 0.25 [0.12, 0.38], n 504")
    assert "trust" not in other
    assert other["trust in another mode"] == 0.25


def test_labels_of_any_scale_are_compared_with(tmp_path: Path):
    rows = [{"id": f"s{k}", "text": f"Story s{k}."} for k in range(12)]
    words = mixed(tmp_path, rows)
    labels = [{"document": f"s{k}", "item": "grade", "rater": who, "value": 1 + (k + one) % 5}
              for k in range(12) for one, who in enumerate("ab")]  # fmt: skip
    pd.DataFrame(labels).to_csv(tmp_path / "labels.csv", index=False)

    def judged(prompt: str) -> str:
        k = next(k for k in reversed(range(12)) if f"Story s{k}." in prompt)
        return f"{1 + k % 5}. So." if "How good" in prompt else "Yes. So."

    with serving(lambda body, _: judged(prompt_of(body))) as server:
        _, metrics = run_eval(tmp_path, server.url, *words, "-T", "labels=labels.csv")
    verdicts = fb.judge(rows, rubric=tmp_path / "mixed.toml", model=judged, style="verdict-first")
    graded = fb.judge_agreement(verdicts, labels=tmp_path / "labels.csv").people.graded.judges
    (expected,) = (by_item["grade"] for by_item in graded.values())
    assert metrics["kappa: grade"] == pytest.approx(expected.kappa.value)
    assert metrics["kappa: grade low"] == pytest.approx(expected.kappa.low)
    assert metrics["kappa of one person: grade"] == pytest.approx(expected.people.value)
    assert "kappa" not in metrics, "nobody labelled a yes-no item"


def test_a_log_of_verdicts_is_read_again_with_the_rubric_that_was_asked(tmp_path: Path):
    (tmp_path / "mixed.toml").write_text(MIXED)
    task = rubric_task(str(ROOT / "examples" / "the-count.txt"), str(tmp_path / "mixed.toml"))
    (tmp_path / "mixed.toml").write_text(MIXED.replace("How good is it?", "How bad is it?"))
    state = state_of(task.dataset[0], "So.\nVerdict: Yes")
    with pytest.raises(PrerequisiteError) as error:
        asyncio.run(verdict(str(tmp_path / "mixed.toml"))(state, Target("")))
    assert "use the rubric that was answered" in str(error.value.message)
    with pytest.raises(PrerequisiteError) as error:
        rubric_task("x.txt", max_cost=3)
    assert "`max_cost` is not a setting here" in str(error.value.message)


def test_labelled_stories_are_shown_first_as_judge_shows_them(tmp_path: Path):
    mixed(tmp_path, [{"id": f"s{k}", "text": f"Story s{k}.", "prompt_id": f"p{k // 2}"}
                     for k in range(6)])  # fmt: skip
    labels = [{"document": f"s{k}", "item": "ending", "rater": "a", "value": "Yes",
               "reason": f"It holds in {k}."} for k in range(6)]  # fmt: skip
    pd.DataFrame(labels).to_csv(tmp_path / "labels.csv", index=False)
    options = {"style": "verdict-first", "items": "ending,twist", "shots": 2}
    stories, name, file = (str(tmp_path / n) for n in ("stories.jsonl", "mixed.toml", "labels.csv"))
    task = rubric_task(stories, name, labels=file, **options)
    asked: list[str] = []
    verdicts = fb.judge(
        stories, rubric=name, model=lambda prompt: asked.append(prompt) or "Yes. So.", labels=file,
        **options,
    )  # fmt: skip
    prompts = [str(sample.input) for sample in task.dataset]
    assert sorted(prompts) == sorted(asked)
    assert prompts[0].count("It holds in") == 2
    assert "Story s1." not in prompts[0], "it is on the same prompt"
    expected = prompt_of_signature(verdicts.measurements()[0].signature)
    assert expected.startswith("examples-2@")
    # A log that is read again holds no stories of the examples, and need not be told of them.
    for settings in (options, {**options, "shots": 0}):
        state = state_of(task.dataset[0], "Yes. So.")
        score = asyncio.run(verdict(name, **settings)(state, Target("")))
        assert prompt_of_signature(score.metadata["signature"]) == expected
    with pytest.raises(PrerequisiteError, match="needs `labels`"):
        rubric_task(stories, name, **options)
