"""`fabula diversity` as a user calls it: tables, JSON, files, and from Python."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

import fabula as fb
from fabula.cli.main import cli

WORDS = [f"w{k}" for k in range(50)]


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    """Twelve stories by each of two models on the same prompts; those of one begin alike."""
    rng = random.Random(0)
    rows = []
    for k in range(24):
        model = ("plain", "stock")[k % 2]
        opening = "once upon a time in a small town " if model == "stock" else ""
        rows.append(
            {
                "id": f"s{k}",
                "model": model,
                "prompt": f"Tell of {WORDS[k // 2]} and the sea.",
                "text": opening + " ".join(rng.choices(WORDS, k=40)),
            }
        )
    file = tmp_path / "stories.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def run(*args: object) -> str:
    done = CliRunner().invoke(cli, ["diversity", *map(str, args), "--permutations", "99"])
    assert done.exit_code == 0, (done.stderr, done.exception)
    return done.stdout


def test_json_has_groups_with_intervals_tests_and_the_signature(stories: Path) -> None:
    found = json.loads(run(stories, "--by", "model", "--prompt", "prompt", "--pairs", 2, "--json"))
    assert found.keys() >= {"groups", "tests", "pairs", "left_out", "signature"}
    stock = found["groups"]["stock"]
    assert stock["n"] == 12
    assert stock["shared_ngrams"].keys() == {"3", "4", "5", "6", "7", "8"}
    one = stock["shared_ngrams"]["4"]
    assert one["low"] < one["value"] < one["high"]
    assert {"compression", "self_bleu", "self_repetition", "distinct"} <= stock.keys()
    assert stock["phrases"][0]["n_texts"] == 12
    test = next(t for t in found["tests"] if (t["measure"], t["n"]) == ("shared_ngrams", 4))
    assert test["p_holm"] == test["p"] == 0.01
    assert "|draws:prompts,5|" in found["signature"]
    assert found["left_out"].keys() == {"templates", "embeddings"}
    assert found["pairs"][0]["longest_run"] >= 8


def test_tables_are_shown_and_written_with_their_intervals(stories: Path, tmp_path: Path) -> None:
    out = tmp_path / "d.csv"
    shown = run(stories, "--by", "model", "--pairs", 1, "--csv", out)
    assert "shared 4-grams" in shown
    assert "phrases of stock" in shown
    assert "words in common runs" in shown
    assert "see --with" in shown
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert {"measure", "group", "value", "value_low", "value_high"} <= rows[0].keys()
    assert {path.name for path in tmp_path.glob("d.*")} == {
        "d.csv",
        "d.csv.provenance.json",
        "d.tests.csv",
        "d.phrases.csv",
        "d.pairs.csv",
    }


def test_python_gives_what_the_command_prints(stories: Path) -> None:
    printed = json.loads(run(stories, "--by", "model", "--json"))
    result = fb.diversity(str(stories), by="model", n_permutations=99)
    assert json.loads(json.dumps(result.to_json())) == printed
    frame = result.wide()
    assert len(frame) == 2 * 13
    assert "compression ratio" in str(result)
    with pytest.raises(fb.SettingsError, match="did you mean `n_pairs`"):
        fb.diversity(str(stories), n_pair=3)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["--baseline", "plain"],
            "--baseline is a group; name the field that groups the texts with --by",
        ),
        (["--encoder", "x"], "--encoder is only for --with embeddings"),
        (["--by", "writer"], "no text has the field 'writer'"),
    ],
)
def test_what_cannot_be_done_is_said(stories: Path, args: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["diversity", str(stories), *args])
    assert done.exit_code != 0
    assert said in done.stderr + str(done.exception)


@pytest.fixture
def apart(stories: Path, tmp_path: Path) -> list[Path]:
    """The results of both models, measured apart and saved."""
    files = []
    for model in ("plain", "stock"):
        texts = tmp_path / f"{model}.jsonl"
        lines = stories.read_text("utf-8").splitlines()
        texts.write_text("\n".join(line for line in lines if model in line), encoding="utf-8")
        files.append(tmp_path / f"{model}.json")
        shown = run(texts, "--words", 40, "--texts", 10, "--json")
        files[-1].write_text(shown, encoding="utf-8")
    return files


def compare(*args: object) -> str:
    done = CliRunner().invoke(cli, ["compare", *map(str, args)])
    assert done.exit_code == 0, (done.stderr, done.exception)
    return done.stdout


def test_results_measured_apart_are_compared(apart: list[Path], tmp_path: Path) -> None:
    found = json.loads(compare(*apart, "--json"))
    assert found["groups"].keys() == {"plain", "stock"}
    assert "|texts:10|" in found["signature"]
    test = next(t for t in found["tests"] if (t["measure"], t["n"]) == ("self_bleu", None))
    assert test["difference"]["high"] < 0
    assert test["p_holm"] == test["p"] < 0.001
    assert test["test"] == "jackknife t"
    out = tmp_path / "c.csv"
    shown = compare(*apart, "--csv", out)
    assert "t-test by the jackknife" in shown
    assert {path.name for path in tmp_path.glob("c.*csv")} == {"c.csv", "c.tests.csv"}
    # What was compared is a result of diversity too.
    joined = tmp_path / "joined.json"
    joined.write_text(json.dumps(found), encoding="utf-8")
    assert json.loads(compare(joined, "--json")) == found


def test_python_compares_what_the_command_compares(apart: list[Path]) -> None:
    printed = json.loads(compare(*apart, "--json"))
    found = fb.compare([apart[0], str(apart[1])])
    assert json.loads(json.dumps(found.to_json())) == printed
    results = [
        fb.diversity(str(one.with_suffix(".jsonl")), n_words=40, n_texts=10, n_permutations=99)
        for one in apart
    ]
    own = fb.compare(results)
    assert len(own.wide()) == 2 * 13
    values = [[t["difference"]["value"], t["p"]] for t in own.to_json()["tests"]]
    assert values == [[t["difference"]["value"], t["p"]] for t in printed["tests"]]
    with pytest.raises(fb.InputError, match="not both together"):
        fb.compare([results[0], {"id": "a"}])
    with pytest.raises(fb.SettingsError, match="`by` is missing"):
        fb.compare([{"id": "a"}])


def test_what_cannot_be_compared_is_refused_in_a_sentence(
    apart: list[Path], stories: Path, tmp_path: Path
) -> None:
    longer = tmp_path / "longer.json"
    longer.write_text(run(stories, "--by", "model", "--words", 30, "--json"), encoding="utf-8")
    scores = tmp_path / "scores.jsonl"
    scores.write_text('{"id":"a","creativity_index":7.0}\n', encoding="utf-8")
    for args, said in [
        ([apart[0], longer], "(words: 40 | 30; texts: 10 | 12); measure both with the same"),
        ([apart[0], scores], "is a result of diversity, but"),
        ([apart[0], apart[0]], "a result is listed twice"),
        ([*apart, "--by", "model"], "--by applies to scores only"),
        ([scores], "--by is missing; set it to the field"),
    ]:
        done = CliRunner().invoke(cli, ["compare", *map(str, args)])
        assert done.exit_code != 0
        assert said in " ".join((done.stderr + str(done.exception)).split())


def test_more_texts_than_a_group_has_are_not_drawn(stories: Path) -> None:
    done = CliRunner().invoke(cli, ["diversity", str(stories), "--by", "model", "--texts", "13"])
    assert done.exit_code != 0
    assert "--texts 13: plain has only 12 texts of" in done.stderr + str(done.exception)
