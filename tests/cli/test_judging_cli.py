"""The commands as a user types them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.commands import write_rows
from tests.exit_codes import REFUSED, check_exit
from tests.forking import fabula_command
from tests.serving import Reply, prompt_of, serving

from fabula.rubrics.load import load_rubric


def fabula(*arguments: str, code: int = 0, cwd: Path | None = None) -> str:
    done = subprocess.run([fabula_command(), *arguments], capture_output=True, text=True, cwd=cwd)
    check_exit(done, code)
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_rubrics_are_listed_shown_and_checked(tmp_path: Path):
    assert "ttcw" in fabula("rubric", "show")
    shown = fabula("rubric", "show", "ttcw")
    assert all(item.title in shown for item in load_rubric("ttcw").items)
    own = tmp_path / "own.toml"
    own.write_text(fabula("rubric", "show", "ttcw", "--toml"))
    assert load_rubric("ttcw").key in fabula("rubric", "show", "--check", str(own))
    own.write_text(own.read_text().replace("question =", "qestion =", 1))
    said = fabula("rubric", "show", "--check", str(own), code=REFUSED)
    assert "item narrative_ending, qestion: unknown field; did you mean question?" in said
    assert "item narrative_ending, question: is missing" in said


def test_published_wording_is_imported_and_never_overwrites(shared_data: Path, tmp_path: Path):
    source = str(shared_data / "ttcw" / "ttcw_all_tests.json")
    words = ("rubric", "make", source, "--out", "ttcw-published.toml")
    fabula(*words, cwd=tmp_path)
    assert "valid" in fabula("rubric", "show", "--check", "ttcw-published.toml", cwd=tmp_path)
    fabula(*words, cwd=tmp_path)
    (tmp_path / "ttcw-published.toml").write_text("mine")
    said = fabula(
        "rubric", "make", source, "--out", "ttcw-published.toml", cwd=tmp_path, code=REFUSED
    )
    assert "--out" in said


def test_judging_and_agreement_in_one_go(shared_data: Path, tmp_path: Path):
    write_rows(
        tmp_path / "stories.jsonl", ({"id": f"{k}_GPT4", "text": f"Story {k}."} for k in range(4))
    )

    def answer(body: dict[str, Any], _: int) -> Reply:
        return "Yes. Good." if "Story 1" in prompt_of(body) else "No. Bad."

    with serving(answer) as server:
        out = fabula(
            "judge", "stories.jsonl", "--model", f"{server.url}/v1#m", "--style", "verdict-first",
            "--html", "page.html", "--retest", "1", cwd=tmp_path,
        )  # fmt: skip
        as_json = fabula(
            "judge", "stories.jsonl", "--model", f"{server.url}/v1#m", "--style", "verdict-first",
            "--retest", "1", "--json", cwd=tmp_path,
        )  # fmt: skip
        assert len(server.requests) == 70
    assert "never checked against experts" in out
    assert "0 of 14 verdicts flipped" in out
    rows = json.loads(as_json)
    assert len(rows) == 70
    assert (tmp_path / "page.html").exists()
    experts = str(shared_data / "ttcw" / "ttcw_annotations.json")
    for by in ("item", "dimension", "author"):
        table = fabula(
            "judge", "agreement", "judged", "--labels", experts, "--by", by, cwd=tmp_path
        )
        assert "with the experts' majority" in table
    found = json.loads(
        fabula("judge", "agreement", "judged", "--labels", experts, "--json", cwd=tmp_path)
    )["agreement"]
    assert found["judges"][0]["n_stories"] == 4
    assert found["experts_pearson"]["value"] == pytest.approx(0.69, abs=5e-3)


def test_failures_end_a_run_with_a_code_and_a_line_and_are_asked_again_alone(tmp_path: Path):
    (tmp_path / "a.txt").write_text("The lamp went out.")

    def answer(_: dict[str, Any], number: int) -> Reply:
        if number == 3:
            return 500, {"error": {"message": "melted"}}
        return "" if number == 5 else "No. Bad."

    with serving(answer) as server:
        words = ["judge", "a.txt", "--model", f"{server.url}/v1#m", "--style", "verdict-first",
                 "--set", "models.max-retries=0", "--set", "models.parallel=1"]  # fmt: skip
        said = fabula(*words, code=1, cwd=tmp_path)
        assert "1 of 14 answers are missing, since calls failed" in said
        assert "melted" in said
        fabula(*words, cwd=tmp_path)
        assert len(server.requests) == 15
        fabula(*words, "--again", "no_answer", cwd=tmp_path)
        assert len(server.requests) == 16
    assert "--again" in fabula(*words, "--again", "boredom", code=REFUSED, cwd=tmp_path)
    said = fabula(
        *words, "--again", "no_answer", "--set=running.restart=true", code=REFUSED, cwd=tmp_path
    )
    assert "--again" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("judge", "none.txt"), "none.txt"),
        (("judge", "a.txt", "--rubric", "tctw"), "ttcw"),
        (("judge", "a.txt", "--items", "endings"), "narrative_ending"),
        (("judge", "a.txt", "--rubric", "preference"), "--pairwise"),
        (("judge", "a.txt", "--model", "gpt4"), "provider/model"),
        (("judge", "a.txt", "--model", "x.gguf"), "no such model file"),
        (("judge", "a.txt", "--set", "models.price=cheap"), "models.price"),
        (("judge", "a.txt", "--pairwise"), "at least two stories"),
        (("judge", "a.txt", "--model", "replay:none.jsonl"), "none.jsonl"),
        (("judge", "calibrate", "."), "creativity_eval"),
        (("judge", "agreement", ".", "--labels", "a.txt"), "is not a run"),
        (("judge", "themes", "a.txt"), "a.txt"),
        (("replicate", "ttcw", "."), "creativity_eval"),
        (("rubric", "show", "--check", "a.txt"), "not TOML"),
        (("stories", "write", "a.txt", "--out", "o.jsonl"), "line 1"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str):
    (tmp_path / "a.txt").write_text("The lamp went out.\n")
    error = fabula(*arguments, cwd=tmp_path, code=REFUSED)
    assert said in error
    assert len(error.strip().splitlines()) <= 4
