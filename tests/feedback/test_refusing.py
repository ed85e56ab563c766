"""A refusal is missing, counted, and asked about again; what stands around a story is cut off."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_budgets import corrupted, measures, passages, plots, rationales, stories
from tests.commands import invoke, rows_of, write_rows
from tests.serving import prompt_of, serving

from fabula.stories.story_writing import WritePlan

REFUSAL = "I’m sorry, but I can’t help with that request."
TALE = ("The lamp went out at nine and nobody in the house spoke of it. " * 5).strip()
FRAMED = f"Sure! Here's the story:\n\n**The Lamp**\n\n{TALE}\n\nLet me know if you'd like changes!"


WRITING: dict[str, tuple[Callable[[Path], Path], list[str], str]] = {
    "stories plot": (stories, ["--out", "{}/o.jsonl"], "plot"),
    "stories openings": (stories, ["--kind", "novel", "--out", "{}/o.jsonl"], "text"),
    "stories write": (plots, ["--out", "{}/o.jsonl"], "text"),
    "feedback elicit": (
        corrupted, ["--prompts", "spot", "--shots", "0", "--out", "{}/o.jsonl"], "feedback"),
    "continuation generate": (passages, ["--out", "{}/o.jsonl"], "text"),
}  # fmt: skip


@pytest.mark.parametrize("command", WRITING)
def test_a_refusal_is_missing_counted_and_asked_again(command: str, tmp_path: Path):
    make, options, field = WRITING[command]
    source = make(tmp_path)
    before = ["--contexts"] if command == "continuation generate" else []
    given = [*command.split(), *before, source, *(o.format(tmp_path) for o in options)]
    out = tmp_path / ("o.rounds.jsonl" if command == "stories write" else "o.jsonl")
    replies = [REFUSAL, FRAMED if command != "feedback elicit" else "The lamp comes too early."]
    with serving(lambda *_: replies[0]) as served:
        first = invoke(*given, "--model", f"{served.url}#m")
        n = len(rows_of(out))
        assert {row["missing_reason"] for row in rows_of(out)} == {"refused"}
        assert {row[field] for row in rows_of(out)} == {None}
        assert "the model refused" in first.output
        assert f"{n:,}" in first.output
        replies.pop(0)
        n_before = len(served.requests)
        invoke(*given, "--model", f"{served.url}#m")
        assert len(served.requests) == n_before + n
    assert {row["missing_reason"] for row in rows_of(out)} == {None}
    found = rows_of(out)[0]
    if command == "feedback elicit":
        return
    assert "Sure!" not in found[field]
    assert found[field].startswith("The lamp went out at nine")
    if command != "continuation generate":
        before, after = FRAMED.split(TALE)
        assert found["frame_removed"] == [*filter(None, before.split("\n")), after.strip()]


def test_a_short_refusal_is_no_story_near_its_length(tmp_path: Path):
    plan, out = WritePlan(), tmp_path / "o.jsonl"
    assert [plan.tolerance(n) for n in (20, 150, 1000, 2000)] == [4, 30, 200, 200]
    source = write_rows(tmp_path / "plots.jsonl", [{"id": "p", "plot": "A lamp.", "n_words": 150}])
    # Not known for a refusal by its words, and much too short.
    with serving(lambda *_: "There was once a lamp.") as served:
        given = ("stories", "write", source, "--out", out, "--attempts", 1, "--model",
                 f"{served.url}#m")  # fmt: skip
        assert "not close to the target length" in invoke(*given).output
        assert rows_of(out) == []


def test_a_refusal_is_no_label_and_no_title(tmp_path: Path):
    with serving(lambda *_: REFUSAL) as served:
        model = f"{served.url}#m"
        invoke("judge", "themes", rationales(tmp_path), "--model", model,
               "--out", tmp_path / "t.jsonl")  # fmt: skip
        invoke("rubric", "make", measures(tmp_path), "--model", model, "--out", tmp_path / "r.toml")
        assert len(served.requests) > 1
    assert {theme["drafted_by"] for theme in rows_of(tmp_path / "t.jsonl")} == {"words"}
    assert "sorry" not in (tmp_path / "r.toml").read_text().casefold()


def test_a_refused_reading_is_counted_and_asked_for_again(tmp_path: Path):
    (tmp_path / "d.txt").write_text(TALE)
    refusing = [True]

    def editor(body: dict[str, Any], _: int) -> str:
        if "change something" in prompt_of(body):
            return "Yes."
        if refusing and int(body.get("seed") or 0) == 1:
            return REFUSAL
        return '- "The lamp went out at nine": it comes too early; prepare it.'

    given = ["report", tmp_path / "d.txt", "--only", "feedback", "--samples", 2]
    given += ["--points-file", tmp_path / "p.jsonl"]
    with serving(editor) as served:
        first = invoke(*given, "--model", f"{served.url}#m")
        assert "1 of the answers are not used: the model refused" in first.output
        refusing.clear()
        n = len(served.requests)
        again = invoke(*given, "--model", f"{served.url}#m")
    assert "made in 2 of 2 readings" in again.output
    assert len(served.requests) == n + 1, "only what was refused is asked for again"
