"""`fabula phrases` and `fabula report --phrases` as a user types them."""

import json
import random
from pathlib import Path

import pytest
from tests.commands import invoke, refused, write_rows

import fabula as fb

WORDS = [f"w{k}" for k in range(40)]
WITHOUT = ["--without", "profile"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixteen stories by models, most of which begin alike, and as many by people."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    rows: dict[str, list[dict[str, str]]] = {"machine": [], "human": []}
    for k in range(32):
        label = ("machine", "human")[k % 2]
        opening = "once upon a time there was" if label == "machine" and k > 3 else ""
        text = f"{opening} {' '.join(rng.choices(WORDS, k=30))}"
        rows[label].append({"id": f"s{k}", "label": label, "theme": f"t{k % 3}", "text": text})
    for name, some in (rows | {"all": [*rows["machine"], *rows["human"]]}).items():
        write_rows(tmp_path / f"{name}.jsonl", some)
    return tmp_path


def test_two_files_or_a_field_give_the_same(folder: Path):
    two = json.loads(invoke("phrases", "machine.jsonl", "human.jsonl", "--json").stdout)
    by = ["phrases", "all.jsonl", "--by", "label"]
    assert two == json.loads(invoke(*by, "--json").stdout)
    assert {one["over"] for one in two["phrases"]} == {"machine"}
    assert "once upon a time there" in {one["phrase"] for one in two["phrases"]}
    assert all(one["p_holm"] <= 0.05 for one in two["phrases"])
    turned = json.loads(invoke(*by, "--of", "human", "--json").stdout)
    assert turned["a"]["name"] == "human"
    assert turned["phrases"][0]["log_odds"] == pytest.approx(-two["phrases"][0]["log_odds"])
    shown = " ".join(invoke("phrases", "machine.jsonl", "human.jsonl").stdout.split())
    assert "no phrase that human uses more often passes the test" in shown
    assert "A is machine, 16 texts; B is human, 16 texts; 30 words of each" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("all.jsonl", "must name a field of A, or A and B"),
        ("all.jsonl all.jsonl", "was given for both groups"),
        ("all.jsonl --by model", "no text has the field 'model'"),
        ("all.jsonl --by theme", "name one with --of"),
        ("all.jsonl --by label --of people", "--of people: no such group"),
        ("human.jsonl --by label", "all texts have the same label"),
        ("all.jsonl --by label --background infinigram:v4",
         "--background infinigram:v4: must be a corpus"),
        ("all.jsonl human.jsonl --words 500", "fewer words with --words"),
        ("machine.jsonl human.jsonl --out human.jsonl", "is already read or written"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(folder: Path, words: str, said: str):
    assert said in refused("phrases", *words.split())


def test_phrases_are_marked_in_a_draft_which_says_that_it_is_no_detector(folder: Path):
    invoke("phrases", "machine.jsonl", "human.jsonl", "--out", "list.jsonl")
    (folder / "draft.txt").write_text("Once upon a time there was <b>no</b> lamp.\n\nNobody.")
    (folder / "own.json").write_text('["nobody"]')
    given = ["report", "draft.txt", "--phrases", "list.jsonl", "--phrases", "own.json", *WITHOUT]
    shown = invoke(*given).stdout
    assert "This is not a detector." in shown
    assert "human 0.00 in 1,000 words; in 14 of 16 and 0 of 16 texts" in " ".join(shown.split())
    page = (folder / "report.html").read_text()
    assert ">Once upon a time there</a>" in page
    assert ">Nobody</a>" in page
    assert "This is not a detector." in page
    assert "monroe2008fightin" in page
    found = json.loads(invoke(*given, "--json").stdout)
    (measured,) = found["texts"][0]["instruments"]["phrases"]
    assert measured["value"] > 100
    assert found["signatures"]["phrases"].startswith("phrase-list|list:machine@")
    assert found["texts"][0]["instruments"]["phrases2"][0]["evidence"] == [[44, 50]]
    # What a run looks for is gone with it.
    assert "instruments" not in json.loads(invoke("report", "draft.txt", *WITHOUT, "--json").stdout)
    assert invoke("report", "draft.txt", "--phrases", "draft.txt", *WITHOUT, code=1)


MORE_WORDS = [f"w{k}" for k in range(50)]


@pytest.fixture
def story_file(tmp_path: Path) -> Path:
    """Twelve stories by each of two models on the same prompts; those of one begin alike."""
    rng = random.Random(0)
    rows = []
    for k in range(24):
        opening = "once upon a time in a small town " if k % 2 else ""
        text = opening + " ".join(rng.choices(MORE_WORDS, k=40))
        asked = f"Tell of {MORE_WORDS[k // 2]} and the sea."
        model = ("plain", "stock")[k % 2]
        rows.append({"id": f"s{k}", "text": text, "model": model, "prompt": asked})
    return write_rows(tmp_path / "stories.jsonl", rows)


def diversity(*args: object) -> str:
    return invoke("diversity", *args, "--set", "tests.permutations=99").stdout


def test_prompts_and_pairs_reach_the_result_and_its_files(story_file: Path, tmp_path: Path):
    words = (story_file, "--by", "model", "--prompt", "prompt", "--pairs", 2)
    found = json.loads(diversity(*words, "--json"))
    stock = found["groups"]["stock"]
    assert (stock["n"], stock["phrases"][0]["n_texts"]) == (12, 12)
    test = next(t for t in found["contrasts"] if t["number"] == "shared_ngrams.4")
    assert test["p_adjusted"] == test["p"] == 0.01
    assert "|draws:prompts,5|" in found["signature"]
    assert found["left_out"].keys() == {"templates", "embeddings"}
    assert found["pairs"][0]["longest_run"] >= 8
    assert "see --with" in diversity(*words, "--csv", tmp_path / "d.csv")
    assert {path.name for path in tmp_path.glob("d.*")} == {
        "d.csv", "d.csv.provenance.json", "d.tests.csv", "d.phrases.csv", "d.pairs.csv",
    }  # fmt: skip


def test_python_gives_what_the_command_prints(story_file: Path):
    printed = json.loads(diversity(story_file, "--by", "model", "--json"))
    result = fb.diversity(str(story_file), by="model", permutations=99)
    assert json.loads(json.dumps(result.to_json())) == printed
    assert len(result.frame()) == 2 * 13
    assert "compression ratio" in str(result)
    with pytest.raises(fb.SettingsError, match="did you mean `pairs`"):
        fb.diversity(str(story_file), pair=3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--baseline plain", "--baseline is a group; name the field that groups the texts with"),
        ("--set tools.encoder=x", "--set tools.encoder is only for --with embeddings"),
        ("--by writer", "no text has the field 'writer'"),
        ("--by model --each 13", "--each 13: plain has only 12 texts of"),
    ],
)
def test_what_cannot_be_done_is_said(story_file: Path, words: str, said: str):
    assert said in refused("diversity", story_file, *words.split())


def test_a_result_is_not_compared_as_scores(story_file: Path, tmp_path: Path):
    result = tmp_path / "d.json"
    result.write_text(diversity(story_file, "--by", "model", "--json"), encoding="utf-8")
    said = refused("compare", result, "--by", "model")
    assert "a result of diversity, whose numbers are of groups and not of texts" in said
