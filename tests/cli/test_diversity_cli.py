"""`fabula diversity` as a user calls it: tables, JSON, files, and from Python."""

import json
import random
from pathlib import Path

import pytest
from tests.commands import invoke, refused, write_rows

import fabula as fb

WORDS = [f"w{k}" for k in range(50)]


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    """Twelve stories by each of two models on the same prompts; those of one begin alike."""
    rng = random.Random(0)
    rows = []
    for k in range(24):
        opening = "once upon a time in a small town " if k % 2 else ""
        text = opening + " ".join(rng.choices(WORDS, k=40))
        about = {
            "model": ("plain", "stock")[k % 2],
            "prompt": f"Tell of {WORDS[k // 2]} and the sea.",
        }
        rows.append({"id": f"s{k}", "text": text, **about})
    return write_rows(tmp_path / "stories.jsonl", rows)


def run(*args: object) -> str:
    done = invoke("diversity", *args, "--set", "tests.permutations=99")
    return done.stdout


def test_prompts_and_pairs_reach_the_result_and_its_files(stories: Path, tmp_path: Path):
    words = (stories, "--by", "model", "--prompt", "prompt", "--pairs", 2)
    found = json.loads(run(*words, "--json"))
    stock = found["groups"]["stock"]
    assert (stock["n"], stock["phrases"][0]["n_texts"]) == (12, 12)
    test = next(t for t in found["contrasts"] if t["number"] == "shared_ngrams.4")
    assert test["p_adjusted"] == test["p"] == 0.01
    assert "|draws:prompts,5|" in found["signature"]
    assert found["left_out"].keys() == {"templates", "embeddings"}
    assert found["pairs"][0]["longest_run"] >= 8
    assert "see --with" in run(*words, "--csv", tmp_path / "d.csv")
    assert {path.name for path in tmp_path.glob("d.*")} == {
        "d.csv", "d.csv.provenance.json", "d.tests.csv", "d.phrases.csv", "d.pairs.csv",
    }  # fmt: skip


def test_python_gives_what_the_command_prints(stories: Path):
    printed = json.loads(run(stories, "--by", "model", "--json"))
    result = fb.diversity(str(stories), by="model", permutations=99)
    assert json.loads(json.dumps(result.to_json())) == printed
    frame = result.frame()
    assert len(frame) == 2 * 13
    assert "compression ratio" in str(result)
    with pytest.raises(fb.SettingsError, match="did you mean `pairs`"):
        fb.diversity(str(stories), pair=3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--baseline plain", "--baseline is a group; name the field that groups the texts with"),
        ("--set tools.encoder=x", "--set tools.encoder is only for --with embeddings"),
        ("--by writer", "no text has the field 'writer'"),
        ("--by model --each 13", "--each 13: plain has only 12 texts of"),
    ],
)
def test_what_cannot_be_done_is_said(stories: Path, words: str, said: str):
    done = invoke("diversity", stories, *words.split(), code=None)
    assert done.exit_code != 0
    assert said in done.stderr + str(done.exception)


def test_a_result_is_not_compared_as_scores(stories: Path, tmp_path: Path):
    result = tmp_path / "d.json"
    result.write_text(run(stories, "--by", "model", "--json"), encoding="utf-8")
    said = refused("compare", result, "--by", "model")
    assert "a result of diversity, whose numbers are of groups and not of texts" in said
