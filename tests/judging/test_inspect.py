"""The same rubric, run by Inspect AI against a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
        inspect = Path(sys.executable).with_name("inspect")
        command = [
            str(inspect), "eval", "fabula/ttcw", "--model", "openai-api/served/m", "-T",
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
