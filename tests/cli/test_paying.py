"""Every command that has models write asks before it costs money, and holds --max-cost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_judging_cli import fabula
from tests.exit_codes import REFUSED
from tests.serving import Reply, completion, serving

STORIES = [{"id": f"s{k}", "text": f"Tale {k}. She went to sea and came back older."}
           for k in range(6)]  # fmt: skip
PLOTS = [{"id": f"s{k}", "plot": "She goes to sea.", "n_words": 8, "verified": True}
         for k in range(6)]  # fmt: skip
PASSAGES = [{"id": f"s{k}", "context": [f"Tale {k}.", "She went to sea."], "gold": "It rained.",
             "source": "b"} for k in range(6)]  # fmt: skip


def stories(folder: Path) -> list[str]:
    return ["stories", "plot", str(folder / "in.jsonl"), "--out", str(folder / "out.jsonl")]


def write(folder: Path) -> list[str]:
    return ["stories", "write", str(folder / "plots.jsonl"), "--out", str(folder / "out.jsonl")]


def openings(folder: Path) -> list[str]:
    return ["stories", "openings", str(folder / "in.jsonl"), "--kind", "novel", "--out",
            str(folder / "out.jsonl")]  # fmt: skip


def reference(folder: Path) -> list[str]:
    return ["reference", "build", str(folder / "in.jsonl"), "--out",
            str(folder / "out.ref")]  # fmt: skip


def continuations(folder: Path) -> list[str]:
    return ["continuation", "generate", "--contexts", str(folder / "passages.jsonl"), "--out",
            str(folder / "out.jsonl")]  # fmt: skip


def named(command: Any) -> str:
    return "--written-by" if command is reference else "--model"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("in", STORIES), ("plots", PLOTS), ("passages", PASSAGES)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    return tmp_path


@pytest.mark.parametrize("command", [stories, write, openings, reference, continuations])
def test_no_command_spends_more_than_it_may_or_without_being_told(
    command: Callable[[Path], list[str]], folder: Path
):
    def steady(_: dict[str, Any], __: int) -> str:
        return "She went to sea and came back older."

    with serving(steady) as served:
        model = "--written-by" if command is reference else "--model"
        given = [*command(folder), model, f"{served.url}/v1#m", "--set", "models.max-retries=0",
                 "--set", "models.structured=false", "--set", "models.parallel=1"]  # fmt: skip
        said = fabula(*given, "--set", "models.price=1/10", code=REFUSED)
        assert "cannot confirm the cost: not a terminal (use --yes)" in said
        assert served.requests == []
        # A call may take its longest answer: 1e6 dollars a million tokens leave room for none.
        said = fabula(
            *given, "--set", "models.price=1/1000000", "--max-cost", "0.5", "--yes", code=REFUSED
        )
        assert "--max-cost 0.5 leaves no room" in said
        assert served.requests == []
        # And without a price there is no limit that could be held.
        assert "--max-cost needs the model's price" in fabula(
            *given, "--max-cost", "1", code=REFUSED
        )
        fabula(*given, "--set", "models.price=1/10", "--max-cost", "1", "--yes")
        n = len(served.requests)
        assert n >= 6
        # A run includes its resumes: with room for two calls and a half, two are made and no more.
        most = max(body.get("max_tokens") or body["max_completion_tokens"]
                   for body in served.requests)  # fmt: skip
        most = (most + max(len(text.encode()) for text in served.prompts())) / 1e6
        limit = f"{most + 1.5 * 105e-6:.7f}"
        for again in (["--set=running.restart=true"], [], []):
            said = fabula(*given, *again, "--set", "models.price=1/1", "--max-cost", limit, "--yes",
                          code=REFUSED)  # fmt: skip
            assert "leaves no room" in said
            n_new, n = len(served.requests) - n, len(served.requests)
            assert (1 <= n_new <= 3) if again else n_new == 0


def test_a_model_that_changes_its_name_is_told_of(folder: Path):
    def changing(_: dict[str, Any], n: int) -> Reply:
        return 200, completion("She went to sea.") | {"model": "old" if n < 3 else "new"}

    with serving(changing) as served:
        fabula(*openings(folder), "--model", f"{served.url}/v1#m", "--set",
               "models.structured=false",
               "--set", "models.parallel=1", "--set", "models.price=0/0", "--yes",
               "--log", str(folder / "log"))  # fmt: skip
    said = (folder / "log").read_text()
    assert "answered as old and as new: it is not one model throughout" in said
