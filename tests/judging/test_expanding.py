"""A draft rubric expanded by a model."""

import json
from pathlib import Path
from typing import Any

from click.testing import Result
from tests.commands import invoke, refused
from tests.judging.judged_stories import rubric_text
from tests.serving import Reply, prompt_of, serving

from fabula.core.errors import ModelError
from fabula.rubrics.load import load_rubric

DRAFT = rubric_text(
    "mine",
    {"warm": "Is it warm?",
     "kind": {"question": "Is it kind?", "background": "Kind means kind.",
              "list_first": "List the kind acts."}},
    version="draft",
)  # fmt: skip


def expanding(body: dict[str, Any], _: int) -> Reply:
    prompt = prompt_of(body)
    about = "warm" if "Is it warm?" in prompt else "kind"
    if "other ways" in prompt:
        return f"1. Does it have {about}th?\n- Would one call it {about}?\n\nIs it {about}?"
    if "Begin with a verb" in prompt:
        return "List what is warm."
    return f"Sure! Here is the paragraph:\n\nWhat readers mean by {about} is this."


def run(tmp_path: Path, says: Any, *more: str) -> Result:
    (tmp_path / "mine.toml").write_text(DRAFT)
    with serving(says) as server:
        return invoke("rubric", "make", tmp_path / "mine.toml", "--out", tmp_path / "out.toml",
                      "--model", f"{server.url}/v1#m", "--yes", "--set", "models.max-retries=0",
                      *more, code=None)  # fmt: skip


def test_what_an_item_lacks_is_written_and_what_it_has_stays(tmp_path: Path):
    result = run(tmp_path, expanding, "--paraphrases", "2", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_written"] == 4
    warm, kind = load_rubric(tmp_path / "out.toml").items
    assert warm.background == "What readers mean by warm is this."
    assert warm.list_first == "List what is warm."
    # The question itself is no paraphrase of it.
    assert warm.paraphrases == ("Does it have warmth?", "Would one call it warm?")
    assert (kind.background, kind.list_first) == ("Kind means kind.", "List the kind acts.")
    assert "to be verified by experts" in load_rubric(tmp_path / "out.toml").wording


def test_a_refusal_or_too_few_paraphrases_are_missing_and_counted(tmp_path: Path):
    def says(body: dict[str, Any], number: int) -> Reply:
        if "at most 150 words" in prompt_of(body):
            return "I'm sorry, but I can't help with that."
        return expanding(body, number)

    result = run(tmp_path, says, "--paraphrases", "3", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["n_written"], found["missing"]) == (1, {"no_answer": 2, "refused": 1})
    assert load_rubric(tmp_path / "out.toml").items[0].background == ""


def test_nothing_is_written_where_there_is_nothing_to_write(tmp_path: Path):
    result = run(tmp_path, lambda *_: (500, {"error": {"message": "down"}}))
    assert isinstance(result.exception, ModelError)
    assert "returned no usable text" in str(result.exception)
    assert not (tmp_path / "out.toml").exists()
    assert "there is nothing to write" in refused(
        "rubric", "make", "ttcw", "--out", tmp_path / "o.toml", "--model", "none"
    )


def test_one_model_expands(tmp_path: Path):
    assert "must be a single model here" in run(tmp_path, expanding, "--model", "other").output
