"""The commands as a user types them."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.exit_codes import REFUSED, check_exit
from tests.forking import fabula_command
from tests.serving import Reply, serving

from fabula.rubrics.load import load_rubric


def fabula(*arguments: str, code: int = 0, cwd: Path | None = None) -> str:
    done = subprocess.run([fabula_command(), *arguments], capture_output=True, text=True, cwd=cwd)
    check_exit(done, code)
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_rubric_of_ones_own_is_written_and_checked(tmp_path: Path):
    own = tmp_path / "own.toml"
    own.write_text(fabula("rubric", "show", "ttcw", "--toml"))
    assert load_rubric("ttcw").key in fabula("rubric", "show", "--check", str(own))
    own.write_text(own.read_text().replace("question =", "qestion =", 1))
    said = fabula("rubric", "show", "--check", str(own), code=REFUSED)
    assert "item narrative_ending, qestion: unknown field; did you mean question?" in said
    assert "item narrative_ending, question: is missing" in said


def test_published_wording_is_imported_and_never_overwrites(shared_data: Path, tmp_path: Path):
    source = str(shared_data / "ttcw" / "ttcw_all_tests.json")
    words = ("rubric", "make", source, "--out", "own.toml")
    fabula(*words, cwd=tmp_path)
    assert "valid" in fabula("rubric", "show", "--check", "own.toml", cwd=tmp_path)
    fabula(*words, cwd=tmp_path)
    (tmp_path / "own.toml").write_text("mine")
    assert "--out" in fabula(*words, cwd=tmp_path, code=REFUSED)


@pytest.mark.parametrize(
    ("by", "row"),
    [("item", "48 0.47 0.25 to 0.65"), ("dimension", "Flexibility 144 0.36"),
     ("author", "NewYorker 168 0.19")],
)  # fmt: skip
def test_agreement_is_shown_by_what_is_asked_for(
    by: str, row: str, shared_data: Path, tmp_path: Path
):
    experts = str(shared_data / "ttcw" / "ttcw_annotations.json")
    shown = fabula("judge", "agreement", "--labels", experts, "--by", by, cwd=tmp_path)
    assert row in " ".join(shown.split())


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
    for again in (["boredom"], ["no_answer", "--set=running.restart=true"]):
        assert "--again" in fabula(*words, "--again", *again, code=REFUSED, cwd=tmp_path)


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
