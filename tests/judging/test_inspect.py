"""The same rubric, run by Inspect AI against a real server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.forking import inspect_command
from tests.serving import Reply, prompt_of, serving


def test_inspect_runs_ttcw_and_leaves_what_has_no_verdict_unscored(
    examples: Path, tmp_path: Path
) -> None:
    def answer(body: dict[str, Any], _: int) -> Reply:
        prompt = prompt_of(body)
        if "cliches" in prompt.rpartition("Question:")[2]:
            return "I'm sorry, I can't."
        return "Yes. Good." if "ending" in prompt.rpartition("Question:")[2] else "No. Bad."

    with serving(answer) as server:
        environment = os.environ | {
            "SERVED_API_KEY": "none",
            "SERVED_BASE_URL": f"{server.url}/v1",
            "INSPECT_LOG_DIR": str(tmp_path),
        }
        command = [
            inspect_command(), "eval", "fabula/ttcw", "--model", "openai-api/served/m", "-T",
            f"stories={examples / 'the-count.txt'}", "-T", "style=verdict-first",
            "--display", "none", "--log-format", "json",
        ]  # fmt: skip
        subprocess.run(command, check=True, env=environment, capture_output=True, cwd=tmp_path)
    (file,) = tmp_path.glob("*.json")
    log = json.loads(file.read_text())
    assert log["status"] == "success"
    assert len(server.requests) == 14
    scores = {s["metadata"]["item"]: s["scores"]["verdict"] for s in log["samples"]}
    assert scores["narrative_ending"]["value"] == 1
    assert scores["rhetorical_complexity"]["value"] == 0
    refused = scores["originality_in_thought"]
    assert refused["reason"] == "refusal"
    assert refused["value"] not in (0, 1)
    metrics = {
        name: metric["value"]
        for entry in log["results"]["scores"]
        for name, metric in entry["metrics"].items()
    }
    assert metrics["narrative_ending"] == 1
    assert metrics["all"] < 0.2


MIXED = """
id = "mixed"
version = "1"
title = "Mixed"
[[items]]
id = "ending"
index = 1
title = "Ending"
question = "Does the ending hold?"
[[items]]
id = "grade"
index = 2
title = "Grade"
question = "How good is it?"
scale = { kind = "number", low = 1, high = 5 }
show_if = "ending == 'Yes'"
[[items]]
id = "worst"
index = 3
title = "Weakest part"
question = "What is weakest?"
scale = { kind = "choice", options = ["plot", "style"] }
show_if = "ending == 'No' or grade < 3"
[[items]]
id = "twist"
index = 4
title = "Twist"
question = "Is there a twist?"
"""


def test_inspect_heeds_conditions_and_keeps_scales_apart(tmp_path: Path) -> None:
    # One story passes with 4 of 5, one with 2 of 5, one fails, of one the gate is not answered.
    stories = tmp_path / "stories.jsonl"
    names = ("good", "fair", "bad", "odd")
    stories.write_text(
        "".join(json.dumps({"id": n, "text": f"A {n} story."}) + "\n" for n in names)
    )
    (tmp_path / "mixed.toml").write_text(MIXED)

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
        environment = os.environ | {
            "SERVED_API_KEY": "none",
            "SERVED_BASE_URL": f"{server.url}/v1",
            "INSPECT_LOG_DIR": str(tmp_path),
        }
        command = [
            inspect_command(), "eval", "fabula/rubric", "--model", "openai-api/served/m", "-T",
            f"stories={stories}", "-T", f"name={tmp_path / 'mixed.toml'}", "-T",
            "style=verdict-first", "--display", "none", "--log-format", "json",
        ]  # fmt: skip
        subprocess.run(command, check=True, env=environment, capture_output=True, cwd=tmp_path)
    (file,) = tmp_path.glob("*.json")
    log = json.loads(file.read_text())
    assert log["status"] == "success"
    # Four endings, four twists, two grades, two weakest parts: no gate is asked twice.
    assert len(server.requests) == 12
    scores = {s["id"]: s["scores"]["verdict"] for s in log["samples"]}
    assert scores["good/worst"]["reason"] == scores["bad/grade"]["reason"] == "not_asked"
    assert scores["odd/grade"]["reason"] == scores["odd/worst"]["reason"] == "gate_missing"
    assert (scores["fair/worst"]["value"], scores["bad/worst"]["value"]) == ("plot", "style")
    assert scores["good/grade"]["value"] == 4
    metrics = {
        name: metric["value"]
        for entry in log["results"]["scores"]
        for name, metric in entry["metrics"].items()
    }
    assert metrics["ending"] == 2 / 3
    assert metrics["grade (1 to 5)"] == 3
    assert (metrics["worst: plot"], metrics["worst: style"]) == (0.5, 0.5)
    # All yes-no answers: two Yes and a No about the ending, four Yes about the twist.
    assert metrics["all"] == 6 / 7
    assert 0 < metrics["stderr"] < 0.5
    assert "A good story" not in json.dumps(log["plan"]), "stories belong to samples"
